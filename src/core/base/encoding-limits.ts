/** Bounds of how a column is encoded, and of how rows are read into one, each with its reason; the others are in `limits.ts`. */

/** Rows whose encoded and compressed size decides a column's Parquet encoding: half a page, a tenth of the cost of all. */
export const ENCODING_SAMPLE_ROWS = 2048;

/** Rows after which a column's encoding is chosen again: one large row group, or eight small ones. */
export const ENCODING_CHOICE_ROWS = 65_536;

/**
 * Plain bytes below which a chunk is written plain untried: trying compresses three or four times at 50 µs, and the best
 * encoding would save less than the chunk's own entry in the footer takes.
 */
export const ENCODING_TRIAL_BYTES_MIN = 256;

/** Dictionary page before compression, as in parquet-java. A reader must hold it whole; beyond it a chunk is plain. */
export const DICTIONARY_PAGE_BYTES_MAX = 1024 * 1024;

/** Texts of a column of plain NDJSON rows that are known by their bytes: names of series and states, not ids that come once. */
export const PLAIN_TEXTS_MAX = 4096;

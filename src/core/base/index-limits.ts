/** Bounds of last-value indexes, each with its reason; the others are in `limits.ts`. */

/** Series of a table for which the newest row of each is kept, unless `sluice.last-value-series-max` says otherwise; and the
 * most that it may say. Every append merges and writes them all: 3 ms for 1,000 of a few columns, some 150 ms for 100,000. */
export const LAST_VALUE_SERIES_DEFAULT = 100_000;
export const INDEX_ROWS_MAX = 1_000_000;

/** Rows of one last-value index, as typed columns. They are held three times while they are merged. */
export const INDEX_BYTES_MAX = 16 * 1024 * 1024;

/** Bytes of an index file that are read at most: what is larger would not fit as columns. */
export const INDEX_FILE_BYTES_MAX = 16 * 1024 * 1024;

/** Indexes kept in memory: that of main, of a branch or two, and of an attempt that was lost; and their bytes together. */
export const INDEXES_KEPT_MAX = 4;
export const INDEXES_KEPT_BYTES_MAX = 16 * 1024 * 1024;

/** Bytes of data files that are looked through for the newest row of each series where a table has no index: some eight
 * seconds of reading, below what one request may compute by default. */
export const INDEX_SCAN_BYTES_MAX = 512 * 1024 * 1024;

/** Data files of such a look: each takes two requests, mostly, and the platform lets one invocation make 10,000. */
export const INDEX_SCAN_FILES_MAX = 4_000;

/** Typed columns of one window of such a look, and what is gathered of windows before it is folded. */
export const INDEX_WINDOW_ROWS = 8192;
export const INDEX_FOLD_BYTES = 4 * 1024 * 1024;

/** Looks at what appends have added meanwhile, before a table is found too busy for its index to be made. */
export const INDEX_TRIES_MAX = 8;

/** The same for one request that asks for the newest rows of a table without an index: about a second. */
export const LATEST_SCAN_BYTES_MAX = 64 * 1024 * 1024;
export const LATEST_SCAN_FILES_MAX = 1_000;

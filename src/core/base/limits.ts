/**
 * Every bound of the service, with its reason. Loops, queues, retries, caches and buffers take their limit from here
 * (or from a table property that is itself bounded here).
 */

/** Rows of one page, aligned over all columns: 8-byte values then take 32 KiB, below `ZSTD_INPUT_BYTES_MAX`. */
export const PAGE_ROWS = 4096;

/** Rows of a row group in files made by an append. Small, so that a compaction window is one range read. */
export const INGEST_ROW_GROUP_ROWS = 8192;

/** zstd in one call: workerd before 1.20261117 throws when its output passes 40,960 bytes; expansion stays below that. */
export const ZSTD_INPUT_BYTES_MAX = 40_000;

/** Body of one request after inflation. One request is one batch and must fit one flush. */
export const BODY_BYTES_MAX = 32 * 1024 * 1024;

/** Rows of one request, and of one flush. */
export const FLUSH_ROWS_MAX = 100_000;

/** One line of NDJSON or one element of a JSON array. Larger than any sane row, small enough to hold twice. */
export const LINE_BYTES_MAX = 8 * 1024 * 1024;

/** Body bytes read and parsed at a time: one JSON.parse per window; measured as fast as larger windows, with less heap. */
export const BODY_WINDOW_BYTES = 128 * 1024;

/** Partitions of one batch. More make more files than one commit should upload; the batch is refused with advice. */
export const BATCH_PARTITIONS_MAX = 1000;

/** Bad rows reported one by one in a refusal; the rest are counted. */
export const ROW_ERRORS_REPORTED_MAX = 100;

/** String and binary columns stay dictionaries up to this many distinct values in a batch, then turn to plain bytes. */
export const DICTIONARY_ENTRIES_MAX = 65_536;

/** Bounds in manifests are cut to this many code points (string) or bytes (binary): Iceberg's own default, truncate(16). */
export const BOUND_LENGTH_MAX = 16;

/** Leaf columns that carry metrics in manifests; those of partition and sort columns always do (Iceberg's default). */
export const METRIC_COLUMNS_MAX = 100;

/** Bytes of text in one column: entries are addressed by int32 offsets. A flush is far smaller (16 MiB by default). */
export const COLUMN_BYTES_MAX = 2 ** 31 - 1;

/** Bytes of one blob in the object's database. The platform's limit is 2 MB a row; 1 MiB leaves room for headers. */
export const ROW_BLOB_BYTES_MAX = 1024 * 1024;

/** Receipts of past flushes kept in the ledger: about a day at a flush every ten seconds. Older ones are forgotten. */
export const RECEIPTS_MAX = 10_000;

/** Rows whose encoded and compressed size decides a column's Parquet encoding: half a page, a tenth of the cost of all. */
export const ENCODING_SAMPLE_ROWS = 2048;

/** Rows after which a column's encoding is chosen again: one large row group, or eight small ones. */
export const ENCODING_CHOICE_ROWS = 65_536;

/** Dictionary page before compression, as in parquet-java. A reader must hold it whole; beyond it a chunk is plain. */
export const DICTIONARY_PAGE_BYTES_MAX = 1024 * 1024;

/** Plain size at which a row group is closed before its row count: a few huge values a row must not fill the memory. */
export const ROW_GROUP_BYTES_MAX = 16 * 1024 * 1024;

/** Footer of a Parquet file to read. A row group of 100 columns takes about 20 kB of it. */
export const PARQUET_FOOTER_BYTES_MAX = 16 * 1024 * 1024;

/** Page to read, after decompression: the largest single value a request can hold, twice. */
export const PARQUET_PAGE_BYTES_MAX = 64 * 1024 * 1024;

/** Rows decoded in one call. A window is 4,096 to 131,072; a damaged footer may name billions. */
export const PARQUET_READ_ROWS_MAX = 4 * 1024 * 1024;

/** Nesting of Thrift structs; footers need six. */
export const THRIFT_DEPTH_MAX = 16;

/** Nesting of an Avro schema, and of records while decoding. A manifest's is 8 deep; recursive schemas end here. */
export const AVRO_DEPTH_MAX = 64;

/** Types in one Avro schema. A manifest has about 60 and one per partition field. */
export const AVRO_SCHEMA_TYPES_MAX = 10_000;

/** Uncompressed bytes of an Avro block: most manifests are one block (an engine once read only the first of several). */
export const AVRO_BLOCK_BYTES = 1024 * 1024;

/** Uncompressed bytes of all blocks of one Avro file: the 8 MiB manifest target at the 4:1 deflate measured, doubled. */
export const AVRO_INFLATED_BYTES_MAX = 64 * 1024 * 1024;

/** Items of zero encoded bytes in one Avro file: nothing in the file bounds their number (an array of null). */
export const AVRO_EMPTY_ITEMS_MAX = 65_536;

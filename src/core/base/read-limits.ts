/** Bounds of reading rows of a table, each with its reason; the others are in `limits.ts`. */

/** Rows of one answer. The most are those of one request: what was read can be sent in again. */
export const ROWS_LIMIT = { default: 1_000, max: 100_000 } as const;

/** Bytes and data files that one request for rows reads: some seconds of a Worker, at 50 MB/s. It is for looking, not a query engine. */
export const ROWS_READ_BYTES_MAX = 128 * 1024 * 1024;
export const ROWS_READ_FILES_MAX = 1_000;

/** Requests to the store for them: the platform lets one invocation make 10,000, and those that fail are made again. */
export const ROWS_READ_REQUESTS_MAX = 5_000;

/** Rows of one answer as typed columns, texts spelled out: they are in memory twice while they are put in order. */
export const ROWS_ANSWER_BYTES_MAX = 16 * 1024 * 1024;

/** Time, series and place of the rows that are found, until their other columns are read: in memory three times while they are
 * put in order. */
export const ROWS_FOUND_BYTES_MAX = 16 * 1024 * 1024;

/** Rows whose keys are looked at in one step: four pages. */
export const ROWS_WINDOW_ROWS = 16_384;

/** Memory that pages and the columns of a window take, of all files that are read at once. The largest row group of a file of this
 * service takes so much; what takes more is read while nothing else is, and twice as much is refused. */
export const ROWS_WORK_BYTES_MAX = 32 * 1024 * 1024;

/** Bytes of pages that are read in one step of a file: enough to save the wait for each. */
export const ROWS_STEP_BYTES = 4 * 1024 * 1024;

/** Data files that stay open between finding rows and reading their other columns: the end of each is in memory, 64 KiB. */
export const ROWS_HELD_FILES_MAX = 128;

/** Memory of one value that the general Parquet reader makes, besides its bytes: itself, its place in a list, and the levels and lists
 * it is assembled from. */
export const GENERAL_VALUE_BYTES = 64;

/** Memory that the columns of one row group may take that the general reader has to read whole (nested ones, other writers'
 * encodings): one row group at a time, beside the rows of the answer. */
export const ROWS_GENERAL_BYTES_MAX = 32 * 1024 * 1024;

/** Bounds of compaction besides those in `limits.ts`, each with its reason. */

/**
 * Memory of what a slice holds of its inputs beside their windows: the row group of each from which the general reader makes
 * values (nested columns, other writers' encodings), and files whole that have to be sorted. With the windows, the rows of a
 * step and what is not collected yet it stays below the 128 MB of an isolate.
 */
export const COMPACT_HELD_BYTES_MAX = 24 * 1024 * 1024;

/** The same of one file: any two have room. */
export const COMPACT_HELD_FILE_BYTES_MAX = 12 * 1024 * 1024;

/** A slice commits within this time of its beginning, or not at all: its outputs are queued for deletion while they are made, and an
 * eraser that finds them unreached an hour later must never be ahead of the commit. Half of `ERASE_GRACE_MS`, as an attempt may take up to `ATTEMPT_MS_MAX`. */
export const COMPACT_SLICE_MS_MAX = 1_800_000;

/** Wait after a slice that failed: from a second, for what passes by itself, to an hour, for each try may read and write a whole run. */
export const COMPACT_RETRY = { baseMs: 1_000, capMs: 3_600_000 } as const;

/** Rows of a row group with nested columns, in files that an append made and in those of compaction: they are read back as a
 * whole, a group of each input at a time, and appends make many inputs. */
export const INGEST_NESTED_GROUP_ROWS = 2048;
export const COMPACT_NESTED_GROUP_ROWS = 8192;
export const COMPACT_NESTED_GROUP_BYTES = 2 * 1024 * 1024;

/** Bytes of Parquet, and values of nested columns (one of each leaf in a row), that one slice merges in a table with such: they go
 * value by value, some five microseconds each, and so ten seconds or so. */
export const COMPACT_NESTED_RUN_BYTES_MAX = 16 * 1024 * 1024;
export const COMPACT_NESTED_RUN_VALUES_MAX = 2_000_000;

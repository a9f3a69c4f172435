/**
 * Every bound of the service, with its reason; those of reading rows, the index, compaction and encodings are in files beside
 * this one. Loops, queues, retries, caches and buffers take their limit from here, or from a table property that is itself
 * bounded here.
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

/** Tries at one target after another before a commit gives way (the engine's own number). The intent stays. */
export const COMMIT_ATTEMPTS_MAX = 10;

/** Wait between lost races, full jitter: as short as the engine's own (up to 49 ms a try), or it would always be first. */
export const RACE_BACKOFF = { baseMs: 25, capMs: 500 } as const;

/** Tries at one upload or read within an attempt; keys come from content, so repeating is harmless. */
export const STORE_TRIES_MAX = 4;

/** Wait between those tries. */
export const STORE_BACKOFF = { baseMs: 50, capMs: 1_000 } as const;

/** `created` is believed without a look for this long after the base was confirmed: far below the fastest trim of
 * metadata by any engine (the log holds minutes at least). */
export const FENCE_MS = 5_000;

/** An attempt whose uploads took longer is decided again: it was made for a table that may be long past. */
export const ATTEMPT_MS_MAX = 600_000;

/** Simultaneous connections of one invocation (platform limit). */
export const CONNECTIONS_MAX = 6;

/** Versions probed one by one beyond the pointer before the folder is listed: one list costs as much as a dozen heads. */
export const PROBES_MAX = 4;

/** The pointer is one hot key; the store takes one write a second to a key (platform limit of R2). */
export const HINT_INTERVAL_MS = 1_000;

/** Compare-and-set tries at the pointer that others win, in one round; then it is tried again later. */
export const HINT_TRIES_MAX = 4;

/** Wait before an intent whose run failed or stayed unknown is run again: at least a second, doubling to a minute. */
export const INTENT_RETRY = { baseMs: 1_000, capMs: 60_000 } as const;

/** Fields of one schema, nested ones counted. Iceberg tables of thousands of columns exist; more is an accident. */
export const SCHEMA_FIELDS_MAX = 10_000;

/** Columns that one batch may bring to its table. A few are a change of schema; hundreds are keys of a map taken for columns. */
export const NEW_COLUMNS_MAX = 200;

/** Rows of a sample that a definition is proposed for, and bytes of it that are read when it is text: more changes no choice. */
export const INFER_ROWS_MAX = 10_000;
export const INFER_BYTES_MAX = 8 * 1024 * 1024;

/** Types inside types. Parquet levels, our recursions and other readers' stacks stay small. */
export const SCHEMA_DEPTH_MAX = 32;

/** UTF-8 bytes of a new column's name: Avro names, footers and manifests repeat it. */
export const COLUMN_NAME_BYTES_MAX = 255;

/** Longest age of a buffered row by default, and the shortest a table may ask for (one pointer write a second). */
export const FLUSH_INTERVAL_DEFAULT_MS = 10_000;
export const FLUSH_INTERVAL_MIN_MS = 1_000;

/** Encoded bytes that start a flush, and that one flush takes when it holds more than one batch. */
export const FLUSH_BYTES_DEFAULT = 16 * 1024 * 1024;

/** Encoded bytes of one batch: an argument of a call to the object must stay below 32 MiB (platform limit). */
export const FRAME_BYTES_MAX = 30 * 1024 * 1024;

/** Encoded bytes and batches waiting in one table's ledger; beyond either, callers are told to come back. Three to
 * four full flushes: more than a store outage of a minute at a steady rate, far below the object's 10 GB. */
export const BUFFER_BYTES_MAX = 64 * 1024 * 1024;
export const BUFFER_FRAMES_MAX = 50_000;

/** Requests that arrive within this time share one ledger row and one transaction. */
export const GROUP_WAIT_MS = 2;

/** Bytes of frames gathered in memory for one ledger transaction before it is written at once. */
export const GROUP_BYTES_MAX = 4 * 1024 * 1024;

/** A caller that waits for its commit makes the buffer due after this long, so that others can join. */
export const WAITER_GATHER_MS = 50;

/** Longest wait that `Prefer: wait` is granted: below any proxy's time limit on an idle request. */
export const WAIT_MAX_MS = 60_000;

/** Callers waiting for a commit at one table; more get their answer at once. */
export const WAITERS_MAX = 1_000;

/** Memory of batch ids and receipts: past the longest retention of a queue (14 days). */
export const BATCH_MEMORY_MS = 15 * 24 * 3600 * 1000;

/** Rows forgotten in one pass, so that a pass stays short. A pass that finds more is followed by another in the next run: at
 * a flush every ten seconds as many as 500 batches a second leave behind. */
export const PRUNE_ROWS_MAX = 5_000;

/** Time between two passes of forgetting. */
export const PRUNE_INTERVAL_MS = 3600 * 1000;

/** Times a change is prepared anew within one run, because the base moved under its premises. */
export const PREPARE_TRIES_MAX = 3;

/** Table properties a client may give, and the length of one with its key; they are copied into every version. */
export const PROPERTIES_MAX = 100;
export const PROPERTY_BYTES_MAX = 2_048;

/** Progress map of producers in a snapshot summary: about 110 apps. It is copied into every version. */
export const EPOCHS_BYTES_MAX = 4_096;

/** Objects and lists inside each other in JSON we read or write: above any schema (three levels a type), below the stack. */
export const JSON_DEPTH_MAX = 128;

/** Digits of one integer in JSON. 64-bit ids and decimal(38) are far below; conversion of more is quadratic. */
export const JSON_INTEGER_DIGITS_MAX = 1000;

/** Characters of one metadata file we load: parsed it takes about four times that, half of an isolate. Expiry keeps
 * tables of ours a hundred times below; a larger foreign file is refused with a clear error (B150). */
export const METADATA_CHARS_MAX = 16 * 1024 * 1024;

/** Schemas, specs, sort orders, refs of one table, fields of one spec or order: larger lists are an accident. */
export const METADATA_LIST_MAX = 10_000;

/** Snapshots and log entries of one table: what a metadata file of `METADATA_CHARS_MAX` can hold. */
export const SNAPSHOTS_MAX = 100_000;

/** Previous metadata files in the log: default (Iceberg's), and the most a property may ask for (B149). */
export const METADATA_LOG = { default: 100, max: 1000 } as const;

/** Changes and requirements of one commit. Engines send a dozen. */
export const UPDATES_MAX = 1000;

/** One value we put into a snapshot summary, the verdict above all; each metadata file repeats it until expiry. */
export const SUMMARY_VALUE_BYTES_MAX = 4096;

/** Characters of a namespace or table name. Keys stay far below the store's 1,024 bytes. */
export const NAME_LENGTH_MAX = 128;

/** Flushes one run makes before it hands back to the alarm: a full buffer takes about four. */
export const FLUSHES_PER_RUN_MAX = 16;

/** Runs of one create, attach or drop whose outcome stays open, a second apart, before the caller is told so. */
export const ADMIN_TRIES_MAX = 5;

/** Objects looked at when a foreign table's newest metadata file is searched. */
export const METADATA_FILES_LISTED_MAX = 10_000;

/** Rounds in which a decision may ask for further objects: a manifest list, then its manifests. */
export const NEEDS_ROUNDS_MAX = 3;

/** Tables on one page of the listing; each costs two to three reads. */
export const LIST_TABLES_MAX = 200;

/** Body of a table's definition: a schema of some thousand fields. */
export const DEFINITION_BYTES_MAX = 1024 * 1024;

/** Length of a batch id. */
export const BATCH_ID_LENGTH_MAX = 255;

/** How long a Worker uses what an object told about its table, and of how many tables it remembers it. */
export const INGEST_VIEW_MS = 5_000;
export const INGEST_VIEWS_MAX = 1_000;

/**
 * Typed columns of one request, null slots included: rows times the width of a row. A table of many columns takes fewer
 * rows a batch, for a body of empty objects would fill an isolate with nulls. 100,000 rows of 80 columns fit.
 */
export const BATCH_COLUMN_BYTES_MAX = 64 * 1024 * 1024;

/** Manifests of one size tier before they are merged upwards: planning stays a few reads, as in the engine. */
export const MANIFESTS_PER_TIER_MAX = 8;

/** Bytes and files of manifests that one commit merges. Decoded, entries take 33 times their bytes (measured with 4, 20 and
 * 100 columns), and 4 kB at least: 35 MB. Larger manifests stay apart; they hold thousands of files each. */
export const MANIFEST_MERGE_BYTES_MAX = 1024 * 1024;
export const MANIFEST_MERGE_FILES_MAX = 8_000;

/** Bytes of small manifests kept in memory between commits, so that merging them reads nothing. */
export const MANIFESTS_KEPT_BYTES_MAX = 2 * 1024 * 1024;

/** Tables one sweep calls (half of the 10,000 subrequests of an invocation), and lists: a few hundred bytes each. */
export const SWEEP_TABLES_MAX = 5_000;
export const SWEEP_LISTED_MAX = 100_000;

/** An alarm stands this far behind a run under way, in case the run is cut off: most runs end well before. */
export const RUN_ALARM_MS = 5_000;

/** An alarm that should have gone off this long ago was lost by the platform and is set again. */
export const ALARM_LATE_MS = 60_000;

/** The farthest an alarm is set ahead, ten years: the platform takes no date after 2189, and rows may be kept for a thousand years. */
export const ALARM_AHEAD_MAX_MS = 315_360_000_000;

/** Epochs of an app whose digests are remembered: a replay further back is told what is committed instead. */
export const EPOCH_WINDOW = 64;

/** One app's share of a table's buffer, waiting and parked: others still get in when one is held up. */
export const APP_BUFFER_BYTES_MAX = 32 * 1024 * 1024;

/** Receipts passed on from one sequence to another when a parked app goes on; each unparking adds one step. */
export const MOVES_MAX = 16;

/** Ids of our last changes of metadata, deletes and overwrites, kept in a table property: an unknown one is run again within seconds, and
 * commits of one table go one at a time, so a few could lie between; each version repeats them (33 bytes an id). */
export const CHANGES_KEPT_MAX = 16;

/** Branches and tags that we add to one table. Each is in every version, and holds snapshots for ever by default. */
export const REFS_MAX = 1_000;

/** Columns changed in one schema change, and bytes of its report stay small. */
export const SCHEMA_CHANGES_MAX = 100;

/**
 * A scheduled expiry takes so many snapshots at once, as the Timelake engine does, or the first a while after its time: a
 * table that is written every ten seconds then has one version in twenty from it, and one that came to rest is tidied up.
 */
export const EXPIRY_PACE = { batch: 20, lateMs: 15 * 60_000 };

/** Between two scheduled expiries of a table, whatever its properties say: each is a version for every reader to load. */
export const EXPIRY_INTERVAL_MIN_MS = 60_000;

/** Between two drops of old partitions: a producer whose rows come late would else have each of its commits followed by one. */
export const RETENTION_INTERVAL_MIN_MS = 60_000;

/** A kept due time of upkeep may be so much too late: upkeep that late harms nobody, and each change of it is a billed write. */
export const KEPT_DUE_SLACK_MS = 15 * 60_000;

/** Faults of a table that its status tells: the first few lead to the rest. */
export const FAULTS_MAX = 20;

/** Wait after scheduled upkeep that failed: nobody waits for it, and appends go on without. */
export const CHORE_RETRY = { baseMs: 60_000, capMs: 3_600_000 };

/** Partition fields added or removed in one change. */
export const SPEC_CHANGES_MAX = 100;

/** Fields of one partition spec that we make: each multiplies the partitions, and is a folder of every path. */
export const SPEC_FIELDS_MAX = 20;

/** Partition specs of one table that we make. Each is in every version for ever, and manifests of two specs never merge. */
export const SPECS_MAX = 100;

/** Manifest lists and manifests read to tell which files an expiry leaves unreachable: half of the 10,000 subrequests of
 * an invocation. Beyond, the metadata still expires and the files are left to a sweep of orphans. */
export const REACH_READS_MAX = 5_000;

/** What is remembered of those that were read: a table with a commit every ten seconds, merged all the time, takes 2 MB. */
export const REACH_KEPT_BYTES_MAX = 4 * 1024 * 1024;

/** Keys that one expiry queues for deletion; the rest are left to a sweep. A day of commits every ten seconds makes 50,000. */
export const DOOMED_KEYS_MAX = 100_000;

/** Wait between expiry and deletion, for readers that began before it: longer than any sane query. */
export const ERASE_GRACE_MS = 3_600_000;

/** Objects that one part of a sweep lists, twenty pages: it runs behind the flushes, which wait for some seconds at most. */
export const SWEEP_OBJECTS_MAX = 20_000;

/** Least age of an orphan, by the store's clock. Other writers upload files hours before they commit them; Iceberg's own procedure refuses
 * less than a day as well, and takes three by default. */
export const SWEEP_GRACE_MIN_MS = 86_400_000;
export const SWEEP_GRACE_DEFAULT_MS = 3 * 86_400_000;

/** Least time between two sweeps by schedule: each lists the whole folder. */
export const SWEEP_INTERVAL_MIN_MS = 86_400_000;

/** Orphans named in a report; all are counted. */
export const SWEEP_SAMPLE_MAX = 20;
/** Differences named of a table that is not what was asked for: for a person to read. */
export const DIFFERENCES_TOLD_MAX = 20;

/** Files of an open commit are not older than its intent, but for what the clocks of store and object differ by. */
export const INTENT_SKEW_MS = 3_600_000;

/** Keys of one deletion: the most one request of the store takes. */
export const ERASE_KEYS_MAX = 1_000;

/** Deletions that one request for maintenance makes: ten thousand keys. */
export const ERASE_ROUNDS_PER_CALL = 10;

/** Uploads in parts given up in one run: a slice of compaction leaves one at most. */
export const ERASE_UPLOADS_MAX = 100;

/** Superseded metadata files are left this long: far beyond `FENCE_MS`, and beyond any reader between hint and file. */
export const METADATA_AGE_MIN_MS = 3_600_000;

/** Versions below the pointer whose files are left whatever their age: readers reach them by a pointer that lags. */
export const METADATA_BELOW_HINT_MIN = 20;

/** Partitions on one page of a table's files. */
export const FILE_PARTITIONS_PAGE = { default: 100, max: 1_000 } as const;

/** Snapshots on one page of their listing. */
export const SNAPSHOTS_PAGE = { default: 100, max: 1_000 } as const;

/** Manifests, and their bytes as stored, that one operation on files reads, one after the other: 40 µs a file, so some
 * seconds at most. Tables of ours have some dozen manifests; beyond it a narrower filter prunes more of them. */
export const OPERATION_MANIFESTS_MAX = 1_000;
export const OPERATION_MANIFEST_BYTES_MAX = 8 * 1024 * 1024;

/** Bytes and files of manifests whose entries are in memory at once: 50 MB, by the measure of merging. */
export const MANIFEST_HELD_BYTES_MAX = 1.5 * 1024 * 1024;
export const MANIFEST_HELD_FILES_MAX = 12_000;

/** Size and files at which rewritten entries begin another manifest: two of them can be held. Iceberg's own target is
 * 8 MiB, for readers with more memory. */
export const MANIFEST_TARGET_BYTES = 512 * 1024;
export const MANIFEST_TARGET_FILES = 4_000;

/** Partitions or paths of one file filter, and inputs or outputs of one replace. */
export const FILTER_ITEMS_MAX = 10_000;

/** Runs of batches left out of one commit: about 3 kB in its summary. A flush with more is cut short before them. */
export const LEFT_OUT_RUNS_MAX = 64;

/** Waits for a fresh look at the table before a batch is called a duplicate; then the question is asked again. */
export const ADMIT_LOOKS_MAX = 2;

/** Window of a zstd body: 8 MiB, the most that HTTP lets a frame ask for (RFC 9659). It is memory of the decompressor. */
export const ZSTD_WINDOW_LOG_MAX = 23;

/** Frames of one zstd body. Each is a write of its own; compressors make one, parallel ones one for some megabytes. */
export const ZSTD_FRAMES_MAX = 1_024;

/** Types inside each other in a body of columns, and fields of its schema, inner ones included: far beyond any table. */
export const FOREIGN_DEPTH_MAX = 64;
export const ARROW_FIELDS_MAX = 10_000;

/** Messages of one Arrow body. A row takes at least one batch, and writers put thousands into each: 65,536 is usual. */
export const ARROW_MESSAGES_MAX = 10_000;

/** Elements of one list column of a body, all rows together: nulls and empty structs in lists take no byte of it, and each
 * takes some dozen bytes of memory while it is read. */
export const FOREIGN_ELEMENTS_MAX = 2 * 1024 * 1024;

/** Measurements of one write of points: each is two calls to an object of its own. Telegraf's plug-ins send some dozen. */
export const POINT_TABLES_MAX = 100;

/** Tokens of one configuration variable: each request is compared with all of them. The platform's 5 kB hold about thirty. */
export const TOKENS_MAX = 100;

/** One queue message, one send of several, and what the platform counts for a message besides its body (platform limits;
 * its kilobyte is 1,000 bytes). */
export const QUEUE_MESSAGE_BYTES_MAX = 128_000;
export const QUEUE_SEND_BYTES_MAX = 256_000;
export const QUEUE_SEND_MESSAGES_MAX = 100;
export const QUEUE_MESSAGE_OVERHEAD_BYTES = 100;

/** Bytes of the messages we make: two of them fill one send, and what a dead letter says besides its message still fits. */
export const ENQUEUE_MESSAGE_BYTES = 120_000;

/** Body of one request into the queue, inflated: 70 messages, which one invocation holds as text and sends in seconds. */
export const ENQUEUE_BODY_BYTES_MAX = 8 * 1024 * 1024;

/** Delay before a message is delivered again: doubling, so that an object that restarts is met soon and an outage costs
 * few deliveries. */
export const QUEUE_RETRY = { baseMs: 2_000, capMs: 900_000 } as const;

/** Deliveries of a message before it becomes a dead letter with its last reason: about a day, below the four days that a
 * queue keeps messages by default, and one below the platform's own limit, whose hand-over tells no reason. */
export const QUEUE_DELIVERIES_MAX = 100;

/** Looks at the table within one delivery before a message is called unfit: what an isolate remembers of it may be old. */
export const QUEUE_LOOKS_MAX = 2;

/** Bad rows told in a dead letter; the rest are counted. The letter must fit a message beside the message it is about. */
export const DEAD_LETTER_ERRORS_MAX = 5;

/** Tables and queues that the configuration names for the consumer. */
export const QUEUE_SETTINGS_MAX = 1_000;

/** Tables on one page of metrics: each is a call to its object, a few tens of milliseconds, six at a time; some seconds. */
export const METRICS_TABLES_MAX = 500;

/** Refusals of one isolate are gathered this long before a table's object is told of them: one call for a burst. */
export const REFUSALS_GATHER_MS = 2_000;

/** Tables whose refusals one isolate gathers at a time; those of more are in the log alone. */
export const REFUSALS_TABLES_MAX = 1_000;

/** Bytes of Parquet that one slice of compaction merges, and so the largest file it makes: the engine's own bound. It takes
 * some three seconds, for which a table's next flush waits. */
export const COMPACT_RUN_BYTES_MAX = 64 * 1024 * 1024;

/** Files that one slice merges: the engine's own bound. Wide rows take fewer, see `COMPACT_WINDOW_BYTES`. */
export const COMPACT_RUN_FILES_MAX = 24;

/** Typed columns of the windows of a slice, one of each input; the next one is read when half of it is left. They are held
 * three times while they are merged, beside a row group, compressed pieces and a part of an upload: about 50 MB in use. What is
 * not collected yet comes on top (`npm run bench -- compact`); half of this made more of it, since pages are decoded twice then. */
export const COMPACT_WINDOW_BYTES = 8 * 1024 * 1024;

/** Rows of one window. Fewer than the least would decode each page many times over. */
export const COMPACT_WINDOW_ROWS = { min: 256, max: 8192 } as const;

/** Compressed bytes of all inputs held at once: a row group that is larger than its input's share is read page by page. */
export const COMPACT_PIECE_BYTES = 8 * 1024 * 1024;

/** Bytes between two wanted stretches of a file that are read along rather than asked for apart: a request costs more. */
export const COMPACT_GAP_BYTES = 64 * 1024;

/** First read at the end of a data file: footer and page indexes of files that an append made lie in it. */
export const PARQUET_TAIL_BYTES = 64 * 1024;

/** Row groups of compacted files: rows, and bytes as typed columns, at which one is closed. */
export const COMPACT_GROUP_ROWS = 65_536;
export const COMPACT_GROUP_BYTES = 8 * 1024 * 1024;

/** Bytes that a text is taken to have before one was seen. */
export const TEXT_BYTES_GUESSED = 32;

/** Live files of one table whose places and sizes are kept in memory between looks, some 500 bytes each. */
export const COMPACT_FILES_KEPT_MAX = 10_000;

/** Slices that one request for maintenance runs; the report says whether more are left. */
export const COMPACT_SLICES_PER_CALL = 16;

/** An incarnation looks for compaction left over by the one before when the last commit is not older than this. */
export const COMPACT_RESUME_MS = 600_000;

/** Characters of JSON at which an answer of rows sends a piece: the text of an answer is never whole in memory. */
export const JSON_PIECE_CHARS = 64 * 1024;

/** Rows of one batch of an answer in Arrow: what is encoded beside the rows themselves stays some megabytes at most. */
export const ARROW_BATCH_ROWS = 8192;

/** Values that the filters of one address name: far beyond what fits an address that proxies let through. */
export const QUERY_VALUES_MAX = 1_000;

import * as v from 'valibot';
import type { TableEntry, TablePage } from '../../lake/lake.ts';
import type {
  ChangedView,
  ExpireView,
  FilesView,
  PropertiesView,
  RefView,
  SnapshotsView,
} from '../../object/admin-views.ts';
import type { FileListView } from '../../object/files-list-view.ts';
import type { MaintainView } from '../../object/maintain-views.ts';
import type { AppView, ReceiptView, StatusView, TableView } from '../../object/views.ts';
import type { LatestFound } from '../../read/latest.ts';
import type { RowsFound } from '../../read/rows.ts';
import type { InferView } from '../infer/infer.ts';
import type { ProblemBody } from '../problem.ts';
import type { RowError } from '../rows.ts';

/**
 * What the service answers with, as schemas. Each is held against the view that it describes by its type, and a test
 * holds the answers of a running service against all of them.
 */

/** A schema that every `T` fits; anything else does not compile. */
function describing<T>() {
  return <S extends v.GenericSchema>(title: string, schema: S & (T extends v.InferOutput<S> ? unknown : never)) =>
    v.pipe(schema as v.GenericSchema, v.title(title));
}

const Count = v.pipe(v.number(), v.integer(), v.minValue(0));
const Millis = v.pipe(v.number(), v.integer(), v.description('milliseconds since 1970'));
const Id = v.pipe(v.string(), v.description('64-bit integer as text'));
const Texts = v.record(v.string(), v.string());
const Failure = v.object({ type: v.string(), message: v.string(), at_ms: Millis });
const choreEntries = { due_ms: v.nullable(Millis), failures: Count, last_error: v.nullable(Failure) };
const Chore = v.object(choreEntries);

const ColumnType = v.pipe(
  v.unknown(),
  v.description('a primitive type, or a struct, list or map, as in the Iceberg specification'),
);
const Columns = describing<TableView['schema']>()(
  'Schema',
  v.object({
    type: v.literal('struct'),
    'schema-id': Count,
    fields: v.array(v.object({ id: Count, name: v.string(), required: v.boolean(), type: ColumnType })),
  }),
);

const Snapshot = v.object({ snapshot_id: Id, sequence_number: Id, timestamp_ms: Millis, summary: Texts });
const Partitions = v.object({
  'spec-id': Count,
  fields: v.array(v.object({ name: v.string(), transform: v.string() })),
});
const tableEntries = {
  location: v.string(),
  table_uuid: v.string(),
  version: Count,
  schema: Columns,
  partition_spec: Partitions,
  sort_order: v.object({ 'order-id': Count, fields: v.array(v.object({ transform: v.string() })) }),
  properties: Texts,
  snapshot: v.nullable(Snapshot),
};
const sliceEntries = {
  partition: v.array(v.string()),
  reason: v.picklist(['tier', 'cold', 'full']),
  files: Count,
  bytes: Count,
  rows: Id,
  made: v.nullable(v.object({ files: Count, bytes: Count, rows: Id, duplicates: Count })),
};
const LeftAlone = v.array(v.object({ reason: v.string(), files: Count, bytes: Count }));
const statusEntries = {
  ledger_id: v.string(),
  last_sequence: Count,
  buffer: v.object({
    batches: Count,
    rows: Count,
    bytes: Count,
    oldest_ms: v.nullable(Millis),
    age_ms: v.nullable(Count),
  }),
  intent: v.nullable(v.object({ commit_id: v.string(), rows: Count, failures: Count, retry_ms: Millis })),
  last_commit: v.nullable(v.object({ snapshot_id: v.nullable(Id), version: Count, committed_ms: Millis, rows: Count })),
  last_error: v.nullable(Failure),
  hinted_version: Count,
  doomed: v.object({ keys: Count, due_ms: v.nullable(Millis) }),
  erasing: Chore,
  expiry: Chore,
  retention: Chore,
  sweep: v.object({ ...choreEntries, swept_ms: v.nullable(Millis) }),
  schedule: v.object({
    next_ms: v.nullable(Millis),
    flush_ms: v.nullable(Millis),
    retention_ms: v.nullable(Millis),
    compaction_ms: v.nullable(Millis),
    expiry_ms: v.nullable(Millis),
    erasing_ms: v.nullable(Millis),
    sweep_ms: v.nullable(Millis),
  }),
  last_value_index: v.nullable(
    v.object({
      state: v.picklist(['kept', 'empty', 'none']),
      reason: v.nullable(v.string()),
      location: v.nullable(v.string()),
    }),
  ),
  compaction: v.object({
    last: v.nullable(v.object({ ...sliceEntries, at_ms: Millis })),
    failures: Count,
    retry_ms: Millis,
    last_error: v.nullable(Failure),
    left_alone: LeftAlone,
  }),
  faults: v.array(v.object({ kind: v.string(), what: v.string(), since_ms: Millis })),
  incarnation: v.object({ started_ms: Millis, last_run_error: v.nullable(Failure) }),
};
const receiptEntries = {
  receipt: v.string(),
  state: v.picklist(['buffered', 'committed', 'refused', 'parked']),
  snapshot_id: v.optional(v.nullable(Id)),
  version: v.optional(Count),
  committed_ms: v.optional(Millis),
  type: v.optional(v.pipe(v.string(), v.description('problem type of a refused batch, its last segment'))),
  message: v.optional(v.string()),
};
const RowFault = describing<RowError>()(
  'RowError',
  v.object({
    line: v.pipe(Count, v.description('line of the body, or row of a body by column, from 1')),
    field: v.nullable(v.string()),
    type: v.string(),
    message: v.string(),
    value: v.optional(v.string()),
  }),
);
const countEntries = {
  rows: Count,
  rows_read: v.optional(Count),
  rows_skipped: v.optional(Count),
  errors: v.optional(v.array(RowFault)),
};
const changedEntries = { changed: v.boolean(), version: Count };
const Counts = v.object({ files: Count, rows: v.string(), bytes: v.string() });
const refEntries = {
  name: v.string(),
  type: v.picklist(['branch', 'tag']),
  snapshot_id: Id,
  min_snapshots_to_keep: v.optional(Count),
  max_snapshot_age_ms: v.optional(Count),
  max_ref_age_ms: v.optional(Count),
};

export const Inferred = describing<InferView>()(
  'Inferred',
  v.object({
    definition: v.object({
      schema: v.object({
        type: v.literal('struct'),
        fields: v.array(v.object({ name: v.string(), type: ColumnType, required: v.boolean() })),
      }),
      time_column: v.nullable(v.string()),
      series_key: v.array(v.string()),
      chunk: v.nullable(v.picklist(['day', 'month'])),
      dedup: v.nullable(v.boolean()),
      properties: Texts,
    }),
    sample: v.object({ format: v.string(), rows: Count, whole: v.boolean() }),
    reasons: v.array(v.object({ choice: v.string(), because: v.string() })),
    notes: v.array(v.string()),
  }),
);
export const Health = v.object({ status: v.literal('ok') });
export const Status = describing<StatusView>()('Status', v.object(statusEntries));
export const Table = describing<TableView>()('Table', v.object(tableEntries));
export const CreatedTable = v.object({ created: v.boolean(), ...tableEntries });
export const AttachedTable = v.object({ attached: v.boolean(), ...tableEntries });
export const DescribedTable = v.object({ ...tableEntries, status: Status });
export const DroppedTable = v.object({ dropped: v.literal(true), version: Count, discarded_rows: Count });
export const Flushed = v.object({
  flushed: v.boolean(),
  version: Count,
  snapshot: v.nullable(Snapshot),
  status: Status,
});

export const Receipt = describing<ReceiptView>()('Receipt', v.object(receiptEntries));
export const Accepted = v.object({
  ...receiptEntries,
  branch: v.optional(v.string()),
  duplicate: v.optional(v.literal(true)),
  ...countEntries,
});
export const AcceptedOrEmpty = v.union([Accepted, v.object({ state: v.literal('empty'), ...countEntries })]);
export const Queued = v.object({
  state: v.literal('queued'),
  rows: Count,
  messages: Count,
  batch_ids: v.array(v.string()),
});
export const NoneQueued = v.object({ state: v.literal('empty'), rows: Count });

export const App = describing<AppView>()(
  'App',
  v.object({
    app: v.string(),
    committed_epoch: v.nullable(Id),
    accepted_epoch: v.nullable(Id),
    parked: v.nullable(
      v.object({ epoch: Id, type: v.string(), message: v.string(), at_ms: Millis, batches_behind: Count }),
    ),
    retiring: v.boolean(),
  }),
);

export const Properties = describing<PropertiesView>()('Properties', v.object({ version: Count, properties: Texts }));
export const ChangedProperties = v.object({ ...changedEntries, properties: Texts });
export const ChangedSchema = v.object({ ...changedEntries, schema: Columns, warnings: v.array(v.string()) });
export const ChangedSpec = v.object({ ...changedEntries, partition_spec: Partitions, warnings: v.array(v.string()) });
export const Changed = describing<ChangedView>()('Changed', v.object(changedEntries));
export const RolledBack = v.object({ ...changedEntries, snapshot: v.nullable(Snapshot) });

const fileCountEntries = {
  files: Count,
  rows: Id,
  bytes: Id,
  small_files: Count,
  tiers: v.array(v.object({ below_bytes: Count, files: Count })),
};
export const FileList = describing<FileListView>()(
  'FileList',
  v.object({
    version: Count,
    snapshot_id: v.nullable(Id),
    target_bytes: Count,
    small_below_bytes: Count,
    ...fileCountEntries,
    delete_files: Count,
    partition_count: Count,
    partitions: v.array(
      v.object({ spec_id: Count, partition: v.record(v.string(), v.nullable(v.string())), ...fileCountEntries }),
    ),
    next_offset: v.pipe(v.nullable(Count), v.description('where the next page begins')),
  }),
);
export const Snapshots = describing<SnapshotsView>()(
  'Snapshots',
  v.object({
    version: Count,
    current_snapshot_id: v.nullable(Id),
    snapshots: v.array(
      v.object({
        snapshot_id: Id,
        parent_snapshot_id: v.nullable(Id),
        sequence_number: Id,
        timestamp_ms: Millis,
        schema_id: v.nullable(Count),
        refs: v.array(v.string()),
        summary: Texts,
      }),
    ),
    next_before: v.pipe(v.nullable(Id), v.description('sequence number to ask for the next page with')),
  }),
);

export const Ref = describing<RefView>()('Ref', v.object(refEntries));
export const Refs = v.object({ version: Count, refs: v.array(Ref) });
export const ChangedRef = v.object({ ...changedEntries, ref: Ref });
export const SetRef = v.object({ ...changedEntries, created: v.boolean(), ref: Ref });

const expiredEntries = {
  ...changedEntries,
  dry_run: v.boolean(),
  refs: v.array(v.string()),
  snapshots: v.array(Id),
  retained_snapshots: Count,
  files: v.nullable(Count),
  erase_ms: v.nullable(Millis),
  metadata_files: Count,
};
const step = <E extends v.ObjectEntries>(entries: E) =>
  v.nullable(
    v.object({
      error: v.nullable(v.object({ type: v.string(), message: v.string() })),
      report: v.nullable(v.object(entries)),
    }),
  );
export const Maintained = describing<MaintainView>()(
  'Maintained',
  v.object({
    ...changedEntries,
    dry_run: v.boolean(),
    slices: v.array(v.object(sliceEntries)),
    remaining: Count,
    left_alone: LeftAlone,
    steps: v.pipe(
      v.object({
        retention: step({
          ...changedEntries,
          before_ms: v.nullable(Millis),
          files: Count,
          rows: Id,
          bytes: Id,
          partitions: Count,
        }),
        compact: step(changedEntries),
        index: step({
          ...changedEntries,
          state: v.picklist(['kept', 'needed', 'made', 'impossible']),
          reason: v.nullable(
            v.picklist(['delete-files', 'unreadable-file', 'table-too-large', 'too-many-series', 'too-large']),
          ),
          series: Count,
          files: Count,
        }),
        expire: step(expiredEntries),
        erase: step({ keys: Count, kept: Count, uploads: Count, remaining: Count }),
        sweep: step({
          listed: Count,
          young: Count,
          other: Count,
          orphans: Count,
          bytes: Count,
          sample: v.array(v.string()),
          erase_ms: v.nullable(Millis),
          next: v.nullable(v.string()),
        }),
      }),
      v.description('null: not asked for'),
    ),
  }),
);

/** The newest rows as JSON has them, and where they were found. */
export const Latest = describing<LatestFound['facts'] & { rows: unknown[] }>()(
  'Latest',
  v.object({
    version: Count,
    snapshot_id: v.nullable(Id),
    source: v.pipe(
      v.picklist(['index', 'scan']),
      v.description('scan: the table has no index, its files were looked through'),
    ),
    buffered_rows: v.pipe(
      v.nullable(Count),
      v.description('rows that waited and were looked at too; null: not asked for'),
    ),
    rows: v.array(v.unknown()),
  }),
);
export const Expired = describing<ExpireView>()('Expired', v.object(expiredEntries));

const filesEntries = {
  ...changedEntries,
  snapshot_id: v.nullable(Id),
  operation: v.nullable(v.string()),
  added: Counts,
  removed: Counts,
  changed_partitions: Count,
  manifests: v.object({ created: Count, replaced: Count, kept: Count }),
  overlapping: v.object({ files: Count, rows: v.string() }),
  reason: v.optional(v.string()),
};
export const ChangedFiles = describing<FilesView>()('ChangedFiles', v.object(filesEntries));
export const OverwrittenFiles = v.object({ ...filesEntries, ...countEntries });

/** Rows as JSON has them, and what it took to find them. */
export const Rows = describing<RowsFound['facts'] & { rows: unknown[] }>()(
  'Rows',
  v.object({
    version: Count,
    snapshot_id: v.nullable(Id),
    more: v.pipe(v.boolean(), v.description('there are more rows than the limit')),
    files_considered: v.pipe(Count, v.description('live data files in the manifests that were looked at')),
    files_read: Count,
    bytes_read: Count,
    rows: v.array(v.unknown()),
  }),
);

const Entry = describing<TableEntry>()(
  'TableEntry',
  v.object({
    namespace: v.string(),
    table: v.string(),
    location: v.string(),
    version: Count,
    snapshot_id: v.nullable(Id),
    total_records: v.nullable(v.string()),
    updated_ms: Millis,
  }),
);
export const Tables = describing<TablePage>()(
  'Tables',
  v.object({
    tables: v.array(Entry),
    unreadable: v.array(v.object({ namespace: v.string(), table: v.string(), reason: v.string() })),
    next: v.pipe(v.nullable(v.string()), v.description('where the next page begins, for `after`')),
  }),
);

/** Members of every problem; each type has more of its own. */
export const problemEntries = {
  title: v.string(),
  status: v.pipe(v.number(), v.integer()),
  detail: v.string(),
  errors: v.optional(v.array(RowFault)),
};
export const Problem = describing<Pick<ProblemBody, 'title' | 'status' | 'detail'>>()(
  'ProblemMembers',
  v.object(problemEntries),
);

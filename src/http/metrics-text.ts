import type { MetricsView } from '../object/metrics-view.ts';

/** The text format of Prometheus (0.0.4). */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

type Labels = Readonly<Record<string, string>>;
type Sample = [labels: Labels, value: number];

interface Family {
  name: string;
  type: 'gauge' | 'counter';
  help: string;
  samples(view: MetricsView): Sample[];
}

const one = (value: number | null): Sample[] => (value === null ? [] : [[{}, value]]);
const seconds = (ms: number | null): number | null => (ms === null ? null : ms / 1000);

/**
 * Of each table. Names with `incarnation` count since the object's present incarnation began
 * (`sluice_incarnation_start_timestamp_seconds`): they begin at nothing when it is evicted or deployed anew, as a counter
 * of any process does.
 */
const FAMILIES: readonly Family[] = [
  gauge('sluice_commit_lag_seconds', 'Age of the oldest row that is not committed; 0 when there is none', (view) =>
    one(view.buffer.ageMs / 1000),
  ),
  gauge('sluice_buffer_batches', 'Batches that wait in the buffer', (view) => one(view.buffer.batches)),
  gauge('sluice_buffer_rows', 'Rows that wait in the buffer', (view) => one(view.buffer.rows)),
  gauge('sluice_buffer_bytes', 'Encoded bytes that wait in the buffer', (view) => one(view.buffer.bytes)),
  gauge('sluice_last_commit_timestamp_seconds', 'When rows were last committed', (view) =>
    one(seconds(view.lastCommitMs)),
  ),
  gauge('sluice_intent_failures', 'Failed runs of the open commit; absent when none is open', (view) =>
    one(view.intentFailures),
  ),
  gauge('sluice_table_version', 'Newest version of the table that is known', (view) => one(view.version)),
  gauge('sluice_pointer_version', 'Version that the pointer is known to have reached', (view) =>
    one(view.hintedVersion),
  ),
  gauge('sluice_table_snapshots', 'Retained snapshots; absent until the table has been read', (view) =>
    one(view.snapshots),
  ),
  gauge('sluice_erase_backlog_keys', 'Files queued for deletion', (view) => one(view.doomed.keys)),
  gauge('sluice_erase_due_timestamp_seconds', 'When the first of them may go', (view) =>
    one(seconds(view.doomed.dueMs)),
  ),
  gauge('sluice_upkeep_due_timestamp_seconds', 'When upkeep is due next, by step; absent when nothing is', (view) =>
    view.upkeep.flatMap(({ step, dueMs }) => one(seconds(dueMs)).map(([, value]): Sample => [{ step }, value])),
  ),
  gauge('sluice_upkeep_failures', 'Failed tries of upkeep since the last that went through, by step', (view) =>
    view.upkeep.map(({ step, failures }) => [{ step }, failures]),
  ),
  gauge('sluice_swept_timestamp_seconds', 'When the last look for orphans ended; absent before the first', (view) =>
    one(seconds(view.sweptMs)),
  ),
  gauge(
    'sluice_faults',
    "What work found to be wrong with the table's files, by kind; absent when nothing is",
    (view) => view.faults.map(({ kind, count }) => [{ kind }, count]),
  ),
  gauge('sluice_parked_apps', 'Producers that wait for their owner to skip or replace a refused epoch', (view) =>
    one(view.parkedApps),
  ),
  gauge('sluice_incarnation_start_timestamp_seconds', 'When the counters of the incarnation began', (view) =>
    one(view.startedMs / 1000),
  ),
  counter('sluice_accepted_batches_total', 'Batches that the ledger has taken, over all incarnations', (view) =>
    one(view.lastSequence),
  ),
  counter('sluice_incarnation_commits_total', 'Ends of operations, by what they do and how they ended', (view) =>
    view.outcomes.map(({ operation, outcome, count }) => [{ operation, outcome }, count]),
  ),
  counter('sluice_incarnation_refusals_total', 'Requests and batches refused, by type of problem', (view) =>
    view.refusals.map(({ type, count }) => [{ type }, count]),
  ),
  counter(
    'sluice_incarnation_commit_lag_seconds_total',
    'Age of the oldest row of each append when committed',
    (view) => one(view.lag.sumMs / 1000),
  ),
  counter('sluice_incarnation_commit_lag_commits_total', 'Appends that this was summed over', (view) =>
    one(view.lag.commits),
  ),
  counter('sluice_incarnation_store_requests_total', 'Requests to the object store', (view) =>
    operations(view, (usage) => usage.requests),
  ),
  counter('sluice_incarnation_store_failures_total', 'Requests to the object store that failed', (view) =>
    operations(view, (usage) => usage.failed),
  ),
  counter('sluice_incarnation_store_written_bytes_total', 'Bytes written to the object store', (view) =>
    one(view.store.bytesWritten),
  ),
  counter('sluice_incarnation_store_read_bytes_total', 'Bytes read from the object store', (view) =>
    one(view.store.bytesRead),
  ),
  counter(
    'sluice_incarnation_marks_total',
    'Situations that commits met: lost races, unknown outcomes and others',
    (view) => Object.entries(view.marks).map(([mark, count]) => [{ mark }, count ?? 0]),
  ),
];

function gauge(name: string, help: string, samples: Family['samples']): Family {
  return { name, type: 'gauge', help, samples };
}

function counter(name: string, help: string, samples: Family['samples']): Family {
  return { name, type: 'counter', help, samples };
}

function operations({ store }: MetricsView, value: (usage: { requests: number; failed: number }) => number): Sample[] {
  return Object.entries(store.operations).map(([operation, usage]) => [{ operation }, value(usage)]);
}

export interface TableMetrics {
  namespace: string;
  table: string;
  view: MetricsView;
}

/** Metrics of tables, each family in one piece, as the format asks. */
export function metricsText(tables: readonly TableMetrics[]): string {
  return FAMILIES.map((family) => {
    const lines = tables.flatMap(({ namespace, table, view }) =>
      family.samples(view).map(([labels, value]) => line(family.name, { namespace, table, ...labels }, value)),
    );
    return lines.length === 0 ? '' : head(family) + lines.join('');
  }).join('');
}

export interface LakeMetrics {
  tables: TableMetrics[];
  /** Tables whose object did not answer. */
  unanswered: number;
  /** Whether there are tables behind this page. */
  more: boolean;
}

/** Metrics of a page of the lake's tables. */
export function lakeMetricsText({ tables, unanswered, more }: LakeMetrics): string {
  const lake: [name: string, help: string, value: number][] = [
    ['sluice_lake_tables', 'Tables on this page', tables.length],
    ['sluice_lake_unanswered_tables', 'Tables on this page whose object did not answer', unanswered],
    ['sluice_lake_more', '1 when there are tables behind this page', more ? 1 : 0],
  ];
  const own = lake.map(([name, help, value]) => head({ name, help, type: 'gauge' }) + line(name, {}, value));
  return own.join('') + metricsText(tables);
}

function head({ name, help, type }: Omit<Family, 'samples'>): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}

function line(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(([key, text]) => `${key}="${escaped(text)}"`);
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`;
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

import { invalid, unavailable } from '../core/base/errors.ts';
import { CONNECTIONS_MAX } from '../core/base/limits.ts';
import { ROWS_ANSWER_BYTES_MAX, ROWS_FOUND_BYTES_MAX, ROWS_HELD_FILES_MAX } from '../core/base/read-limits.ts';
import type { Column, Columns } from '../core/columns/columns.ts';
import { concat } from '../core/columns/concat.ts';
import { type FoundBy, FoundRows, placesOf } from '../core/columns/found-rows.ts';
import { gather } from '../core/columns/gather.ts';
import { rowBytesOf } from '../core/columns/row-bytes.ts';
import { type ColumnFilter, matchingRows } from '../core/columns/row-filter.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { IcebergSink } from '../core/commit/iceberg-sink.ts';
import { dedupOf } from '../core/commit/make-files.ts';
import type { Operation } from '../core/commit/operation.ts';
import { currentSchema, schemaById } from '../core/iceberg/metadata.ts';
import { fieldByName } from '../core/iceberg/schema.ts';
import { currentSnapshot, snapshotById, snapshotOfRef } from '../core/iceberg/snapshot.ts';
import type { NestedField, Schema, Snapshot, TableMetadata } from '../core/iceberg/types.ts';
import { equalsTest, rangeTest, type ValueTest } from '../core/iceberg/value-test.ts';
import { tableSettings } from '../core/table/properties.ts';
import { liveTable } from '../engine/live-table.ts';
import { Loader } from '../engine/loader.ts';
import type { TablePlace } from '../engine/open-table.ts';
import { runBounded } from '../engine/uploader.ts';
import { StoreError } from '../store/store.ts';
import { answerTooLarge, foundTooLarge, ReadBudget } from './budget.ts';
import { DataFileReader } from './data-file.ts';
import { type Candidate, planFiles } from './plan-files.ts';
import type { ReadPorts } from './ports.ts';
import { bindFilters, malformedQuery } from './query.ts';
import type { RowsQuery } from './rows-query.ts';

/** Rows, and what it took to find them. */
export interface RowsFound {
  columns: Columns;
  facts: {
    version: number;
    snapshot_id: string | null;
    /** There are more rows than the limit. */
    more: boolean;
    /** Live data files in the manifests that were looked at, and those of them that were opened. */
    files_considered: number;
    files_read: number;
    bytes_read: number;
  };
}

/**
 * Rows of a table, out of its newest version: first which rows, by time and series alone, then their other columns.
 *
 * A file is left out by what its manifest says, pages by what the file says of them; files come in the order of time, and
 * none is opened once there are enough rows before it.
 *
 * @throws invalid `unknown-table`, `not-attached`, `unknown-snapshot`, `unknown-ref`, `malformed`, `no-time-column`; rejected
 * `too-many-manifests`, `too-much-to-read`, `delete-files`, `unsupported-file`; corrupt; unavailable `store-unavailable`
 */
export async function readRows(ports: ReadPorts, place: TablePlace, query: RowsQuery): Promise<RowsFound> {
  try {
    return await answerOf(ports, place, query);
  } catch (error) {
    if (error instanceof StoreError) throw unavailable('store-unavailable', error.message, {}, error);
    throw error;
  }
}

async function answerOf(ports: ReadPorts, place: TablePlace, query: RowsQuery): Promise<RowsFound> {
  const budget = new ReadBudget();
  const loader = new Loader<IcebergBase, Operation>(ports, new IcebergSink(place, ports.codecs));
  const base = liveTable(await loader.load(), place);
  const scan = scanOf(base.metadata, query);
  if (scan.snapshot === null) {
    const facts = {
      version: base.version,
      snapshot_id: null,
      more: false,
      files_considered: 0,
      files_read: 0,
      bytes_read: 0,
    };
    return { columns: concat([], scan.output), facts };
  }
  const { snapshot } = scan;
  const { candidates, considered } = await planFiles(ports, budget, place, base.metadata, {
    ...scan,
    ...query,
    snapshot,
    filters: scan.filters,
  });
  const files = new Map<number, DataFileReader>();
  const { rows, more } = await findRows(ports, budget, candidates, scan, files);
  const columns = await fetchRows(ports, budget, candidates, scan, files, rows);
  return {
    columns,
    facts: {
      version: base.version,
      snapshot_id: snapshot['snapshot-id'].toString(),
      more,
      files_considered: considered,
      files_read: budget.files,
      bytes_read: budget.bytes,
    },
  };
}

/** A query, made for one state of a table. */
interface Scan {
  snapshot: Snapshot | null;
  schema: Schema;
  output: Schema;
  by: FoundBy;
  timeId: number | null;
  filters: ColumnFilter[];
  tests: ValueTest[];
  query: RowsQuery;
}

function scanOf(metadata: TableMetadata, query: RowsQuery): Scan {
  const { snapshot, schema } = stateOf(metadata, query.at);
  const settings = tableSettings(metadata.properties);
  // What properties name are columns of today; a state of before may have them under other names, or not yet.
  const today = currentSchema(metadata);
  const time = settings.timeColumn === null ? null : fieldByName(today, settings.timeColumn);
  const timeId = time?.type === 'timestamptz' || time?.type === 'timestamp' ? time.id : null;
  const { from, to, order } = query;
  if (timeId === null && (from !== null || to !== null || order === 'desc')) {
    throw invalid('no-time-column', 'table has no time column to choose or order rows by');
  }
  const dedup = timeId === null ? undefined : dedupOf(today, settings);
  // Rows of other columns are chosen after it is known which row of a key counts: so with dedup there are no such filters.
  const among = schema.fields.filter(({ id, type }) =>
    dedup === undefined ? typeof type === 'string' : dedup.seriesIds.includes(id),
  );
  const filters = bindFilters(
    query.filters,
    schema,
    among.map(({ name }) => name),
  );
  const ids = new Set([
    timeId,
    ...filters.map(({ fieldId }) => fieldId),
    ...(dedup === undefined ? [] : [...dedup.seriesIds, dedup.ingestTimeId]),
  ]);
  const tests = filters.map(({ fieldId, type, values }) => equalsTest(fieldId, type, values));
  if (timeId !== null && (from !== null || to !== null)) {
    tests.push(rangeTest(timeId, 'timestamptz', from, to === null ? null : to - 1n));
  }
  return {
    snapshot,
    schema,
    output: outputOf(schema, query.columns),
    by: { fields: keyFields(schema, today, ids), timeId, direction: order, dedup: dedup ?? null },
    timeId,
    filters,
    tests,
    query,
  };
}

function stateOf(metadata: TableMetadata, at: RowsQuery['at']): { snapshot: Snapshot | null; schema: Schema } {
  const schema = currentSchema(metadata);
  if (at === null || ('ref' in at && at.ref === 'main')) return { snapshot: currentSnapshot(metadata), schema };
  if ('ref' in at) {
    const snapshot = snapshotOfRef(metadata, at.ref);
    if (snapshot === null)
      throw invalid('unknown-ref', `table has no branch or tag of this name: ${at.ref.slice(0, 100)}`);
    return { snapshot, schema };
  }
  const snapshot = snapshotById(metadata, at.snapshotId);
  if (snapshot === null) throw invalid('unknown-snapshot', `snapshot is not in the table: ${at.snapshotId}`);
  // The columns as they were (spec: schema evolution of a snapshot).
  const own = snapshot['schema-id'];
  return { snapshot, schema: (own === undefined ? null : schemaById(metadata, own)) ?? schema };
}

/** Fields by id, as they were; those that came later are null in the files of before. */
function keyFields(schema: Schema, today: Schema, ids: ReadonlySet<number | null>): NestedField[] {
  const were = schema.fields.filter(({ id }) => ids.has(id));
  const later = today.fields.filter(({ id }) => ids.has(id) && were.every((field) => field.id !== id));
  return [...were, ...later.map((field) => ({ ...field, required: false }))];
}

function outputOf(schema: Schema, names: readonly string[] | null): Schema {
  if (names === null) return schema;
  const fields = names.map((name) => {
    const field = fieldByName(schema, name);
    if (field !== null) return field;
    const message = `table has no column of this name: ${name.slice(0, 100)}`;
    throw malformedQuery(message, { parameter: 'columns', expected: schema.fields.map((known) => known.name) });
  });
  return { ...schema, fields };
}

/** Looks for the first rows. Files that were opened stay in `files`, as far as memory allows. */
async function findRows(
  ports: ReadPorts,
  budget: ReadBudget,
  candidates: readonly Candidate[],
  scan: Scan,
  files: Map<number, DataFileReader>,
): Promise<{ rows: Columns; more: boolean }> {
  const found = new FoundRows(scan.by, scan.query.limit);
  const waiting = inOrder(candidates, scan);
  // One file may have enough rows; several at a time save the wait for each.
  for (let width = 1; waiting.length > 0; width = Math.min(2 * width, CONNECTIONS_MAX)) {
    const batch: Candidate[] = [];
    while (batch.length < width && waiting.length > 0) {
      const next = waiting.shift() as Candidate;
      if (isWanted(next, scan, found)) batch.push(next);
    }
    await runBounded(
      batch.map((candidate) => async () => {
        const file = await DataFileReader.open(ports, budget, candidate, testsNow(scan, found));
        await findInFile(file, candidate.rank, scan, found);
        if (files.size < ROWS_HELD_FILES_MAX) files.set(candidate.rank, file);
      }),
    );
  }
  return found.finish();
}

/** Whether a file may hold rows that are still wanted. */
function isWanted({ rank, times }: Candidate, scan: Scan, found: FoundRows): boolean {
  if (found.isBeyond(rank, 0, 0)) return false;
  return testsNow(scan, found).every((test) => test.fieldId !== scan.timeId || test.mayHold(times));
}

/** Files by what they may begin with, in the direction of the order; those that do not tell come first. */
function inOrder(candidates: readonly Candidate[], { timeId, by }: Scan): Candidate[] {
  if (timeId === null) return [...candidates];
  const edge = ({ times: { lower, upper, hasNull } }: Candidate): bigint | null =>
    (by.direction === 'desc' ? upper : hasNull === false ? lower : null) as bigint | null;
  return [...candidates].sort((a, b) => {
    const [x, y] = [edge(a), edge(b)];
    if (x === null || y === null) return Number(x !== null) - Number(y !== null) || a.rank - b.rank;
    if (x === y) return a.rank - b.rank;
    return x < y === (by.direction === 'asc') ? -1 : 1;
  });
}

/** The tests of the query, and that of the rows that are still wanted. */
function testsNow({ tests, timeId, by }: Scan, found: FoundRows): ValueTest[] {
  const worst = found.worst();
  if (worst === undefined || timeId === null) return tests;
  const range =
    by.direction === 'asc'
      ? rangeTest(timeId, 'timestamptz', null, worst)
      : rangeTest(timeId, 'timestamptz', worst, null);
  if (by.direction === 'desc') return [...tests, range];
  // Rows without a time stand before all others.
  return [...tests, { ...range, mayHold: (known) => known.hasNull !== false || range.mayHold(known) }];
}

async function findInFile(file: DataFileReader, rank: number, scan: Scan, found: FoundRows): Promise<void> {
  const schema: Schema = { ...scan.schema, fields: [...scan.by.fields] };
  for (let group = 0; group < file.rowGroups; group++) {
    await file.read(group, file.windows(group, testsNow(scan, found), schema), schema, {
      isWanted: ({ from }) => !found.isBeyond(rank, group, from),
      take: (columns, { from }) => {
        const rows = wantedRows(columns, scan, found);
        const numbers = Int32Array.from(rows, (row) => from + row);
        found.add(rank, group, gather(columns, rows).columns, numbers);
        if (found.isLargerThan(ROWS_FOUND_BYTES_MAX)) throw foundTooLarge();
      },
    });
  }
}

function wantedRows(
  columns: Columns,
  { filters, timeId, by, query: { from, to } }: Scan,
  found: FoundRows,
): Uint32Array {
  const rows = matchingRows(columns, filters);
  const worst = found.worst();
  const time = columns.columns[columns.schema.fields.findIndex(({ id }) => id === timeId)] as Column | undefined;
  if (time === undefined || time.kind !== 'int64' || (from === null && to === null && worst === undefined)) return rows;
  const { values, validity } = time;
  const isAsked = from !== null || to !== null;
  return rows.filter((row) => {
    if (validity !== null && validity[row] === 0) return !isAsked;
    const micros = values[row];
    if ((from !== null && micros < from) || (to !== null && micros >= to)) return false;
    return worst === undefined || (by.direction === 'asc' ? micros <= (worst as bigint) : micros >= (worst as bigint));
  });
}

/** The columns of the answer for rows whose places are known. */
async function fetchRows(
  ports: ReadPorts,
  budget: ReadBudget,
  candidates: readonly Candidate[],
  scan: Scan,
  files: ReadonlyMap<number, DataFileReader>,
  found: Columns,
): Promise<Columns> {
  const { rows } = found;
  const known = new Map(found.schema.fields.map(({ id }, place) => [id, found.columns[place]]));
  const bytes = bytesOf({
    schema: scan.output,
    rows,
    columns: scan.output.fields.flatMap(({ id }) => known.get(id) ?? []),
  });
  if (bytes > ROWS_ANSWER_BYTES_MAX) throw answerTooLarge();
  const missing = scan.output.fields.filter(({ id }) => !known.has(id));
  if (missing.length > 0) {
    const schema = { ...scan.schema, fields: missing };
    const fetched = await fetchColumns(ports, budget, candidates, schema, files, found, bytes);
    for (const [place, { id }] of missing.entries()) known.set(id, fetched.columns[place]);
  }
  return { schema: scan.output, rows, columns: scan.output.fields.map(({ id }) => known.get(id) as Column) };
}

function bytesOf(columns: Columns): number {
  return rowBytesOf(columns).reduce((sum, size) => sum + size, 0);
}

async function fetchColumns(
  ports: ReadPorts,
  budget: ReadBudget,
  candidates: readonly Candidate[],
  schema: Schema,
  files: ReadonlyMap<number, DataFileReader>,
  found: Columns,
  knownBytes: number,
): Promise<Columns> {
  const stands = standingsOf(found);
  const parts = new Array<Columns>(stands.length);
  let bytes = knownBytes;
  await runBounded(
    stands.map(({ file, groups }, i) => async () => {
      const reader = files.get(file) ?? (await DataFileReader.open(ports, budget, candidates[file], []));
      const read: Columns[] = [];
      for (const [group, rows] of groups) {
        const part = await reader.rowsAt(group, rows, schema);
        bytes += bytesOf(part);
        if (bytes > ROWS_ANSWER_BYTES_MAX) throw answerTooLarge();
        read.push(part);
      }
      parts[i] = concat(read, schema);
    }),
  );
  // As they were read they stand by file, group and row: each goes to where it was found.
  const back = new Uint32Array(found.rows);
  let at = 0;
  for (const { order } of stands) for (const row of order) back[row] = at++;
  return gather(concat(parts, schema), back);
}

interface Standing {
  file: number;
  groups: Map<number, Int32Array>;
  /** The found rows of this file, by group and row. */
  order: number[];
}

function standingsOf(found: Columns): Standing[] {
  const { files, groups, rows } = placesOf(found);
  const order = Array.from({ length: found.rows }, (_, row) => row);
  order.sort((a, b) => files[a] - files[b] || groups[a] - groups[b] || rows[a] - rows[b]);
  const stands: Standing[] = [];
  for (let from = 0; from < order.length; ) {
    const file = files[order[from]];
    let to = from;
    while (to < order.length && files[order[to]] === file) to++;
    const own = order.slice(from, to);
    stands.push({ file, order: own, groups: byGroup(own, groups, rows) });
    from = to;
  }
  return stands;
}

/** Rows of one file, in the order of their groups, by group. */
function byGroup(order: readonly number[], groups: Int32Array, rows: Int32Array): Map<number, Int32Array> {
  const out = new Map<number, Int32Array>();
  for (let from = 0; from < order.length; ) {
    const group = groups[order[from]];
    let to = from;
    while (to < order.length && groups[order[to]] === group) to++;
    out.set(
      group,
      Int32Array.from(order.slice(from, to), (row) => rows[row]),
    );
    from = to;
  }
  return out;
}

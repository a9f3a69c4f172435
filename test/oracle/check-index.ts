import type { Report } from './finding.ts';
import { liveEntries, schemaById, snapshotState, type TableState } from './reader.ts';
import { type Row, rowsOfFile, spell } from './rows.ts';

/** Rows of a table up to which its last-value index is held against them. */
const ROWS_MAX = 5_000;

/** A row and what decides which of a series is the newest, beside its time. */
interface Placed {
  row: Row;
  sequenceNumber: bigint;
  position: number;
}

/** Each index that a summary names is there; that of the current snapshot holds the newest row of every series. */
export async function checkIndexes(table: TableState, report: Report): Promise<void> {
  for (const { summary } of table.metadata.snapshots) {
    const key = keyOf(table, summary['timelake.last-value-index']);
    if (key !== null && !table.objects.has(key)) report('I3 last-value index', key, 'present', 'missing');
  }
  const state = snapshotState(table);
  const key = keyOf(table, state?.snapshot.summary['timelake.last-value-index']);
  if (state === undefined || key === null || !table.objects.has(key)) return;
  const live = liveEntries(state);
  const records = live.reduce((sum, { dataFile }) => sum + dataFile.recordCount, 0n);
  // Delete files are not applied here, and neither are they by an index.
  if (records > ROWS_MAX || live.some(({ dataFile }) => dataFile.content !== 0)) return;
  const { properties } = table.metadata;
  const schema = schemaById(table.metadata, table.metadata['current-schema-id']);
  const bytes = await table.bucket.get(key);
  const time = properties['timelake.time-column'];
  if (schema === undefined || bytes === null || time === undefined) return;
  const keyNames = (properties['timelake.series-key'] ?? '').split(',').filter((name) => name !== '');
  const seriesOf = (row: Row) => keyNames.map((name) => spell(row[name])).join(' ');

  const newest = new Map<string, Placed>();
  for (const { dataFile, effective } of live) {
    const fileKey = table.keyOf(dataFile.filePath);
    const file = fileKey === null ? null : await table.bucket.get(fileKey);
    if (file === null) return; // told elsewhere
    (await rowsOfFile(file, schema)).forEach((row, position) => {
      const placed = { row, sequenceNumber: effective.sequenceNumber, position };
      const known = newest.get(seriesOf(row));
      if (known === undefined || isLater(placed, known, time, properties['timelake.ingest-time-column']))
        newest.set(seriesOf(row), placed);
    });
  }
  const indexed = await rowsOfFile(bytes, schema);
  const found = new Map(indexed.map((row) => [seriesOf(row), row]));
  if (found.size !== indexed.length) report('L1 one row a series', key, found.size, indexed.length);
  for (const [series, { row }] of newest) {
    const index = found.get(series);
    // An engine takes series out by their time, where ours waits until their rows have gone.
    if (index === undefined && properties['timelake.retention'] !== undefined) continue;
    if (spell(index) !== spell(row)) report(`L1 newest row of ${series}`, key, spell(row), spell(index));
  }
  for (const series of found.keys())
    if (!newest.has(series)) report('L1 series', key, 'none that the table lacks', series);
  for (let i = 1; i < indexed.length; i++)
    if (compareKeys(indexed[i - 1], indexed[i], keyNames) >= 0)
      report('L2 order', key, 'ascending, nulls first', `${seriesOf(indexed[i - 1])} before ${seriesOf(indexed[i])}`);
}

function keyOf(table: TableState, location: string | undefined): string | null {
  return location === undefined ? null : (table.keyOf(location) ?? `${table.prefix}/${location}`);
}

/** Time, then ingest time, then the commit, then the place in it. Null is older than anything. */
function isLater(a: Placed, b: Placed, time: string, ingestTime: string | undefined): boolean {
  for (const name of ingestTime === undefined ? [time] : [time, ingestTime]) {
    const order = compare(a.row[name], b.row[name]);
    if (order !== 0) return order > 0;
  }
  if (a.sequenceNumber !== b.sequenceNumber) return a.sequenceNumber > b.sequenceNumber;
  return a.position > b.position;
}

function compareKeys(a: Row, b: Row, names: readonly string[]): number {
  for (const name of names) {
    const order = compare(a[name], b[name]);
    if (order !== 0) return order;
  }
  return 0;
}

function compare(a: unknown, b: unknown): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? -1 : 1;
  if (typeof a === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b as string));
  if (a instanceof Uint8Array) return Buffer.compare(a, b as Uint8Array);
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
  if (a === b) return Object.is(a, b) ? 0 : Object.is(a, -0) ? -1 : 1;
  return (a as bigint) < (b as bigint) ? -1 : 1;
}

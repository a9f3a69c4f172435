import { SluiceError } from '../base/errors.ts';
import { contentName } from '../base/ids.ts';
import { INDEX_BYTES_MAX } from '../base/index-limits.ts';
import type { Columns } from '../columns/columns.ts';
import { byteSizeOf } from '../columns/row-bytes.ts';
import { indexName } from '../iceberg/locations.ts';
import { currentSchema } from '../iceberg/metadata.ts';
import { fieldByName } from '../iceberg/schema.ts';
import { MAIN } from '../iceberg/snapshot.ts';
import { SUMMARY_KEYS, totalsOf } from '../iceberg/summary.ts';
import { ordinalOfMicros, startOfOrdinal, type TimeTransform } from '../iceberg/transform.ts';
import type { Schema, TableMetadata } from '../iceberg/types.ts';
import { foldNewest, notBefore, type Series } from '../lastvalue/fold.ts';
import { readIndex, writeIndex } from '../lastvalue/index-file.ts';
import type { Upload } from '../sink.ts';
import { type TableSettings, tableSettings } from '../table/properties.ts';
import { headOf, type IcebergBase } from './iceberg-base.ts';
import type { CommitIdentity } from './operation.ts';
import type { SinkContext } from './sink-context.ts';

/**
 * The last-value index of a commit. One snapshot's index is made of its parent's, so only a parent that names one, or has
 * no rows, can be followed by one that does: an index that does not cover all rows is believed all the same, and answers
 * wrongly. Where it cannot be made the commit goes on without it and says why; rows never wait for an index.
 */

/**
 * - `too-many-series`, `too-large`: more than `sluice.last-value-series-max`, or more bytes than fit in memory.
 * - `not-carried`: the snapshot before names none. Another writer's commit has dropped it, or it never had one.
 * - `unreadable`: the index of the snapshot before is missing, damaged or too large.
 * - `rows-removed`: the newest rows may be among those removed.
 * - `columns-changed`: the columns changed and the index could not be made anew for them.
 */
export type NoIndex =
  | 'too-many-series'
  | 'too-large'
  | 'not-carried'
  | 'unreadable'
  | 'rows-removed'
  | 'columns-changed';

/** What a snapshot says of its index, and what is uploaded for it. */
export interface IndexOfSnapshot {
  lastValueIndex: string | 'carry' | null;
  noIndex?: NoIndex | null;
  uploads?: Upload[];
}

/** The index goes on as it is: the rows are the same. */
export const SAME_INDEX: IndexOfSnapshot = { lastValueIndex: 'carry' };

/** What makes the series of a table; null when it has no time column, or columns that its properties name are not there. */
export function seriesOf(
  schema: Schema,
  { timeColumn, seriesKey, ingestTimeColumn }: Pick<TableSettings, 'timeColumn' | 'seriesKey' | 'ingestTimeColumn'>,
): Series | null {
  const time = timeColumn === null ? null : fieldByName(schema, timeColumn);
  if (time === null || !isTime(time.type)) return null;
  const keys = seriesKey.map((name) => fieldByName(schema, name));
  const ingest = ingestTimeColumn === null ? null : fieldByName(schema, ingestTimeColumn);
  if (ingestTimeColumn !== null && (ingest === null || !isTime(ingest.type))) return null;
  const keyIds: number[] = [];
  for (const key of keys) {
    if (key === null || typeof key.type !== 'string') return null;
    keyIds.push(key.id);
  }
  return { keyIds, timeId: time.id, ingestTimeId: ingest?.id ?? null };
}

function isTime(type: unknown): boolean {
  return type === 'timestamptz' || type === 'timestamp';
}

/** Location of the index that the head of a branch names; null when it names none. */
export function indexOf(metadata: TableMetadata, branch: string = MAIN): string | null {
  return headOf(metadata, branch)?.summary[SUMMARY_KEYS.lastValueIndex] ?? null;
}

/** Key of the index that is to be read before one can follow it; none when it is in memory, or there is none. */
export function indexNeeds(
  context: SinkContext,
  base: IcebergBase,
  seen: ReadonlyMap<string, Uint8Array>,
  branch: string = MAIN,
): string[] {
  const location = indexOf(base.metadata, branch);
  if (location === null || context.indexes.get(location) !== null) return [];
  const key = inFolder(context, location);
  return key === null || seen.has(key) ? [] : [key];
}

/** The index after an append: the newest rows of the table before it and of what it adds. */
export function indexAfterAppend(
  context: SinkContext,
  input: { base: IcebergBase; identity: CommitIdentity; branch: string; newest: Columns | null },
  seen: ReadonlyMap<string, Uint8Array>,
): IndexOfSnapshot {
  const { base, branch, newest } = input;
  if (newest === null) return { lastValueIndex: null };
  if (newest.rows === 0) return SAME_INDEX;
  const { schema } = newest;
  const settings = tableSettings(base.metadata.properties);
  const series = seriesOf(schema, settings);
  if (series === null) return { lastValueIndex: null };
  const parent = headOf(base.metadata, branch);
  const isEmpty = parent === null || totalsOf(parent.summary)?.records === 0n;
  const parts = [newest];
  if (!isEmpty) {
    const before = readParent(context, base, schema, branch, seen);
    if (typeof before === 'string') return { lastValueIndex: null, noIndex: before };
    parts.unshift(before);
  }
  try {
    return madeIndex(context, input.identity, foldNewest(parts, schema, series), settings);
  } catch (error) {
    // Columns that do not go together are no reason to refuse rows that fit the table.
    if (error instanceof SluiceError) return { lastValueIndex: null, noIndex: 'columns-changed' };
    throw error;
  }
}

/** No index: rows were removed, and which series' newest are among them is not known. */
export function indexAfterRemoval({ metadata }: IcebergBase): IndexOfSnapshot {
  const { timeColumn } = tableSettings(metadata.properties);
  return { lastValueIndex: null, noIndex: timeColumn === null ? null : 'rows-removed' };
}

/** The index after the table's retention has dropped what is past `cutoff`: without the series that have no row left. */
export function indexAfterRetention(
  context: SinkContext,
  input: { base: IcebergBase; identity: CommitIdentity; cutoff: bigint },
  seen: ReadonlyMap<string, Uint8Array>,
): IndexOfSnapshot {
  const { base } = input;
  const schema = currentSchema(base.metadata);
  const settings = tableSettings(base.metadata.properties);
  const series = seriesOf(schema, settings);
  if (series === null) return { lastValueIndex: null };
  const before = readParent(context, base, schema, MAIN, seen);
  if (typeof before === 'string') return { lastValueIndex: null, noIndex: before };
  const rest = notBefore(before, series.timeId, earliestLeft(base.metadata, series.timeId, input.cutoff));
  if (rest === before) return SAME_INDEX;
  // Nothing is known of what rows are left then, if any.
  if (rest.rows === 0) return { lastValueIndex: null, noIndex: 'rows-removed' };
  // In today's columns, by whose places an engine reads it: another writer may have changed them since it was made.
  return indexOfRows(context, { ...input, schema, newest: rest });
}

/**
 * Where retention cuts: partitions go whole, so a partition that the cutoff lies in is still there. Files that are not
 * partitioned by time alone go by their bounds, and then a series goes from the index by its time, as the engine has it.
 */
function earliestLeft({ 'partition-specs': specs }: TableMetadata, timeId: number, cutoff: bigint): bigint {
  const [field] = specs[0].fields;
  const isByTime = specs.length === 1 && specs[0].fields.length === 1 && field['source-id'] === timeId;
  if (!isByTime || !/^(hour|day|month|year)$/.test(field.transform)) return cutoff;
  const name = field.transform as TimeTransform;
  return startOfOrdinal(name, ordinalOfMicros(name, cutoff));
}

/** The index after a change of columns alone: an engine reads it by the place of its columns. */
export function indexAfterSchema(
  context: SinkContext,
  input: { base: IcebergBase; identity: CommitIdentity; schema: Schema },
  seen: ReadonlyMap<string, Uint8Array>,
): IndexOfSnapshot {
  const before = readParent(context, input.base, input.schema, MAIN, seen);
  if (typeof before === 'string') return { lastValueIndex: null, noIndex: 'columns-changed' };
  return indexOfRows(context, { ...input, newest: before });
}

/** The index of rows that are the newest of the whole table, in the columns of a schema. */
export function indexOfRows(
  context: SinkContext,
  input: { base: IcebergBase; identity: CommitIdentity; schema: Schema; newest: Columns },
): IndexOfSnapshot {
  const { base, identity, schema, newest } = input;
  const settings = tableSettings(base.metadata.properties);
  const series = seriesOf(schema, settings);
  if (series === null) return { lastValueIndex: null };
  try {
    return madeIndex(context, identity, foldNewest([newest], schema, series), settings);
  } catch (error) {
    // Columns that do not go together are no reason to refuse the change.
    if (error instanceof SluiceError) return { lastValueIndex: null, noIndex: 'columns-changed' };
    throw error;
  }
}

/** Encodes an index and names it after its content; none when it is larger than the table or this service allows. */
export function madeIndex(
  context: SinkContext,
  identity: CommitIdentity,
  rows: Columns,
  settings: TableSettings,
): IndexOfSnapshot {
  if (rows.rows > settings.lastValueSeriesMax) return { lastValueIndex: null, noIndex: 'too-many-series' };
  if (byteSizeOf(rows) > INDEX_BYTES_MAX) return { lastValueIndex: null, noIndex: 'too-large' };
  const bytes = writeIndex(rows, settings.encodings, context.compress);
  const name = indexName(identity.snapshotId, contentName(identity.timeMs, context.digest([bytes])));
  const location = `${context.location}/metadata/${name}`;
  context.indexes.put(location, rows);
  return { lastValueIndex: location, uploads: [{ key: context.keyOf(location), bytes }] };
}

function readParent(
  context: SinkContext,
  base: IcebergBase,
  schema: Schema,
  branch: string,
  seen: ReadonlyMap<string, Uint8Array>,
): Columns | NoIndex {
  const location = indexOf(base.metadata, branch);
  if (location === null) return reasonOf(base, branch) ?? 'not-carried';
  const known = context.indexes.get(location);
  if (known !== null) return known;
  const key = inFolder(context, location);
  const bytes = key === null ? undefined : seen.get(key);
  if (bytes === undefined) return 'unreadable';
  try {
    const rows = readIndex(bytes, schema, context.decompress);
    if (byteSizeOf(rows) > INDEX_BYTES_MAX) return 'too-large';
    context.indexes.put(location, rows);
    return rows;
  } catch (error) {
    if (error instanceof SluiceError) return 'unreadable';
    throw error;
  }
}

/** Why the head of a branch names no index, where it says so. */
function reasonOf({ metadata }: IcebergBase, branch: string): NoIndex | null {
  return (headOf(metadata, branch)?.summary[SUMMARY_KEYS.noIndex] ?? null) as NoIndex | null;
}

/** An index elsewhere is not ours to read. */
function inFolder(context: SinkContext, location: string): string | null {
  return location.startsWith(`${context.location}/`) ? context.keyOf(location) : null;
}

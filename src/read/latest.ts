import { invalid, rejected, unavailable } from '../core/base/errors.ts';
import { INDEX_ROWS_MAX, LATEST_SCAN_BYTES_MAX, LATEST_SCAN_FILES_MAX } from '../core/base/index-limits.ts';
import type { Columns } from '../core/columns/columns.ts';
import { concat } from '../core/columns/concat.ts';
import { decodeFrameBody } from '../core/columns/frame.ts';
import { gather } from '../core/columns/gather.ts';
import { matchingRows } from '../core/columns/row-filter.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { IcebergSink } from '../core/commit/iceberg-sink.ts';
import { seriesOf } from '../core/commit/last-value.ts';
import type { Operation } from '../core/commit/operation.ts';
import { currentSchema } from '../core/iceberg/metadata.ts';
import { identifiedSchema, PROPOSED_ID_MIN, schemaAfter } from '../core/iceberg/proposal.ts';
import { currentSnapshot } from '../core/iceberg/snapshot.ts';
import { SUMMARY_KEYS, totalsOf } from '../core/iceberg/summary.ts';
import type { Schema } from '../core/iceberg/types.ts';
import { foldNewest, type Series } from '../core/lastvalue/fold.ts';
import { tableSettings } from '../core/table/properties.ts';
import { Faults } from '../engine/faults.ts';
import { LiveFiles } from '../engine/live-files.ts';
import { liveTable } from '../engine/live-table.ts';
import { Loader } from '../engine/loader.ts';
import { readNamedIndex } from '../engine/named-index.ts';
import { NewestRows } from '../engine/newest-rows.ts';
import type { TablePlace } from '../engine/open-table.ts';
import { StoreError } from '../store/store.ts';
import type { ReadPorts } from './ports.ts';
import { bindFilters, malformedQuery, type QueryFilters, splitQuery } from './query.ts';

export interface LatestQuery {
  filters: QueryFilters;
  /** Rows that still wait in the buffer count too. */
  buffered: boolean;
}

/** The newest rows among those that wait in the buffer, as the table's object tells them. */
export interface WaitingRows {
  tableUuid: string;
  /** Rows in the buffer of which these are the newest. */
  rows: number;
  /** Their schema, in which columns that the table does not have yet are under ids of a proposal, and the rows in it. */
  schema: Schema;
  body: Uint8Array;
}

/** The newest row of each series, in the order of their keys, and where it was found. */
export interface LatestFound {
  columns: Columns;
  facts: {
    version: number;
    snapshot_id: string | null;
    /** `index`: one small file; `scan`: the table has no index, and its files were looked through. */
    source: 'index' | 'scan';
    /** Rows that waited in the buffer and were looked at too; null when it was not asked for. */
    buffered_rows: number | null;
  };
}

/** @throws invalid `malformed` */
export function parseLatestQuery(query: URLSearchParams): LatestQuery {
  const { parameters, filters } = splitQuery(query, ['buffered']);
  const buffered = parameters.get('buffered') ?? 'false';
  if (buffered !== 'true' && buffered !== 'false') {
    throw malformedQuery(`buffered is neither true nor false: ${buffered.slice(0, 100)}`, { parameter: 'buffered' });
  }
  return { filters, buffered: buffered === 'true' };
}

/**
 * The newest row of each series that the filters choose, out of the newest version. `waiting` was asked for before: what is
 * committed in between is then found twice, never missed.
 *
 * @throws invalid `unknown-table`, `not-attached`, `no-time-column`, `malformed`; rejected `no-last-value-index`,
 * `too-many-manifests`; corrupt; unavailable `store-unavailable`
 */
export async function readLatest(
  ports: ReadPorts,
  place: TablePlace,
  query: LatestQuery,
  waiting: WaitingRows | null,
): Promise<LatestFound> {
  try {
    const loader = new Loader<IcebergBase, Operation>(ports, new IcebergSink(place, ports.codecs));
    return await answerOf(ports, place, liveTable(await loader.load(), place), query, waiting);
  } catch (error) {
    if (error instanceof StoreError) throw unavailable('store-unavailable', error.message, {}, error);
    throw error;
  }
}

async function answerOf(
  ports: ReadPorts,
  place: TablePlace,
  base: IcebergBase,
  query: LatestQuery,
  waiting: WaitingRows | null,
): Promise<LatestFound> {
  const { metadata } = base;
  const settings = tableSettings(metadata.properties);
  const own = currentSchema(metadata);
  const series = seriesOf(own, settings);
  if (series === null) throw invalid('no-time-column', 'table has no time column, so no row of it is the newest');
  // Of another table than the one that is there now, nothing waits.
  const ofTable = waiting?.tableUuid === metadata['table-uuid'] ? waiting : null;
  const schema = ofTable === null ? own : schemaWith(ofTable, own, metadata['last-column-id']);
  const filters = bindFilters(query.filters, schema, settings.seriesKey);
  const { newest, source } = await committed(ports, place, base, series);
  const columns = ofTable === null ? newest : foldNewest([newest, columnsOf(ofTable, schema)], schema, series);
  const chosen = filters.length === 0 ? columns : gather(columns, matchingRows(columns, filters));
  const facts = {
    version: base.version,
    snapshot_id: currentSnapshot(metadata)?.['snapshot-id'].toString() ?? null,
    source,
    buffered_rows: query.buffered ? (ofTable?.rows ?? 0) : null,
  };
  return { columns: chosen, facts };
}

/** The newest rows of the table as it is: out of its index, or of its files where it has none. */
async function committed(
  ports: ReadPorts,
  place: TablePlace,
  base: IcebergBase,
  series: Series,
): Promise<{ newest: Columns; source: 'index' | 'scan' }> {
  const { metadata } = base;
  const schema = currentSchema(metadata);
  const snapshot = currentSnapshot(metadata);
  if (snapshot === null || totalsOf(snapshot.summary)?.records === 0n) {
    return { newest: concat([], schema), source: 'index' };
  }
  const newest = await readNamedIndex({ ...ports, ...ports.codecs }, place, metadata);
  return newest === null
    ? { newest: await scanned(ports, place, base, { schema, series }), source: 'scan' }
    : { newest, source: 'index' };
}

async function scanned(
  ports: ReadPorts,
  place: TablePlace,
  base: IcebergBase,
  of: { schema: Schema; series: Series },
): Promise<Columns> {
  const all = { ...ports, ...ports.codecs, marks: { hit: () => undefined } };
  const bounds = { seriesMax: INDEX_ROWS_MAX, bytesMax: LATEST_SCAN_BYTES_MAX, filesMax: LATEST_SCAN_FILES_MAX };
  const rows = new NewestRows(all, place, { ...of, metadata: base.metadata, ...bounds });
  const reason = await rows.add(await new LiveFiles(all, place, new Faults()).of(base));
  if (reason === null) return rows.rows;
  const lost = currentSnapshot(base.metadata)?.summary[SUMMARY_KEYS.noIndex] ?? 'not-carried';
  const message = `table has no last-value index (${lost}), and cannot be looked through without one: ${reason}`;
  throw rejected('no-last-value-index', message, { index: lost, reason });
}

/** The schema that the table has once the waiting rows are in it. */
function schemaWith({ schema }: WaitingRows, own: Schema, lastColumnId: number): Schema {
  const added = schema.fields.filter(({ id }) => id >= PROPOSED_ID_MIN);
  const widened = schema.fields.flatMap(({ id, type }) =>
    id < PROPOSED_ID_MIN && typeof type === 'string' ? [{ id, type }] : [],
  );
  return schemaAfter(own, { added, widened }, lastColumnId);
}

function columnsOf({ schema, body }: WaitingRows, next: Schema): Columns {
  return { ...decodeFrameBody(body, schema), schema: identifiedSchema(schema, next) };
}

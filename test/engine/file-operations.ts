import { prepareDelete } from '../../src/core/commit/decide-delete.ts';
import { prepareOverwrite } from '../../src/core/commit/decide-overwrite.ts';
import { prepareRewriteManifests } from '../../src/core/commit/decide-rewrite-manifests.ts';
import type { FileFilter } from '../../src/core/commit/file-filter.ts';
import { seriesOf } from '../../src/core/commit/last-value.ts';
import { makeFiles, rowsOf } from '../../src/core/commit/make-files.ts';
import type { Operation } from '../../src/core/commit/operation.ts';
import { prepareReplace } from '../../src/core/commit/prepare-replace.ts';
import { currentSchema } from '../../src/core/iceberg/metadata.ts';
import type { TableMetadata } from '../../src/core/iceberg/types.ts';
import { foldNewest } from '../../src/core/lastvalue/fold.ts';
import { tableSettings } from '../../src/core/table/properties.ts';
import { codecs } from '../../src/engine/codecs.ts';
import { newIdentity } from '../../src/engine/identity.ts';
import { storeBucket } from '../oracle/bucket.ts';
import { liveEntries, readTable, snapshotState } from '../oracle/reader.ts';
import { rows as readRows } from '../oracle/rows.ts';
import { DAY, HOUR } from '../sim/scenario.ts';
import { PLACE, type SeriesRow, type Service, type World } from '../sim/service.ts';

/** A row on a day counted from 1 January 2026. */
export function on(day: number, v: number, device = 'a'): SeriesRow {
  return { device, time: DAY + BigInt(day) * 24n * HOUR + BigInt(v) * 1_000_000n, v: BigInt(v) };
}

export const label = (day: number): string => `2026-01-${String(day + 1).padStart(2, '0')}`;

export const ofDay = (day: number): FileFilter => ({ kind: 'partitions', partitions: [{ time_day: label(day) }] });

export function metadataOf(service: Service): TableMetadata {
  const metadata = service.table.base?.metadata;
  if (metadata === undefined) throw new Error('not loaded');
  return metadata;
}

export function deleteOf(world: World, service: Service, filter: FileFilter): Operation {
  const metadata = metadataOf(service);
  return prepareDelete(newIdentity(world, metadata), filter, metadata);
}

export function overwriteOf(world: World, service: Service, filter: FileFilter, rows: readonly SeriesRow[]): Operation {
  const metadata = metadataOf(service);
  const identity = newIdentity(world, metadata);
  const frames = [{ ...service.frame(rows), sequence: 1 }];
  return prepareOverwrite({ identity, filter, frames, metadata, place: PLACE, ...codecs });
}

export function rewriteManifestsOf(world: World, service: Service): Operation {
  return prepareRewriteManifests(newIdentity(world, metadataOf(service)));
}

/** An index of `rows`, which are all rows of the table, the newest of them the last to come. */
export async function indexOf(world: World, service: Service, rows: readonly SeriesRow[]): Promise<Operation> {
  const metadata = metadataOf(service);
  const schema = currentSchema(metadata);
  const identity = newIdentity(world, metadata);
  const stored = await readRows(storeBucket(world.memory), PLACE.prefix);
  const ingestMs = Math.max(...stored.map((row) => Number(row['_ingest_ts']) / 1000));
  const columns = rowsOf([{ ...service.frame(rows), sequence: 1 }], metadata, ingestMs);
  const series = seriesOf(schema, tableSettings(metadata.properties));
  if (series === null) throw new Error('table has no series');
  const newest = foldNewest([columns], schema, series);
  const covers = metadata['current-snapshot-id'] as bigint;
  return { kind: 'index', commitId: identity.commitId, uploads: [], identity, covers, lost: null, newest };
}

/** Puts one file in the place of all files of a day; `rows` are what they hold. */
export async function replaceOf(
  world: World,
  service: Service,
  day: number,
  rows: readonly SeriesRow[],
): Promise<Operation> {
  const metadata = metadataOf(service);
  const identity = newIdentity(world, metadata);
  // A merge leaves ingest times as they are: the newest row keeps the newest of them.
  const before = await readRows(storeBucket(world.memory), PLACE.prefix);
  const ofThisDay = before.filter((row) => ((row['time'] as bigint) - DAY) / (24n * HOUR) === BigInt(day));
  const ingestMs = Math.max(identity.timeMs - 86_400_000, ...ofThisDay.map((row) => Number(row['_ingest_ts']) / 1000));
  const columns = rowsOf([{ ...service.frame(rows), sequence: 1 }], metadata, ingestMs);
  const made = makeFiles(columns, { identity, metadata, place: PLACE, ...codecs });
  const table = await readTable(storeBucket(world.memory), PLACE.prefix, { snapshots: 'current' });
  const state = snapshotState(table);
  const inputs = (state === undefined ? [] : [...liveEntries(state)])
    .filter(({ dataFile }) => dataFile.filePath.includes(`time_day=${label(day)}/`))
    .map(({ effective, ...entry }) => ({ ...entry, ...effective }));
  return prepareReplace({
    identity,
    metadata,
    layout: made.layout,
    runs: [{ inputs, outputs: made.entries.map(({ dataFile }) => dataFile) }],
    uploads: made.uploads.filter(({ key }) => key.endsWith('.parquet')),
    place: PLACE,
    ...codecs,
  });
}

export function commit(world: World, service: Service, operation: Operation) {
  return world.clock.until(service.table.commit(operation, () => undefined));
}

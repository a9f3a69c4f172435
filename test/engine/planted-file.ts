import { type IcebergBase, seenOf } from '../../src/core/commit/iceberg-base.ts';
import { makeManifest } from '../../src/core/commit/made-manifest.ts';
import { snapshotOf } from '../../src/core/commit/snapshot-of.ts';
import { currentSchema, defaultSpec } from '../../src/core/iceberg/metadata.ts';
import { NO_COUNTS } from '../../src/core/iceberg/summary.ts';
import type { DataFile, ManifestEntry } from '../../src/core/iceberg/types.ts';
import { IndexMemory } from '../../src/core/lastvalue/memory.ts';
import { codecs } from '../../src/engine/codecs.ts';
import { newIdentity } from '../../src/engine/identity.ts';
import type { LiveFiles } from '../../src/engine/live-files.ts';
import type { TablePlace } from '../../src/engine/open-table.ts';
import type { Clock, Random } from '../../src/engine/ports.ts';
import type { Scenario } from '../sim/scenario.ts';
import { PLACE } from '../sim/service.ts';

/**
 * A snapshot of another writer with one file more: as the first one of the first day, but for what is given. It is in the
 * manifest alone.
 */
export async function plantFile(
  { service, world }: Pick<Scenario, 'service' | 'world'>,
  given: Partial<DataFile>,
): Promise<void> {
  const base = await world.clock.until(service.table.load());
  if (base === null) throw new Error('no table');
  const planted = await world.clock.until(
    plantedFile(world, { place: PLACE, base, live: service.compactor.live }, given),
  );
  for (const { key, bytes } of planted) world.memory.plant(key, bytes);
  await world.clock.until(service.table.load());
}

/** Objects of that version, the version last. */
export async function plantedFile(
  world: { clock: Clock; random: Random },
  { place, base, live }: { place: TablePlace; base: IcebergBase; live: LiveFiles },
  given: Partial<DataFile>,
): Promise<{ key: string; bytes: Uint8Array }[]> {
  const { metadata } = base;
  const keyOf = (location: string) => place.prefix + location.slice(place.location.length);
  const versionLocation = (version: number) => `${place.location}/metadata/v${version}.metadata.json`;
  const context = { location: place.location, keyOf, versionLocation, indexes: new IndexMemory(), ...codecs };
  const identity = newIdentity(world, metadata);
  const { files } = await live.of(base);
  const firstDay = files.find(({ entry }) => entry.dataFile.filePath.includes('time_day=2026-01-01')) ?? files[0];
  const entry: ManifestEntry = {
    status: 1,
    snapshotId: identity.snapshotId,
    sequenceNumber: null,
    fileSequenceNumber: null,
    dataFile: {
      ...firstDay.entry.dataFile,
      filePath: `${place.location}/data/d.parquet`,
      ...given,
    },
  };
  const content = (given.content ?? 0) === 0 ? (0 as const) : (1 as const);
  const layout = { schema: currentSchema(metadata), spec: defaultSpec(metadata) };
  const sequenceNumber = metadata['last-sequence-number'] + 1n;
  const named = { identity, sequenceNumber, kind: 'added' as const, label: 'x', content };
  const made = makeManifest(context, { ...named, ...layout, entries: [entry] });
  const parentRows = await live.rows(base);
  const decision = snapshotOf(
    context,
    {
      base,
      identity,
      operation: content === 0 ? 'append' : 'delete',
      schemaId: 0,
      parentRows,
      made: [made],
      carried: parentRows,
      counts: NO_COUNTS,
      epochs: 'carry',
      lastValueIndex: null,
    },
    seenOf(context, base, new Map()),
    world.clock.now(),
  );
  const version = { key: keyOf(versionLocation(base.version + 1)), bytes: decision.bytes };
  return [...decision.uploads, version];
}

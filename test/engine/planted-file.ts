import { seenOf } from '../../src/core/commit/iceberg-base.ts';
import { makeManifest } from '../../src/core/commit/made-manifest.ts';
import { snapshotOf } from '../../src/core/commit/snapshot-of.ts';
import { currentSchema, defaultSpec } from '../../src/core/iceberg/metadata.ts';
import { NO_COUNTS } from '../../src/core/iceberg/summary.ts';
import type { DataFile, ManifestEntry } from '../../src/core/iceberg/types.ts';
import { IndexMemory } from '../../src/core/lastvalue/memory.ts';
import { codecs } from '../../src/engine/codecs.ts';
import { newIdentity } from '../../src/engine/identity.ts';
import type { Scenario } from '../sim/scenario.ts';
import { PLACE } from '../sim/service.ts';

const keyOf = (location: string) => PLACE.prefix + location.slice(PLACE.location.length);

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
  const { metadata } = base;
  const versionLocation = (version: number) => `${PLACE.location}/metadata/v${version}.metadata.json`;
  const context = { location: PLACE.location, keyOf, versionLocation, indexes: new IndexMemory(), ...codecs };
  const identity = newIdentity(world, metadata);
  const { files } = await world.clock.until(service.compactor.live.of(base));
  const firstDay = files.find(({ entry }) => entry.dataFile.filePath.includes('time_day=2026-01-01')) ?? files[0];
  const entry: ManifestEntry = {
    status: 1,
    snapshotId: identity.snapshotId,
    sequenceNumber: null,
    fileSequenceNumber: null,
    dataFile: {
      ...firstDay.entry.dataFile,
      filePath: `${PLACE.location}/data/d.parquet`,
      ...given,
    },
  };
  const content = (given.content ?? 0) === 0 ? (0 as const) : (1 as const);
  const layout = { schema: currentSchema(metadata), spec: defaultSpec(metadata) };
  const sequenceNumber = metadata['last-sequence-number'] + 1n;
  const named = { identity, sequenceNumber, kind: 'added' as const, label: 'x', content };
  const made = makeManifest(context, { ...named, ...layout, entries: [entry] });
  const parentRows = await world.clock.until(service.compactor.live.rows(base));
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
  for (const { key, bytes } of decision.uploads) world.memory.plant(key, bytes);
  world.memory.plant(`${PLACE.prefix}/metadata/v${base.version + 1}.metadata.json`, decision.bytes);
  await world.clock.until(service.table.load());
}

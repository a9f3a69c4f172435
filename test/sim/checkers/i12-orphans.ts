import { PLACE } from '../service.ts';
import type { SimWorld } from '../world.ts';
import { INDEX_KEY, keyOf, Missing, type RawMetadata, type RawSnapshot } from './reader.ts';

/**
 * I12: once everything has come to rest and was swept, each data file, manifest, list and index in the folder is of a snapshot that the
 * newest version or one of its log has. Asked at the very end: before, files may be about to be committed.
 */
export function checkSwept(world: SimWorld): void {
  const { history, memory } = world;
  if (history.tip === null) return;
  const reached = new Set<string>();
  const states = [history.tip.raw, ...logged(world, history.tip.raw)];
  for (const { snapshots = [] } of states) for (const snapshot of snapshots) reach(world, snapshot, reached);
  for (const key of memory.keys()) {
    const isFile = key.startsWith(`${PLACE.prefix}/data/`) || key.endsWith('.avro') || key.endsWith('.parquet');
    if (isFile && !reached.has(key)) world.violate('I12', `${key} is of nobody, and was not swept`);
  }
}

function logged({ history }: SimWorld, raw: RawMetadata): RawMetadata[] {
  return (raw['metadata-log'] ?? []).flatMap(({ 'metadata-file': file }) => {
    const key = keyOf(file);
    const state = key === null ? null : history.reader.metadata(key);
    return state === null ? [] : [state];
  });
}

/** As far as it is still there. */
function reach({ history: { reader } }: SimWorld, snapshot: RawSnapshot, into: Set<string>): void {
  const add = (location: string): string => {
    const key = keyOf(location) ?? '';
    into.add(key);
    return key;
  };
  try {
    const index = snapshot.summary[INDEX_KEY];
    if (index !== undefined) add(index);
    for (const row of reader.manifests(add(snapshot['manifest-list']))) {
      const manifest = add(row.path);
      try {
        for (const { status, path } of reader.entries(manifest)) if (status !== 2) add(path);
      } catch (error) {
        if (!(error instanceof Missing)) throw error;
      }
    }
  } catch (error) {
    if (!(error instanceof Missing)) throw error;
  }
}

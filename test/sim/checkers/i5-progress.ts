import type { SimWorld } from '../world.ts';
import type { Checker } from './checker.ts';
import type { Arrival, SeenVersion } from './history.ts';
import { ancestryOf, currentOf, type RawMetadata, type RawSnapshot } from './reader.ts';

/**
 * I5: watermarks never move backwards along the ancestry, and each commit of the service carries the complete map. Read as
 * any reader would: of the nearest ancestor that has one, else the mirror unless that is of a later state.
 */
export class ProgressChecker implements Checker {
  readonly #world: SimWorld;

  constructor(world: SimWorld) {
    this.#world = world;
  }

  onVersion(arrival: Arrival, { raw, key, by }: SeenVersion, before: SeenVersion | null): void {
    // A foreign writer may cut the carrying ancestor off; what it leaves is what the service can know from then on.
    if (by === 'engine') {
      this.#forget(raw, before);
      return;
    }
    if (arrival !== 'extends' || before === null || raw['table-uuid'] !== before.raw['table-uuid']) return;
    const now = currentOf(raw);
    const was = currentOf(before.raw);
    if (now === null || was === null || now['snapshot-id'] === was['snapshot-id']) {
      // Metadata alone: what stood before must still be read, unless main was moved on purpose.
      if (was !== null && now !== null) this.#compare(key, by, progressOf(before.raw), progressOf(raw));
      return;
    }
    if (now['parent-snapshot-id'] !== was['snapshot-id']) return; // moved to another line: progress goes with it
    const own = now.summary['sluice.epochs'];
    const isOurs = now.summary['sluice.commit-id'] !== undefined;
    const expected = progressOf(before.raw);
    if (isOurs && own === undefined && expected.size > 0) {
      this.#world.violate('I5', `${key} by ${by} carries no progress, its parent has that of ${[...expected.keys()]}`);
      return;
    }
    this.#compare(key, by, expected, progressOf(raw));
  }

  /** From here on the table cannot tell what these apps have committed: a replay of theirs may come twice. */
  #forget(raw: RawMetadata, before: SeenVersion | null): void {
    if (before === null || raw['table-uuid'] !== before.raw['table-uuid']) return;
    const { forgotten } = this.#world;
    const after = progressOf(raw);
    const head = currentOf(raw);
    const isSameLine = head !== null && head['snapshot-id'] === currentOf(before.raw)?.['snapshot-id'];
    if (!isSameLine && raw.properties['sluice.epochs-main'] !== undefined) return;
    for (const [app, epoch] of progressOf(before.raw)) {
      if ((after.get(app) ?? -1n) < epoch) forgotten.set(app, (forgotten.get(app) ?? 0) + 1);
    }
  }

  #compare(key: string, by: string, before: ReadonlyMap<string, bigint>, after: ReadonlyMap<string, bigint>): void {
    for (const [app, epoch] of before) {
      const now = after.get(app);
      if (now === undefined && this.#world.retired.has(app)) continue;
      if (now === undefined || now < epoch) {
        this.#world.violate('I5', `${key} by ${by} takes ${app} from ${epoch} back to ${now}`);
      }
    }
  }
}

/** The progress that a version tells of main. */
export function progressOf(raw: RawMetadata): ReadonlyMap<string, bigint> {
  const head = currentOf(raw);
  if (head === null) return new Map();
  const line = ancestryOf(raw, head['snapshot-id']);
  for (const { summary } of line) {
    const carried = summary['sluice.epochs'];
    if (carried !== undefined) return parsed(carried);
  }
  const mirror = /^([0-9]+) ([0-9]+) (\{.*\})$/.exec(raw.properties['sluice.epochs-main'] ?? '');
  if (mirror === null || Number(mirror[2]) > head['sequence-number']) return new Map();
  // Of a snapshot that is retained and not where main is: put aside by a rollback, unless expiry cut main's line above it.
  const isIt = (snapshot: RawSnapshot): boolean => snapshot['snapshot-id'] === Number(mirror[1]);
  const oldest = line[line.length - 1];
  const isCut = oldest['parent-snapshot-id'] !== undefined && oldest['sequence-number'] > Number(mirror[2]) + 1;
  if ((raw.snapshots ?? []).some(isIt) && !line.some(isIt) && !isCut) return new Map();
  return parsed(mirror[3]);
}

function parsed(text: string): ReadonlyMap<string, bigint> {
  const record = JSON.parse(text) as Record<string, string>;
  return new Map(Object.entries(record).map(([app, epoch]) => [app, BigInt(epoch)]));
}

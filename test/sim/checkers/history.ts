import type { Mutation } from '../watched-memory.ts';
import { currentOf, type RawMetadata, type SmallReader } from './reader.ts';

/** How a version's file came to be. */
export type Arrival =
  /** The first of a folder without versions. */
  | 'begins'
  /** The next of the chain. */
  | 'extends'
  /** Under a number that the chain has passed: the name had been deleted and was created again. */
  | 'reopens'
  /** Above the next number: nothing may do that. */
  | 'jumps';

export interface SeenVersion {
  version: number;
  key: string;
  raw: RawMetadata;
  by: string;
  /** Place among all changes of the bucket. */
  at: number;
}

/**
 * Follows the chain of versions as it grows, independent of what any writer believes: which version is the newest, which
 * commits have ever been in it, which tables have been and gone.
 */
export class History {
  readonly reader: SmallReader;
  /** The newest version of the chain; null while the folder has none. */
  tip: SeenVersion | null = null;
  /** Commit ids that a version of the chain has held. */
  readonly commits = new Set<string>();
  /** Uuids of tables that were dropped or overwritten by another. */
  readonly gone = new Set<string>();
  /** Who began the newest table. */
  begunBy = '';
  /** Snapshot id → when its first manifest list was uploaded. */
  readonly firstList = new Map<string, number>();
  /** Snapshot id → when a version brought it. */
  readonly snapshotAt = new Map<number, number>();
  /** When the foreign writer last moved the pointer, which it does without a look. */
  pointedBack = 0;
  /** How many changes there were. */
  count = 0;
  readonly #prefix: string;

  constructor(reader: SmallReader, prefix: string) {
    this.reader = reader;
    this.#prefix = `${prefix}/metadata/`;
  }

  versionOf(key: string): number | null {
    if (!key.startsWith(this.#prefix)) return null;
    const match = /^v([0-9]+)\.metadata\.json$/.exec(key.slice(this.#prefix.length));
    return match === null ? null : Number(match[1]);
  }

  keyOf(version: number): string {
    return `${this.#prefix}v${version}.metadata.json`;
  }

  /** Takes a change in. Returns what it means when it made a version. */
  take({ kind, key, by }: Mutation): { arrival: Arrival; seen: SeenVersion; before: SeenVersion | null } | null {
    this.count++;
    const list = /\/metadata\/snap-([0-9]+)-/.exec(key);
    if (kind === 'created' && list !== null && !this.firstList.has(list[1])) this.firstList.set(list[1], this.count);
    if (key === `${this.#prefix}version-hint.text` && by === 'engine') this.pointedBack = this.count;
    const version = this.versionOf(key);
    if (version === null) return null;
    const before = this.tip;
    if (kind === 'deleted') {
      if (before?.key === key) {
        this.gone.add(before.raw['table-uuid']);
        this.tip = null;
      }
      return null;
    }
    const raw = this.reader.metadata(key);
    if (raw === null) return null; // gone again within the same event
    const seen = { version, key, raw, by, at: this.count };
    if (before !== null && version <= before.version) return { arrival: 'reopens', seen, before };
    const arrival = before === null ? 'begins' : version === before.version + 1 ? 'extends' : 'jumps';
    const uuid = raw['table-uuid'];
    if (before !== null && before.raw['table-uuid'] !== uuid) this.gone.add(before.raw['table-uuid']);
    if (before?.raw['table-uuid'] !== uuid) this.begunBy = by;
    this.tip = seen;
    for (const snapshot of raw.snapshots ?? []) {
      const id = snapshot['snapshot-id'];
      if (!this.snapshotAt.has(id)) this.snapshotAt.set(id, this.count);
      const commit = snapshot.summary['sluice.commit-id'];
      if (commit !== undefined) this.commits.add(commit);
    }
    for (const change of changesOf(raw)) this.commits.add(change);
    return { arrival, seen, before };
  }

  get isServed(): boolean {
    const properties = this.tip?.raw.properties;
    return properties?.['sluice.format-version'] !== undefined && properties['sluice.dropped'] !== 'true';
  }

  get current() {
    return this.tip === null ? null : currentOf(this.tip.raw);
  }
}

/** Ids of our last commits that made no snapshot, newest first. */
export function changesOf(raw: RawMetadata): string[] {
  return (raw.properties?.['sluice.changes'] ?? '').split(' ').filter((id) => id !== '');
}

import { SimObject, SWEEP_GRACE_MS } from '../sim-object.ts';
import type { Mutation } from '../watched-memory.ts';
import type { SimWorld } from '../world.ts';
import type { Checker } from './checker.ts';
import { type Arrival, changesOf, type SeenVersion } from './history.ts';
import { currentOf, keyOf, Missing, type RawMetadata } from './reader.ts';

/** One conditional write of a version, as its writer sent it and as it heard of it. */
export interface Attempt {
  by: string;
  version: number;
  atMs: number;
  raw: RawMetadata;
  answer: 'open' | 'created' | 'exists' | 'error';
}

/**
 * I6: nothing is deleted after *unknown* or *fenced*. Seen from outside: whenever an object of ours deletes something, no
 * attempt at a version that needs it may be open, as far as its writer can know. An error leaves it open until the target
 * is another's.
 */
export class DeletionsChecker implements Checker {
  readonly #world: SimWorld;
  /** Versions that the chain has held. */
  readonly #chain = new Set<string>();

  constructor(world: SimWorld) {
    this.#world = world;
  }

  onVersion(arrival: Arrival, { version, by, raw }: SeenVersion): void {
    if (arrival !== 'reopens') this.#chain.add(nameOf(version, by, raw));
  }

  onMutation({ kind, key, by }: Mutation): void {
    const { world } = { world: this.#world };
    if (
      kind !== 'deleted' ||
      !world.objects.some((object) => object instanceof SimObject && by.startsWith(object.name))
    ) {
      return;
    }
    if (world.history.versionOf(key) !== null) this.#version(key, by);
    for (const attempt of world.attempts) {
      if (attempt.answer === 'exists' || !this.#isOpen(attempt, by) || !this.#needs(attempt, key)) continue;
      world.violate(
        'I6',
        `${by} deleted ${key}, which its attempt at version ${attempt.version} needs: ${attempt.answer}`,
      );
      return;
    }
  }

  #isOpen({ answer, version, raw, by, atMs }: Attempt, deleter: string): boolean {
    const { history, scheduler } = this.#world;
    // Of a reopened name only its writer knows, until its commit cannot be open any more: then it is an orphan. What the chain has
    // held is over, and may have expired.
    const isYoung = scheduler.now() - atMs < SWEEP_GRACE_MS;
    const isOver = this.#chain.has(nameOf(version, by, raw)) || this.#idsOf(raw).some((id) => history.commits.has(id));
    if (answer === 'created' && by === deleter && isYoung && !isOver) return true;
    // Once the chain has gone past it, only what it retains of ours is needed.
    const there = history.tip?.raw ?? null;
    if (there === null || (history.tip?.version ?? 0) < version) return true;
    const list = currentOf(raw)?.['manifest-list'];
    return (there.snapshots ?? []).some((snapshot) => snapshot['manifest-list'] === list);
  }

  /** What the commit of an attempt is known by: of one that made no snapshot, the newest among the changes. */
  #idsOf(raw: RawMetadata): string[] {
    const snapshot = currentOf(raw);
    const made = snapshot?.summary['sluice.commit-id'];
    const isOlder = snapshot === null || this.#world.history.snapshotAt.has(snapshot['snapshot-id']);
    return [...(made === undefined ? [] : [made]), ...(isOlder ? changesOf(raw).slice(0, 1) : [])];
  }

  #needs({ raw }: Attempt, key: string): boolean {
    const snapshot = currentOf(raw);
    if (snapshot === null) return false;
    if (keyOf(snapshot['manifest-list']) === key) return true;
    try {
      return this.#world.history.reader.reached(snapshot).keys.has(key);
    } catch (error) {
      if (error instanceof Missing) return error.key === key;
      throw error;
    }
  }

  /** I7, the eraser's half: no version at or above the pointer, none that is the newest. */
  #version(key: string, by: string): void {
    const { history, memory } = this.#world;
    const hint = memory.peek(key.replace(/v[0-9]+\.metadata\.json$/, 'version-hint.text'));
    const pointed = hint === null ? 0 : Number(new TextDecoder().decode(hint.bytes));
    const version = history.versionOf(key) ?? 0;
    if (version >= pointed) this.#world.violate('I7', `${by} deleted version ${version}, the pointer is at ${pointed}`);
  }
}

function nameOf(version: number, by: string, raw: RawMetadata): string {
  return `${version} ${by} ${raw['last-updated-ms']} ${raw['current-snapshot-id']}`;
}

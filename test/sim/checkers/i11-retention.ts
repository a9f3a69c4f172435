import type { SimWorld } from '../world.ts';
import type { Checker } from './checker.ts';
import type { Arrival, SeenVersion } from './history.ts';
import { currentOf, Missing, type RawMetadata } from './reader.ts';

const DAY_MS = 86_400_000;

/**
 * I11: what retention drops is past the limit that the table had then, a whole partition at a time, and nothing that is past it
 * is left. Told by the paths of partitions and the rows in them, not by what the product takes for their end.
 */
export class RetentionChecker implements Checker {
  readonly #world: SimWorld;

  constructor(world: SimWorld) {
    this.#world = world;
  }

  onVersion(arrival: Arrival, { raw }: SeenVersion, before: SeenVersion | null): void {
    if (arrival !== 'extends' || before === null) return;
    const snapshot = currentOf(raw);
    const cutoff = snapshot?.summary['sluice.retention-cutoff'];
    const known = currentOf(before.raw);
    // Not where main is moved to a snapshot that was there before.
    if (snapshot === null || cutoff === undefined || known?.['snapshot-id'] !== snapshot['parent-snapshot-id']) return;
    const cutoffMs = Number(BigInt(cutoff) / 1000n);
    const days = /^([0-9]+)d$/.exec(before.raw.properties['timelake.retention'] ?? '')?.[1];
    const { scheduler, swarm } = this.#world;
    const limitMs = days === undefined ? null : scheduler.now() - Number(days) * DAY_MS + swarm.skewMs;
    if (limitMs === null || cutoffMs > limitMs)
      this.#violate(`dropped before ${cutoffMs}, the table keeps from ${limitMs}`);
    try {
      const [was, is] = [before.raw, raw].map((state) => this.#files(state));
      const there = new Set(is);
      for (const path of was) {
        const isPast = endMs(path) <= cutoffMs;
        if (!there.has(path) && !isPast) this.#violate(`dropped ${path}, which is not past ${cutoffMs}`);
        if (there.has(path) && isPast) this.#violate(`left ${path}, which is past ${cutoffMs}`);
      }
    } catch (error) {
      if (!(error instanceof Missing)) throw error; // I3 says so
    }
  }

  #files(raw: RawMetadata): string[] {
    const snapshot = currentOf(raw);
    return snapshot === null ? [] : this.#world.history.reader.reached(snapshot).live.map(({ path }) => path);
  }

  #violate(text: string): void {
    this.#world.violate('I11', text);
  }
}

function endMs(path: string): number {
  const day = /\/time_day=([0-9-]+)\//.exec(path)?.[1] ?? '';
  return Date.parse(`${day}T00:00:00Z`) + DAY_MS;
}

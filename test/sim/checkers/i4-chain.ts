import type { SimWorld } from '../world.ts';
import type { Checker } from './checker.ts';
import type { Arrival, SeenVersion } from './history.ts';

/** I4: versions form one chain, each names its predecessor, and the table's uuid changes only where one was dropped. */
export class ChainChecker implements Checker {
  readonly #world: SimWorld;

  constructor(world: SimWorld) {
    this.#world = world;
  }

  onVersion(arrival: Arrival, seen: SeenVersion, before: SeenVersion | null): void {
    const { raw, key, by, version } = seen;
    const no = (text: string): void => this.#world.violate('I4', `${key} by ${by}: ${text}`);
    if (arrival === 'jumps') no(`the newest version was ${before?.version}`);
    if (arrival === 'begins' && version !== 1) no('begins a chain above 1');
    if (arrival !== 'extends' || before === null) return;
    const named = raw['metadata-log']?.at(-1)?.['metadata-file'];
    const expected = `${raw.location}/metadata/v${before.version}.metadata.json`;
    if (named !== expected) no(`names ${named} as its predecessor`);
    const isEnd = raw.properties['sluice.dropped'] === 'true';
    const wasEnd = before.raw.properties['sluice.dropped'] === 'true';
    const sameTable = raw['table-uuid'] === before.raw['table-uuid'];
    if (sameTable && isEnd && !wasEnd) no('ends the table under its own uuid');
    if (!sameTable && !isEnd && !wasEnd) no('is of another table than its predecessor');
    if (sameTable && raw['last-sequence-number'] < before.raw['last-sequence-number'])
      no('has a lower sequence number');
  }
}

import type { SimWorld } from '../world.ts';
import type { Checker } from './checker.ts';
import { currentOf, keyOf, Missing, type RawMetadata } from './reader.ts';

/** I8: the last-value index, where a snapshot names one, holds the newest row of each series of the whole table. */
export class IndexChecker implements Checker {
  readonly #world: SimWorld;
  #checked = '';

  constructor(world: SimWorld) {
    this.#world = world;
  }

  async atRest(): Promise<void> {
    const raw = this.#world.history.tip?.raw;
    const snapshot = raw === undefined ? null : currentOf(raw);
    const index = snapshot?.summary['timelake.last-value-index'];
    if (raw === undefined || snapshot === null || index === undefined || index === this.#checked) return;
    this.#checked = index;
    if (keyOf(index) === null) this.#world.violate('I8', `index lies outside the bucket: ${index}`);
    try {
      const [indexed, live] = [await this.#newest(raw, [index]), await this.#newest(raw, this.#files(raw))];
      for (const [device, time] of live) {
        if (indexed.get(device) !== time)
          this.#world.violate('I8', `index ${index} is not at the newest row of ${device}`);
      }
      if (indexed.size > live.size) this.#world.violate('I8', `index ${index} knows more series than the table`);
    } catch (error) {
      if (!(error instanceof Missing)) throw error;
      this.#world.violate('I8', `index ${index}: ${error.message}`);
    }
  }

  #files(raw: RawMetadata): string[] {
    const snapshot = currentOf(raw);
    return snapshot === null ? [] : this.#world.history.reader.reached(snapshot).live.map(({ path }) => path);
  }

  async #newest(raw: RawMetadata, files: readonly string[]): Promise<Map<string, bigint>> {
    const fields = raw.schemas.find((known) => known['schema-id'] === raw['current-schema-id'])?.fields ?? [];
    const newest = new Map<string, bigint>();
    for (const file of files) {
      for (const { device, time } of await this.#world.history.reader.rows(file, fields)) {
        const known = newest.get(device);
        if (known === undefined || time > known) newest.set(device, time);
      }
    }
    return newest;
  }
}

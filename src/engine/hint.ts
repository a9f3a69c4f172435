import { unavailable } from '../core/base/errors.ts';
import { HINT_INTERVAL_MS, HINT_TRIES_MAX } from '../core/base/limits.ts';
import type { Based, Change, Sink } from '../core/sink.ts';
import type { Store } from '../store/store.ts';
import type { Clock, Random } from './ports.ts';
import { persevere } from './uploader.ts';

/**
 * The pointer to the newest version: a convenience for readers, never a truth for us. Moved by compare-and-set, never
 * backwards from a version that is there, at most once a second; proposals that arrive meanwhile are folded into one.
 */
export class Hint<Base extends Based, C extends Change> {
  readonly #ports: { store: Store; clock: Clock; random: Random };
  readonly #sink: Sink<Base, C>;
  /** What we last saw there. Null: unknown. */
  #seen: { version: number; etag: string } | null = null;
  #wanted = 0;
  /** Tables seen at the place: what was asked of the store for one says nothing of the next. */
  #begun = 0;
  #writtenMs = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | null = null;

  constructor(ports: { store: Store; clock: Clock; random: Random }, sink: Sink<Base, C>) {
    this.#ports = ports;
    this.#sink = sink;
  }

  /** Moves the pointer to `version` or beyond. Resolves when it is there; rejects with the store's error when not. */
  propose(version: number): Promise<void> {
    this.#wanted = Math.max(this.#wanted, version);
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Forgets what was seen: after a foreign version showed up, the pointer was moved by somebody else. */
  invalidate(): void {
    this.#seen = null;
  }

  /** Another table is at the place: its versions may begin below those of the one before. */
  beginAnew(): void {
    this.#seen = null;
    this.#wanted = 0;
    this.#begun++;
  }

  async #exists(version: number): Promise<boolean> {
    const { store } = this.#ports;
    return (await persevere(this.#ports, () => store.head(this.#sink.versionKey(version)))) !== null;
  }

  async #run(): Promise<void> {
    const { store, clock } = this.#ports;
    const { pointerKey } = this.#sink;
    for (let lost = 0; lost < HINT_TRIES_MAX; ) {
      const early = this.#writtenMs + HINT_INTERVAL_MS - clock.now();
      if (early > 0) await clock.sleep(Math.min(early, HINT_INTERVAL_MS));
      const begun = this.#begun;
      if (this.#seen === null) {
        const stored = await persevere(this.#ports, () => store.get(pointerKey));
        if (begun !== this.#begun) continue;
        if (stored !== null) this.#seen = { version: this.#sink.parsePointer(stored.bytes) ?? 0, etag: stored.etag };
      }
      const version = this.#wanted;
      if (version === 0) return; // begun anew meanwhile: nobody has asked for the new table yet
      if (this.#seen !== null && this.#seen.version >= version) {
        if (this.#seen.version === version || (await this.#exists(this.#seen.version))) return;
        // It names a version that is not there: the table was begun anew below it. Then back is forward.
      }
      const bytes = this.#sink.pointer(version);
      const seen = this.#seen;
      this.#writtenMs = clock.now();
      this.#seen = null; // an error below leaves it unknown
      const answer =
        seen === null ? await store.putIfAbsent(pointerKey, bytes) : await store.putIf(pointerKey, bytes, seen.etag);
      if (begun !== this.#begun) continue;
      if (answer.outcome === 'created' || answer.outcome === 'replaced') {
        this.#seen = { version, etag: answer.etag };
        // A proposal that came while this one was written goes out in the next round.
        if (this.#wanted <= version) return;
      } else lost++;
    }
    // Whoever was faster may have written an older version.
    throw unavailable('pointer-contended', `pointer was moved by others ${HINT_TRIES_MAX} times in a row`);
  }
}

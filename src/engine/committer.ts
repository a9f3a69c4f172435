import { type Detail, SluiceError } from '../core/base/errors.ts';
import { ATTEMPT_MS_MAX, COMMIT_ATTEMPTS_MAX, FENCE_MS, NEEDS_ROUNDS_MAX, RACE_BACKOFF } from '../core/base/limits.ts';
import { backoffMs } from '../core/commit/backoff.ts';
import { classify, isFresh, type Look, type WriteAnswer } from '../core/commit/outcome.ts';
import type { Based, Change, Decision, Found, Sink } from '../core/sink.ts';
import { type Created, type Store, StoreError } from '../store/store.ts';
import type { Loader } from './loader.ts';
import type { Clock, Marks, Random } from './ports.ts';
import { draw, persevere, runBounded, uploadTasks } from './uploader.ts';

/** How one run of a change ended. `base` is the newest state seen, for the next commit to start from. */
export type CommitResult<Base> =
  /** In the chain, by this run or an earlier one (`own`: this run's own write). */
  | { outcome: 'committed'; base: Base; found: Found; own: boolean }
  /** The change no longer fits: prepare it again on this base. */
  | { outcome: 'again'; base: Base | null; reason: string }
  /** It can never be applied. */
  | { outcome: 'refused'; base: Base | null; type: string; message: string }
  /** The table already is as the change would leave it; no version was written. */
  | { outcome: 'nothing'; base: Base | null; message: string; detail: Record<string, Detail> }
  /**
   * Another change came first: at every attempt (`commit-conflict`; run it again later), or to what this one builds on
   * (any other type; plan it anew). Nothing of it is in the chain. `discardable`: no write of this run can have landed or
   * can land, so what it uploaded may be deleted, if no earlier run of the same change wrote anything.
   */
  | { outcome: 'conflict'; base: Base | null; type: string; message: string; discardable: boolean }
  /** The store failed before this run's conditional write. An earlier run's write may still be open. */
  | { outcome: 'unavailable'; error: StoreError }
  /** The conditional write may have landed or may still land. Run it again, delete nothing. */
  | { outcome: 'unknown'; error: unknown };

export interface CommitPorts {
  store: Store;
  clock: Clock;
  random: Random;
  marks: Marks;
}

/** A write whose outcome is open: the same bytes go to the same key again while the base is still the base. */
interface OpenWrite<Base> {
  commitId: string;
  base: Base | null;
  decision: Extract<Decision<Base>, { kind: 'proceed' }>;
}

/**
 * The driver of every commit and the only caller of the conditional write. One run: decide on the newest base, upload
 * and confirm the base side by side, write `vN+1` if absent, look when the answer does not settle it, and loop when
 * another writer was first. Two sequential round trips in the steady state.
 */
export class Committer<Base extends Based, C extends Change> {
  readonly #ports: CommitPorts;
  readonly #sink: Sink<Base, C>;
  readonly #loader: Loader<Base, C>;
  #open: OpenWrite<Base> | null = null;
  /** What fenced attempts at one commit named: such a version is nobody's, and yet it is there. */
  #fenced: { commitId: string; keys: Set<string> } = { commitId: '', keys: new Set() };

  constructor(ports: CommitPorts, sink: Sink<Base, C>, loader: Loader<Base, C>) {
    this.#ports = ports;
    this.#sink = sink;
    this.#loader = loader;
  }

  /**
   * Runs a change. `known` is the base to start from, if one is cached; it is confirmed before anything is written on
   * top of it. `note` is called before each conditional write with its target version.
   */
  async commit(change: C, known: Base | null, note: (version: number) => void): Promise<CommitResult<Base>> {
    const { clock, random, marks } = this.#ports;
    const superseded: string[] = [];
    if (this.#fenced.commitId !== change.commitId) this.#fenced = { commitId: change.commitId, keys: new Set() };
    const fenced = this.#fenced.keys;
    let uploaded = false;
    let base: Base | null = known;
    let isLoaded = known !== null;
    const reopened = this.#open?.commitId === change.commitId ? this.#open : null;
    let first: Base | null = null;
    let isSure = reopened === null;
    try {
      for (let attempt = 1; attempt <= COMMIT_ATTEMPTS_MAX; attempt++) {
        if (!isLoaded) base = await this.#loader.load(known);
        isLoaded = false;
        let decision: Decision<Base>;
        try {
          decision = await this.#decide(change, base, reopened);
        } catch (error) {
          // A base that others left behind may have lost its files to their expiry: only of the newest is that damage.
          if (!(error instanceof SluiceError && error.kind === 'corrupt')) throw error;
          if (await this.#uploadAndConfirm(base, [], [])) throw error;
          marks.hit('stalled-past-expiry');
          continue;
        }
        if (attempt === 1) first = base;
        if (decision.kind === 'settled') {
          const keys = superseded.filter((key) => !fenced.has(key));
          return await this.#settled(base as Base, decision.found, keys);
        }
        if (decision.kind === 'again') return { outcome: 'again', base, reason: decision.reason };
        if (decision.kind === 'refused')
          return { outcome: 'refused', base, type: decision.type, message: decision.message };
        if (decision.kind === 'nothing' || decision.kind === 'conflict') {
          // An end that is told of a base must be told of the newest: a cached one may be long past.
          if (!(await this.#uploadAndConfirm(base, [], []))) {
            marks.hit('base-moved');
            continue;
          }
          const { message } = decision;
          if (decision.kind === 'nothing') return { outcome: 'nothing', base, message, detail: decision.detail };
          marks.hit('inputs-gone');
          return { outcome: 'conflict', base, type: decision.type, message, discardable: isSure };
        }

        const target = (base?.version ?? 0) + 1;
        note(target);
        const confirmedMs = clock.now();
        const confirmed = await this.#uploadAndConfirm(base, uploaded ? [] : change.uploads, decision.uploads);
        uploaded = true;
        if (!confirmed || clock.now() - confirmedMs > ATTEMPT_MS_MAX) {
          marks.hit('base-moved');
          superseded.push(...decision.uploads.map((upload) => upload.key));
          continue;
        }

        // The last check before it is public: what we are about to write must be loadable by ourselves.
        this.#sink.parseBase(target, decision.bytes, '');
        const write = await this.#write(target, decision.bytes);
        if (write.answer === 'created' && isFresh(confirmedMs, clock.now(), FENCE_MS)) {
          const next = decision.next(write.etag);
          this.#open = null;
          const found = this.#sink.find(change, next);
          if (found === null) throw new Error('a commit must be found in the version it wrote');
          if (attempt > 1) this.#markRebase(first, base);
          // What this attempt made again is in the table now, under the name an earlier one had given it.
          const current = new Set(decision.uploads.map((upload) => upload.key));
          await this.#discard(
            next,
            superseded.filter((key) => !current.has(key) && !fenced.has(key)),
          );
          return { outcome: 'committed', base: next, found, own: true };
        }
        const seen = await this.#look(change, target);
        const outcome = classify(write.answer, seen.look);
        switch (outcome) {
          case 'committed':
            marks.hit('read-back-own');
            if (write.answer === 'error') marks.hit('unknown-resolved');
            if (attempt > 1) this.#markRebase(first, base);
            return await this.#settled(
              seen.base as Base,
              seen.found as Found,
              superseded.filter((key) => !fenced.has(key)),
            );
          case 'unknown':
            marks.hit('unknown');
            this.#open = { commitId: change.commitId, base, decision };
            return { outcome: 'unknown', error: write.error ?? seen.error };
          case 'fenced':
            marks.hit('fenced');
            for (const upload of decision.uploads) fenced.add(upload.key);
            isSure = false;
            break;
          case 'lost':
            marks.hit('lost-race');
            if (write.answer !== 'created') marks.hit('read-back-other');
            superseded.push(...decision.uploads.map((upload) => upload.key));
            break;
        }
        // What the look found is as new as anything: start from it.
        base = seen.base;
        isLoaded = true;
        await clock.sleep(backoffMs(attempt, draw(random), RACE_BACKOFF));
      }
      const message = 'other writers were first at every attempt';
      return { outcome: 'conflict', base, type: 'commit-conflict', message, discardable: isSure };
    } catch (error) {
      if (error instanceof StoreError) return { outcome: 'unavailable', error };
      throw error;
    }
  }

  #markRebase(first: Base | null, base: Base | null): void {
    for (const kind of this.#sink.rebasedOver(first, base)) this.#ports.marks.hit(`rebased-over-${kind}`);
  }

  /** Own commit first, then the write that is still open on this very base, else a new decision. */
  async #decide(change: C, base: Base | null, open: OpenWrite<Base> | null): Promise<Decision<Base>> {
    const found = base === null ? null : this.#sink.find(change, base);
    if (found !== null) return { kind: 'settled', found };
    if (open !== null && open.base?.version === base?.version && open.base?.etag === base?.etag) return open.decision;
    const seen = new Map<string, Uint8Array>();
    for (let round = 0; round < NEEDS_ROUNDS_MAX; round++) {
      const needs = this.#sink.needs(change, base, seen);
      if (needs.length === 0) break;
      await runBounded(
        needs.map((key) => async () => {
          const bytes = await this.#read(key);
          if (bytes !== null) seen.set(key, bytes);
        }),
      );
    }
    return this.#sink.decide(change, base, seen, this.#ports.clock.now());
  }

  /** Null when the object is missing, or longer than a decision may read. */
  async #read(key: string): Promise<Uint8Array | null> {
    const { store } = this.#ports;
    const most = this.#sink.bytesMaxOf(key);
    if (most === null) return (await persevere(this.#ports, () => store.get(key)))?.bytes ?? null;
    const bytes = await persevere(this.#ports, () => store.getRange(key, 0, most + 1));
    return bytes === null || bytes.length > most ? null : bytes;
  }

  async #uploadAndConfirm(base: Base | null, once: C['uploads'], attempt: C['uploads']): Promise<boolean> {
    const confirmation = this.#loader.confirmation(base);
    await runBounded([...confirmation.tasks, ...uploadTasks(this.#ports, once), ...uploadTasks(this.#ports, attempt)]);
    return confirmation.holds();
  }

  async #write(version: number, bytes: Uint8Array): Promise<{ answer: WriteAnswer; etag: string; error: unknown }> {
    let created: Created;
    try {
      created = await this.#ports.store.putIfAbsent(this.#sink.versionKey(version), bytes);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      return { answer: 'error', etag: '', error };
    }
    return created.outcome === 'created'
      ? { answer: 'created', etag: created.etag, error: null }
      : { answer: 'exists', etag: '', error: null };
  }

  /** Reads the newest version by listing and looks for the commit in its chain. */
  async #look(
    change: C,
    target: number,
  ): Promise<{ look: Look; base: Base | null; found: Found | null; error: unknown }> {
    try {
      const base = await this.#loader.newest();
      if (base === null) return { look: 'missing', base, found: null, error: null };
      const found = this.#sink.find(change, base);
      if (found !== null) return { look: 'own', base, found, error: null };
      return { look: base.version >= target ? 'other' : 'missing', base, found: null, error: null };
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      return { look: 'unreadable', base: null, found: null, error };
    }
  }

  async #settled(base: Base, found: Found, superseded: readonly string[]): Promise<CommitResult<Base>> {
    if (this.#open !== null) this.#ports.marks.hit('unknown-resolved');
    this.#open = null;
    await this.#discard(base, superseded);
    return { outcome: 'committed', base, found, own: false };
  }

  /** Deletes the lists of attempts that lost, after the commit is known to stand and only what it does not refer to. */
  async #discard(base: Base, superseded: readonly string[]): Promise<void> {
    const keys = superseded.filter((key) => !this.#sink.refersTo(base, key));
    if (keys.length === 0) return;
    // A failure leaves orphans for the sweep; the commit stands.
    await this.#ports.store.delete(keys).catch((error) => {
      if (!(error instanceof StoreError)) throw error;
    });
  }
}

import {
  type Created,
  type Listed,
  type Multipart,
  type Replaced,
  type Store,
  type Stored,
  StoreError,
} from '../../src/store/store.ts';
import { type Fault, Faults, PlantedFault, type SimCall, type SimOperation } from './faults.ts';

export type { Fault, FaultRates, Planted, SimCall, SimOperation } from './faults.ts';

type Hook = (call: SimCall) => void | Promise<void>;

/**
 * One client's view of a shared memory, with faults on each side of the effect. Several views of one memory are
 * several writers, each with its own faults, as two instances of an object have: what one left to land late lands in the
 * memory that the other sees.
 *
 * Nothing here looks at a clock or draws a number of its own: the same calls, faults and generator give the same log.
 */
export class SimStore implements Store {
  readonly faults = new Faults();
  /** Every call in the order in which it was made. */
  readonly log: SimCall[] = [];
  readonly #memory: Store;
  readonly #before: Hook[] = [];
  readonly #after: Hook[] = [];

  constructor(memory: Store) {
    this.#memory = memory;
  }

  /**
   * Runs `hook` before the effect of each call. A promise holds the call until it resolves; an exception is what the caller
   * gets instead of an answer. Returns what takes the hook away.
   */
  onBefore(hook: Hook): () => void {
    return register(this.#before, hook);
  }

  /** Runs `hook` after the effect, or after what took its place, and before the answer. */
  onAfter(hook: Hook): () => void {
    return register(this.#after, hook);
  }

  get(key: string): Promise<Stored | null> {
    return this.#call('get', key, () => this.#memory.get(key));
  }

  getRange(key: string, offset: number, length: number): Promise<Uint8Array | null> {
    return this.#call('getRange', key, () => this.#memory.getRange(key, offset, length));
  }

  head(key: string): Promise<Listed | null> {
    return this.#call('head', key, () => this.#memory.head(key));
  }

  putIfAbsent(key: string, bytes: Uint8Array): Promise<Created> {
    const copy = bytes.slice();
    return this.#call('putIfAbsent', key, () => this.#memory.putIfAbsent(key, copy));
  }

  putIf(key: string, bytes: Uint8Array, etag: string): Promise<Replaced> {
    const copy = bytes.slice();
    return this.#call('putIf', key, () => this.#memory.putIf(key, copy, etag));
  }

  async delete(keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return;
    const copy = [...keys];
    const half = (): Promise<void> => this.#memory.delete(copy.slice(0, Math.ceil(copy.length / 2)));
    await this.#call('delete', copy, () => this.#memory.delete(copy), half);
  }

  list(prefix: string, after?: string): AsyncIterable<Listed> {
    return this.#listing('list', prefix, () => this.#memory.list(prefix, after));
  }

  listFolders(prefix: string): AsyncIterable<string> {
    return this.#listing('listFolders', prefix, () => this.#memory.listFolders(prefix));
  }

  async multipart(key: string): Promise<Multipart> {
    const upload = await this.#call('multipart', key, () => this.#memory.multipart(key));
    return {
      uploadId: upload.uploadId,
      part: (number, bytes) => {
        const copy = bytes.slice();
        return this.#call('part', key, () => upload.part(number, copy));
      },
      complete: () => this.#call('complete', key, () => upload.complete()),
      abort: () => this.#call('abort', key, () => upload.abort()),
    };
  }

  abortUpload(key: string, uploadId: string): Promise<void> {
    return this.#call('abort', key, () => this.#memory.abortUpload(key, uploadId));
  }

  async #call<T>(
    operation: SimOperation,
    key: string | readonly string[],
    effect: () => Promise<T>,
    half: () => Promise<unknown> = effect,
  ): Promise<T> {
    const call = this.#begin(operation, key);
    try {
      for (const hook of [...this.#before]) await hook(call);
      const hit = this.faults.pick(call);
      call.fault = hit === null || typeof hit === 'string' ? hit : hit.fault;
      const planted = hit instanceof PlantedFault ? hit : null;
      if (call.fault === 'slow') await this.#hold(call, planted);
      let answer: T | null = null;
      if (call.fault === 'late') this.#later(call, effect);
      else if (call.fault === 'half-applied') await half();
      else if (!FAILS_BEFORE.has(call.fault)) answer = await effect();
      if (call.fault === 'slow-response') await this.#hold(call, planted);
      for (const hook of [...this.#after]) await hook(call);
      planted?.arrived();
      if (call.fault !== null && call.fault !== 'slow' && call.fault !== 'slow-response') throw errorOf(call);
      call.outcome = outcomeOf(answer);
      return answer as T;
    } catch (error) {
      call.outcome = 'error';
      throw error;
    }
  }

  async *#listing<T>(operation: SimOperation, prefix: string, entries: () => AsyncIterable<T>): AsyncIterable<T> {
    const call = this.#begin(operation, prefix);
    try {
      for (const hook of [...this.#before]) await hook(call);
      const hit = this.faults.pick(call);
      call.fault = hit === null || typeof hit === 'string' ? hit : hit.fault;
      const planted = hit instanceof PlantedFault ? hit : null;
      if (call.fault === 'slow' || call.fault === 'slow-response') await this.#hold(call, planted);
      planted?.arrived();
      const failing = call.fault !== null && call.fault !== 'slow' && call.fault !== 'slow-response';
      if (failing && call.fault !== 'response-lost') throw errorOf(call);
      for await (const entry of entries()) yield entry;
      for (const hook of [...this.#after]) await hook(call);
      if (failing) throw errorOf(call);
      call.outcome = 'ok';
    } catch (error) {
      call.outcome = 'error';
      throw error;
    } finally {
      if (call.outcome === 'pending') call.outcome = 'stopped';
    }
  }

  #begin(operation: SimOperation, key: string | readonly string[]): SimCall {
    const keys = typeof key === 'string' ? [key] : key;
    const call: SimCall = {
      number: this.log.length,
      operation,
      key: keys[0],
      keys,
      fault: null,
      outcome: 'pending',
    };
    this.log.push(call);
    return call;
  }

  /** A read that nobody waits for does nothing, now or later. */
  #later(call: SimCall, effect: () => Promise<unknown>): void {
    if (READS.has(call.operation)) return;
    const land = async (): Promise<unknown> => {
      const answer = await effect();
      this.faults.mark(call, 'landed');
      call.outcome = 'landed';
      return answer;
    };
    this.faults.waiting.push({ call, land });
  }

  async #hold(call: SimCall, planted: PlantedFault | null): Promise<void> {
    if (planted?.released === true) return;
    await new Promise<void>((resolve) => {
      this.faults.held.push({ call, release: resolve });
      planted?.arrived();
    });
  }
}

const FAILS_BEFORE: ReadonlySet<Fault | null> = new Set<Fault | null>([
  'refused',
  'request-lost',
  'throttled',
  'unreadable',
]);

const READS: ReadonlySet<SimOperation> = new Set<SimOperation>(['get', 'getRange', 'head', 'list', 'listFolders']);

function errorOf(call: SimCall): StoreError {
  const applied = READS.has(call.operation) || call.fault === 'refused' ? 'no' : 'maybe';
  const reason =
    call.fault === 'throttled'
      ? 'Reduce your request rate for the same object. (10058)'
      : `simulated fault: ${call.fault}`;
  return new StoreError(call.operation, call.key, applied, new Error(reason));
}

function outcomeOf(answer: unknown): string {
  if (answer === null) return 'missing';
  if (typeof answer === 'object' && 'outcome' in answer && typeof answer.outcome === 'string') return answer.outcome;
  return 'ok';
}

function register(hooks: Hook[], hook: Hook): () => void {
  hooks.push(hook);
  return () => {
    const at = hooks.indexOf(hook);
    if (at >= 0) hooks.splice(at, 1);
  };
}

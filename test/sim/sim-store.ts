import type { MemoryStore } from '../../src/store/memory.ts';
import {
  type Created,
  type Listed,
  type Multipart,
  type Replaced,
  type Store,
  type Stored,
  StoreError,
} from '../../src/store/store.ts';

/** What a call may be. `part`, `complete` and `abort` belong to an upload. */
export type SimOperation =
  | 'get'
  | 'getRange'
  | 'head'
  | 'putIfAbsent'
  | 'putIf'
  | 'delete'
  | 'list'
  | 'listFolders'
  | 'multipart'
  | 'part'
  | 'complete'
  | 'abort';

/**
 * What may go wrong with one call:
 *
 * - `refused`: fails before the effect, and the caller is told so (`applied: 'no'`);
 * - `request-lost`: fails before the effect, the caller cannot know (`maybe`);
 * - `throttled`: as `request-lost`, with R2's words for too many requests;
 * - `response-lost`: the effect happens, the caller gets an error (`maybe`);
 * - `half-applied`: a delete removes the first half of its keys, then fails (`maybe`); elsewhere as `response-lost`;
 * - `late`: the caller gets an error (`maybe`); the effect happens when the test lets it land, or never;
 * - `slow`: nothing happens until the test releases the call, then it goes on as if nothing had been;
 * - `slow-response`: the effect happens at once, the answer waits for the release;
 * - `unreadable`: a read fails; nothing is known about the object.
 *
 * Reads change nothing, so their errors are always `applied: 'no'`, whatever the fault. A listing with `response-lost`
 * fails after its last entry, with another fault before its first.
 */
export type Fault =
  | 'refused'
  | 'request-lost'
  | 'throttled'
  | 'response-lost'
  | 'half-applied'
  | 'late'
  | 'slow'
  | 'slow-response'
  | 'unreadable';

/** A call as it went. Entries are in the order in which calls were made; `outcome` is filled in as they end. */
export interface SimCall {
  readonly number: number;
  readonly operation: SimOperation;
  /** The key; the prefix of a listing; the first key of a delete. */
  readonly key: string;
  /** The keys of a delete, else the one. */
  readonly keys: readonly string[];
  fault: Fault | null;
  /** `pending`, `ok`, an outcome of a conditional put, `missing`, `error`, `landed` after an error, `stopped` for a listing left early. */
  outcome: string;
}

/** One fault that a test has planted. */
export interface Planted {
  readonly fault: Fault;
  /** How many calls it has hit. */
  hits: number;
  /** Resolves when the first call has been hit: for `slow` it is held now, for `late` its error is on the way. */
  readonly reached: Promise<void>;
  /** `slow`: lets the held calls go on. Calls hit afterwards are not held. */
  release(): void;
  /** `late`: applies what is waiting now. Gives what each would have answered, in order. */
  land(): Promise<unknown[]>;
  /** Takes the fault away; what is held or waiting stays so. */
  clear(): void;
}

/** The chance of each fault for one call; together at most 1. */
export type FaultRates = Partial<Record<Fault, number>>;

type Hook = (call: SimCall) => void | Promise<void>;

interface Waiting {
  call: SimCall;
  land: () => Promise<unknown>;
}

interface HeldCall {
  call: SimCall;
  release: () => void;
}

/** Faults of one `SimStore`: planted by name, or drawn for each call from a generator. */
export class Faults {
  /**
   * How often each fault was hit, as `response-lost` and as `putIfAbsent:response-lost`, and how many late effects came to
   * be, as `landed` and `putIfAbsent:landed`. A test of a race asserts on these.
   */
  readonly marks = new Map<string, number>();
  /** Effects of `late` calls that have not landed, planted or drawn, in order. The simulator's scheduler picks from here. */
  readonly waiting: Waiting[] = [];
  /** Calls held by `slow` and `slow-response`, in order. */
  readonly held: HeldCall[] = [];
  readonly #planted: PlantedFault[] = [];
  #draw: { random: () => number; rates: FaultRates } | null = null;

  /** Plants a fault for the next call of `operation` whose key matches, after `skip` such calls. */
  next(operation: SimOperation | '*', key: RegExp | string | null, fault: Fault, { skip = 0 } = {}): Planted {
    return this.#plant(operation, key, fault, skip, 1);
  }

  /** Plants a fault for every call of `operation` whose key matches, until it is cleared. */
  always(operation: SimOperation | '*', key: RegExp | string | null, fault: Fault): Planted {
    return this.#plant(operation, key, fault, 0, Number.POSITIVE_INFINITY);
  }

  /** Draws a fault for each call that no planted one hits. `random` gives numbers in [0, 1) and is called once a call. */
  draw(random: () => number, rates: FaultRates): void {
    let sum = 0;
    for (const rate of Object.values(rates)) sum += rate;
    if (sum > 1) throw new RangeError(`fault rates sum to at most 1: ${sum}`);
    this.#draw = { random, rates };
  }

  /** No more faults, planted or drawn. What is held or waiting stays so. */
  stop(): void {
    this.#planted.length = 0;
    this.#draw = null;
  }

  /** Lets the held call at `index` go on. */
  release(index = 0): void {
    for (const held of this.held.splice(index, 1)) held.release();
  }

  /** Lets every held call go on. */
  releaseAll(): void {
    for (const held of this.held.splice(0)) held.release();
  }

  /** Applies the late effect at `index` and gives what it would have answered. */
  async land(index = 0): Promise<unknown> {
    const [waiting] = this.waiting.splice(index, 1);
    if (waiting === undefined) throw new RangeError(`no late effect waits at ${index}`);
    return await waiting.land();
  }

  /** Applies every late effect, in the order of the calls. */
  async landAll(): Promise<unknown[]> {
    const answers: unknown[] = [];
    for (const waiting of this.waiting.splice(0)) answers.push(await waiting.land());
    return answers;
  }

  hits(name: string): number {
    return this.marks.get(name) ?? 0;
  }

  /** For the store alone. */
  mark(call: SimCall, name: string): void {
    for (const mark of [name, `${call.operation}:${name}`]) this.marks.set(mark, (this.marks.get(mark) ?? 0) + 1);
  }

  /** Planted faults that no call has met: a test that meant to reach them did not. */
  unhit(): string[] {
    return this.#planted.filter((planted) => planted.hits === 0).map((planted) => planted.name);
  }

  /** The fault for this call. For the store alone. */
  pick(call: SimCall): PlantedFault | Fault | null {
    let hit: PlantedFault | Fault | null = null;
    for (const planted of this.#planted) {
      if (planted.takes(call)) {
        hit = planted;
        break;
      }
    }
    // One number a call, hit or not: otherwise a planted fault would shift everything drawn after it.
    const drawn = this.#draw === null ? null : choose(this.#draw.random(), this.#draw.rates);
    hit ??= drawn;
    if (hit === null) return null;
    const fault = typeof hit === 'string' ? hit : hit.fault;
    this.mark(call, fault);
    return hit;
  }

  #plant(
    operation: SimOperation | '*',
    key: RegExp | string | null,
    fault: Fault,
    skip: number,
    times: number,
  ): Planted {
    const planted = new PlantedFault(this, { operation, key, fault, skip, times });
    this.#planted.push(planted);
    planted.remove = () => {
      const at = this.#planted.indexOf(planted);
      if (at >= 0) this.#planted.splice(at, 1);
    };
    return planted;
  }
}

interface Plan {
  operation: SimOperation | '*';
  key: RegExp | string | null;
  fault: Fault;
  skip: number;
  times: number;
}

class PlantedFault implements Planted {
  readonly fault: Fault;
  readonly name: string;
  readonly reached: Promise<void>;
  hits = 0;
  released = false;
  remove: () => void = () => {};
  readonly #faults: Faults;
  readonly #plan: Plan;
  readonly #calls = new Set<SimCall>();
  #reach: () => void = () => {};

  constructor(faults: Faults, plan: Plan) {
    this.#faults = faults;
    this.#plan = { ...plan };
    this.fault = plan.fault;
    this.name = `${plan.operation} ${plan.key ?? '*'} ${plan.fault}`;
    this.reached = new Promise((resolve) => {
      this.#reach = resolve;
    });
  }

  takes(call: SimCall): boolean {
    const { operation, key } = this.#plan;
    if (operation !== '*' && operation !== call.operation) return false;
    if (typeof key === 'string' && !call.keys.includes(key)) return false;
    if (key instanceof RegExp && !call.keys.some((name) => name.search(key) >= 0)) return false;
    if (this.hits >= this.#plan.times) return false;
    if (this.#plan.skip > 0) {
      this.#plan.skip -= 1;
      return false;
    }
    this.hits += 1;
    this.#calls.add(call);
    return true;
  }

  /** The call is where the fault leaves it. */
  arrived(): void {
    this.#reach();
  }

  release(): void {
    this.released = true;
    for (const held of take(this.#faults.held, (entry) => this.#calls.has(entry.call))) held.release();
  }

  async land(): Promise<unknown[]> {
    const answers: unknown[] = [];
    for (const waiting of take(this.#faults.waiting, (entry) => this.#calls.has(entry.call))) {
      answers.push(await waiting.land());
    }
    return answers;
  }

  clear(): void {
    this.remove();
  }
}

/**
 * One client's view of a shared `MemoryStore`, with faults on each side of the effect. Several views of one memory are
 * several writers, each with its own faults, as two instances of an object have: what one left to land late lands in the
 * memory that the other sees.
 *
 * Nothing here looks at a clock or draws a number of its own: the same calls, faults and generator give the same log.
 */
export class SimStore implements Store {
  readonly faults = new Faults();
  /** Every call in the order in which it was made. */
  readonly log: SimCall[] = [];
  readonly #memory: MemoryStore;
  readonly #before: Hook[] = [];
  readonly #after: Hook[] = [];

  constructor(memory: MemoryStore) {
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

function choose(number: number, rates: FaultRates): Fault | null {
  let from = 0;
  for (const [fault, rate] of Object.entries(rates) as [Fault, number][]) {
    from += rate;
    if (number < from) return fault;
  }
  return null;
}

function register(hooks: Hook[], hook: Hook): () => void {
  hooks.push(hook);
  return () => {
    const at = hooks.indexOf(hook);
    if (at >= 0) hooks.splice(at, 1);
  };
}

/** Removes and returns the entries that match, in order. */
function take<T>(entries: T[], matches: (entry: T) => boolean): T[] {
  const taken = entries.filter(matches);
  const left = entries.filter((entry) => !matches(entry));
  entries.splice(0, entries.length, ...left);
  return taken;
}

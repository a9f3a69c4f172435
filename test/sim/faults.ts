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

/** For the store alone, as what it is handed by `pick`. */
export class PlantedFault implements Planted {
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

function choose(number: number, rates: FaultRates): Fault | null {
  let from = 0;
  for (const [fault, rate] of Object.entries(rates) as [Fault, number][]) {
    from += rate;
    if (number < from) return fault;
  }
  return null;
}

/** Removes and returns the entries that match, in order. */
function take<T>(entries: T[], matches: (entry: T) => boolean): T[] {
  const taken = entries.filter(matches);
  const left = entries.filter((entry) => !matches(entry));
  entries.splice(0, entries.length, ...left);
  return taken;
}

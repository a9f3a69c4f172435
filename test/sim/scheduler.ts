import type { Trace } from './trace.ts';

/** Whoever an event belongs to. Events of one that has ended never happen. */
export interface Owner {
  readonly name: string;
  readonly ended: boolean;
}

interface Planned {
  atMs: number;
  order: number;
  owner: Owner | null;
  label: string;
  run: () => void;
  cancelled: boolean;
}

/** What was planned, so that it can be taken back. */
export interface Plan {
  readonly label: string;
  cancel(): void;
}

/**
 * Virtual time. Everything that takes time is an event: an answer of the store, a timer, an actor's next idea. One event
 * happens at a time, and the next only when nobody can go on without one: all that lies between two events is promises.
 */
export class Scheduler {
  readonly startMs: number;
  readonly #trace: Trace;
  #nowMs: number;
  #heap: Planned[] = [];
  #order = 0;
  steps = 0;

  constructor(trace: Trace, startMs = Date.UTC(2026, 0, 1)) {
    this.#trace = trace;
    this.startMs = startMs;
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  /** Since the start, for the trace. */
  elapsed(): number {
    return this.#nowMs - this.startMs;
  }

  /** Runs `run` after `delayMs`, unless the owner has ended by then. */
  after(delayMs: number, owner: Owner | null, label: string, run: () => void): Plan {
    const atMs = this.#nowMs + Math.max(0, Math.round(delayMs));
    const planned: Planned = { atMs, order: this.#order++, owner, label, run, cancelled: false };
    this.#push(planned);
    return {
      label,
      cancel() {
        planned.cancelled = true;
      },
    };
  }

  /** Lets the next event happen, and all that follows from it without waiting. False when there is none. */
  async step(): Promise<boolean> {
    for (;;) {
      const next = this.#pop();
      if (next === null) return false;
      if (next.cancelled || next.owner?.ended === true) continue;
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      this.#trace.note(this.elapsed(), next.owner === null ? next.label : `${next.owner.name}: ${next.label}`);
      this.steps++;
      next.run();
      await settled();
      return true;
    }
  }

  /** Lines for the trace that are no events. */
  note(text: string): void {
    this.#trace.note(this.elapsed(), text);
  }

  #push(planned: Planned): void {
    const heap = this.#heap;
    let at = heap.push(planned) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!before(heap[at], heap[parent])) break;
      [heap[at], heap[parent]] = [heap[parent], heap[at]];
      at = parent;
    }
  }

  #pop(): Planned | null {
    const heap = this.#heap;
    const top = heap[0];
    if (top === undefined) return null;
    const last = heap.pop() as Planned;
    if (heap.length > 0) {
      heap[0] = last;
      for (let at = 0; ; ) {
        const left = 2 * at + 1;
        const right = left + 1;
        let least = at;
        if (left < heap.length && before(heap[left], heap[least])) least = left;
        if (right < heap.length && before(heap[right], heap[least])) least = right;
        if (least === at) break;
        [heap[at], heap[least]] = [heap[least], heap[at]];
        at = least;
      }
    }
    return top;
  }
}

function before(a: Planned, b: Planned): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** One turn of the event loop: every promise that could go on has. Nothing in a simulation does real I/O. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

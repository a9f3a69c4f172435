import { FAULTS_MAX } from '../core/base/limits.ts';
import { type FaultKind, faultOf, type TableFault } from '../core/maintain/table-fault.ts';

/** Work that meets faults. What it found stands until the same work finds something else. */
export type FaultSource = 'commit' | 'files' | 'compaction' | 'index' | 'retention' | 'expiry' | 'erasing' | 'sweep';

export interface KnownFault {
  kind: FaultKind;
  what: string;
  /** When this incarnation saw it first. */
  sinceMs: number;
}

/**
 * What is wrong with a table, as the work of this incarnation met it. Nothing looks for faults on purpose, which would read the
 * whole table; but all work reads, and none of it goes past a fault in silence, deletes because of it, or stops what can go on.
 */
export class Faults {
  readonly #bySource = new Map<FaultSource, KnownFault[]>();

  /** Faults by kind; each once, however many stumble over it. */
  get list(): KnownFault[] {
    const known = new Map<string, KnownFault>();
    for (const fault of [...this.#bySource.values()].flat()) {
      const key = `${fault.kind} ${fault.what}`;
      const other = known.get(key);
      if (other === undefined || fault.sinceMs < other.sinceMs) known.set(key, fault);
    }
    return [...known.values()].sort((a, b) => a.sinceMs - b.sinceMs).slice(0, FAULTS_MAX);
  }

  /** What the work has found now; nothing: what it had found before is mended. */
  found(source: FaultSource, faults: readonly TableFault[], nowMs: number): void {
    const before = this.#bySource.get(source) ?? [];
    this.#bySource.set(
      source,
      faults.slice(0, FAULTS_MAX).map(({ kind, what }) => {
        const known = before.find((fault) => fault.kind === kind && fault.what === what);
        return known ?? { kind, what, sinceMs: nowMs };
      }),
    );
  }

  /** The work failed. An error that is no fault of the table, as of a store that is down, tells nothing of it. */
  failed(source: FaultSource, error: unknown, nowMs: number): void {
    const fault = faultOf(error);
    if (fault !== null) this.found(source, [fault], nowMs);
  }
}

import { parseMetadata } from '../../src/core/iceberg/metadata.ts';
import type { Mark } from '../../src/engine/ports.ts';
import { newCache } from '../oracle/cache.ts';
import type { Checker } from './checkers/checker.ts';
import { History } from './checkers/history.ts';
import { BranchesChecker } from './checkers/i1-branches.ts';
import { RowsChecker } from './checkers/i1-rows.ts';
import { ContentsChecker } from './checkers/i2-contents.ts';
import { ReferencesChecker } from './checkers/i3-references.ts';
import { ChainChecker } from './checkers/i4-chain.ts';
import { ProgressChecker } from './checkers/i5-progress.ts';
import { type Attempt, DeletionsChecker } from './checkers/i6-deletions.ts';
import { SettledChecker } from './checkers/i7-settled.ts';
import { IndexChecker } from './checkers/i8-index.ts';
import { TotalsChecker } from './checkers/i9-totals.ts';
import { RestChecker } from './checkers/i10-rest.ts';
import { RetentionChecker } from './checkers/i11-retention.ts';
import { type RawMetadata, SmallReader } from './checkers/reader.ts';
import type { SimCall } from './faults.ts';
import { Model } from './model.ts';
import { Rng } from './rng.ts';
import { Scheduler } from './scheduler.ts';
import { PLACE } from './service.ts';
import type { Incarnation, SimObject } from './sim-object.ts';
import type { Swarm } from './swarm.ts';
import { Trace } from './trace.ts';
import { type Mutation, WatchedMemory } from './watched-memory.ts';

/** What an invariant was seen to break. */
export interface Violation {
  invariant: string;
  text: string;
  step: number;
}

/** Every mark that a campaign must reach (design, section 11), and those of the product beside them. */
export type SimMark =
  | Mark
  | 'zombie-landed-late'
  | 'rebased-over-replace'
  | 'stalled-past-expiry'
  | 'reopened-name-created'
  | 'reopened-own-found'
  | 'replayed-after-rollback'
  | 'recreated-by-engine'
  | 'expired-by-schedule'
  | 'compacted-by-itself'
  | 'retained-by-schedule'
  | 'erased'
  | 'orphans-swept'
  | 'index-lost'
  | 'index-harmed'
  | 'index-rebuilt'
  | 'index-mended'
  | 'branch-appended'
  | 'branch-refused';

/** Half a minute before the second day of rows has ended a day ago. */
const RETENTION_START_MS = Date.UTC(2026, 0, 4) - 30_000;

/** One seed's world: the bucket, the objects, who acts on them, and who watches. */
export class SimWorld {
  readonly seed: number;
  readonly swarm: Swarm;
  readonly trace: Trace;
  readonly scheduler: Scheduler;
  readonly memory: WatchedMemory;
  readonly model = new Model();
  readonly history: History;
  readonly objects: SimObject[] = [];
  readonly checkers: Checker[];
  readonly violations: Violation[] = [];
  readonly marks = new Map<SimMark, number>();
  /** Every conditional write of a version by an object of ours. */
  readonly attempts: Attempt[] = [];
  /** Apps that left by command: their watermark may vanish. */
  readonly retired = new Set<string>();
  /** Apps whose progress a foreign writer has cut off from the table, and how often. */
  readonly forgotten = new Map<string, number>();
  /** Files of last-value indexes that were lost or damaged: nothing is known of what is in them. */
  readonly harmed = new Set<string>();
  /** Faults and long waits are over. */
  isCalm = false;
  /** The foreign writer is deleting the whole folder. */
  isErasing = false;
  readonly cache = newCache();
  #changes: Mutation[] = [];
  #stirred = false;

  constructor(seed: number, swarm: Swarm, traceLines = 0) {
    this.seed = seed;
    this.swarm = swarm;
    this.trace = new Trace(traceLines);
    // With retention, two days of rows are past it: one when the run begins, one soon after.
    this.scheduler = swarm.retention ? new Scheduler(this.trace, RETENTION_START_MS) : new Scheduler(this.trace);
    this.memory = new WatchedMemory({ now: () => this.scheduler.now() });
    this.memory.onMutation = (mutation) => this.#changes.push(mutation);
    this.history = new History(new SmallReader(this.memory), PLACE.prefix);
    this.checkers = [
      new ContentsChecker(this),
      new ReferencesChecker(this),
      new ChainChecker(this),
      new ProgressChecker(this),
      new DeletionsChecker(this),
      new SettledChecker(this),
      new TotalsChecker(this),
      new RowsChecker(this),
      new BranchesChecker(this),
      new IndexChecker(this),
      new RetentionChecker(this),
      new RestChecker(this),
    ];
  }

  rng(name: string): Rng {
    return new Rng(this.seed, name);
  }

  violate(invariant: string, text: string): void {
    this.scheduler.note(`VIOLATION ${invariant}: ${text}`);
    this.violations.push({ invariant, text, step: this.scheduler.steps });
  }

  hit(mark: SimMark, by: Incarnation | null = null): void {
    this.scheduler.note(`${by === null ? 'mark' : by.name} ${mark}`);
    this.marks.set(mark, (this.marks.get(mark) ?? 0) + 1);
    if (mark === 'table-replaced' && this.history.begunBy === 'engine') this.hit('recreated-by-engine', by);
  }

  /** One event, and what the checkers say to it. False when nothing is left to happen. */
  async step(): Promise<boolean> {
    const happened = await this.scheduler.step();
    await this.look();
    return happened;
  }

  /** Lets the checkers see what changed. */
  async look(): Promise<void> {
    if (this.#changes.length === 0 && !this.#stirred) return;
    const changes = this.#changes;
    this.#changes = [];
    this.#stirred = false;
    let moved = false;
    for (const change of changes) {
      this.scheduler.note(`  ${change.kind} ${change.key} by ${change.by}`);
      const taken = this.history.take(change);
      for (const checker of this.checkers) checker.onMutation?.(change);
      if (taken === null) {
        if (change.kind === 'deleted') moved ||= this.history.tip === null;
        continue;
      }
      moved = true;
      this.#markVersion(taken.arrival, taken.seen.raw, change.by);
      for (const checker of this.checkers) checker.onVersion?.(taken.arrival, taken.seen, taken.before);
    }
    if (moved || changes.length === 0) for (const checker of this.checkers) await checker.atRest?.();
  }

  async finish(): Promise<void> {
    for (const checker of this.checkers) await checker.atRest?.();
    for (const checker of this.checkers) await checker.atEnd?.();
  }

  onLedger(object: SimObject, incarnation: Incarnation, step: string, args: readonly unknown[]): void {
    for (const checker of this.checkers) checker.onLedger?.(object, incarnation, step, args);
    if (step === 'settle' || step === 'discard' || step === 'forget') this.#stirred = true;
  }

  /** An object has found that a commit of its stands. */
  onCommitted(incarnation: Incarnation, commitId: string): void {
    for (const checker of this.checkers) checker.onCommitted?.(incarnation, commitId);
  }

  onCall(_incarnation: Incarnation, call: SimCall): void {
    void call;
  }

  onEffect(incarnation: Incarnation, call: SimCall): void {
    if (call.operation !== 'putIfAbsent' || call.fault === 'late') return;
    this.#markWrite(incarnation, call);
  }

  onLanded(incarnation: Incarnation, call: SimCall, answer: unknown): void {
    this.#markWrite(incarnation, call);
    const created = (answer as { outcome?: string } | null)?.outcome === 'created';
    if (created && this.history.versionOf(call.key) !== null) this.hit('zombie-landed-late', incarnation);
  }

  /** Notes a conditional write as it leaves; the answer is filled in when its writer hears it. */
  attempted(incarnation: Incarnation, key: string, bytes: Uint8Array): Attempt | null {
    const version = this.history.versionOf(key);
    if (version === null) return null;
    const raw = JSON.parse(new TextDecoder().decode(bytes)) as RawMetadata;
    const attempt: Attempt = { by: incarnation.name, version, atMs: this.scheduler.now(), raw, answer: 'open' };
    this.attempts.push(attempt);
    return attempt;
  }

  /** Marks of what a conditional write met, seen from outside. */
  #markWrite(incarnation: Incarnation, call: SimCall): void {
    const version = this.history.versionOf(call.key);
    if (version === null || version === 1) return;
    if (!this.memory.has(this.history.keyOf(version - 1))) this.hit('stalled-past-expiry', incarnation);
  }

  #markVersion(arrival: string, raw: RawMetadata, by: string): void {
    const object = this.objects.find(({ name }) => by.startsWith(name));
    if (object === undefined) return;
    if (object.current?.name !== by) this.hit('zombie-landed-late');
    const { history } = this;
    if (arrival === 'reopens') {
      this.hit('reopened-name-created');
      const newest = (raw.snapshots ?? []).at(-1)?.summary['sluice.commit-id'];
      if (newest !== undefined && history.commits.has(newest)) this.hit('reopened-own-found');
      return;
    }
    const current = history.current;
    const parent = (raw.snapshots ?? []).find((other) => other['snapshot-id'] === current?.['parent-snapshot-id']);
    if (current === null || parent?.summary['operation'] !== 'replace') return;
    const first = history.firstList.get(String(current['snapshot-id']));
    const replaced = history.snapshotAt.get(parent['snapshot-id']);
    if (first !== undefined && replaced !== undefined && first < replaced) this.hit('rebased-over-replace');
  }

  /** The newest version as the product reads it, for actors. */
  metadata() {
    const { tip } = this.history;
    const stored = tip === null ? null : this.memory.peek(tip.key);
    if (tip === null || stored === null) return null;
    return { version: tip.version, metadata: parseMetadata(new TextDecoder().decode(stored.bytes)) };
  }
}

import { EPOCH_WINDOW } from '../../src/core/base/limits.ts';
import type { Frame, NewFrame } from '../../src/core/batch/frame.ts';
import { type Intent, parseIntent, serializeIntent } from '../../src/core/batch/intent.ts';
import { gaveNumber, type Identity, type Receipt } from '../../src/core/batch/receipt.ts';
import type { Proposal } from '../../src/core/iceberg/proposal.ts';
import { MAIN } from '../../src/core/iceberg/snapshot.ts';
import type {
  AppState,
  CommitRecord,
  ErrorRecord,
  Exception,
  FrameRange,
  KnownTable,
  Ledger,
  LedgerState,
  OpenIntent,
  OpenUpload,
  RecentEpoch,
  Settlement,
} from '../../src/engine/ports.ts';

interface Held extends Frame {
  acceptedMs: number;
}

/** What survives a crash: plain data, so that it can be copied and put back. */
interface Durable {
  ledgerId: string;
  earlier: Identity[];
  floor: number;
  lastTimeMs: number;
  table: KnownTable | null;
  hintedVersion: number;
  frames: Held[];
  intent: { body: string; targets: number[]; failures: number; retryMs: number } | null;
  receipts: { first: number; last: number; atMs: number; receipt: Receipt }[];
  batches: [string, { sequence: number; digest: string; acceptedMs: number }][];
  lastCommit: CommitRecord | null;
  lastError: ErrorRecord | null;
  apps: [string, { recent: RecentEpoch[]; parked: ({ epoch: bigint } & ErrorRecord) | null; retiring: boolean }][];
  parked: Held[];
  moved: [number, number][];
  doomed: { keys: string[]; notBeforeMs: number }[];
  uploads: OpenUpload[];
  choresDueMs: number | null;
  sweptMs: number | null;
}

/** Called around each step that changes the ledger; throwing in `before` means that the step did not happen. */
export type StepHook = (step: string, side: 'before' | 'after') => void;

/** A ledger in memory: each step happened or did not, finished steps outlive their incarnation. */
export class SimLedger implements Ledger {
  #durable: Durable;
  /** Set by whoever wants to stop the world at a step. */
  hook: StepHook = () => undefined;

  constructor(ledgerId: string) {
    this.#durable = {
      ledgerId,
      earlier: [],
      floor: 0,
      lastTimeMs: 0,
      table: null,
      hintedVersion: 0,
      frames: [],
      intent: null,
      receipts: [],
      batches: [],
      lastCommit: null,
      lastError: null,
      apps: [],
      parked: [],
      moved: [],
      doomed: [],
      uploads: [],
      choresDueMs: null,
      sweptMs: null,
    };
  }

  /** A copy to restore later, as a point-in-time recovery does. */
  snapshot(): Durable {
    return structuredClone(this.#durable);
  }

  restore(durable: Durable): void {
    this.#durable = structuredClone(durable);
  }

  /** Everything is gone, as when an object's storage is lost. */
  lose(ledgerId: string): void {
    this.#durable = new SimLedger(ledgerId).#durable;
  }

  state(): LedgerState {
    const it = this.#durable;
    let rows = 0;
    let bytes = 0;
    for (const frame of it.frames) {
      rows += frame.rows;
      bytes += frame.body.length;
    }
    return {
      ledgerId: it.ledgerId,
      lastSequence: this.#lastSequence(),
      lastTimeMs: it.lastTimeMs,
      table: it.table,
      hintedVersion: it.hintedVersion,
      buffer: { frames: it.frames.length, rows, bytes, oldestMs: it.frames[0]?.acceptedMs ?? null },
      intent: this.#intent(),
      doomed: {
        keys: it.doomed.reduce((sum, { keys }) => sum + keys.length, 0),
        dueMs: it.doomed.length === 0 ? null : Math.min(...it.doomed.map(({ notBeforeMs }) => notBeforeMs)),
      },
      uploads: { open: it.uploads.length, oldestMs: it.uploads[0]?.begunMs ?? null },
      choresDueMs: it.choresDueMs,
      sweptMs: it.sweptMs,
      lastCommit: it.lastCommit,
      lastError: it.lastError,
    };
  }

  accept(frames: readonly NewFrame[], nowMs: number): number {
    return this.#step('accept', () => this.#insert(frames, nowMs));
  }

  #insert(frames: readonly NewFrame[], nowMs: number): number {
    const it = this.#durable;
    const first = this.#lastSequence() + 1;
    frames.forEach((frame, index) => {
      const sequence = first + index;
      const { digest, producer, batchId } = frame;
      it.frames.push({ ...frame, sequence, acceptedMs: nowMs });
      if (batchId !== null) {
        it.batches = it.batches.filter(([id]) => id !== batchId);
        it.batches.push([batchId, { sequence, digest, acceptedMs: nowMs }]);
      }
      if (producer === null) return;
      const app = this.#appOf(producer.app);
      const others = app.recent.filter(({ epoch }) => epoch !== producer.epoch);
      app.recent = [{ epoch: producer.epoch, digest, sequence }, ...others].slice(0, EPOCH_WINDOW);
    });
    return first;
  }

  #appOf(name: string) {
    const { apps } = this.#durable;
    let found = apps.find(([app]) => app === name);
    if (found === undefined) {
      found = [name, { recent: [], parked: null, retiring: false }];
      apps.push(found);
    }
    return found[1];
  }

  app(name: string): AppState {
    const it = this.#durable;
    const known = it.apps.find(([app]) => app === name)?.[1];
    const of = (frames: readonly Held[]) => frames.filter((frame) => frame.producer?.app === name);
    const waiting = of(it.frames).map((frame) => frame.producer?.epoch ?? 0n);
    const parked = of(it.parked);
    return {
      // biome-ignore lint/complexity/useMathMinMax: these are bigints
      waiting: waiting.length === 0 ? null : waiting.reduce((a, b) => (a > b ? a : b)),
      bytes: [...of(it.frames), ...parked].reduce((sum, frame) => sum + frame.body.length, 0),
      recent: known?.recent ?? [],
      retiring: known?.retiring ?? false,
      parked:
        known === undefined || known.parked === null
          ? null
          : { ...known.parked, sequence: parked[0]?.sequence ?? 0, behind: Math.max(0, parked.length - 1) },
    };
  }

  appNames(): string[] {
    return this.#durable.apps.map(([name]) => name);
  }

  heldApps(): string[] {
    return this.#durable.apps.filter(([, app]) => app.parked !== null || app.retiring).map(([name]) => name);
  }

  unpark(name: string, replacement: NewFrame, verdict: Settlement, nowMs: number): number {
    return this.#step('unpark', (it) => {
      const [refused, ...behind] = it.parked.filter((frame) => frame.producer?.app === name);
      it.parked = it.parked.filter((frame) => frame.producer?.app !== name);
      this.#appOf(name).parked = null;
      const first = this.#insert([replacement, ...behind.map(({ acceptedMs: _, ...frame }) => frame)], nowMs);
      if (refused !== undefined) this.#writeReceipt(refused.sequence, refused.sequence, verdict);
      behind.forEach((frame, index) => {
        it.moved.push([frame.sequence, first + 1 + index]);
      });
      return first;
    });
  }

  retire(name: string, retiring: boolean): void {
    this.#step('retire', () => {
      this.#appOf(name).retiring = retiring;
    });
  }

  next(bounds: { rowsMax: number; bytesMax: number; partitionsMax: number }): FrameRange | null {
    const [head, ...rest] = this.#durable.frames;
    if (head === undefined) return null;
    const { sequence, branch = MAIN, rows, body } = head;
    const range = { branch, first: sequence, last: sequence, rows, bytes: body.length };
    let { partitions } = head;
    for (const frame of rest) {
      if ((frame.branch ?? MAIN) !== branch) break;
      range.rows += frame.rows;
      range.bytes += frame.body.length;
      partitions += frame.partitions;
      if (range.rows > bounds.rowsMax || range.bytes > bounds.bytesMax || partitions > bounds.partitionsMax) {
        return { ...range, rows: range.rows - frame.rows, bytes: range.bytes - frame.body.length };
      }
      range.last = frame.sequence;
    }
    return range;
  }

  proposals(): Proposal[] {
    const distinct = new Map<string, Proposal>();
    for (const { proposal } of this.#durable.frames) {
      if (proposal !== undefined) distinct.set(JSON.stringify(proposal), proposal);
    }
    return [...distinct.values()];
  }

  frames(first: number, last: number): Frame[] {
    return this.#durable.frames
      .filter((frame) => frame.sequence >= first && frame.sequence <= last)
      .map(({ acceptedMs: _, ...frame }) => frame);
  }

  seal(intent: Intent, target: number | null): void {
    this.#step('seal', (it) => {
      if (it.intent !== null) throw new Error('one append intent is open at a time');
      const targets = target === null ? [] : [target];
      it.intent = { body: serializeIntent(intent), targets, failures: 0, retryMs: 0 };
      it.lastTimeMs = intent.timeMs;
    });
  }

  noteTarget(version: number): void {
    const { targets } = this.#open();
    if (targets.includes(version)) return;
    this.#step('noteTarget', () => targets.push(version));
  }

  settle(settlement: Settlement, exceptions: readonly Exception[] = [], until?: number): void {
    const { first, last, retire } = parseIntent(this.#open().body);
    this.#step('settle', (it) => {
      this.#leave(first, until ?? last, settlement, exceptions);
      if (settlement.outcome === 'committed') it.apps = it.apps.filter(([app]) => !retire.includes(app));
      it.intent = null;
    });
  }

  defer(retryMs: number, error: ErrorRecord): void {
    const open = this.#open();
    this.#step('defer', (it) => {
      open.failures++;
      open.retryMs = retryMs;
      it.lastError = error;
    });
  }

  forget(last: number, settlement: Settlement): void {
    const first = this.#durable.frames[0]?.sequence;
    if (first === undefined || first > last) return;
    this.#step('forget', () => this.#leave(first, last, settlement));
  }

  discard(settlement: Settlement): number {
    const { rows } = this.state().buffer;
    const first = this.#durable.frames[0]?.sequence;
    if (settlement.outcome === 'committed') {
      this.#step('discard', (it) => {
        if (first !== undefined) this.#leave(first, this.#lastSequence(), settlement);
        it.intent = null;
      });
      return rows;
    }
    const parked = this.#durable.parked;
    this.#step('discard', (it) => {
      if (first !== undefined) this.#leave(first, this.#lastSequence(), settlement);
      for (const { sequence } of parked) this.#writeReceipt(sequence, sequence, settlement);
      it.parked = [];
      it.apps = [];
      it.batches = [];
      it.intent = null;
    });
    return parked.reduce((sum, frame) => sum + frame.rows, rows);
  }

  renew(ledgerId: string): void {
    this.#step('renew', (it) => {
      it.earlier.push({ ledgerId: it.ledgerId, last: this.#lastSequence() });
      it.ledgerId = ledgerId;
    });
  }

  know(table: KnownTable | null): void {
    if (table?.uuid === this.#durable.table?.uuid && table?.version === this.#durable.table?.version) return;
    this.#step('know', (it) => {
      it.table = table;
    });
  }

  hinted(version: number): void {
    if (version === this.#durable.hintedVersion) return;
    this.#step('hinted', (it) => {
      it.hintedVersion = version;
    });
  }

  receipt(sequence: number): Receipt | null {
    const it = this.#durable;
    const moved = it.moved.find(([from]) => from === sequence);
    if (moved !== undefined) return this.receipt(moved[1]);
    const settled = it.receipts.find(({ first, last }) => first <= sequence && sequence <= last);
    if (settled !== undefined) return settled.receipt;
    return it.frames.some((frame) => frame.sequence === sequence) ? { state: 'buffered' } : null;
  }

  gave(ledgerId: string, sequence: number): boolean {
    const it = this.#durable;
    return gaveNumber([...it.earlier, { ledgerId: it.ledgerId, last: this.#lastSequence() }], ledgerId, sequence);
  }

  batch(batchId: string): { sequence: number; digest: string } | null {
    const found = this.#durable.batches.find(([id]) => id === batchId);
    return found === undefined ? null : { sequence: found[1].sequence, digest: found[1].digest };
  }

  doom(keys: readonly string[], notBeforeMs: number): void {
    if (keys.length === 0) return;
    this.#step('doom', (it) => {
      it.doomed.push({ keys: [...keys], notBeforeMs });
      it.doomed.sort((a, b) => a.notBeforeMs - b.notBeforeMs);
    });
  }

  doomed(nowMs: number, most: number): string[] {
    const due = this.#durable.doomed.filter(({ notBeforeMs }) => notBeforeMs <= nowMs);
    return due.flatMap(({ keys }) => keys).slice(0, most);
  }

  erased(keys: readonly string[]): void {
    this.#step('erased', (it) => {
      const gone = new Set(keys);
      it.doomed = it.doomed.flatMap((entry) => {
        const rest = entry.keys.filter((key) => !gone.delete(key));
        return rest.length === 0 ? [] : [{ ...entry, keys: rest }];
      });
    });
  }

  uploadBegan(upload: OpenUpload): void {
    this.#step('uploadBegan', (it) => {
      it.uploads = [...it.uploads.filter(({ uploadId }) => uploadId !== upload.uploadId), { ...upload }];
      it.uploads.sort((a, b) => a.begunMs - b.begunMs);
    });
  }

  uploadEnded(uploadId: string): void {
    this.#step('uploadEnded', (it) => {
      it.uploads = it.uploads.filter((upload) => upload.uploadId !== uploadId);
    });
  }

  openUploads(beforeMs: number, most: number): OpenUpload[] {
    return this.#durable.uploads.filter(({ begunMs }) => begunMs <= beforeMs).slice(0, most);
  }

  keepDue(dueMs: number | null): void {
    if (dueMs === this.#durable.choresDueMs) return;
    this.#step('keepDue', (it) => {
      it.choresDueMs = dueMs;
    });
  }

  swept(atMs: number): void {
    this.#step('swept', (it) => {
      it.sweptMs = atMs;
    });
  }

  prune(beforeMs: number, most: number): number {
    const it = this.#durable;
    const old = it.batches.filter(([, batch]) => batch.acceptedMs < beforeMs).slice(0, most);
    const past = it.receipts.filter((receipt) => receipt.atMs < beforeMs).slice(0, most);
    if (old.length + past.length === 0) return 0;
    return this.#step('prune', () => {
      it.batches = it.batches.filter((batch) => !old.includes(batch));
      it.receipts = it.receipts.filter((receipt) => !past.includes(receipt));
      return old.length + past.length;
    });
  }

  #step<T>(name: string, change: (durable: Durable) => T): T {
    this.hook(name, 'before');
    const result = change(this.#durable);
    this.hook(name, 'after');
    return result;
  }

  #leave(first: number, last: number, settlement: Settlement, exceptions: readonly Exception[] = []): void {
    const it = this.#durable;
    for (const { sequence, settlement: other } of exceptions) {
      const frame = it.frames.find((one) => one.sequence === sequence);
      if (other.outcome !== 'parked' || frame?.producer == null) continue;
      const { type, message, atMs } = other;
      this.#appOf(frame.producer.app).parked ??= { epoch: frame.producer.epoch, type, message, atMs };
      it.parked.push(frame);
    }
    let from = first;
    for (const { sequence, settlement: other } of exceptions) {
      if (sequence > from) this.#writeReceipt(from, sequence - 1, settlement);
      this.#writeReceipt(sequence, sequence, other);
      from = sequence + 1;
    }
    if (from <= last) this.#writeReceipt(from, last, settlement);
    it.frames = it.frames.filter((frame) => frame.sequence > last);
    it.floor = Math.max(it.floor, last);
    if (settlement.outcome === 'refused') {
      const { type, message, atMs } = settlement;
      it.lastError = { type, message, atMs };
      return;
    }
    const { version, committedMs, rows, tableUuid } = settlement;
    it.lastCommit = { snapshotId: settlement.snapshotId?.toString() ?? null, version, committedMs, rows };
    const known = it.table?.uuid === tableUuid ? it.table.version : 0;
    it.table = { uuid: tableUuid, version: Math.max(known, version) };
  }

  #writeReceipt(first: number, last: number, settlement: Exception['settlement']): void {
    const it = this.#durable;
    it.receipts = it.receipts.filter((receipt) => receipt.last !== last);
    if (settlement.outcome === 'committed') {
      const { version, committedMs } = settlement;
      const snapshotId = settlement.snapshotId?.toString() ?? null;
      it.receipts.push({
        first,
        last,
        atMs: committedMs,
        receipt: { state: 'committed', snapshotId, version, committedMs },
      });
    } else {
      const { outcome, type, message, atMs } = settlement;
      it.receipts.push({ first, last, atMs, receipt: { state: outcome, type, message, atMs } });
    }
  }

  #lastSequence(): number {
    return this.#durable.frames.at(-1)?.sequence ?? this.#durable.floor;
  }

  #intent(): OpenIntent | null {
    const { intent } = this.#durable;
    if (intent === null) return null;
    return {
      intent: parseIntent(intent.body),
      targets: intent.targets,
      failures: intent.failures,
      retryMs: intent.retryMs,
    };
  }

  #open() {
    const { intent } = this.#durable;
    if (intent === null) throw new Error('an append intent is open');
    return intent;
  }
}

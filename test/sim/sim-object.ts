import { zstdCompressSync } from 'node:zlib';
import { ERASE_GRACE_MS } from '../../src/core/base/limits.ts';
import { versionOfMetadata } from '../../src/core/iceberg/locations.ts';
import { codecs } from '../../src/engine/codecs.ts';
import type { LogEvent } from '../../src/engine/commit-log.ts';
import { AdminCommits } from '../../src/engine/commit-to-end.ts';
import { Compactor } from '../../src/engine/compactor.ts';
import { Eraser } from '../../src/engine/eraser.ts';
import { Expirer } from '../../src/engine/expirer.ts';
import { IndexRebuild } from '../../src/engine/index-rebuild.ts';
import { OpenTable } from '../../src/engine/open-table.ts';
import { OrphanSweep } from '../../src/engine/orphan-sweep.ts';
import type { Clock, Ledger, Mark } from '../../src/engine/ports.ts';
import { Retention } from '../../src/engine/retention.ts';
import { ScheduledExpiry } from '../../src/engine/scheduled-expiry.ts';
import { ScheduledRetention } from '../../src/engine/scheduled-retention.ts';
import { TableAdmin } from '../../src/engine/table-admin.ts';
import { TableChanges } from '../../src/engine/table-changes.ts';
import { TableFiles } from '../../src/engine/table-files.ts';
import { TableWriter } from '../../src/engine/table-writer.ts';
import type { Created } from '../../src/store/store.ts';
import type { SimCall } from './faults.ts';
import { Rng } from './rng.ts';
import type { Owner, Plan } from './scheduler.ts';
import { PLACE } from './service.ts';
import { SimLedger } from './sim-ledger.ts';
import { SimStore } from './sim-store.ts';
import type { SimWorld } from './world.ts';

/** Age of orphans in a simulation: a commit tries ten times, and each of its writes may stall for half a minute. */
export const SWEEP_GRACE_MS = 400_000;

/** What a caller sees when the incarnation it talked to is gone, or its storage is somebody else's. */
export class Gone extends Error {
  override readonly name = 'Gone';
}

/**
 * One life of an object in memory: the product's writer and admin over a ledger and a view of the bucket. Crashed, none of
 * its events happens any more, but requests that had left may still have their effect. Cut off, it runs on: its requests go
 * on, its ledger is what it was at the cut and takes nothing more.
 */
export class Incarnation implements Owner {
  readonly name: string;
  readonly store: SimStore;
  readonly table: OpenTable;
  readonly writer: TableWriter;
  readonly admin: TableAdmin;
  readonly changes: TableChanges;
  readonly files: TableFiles;
  readonly expirer: Expirer;
  readonly sweep: OrphanSweep;
  readonly rebuild: IndexRebuild;
  readonly events: LogEvent[] = [];
  /** Rejects when callers lose it. */
  readonly gone: Promise<never>;
  ended = false;
  /** The ledger as it was when the storage was given to another incarnation. */
  cutOff: SimLedger | null = null;
  /** Requests without an answer. */
  pending = 0;
  /** Requests whose effect is still to come, late ones among them. */
  flying = 0;
  /** Waits for time alone. */
  sleeping = 0;
  /** A version was found to be the newest, and what follows from that has not been written yet. */
  confirmed = false;
  readonly #world: SimWorld;
  readonly #object: SimObject;
  readonly #rng: Rng;
  #leave: (error: Gone) => void = () => undefined;

  constructor(world: SimWorld, object: SimObject, number: number, options: { newBuild: boolean; skewMs: number }) {
    this.name = `${object.name}${number}`;
    this.#world = world;
    this.#object = object;
    this.#rng = new Rng(world.seed, `store ${this.name}`);
    this.gone = new Promise((_, reject) => {
      this.#leave = reject;
    });
    this.gone.catch(() => undefined);
    this.store = new ObjectStore(world, this);
    const rng = new Rng(world.seed, `faults ${this.name}`);
    if (!world.isCalm) this.store.faults.draw(() => rng.float(), world.swarm.faults);
    this.store.onBefore((call) => this.#before(call));
    this.store.onAfter((call) => this.#after(call));
    const ports = {
      store: this.store,
      ledger: this.#ledger(object.ledger),
      clock: this.#clock(options.skewMs),
      random: new Rng(world.seed, `random ${this.name}`),
      marks: { hit: (mark: Mark) => this.#world.hit(mark, this) },
      ...codecs,
      ...(options.newBuild ? { compress: otherCompress } : {}),
      log: (event: LogEvent) => {
        this.events.push(event);
        if (event.event === 'compacted') this.#world.hit('compacted-by-itself', this);
        if (event.event === 'retained' && event['changed'] === true) this.#world.hit('retained-by-schedule', this);
        if (event.event === 'erased' && Number(event['keys']) > 0) this.#world.hit('erased', this);
        if (event.event === 'expired' && event['changed'] === true) this.#world.hit('expired-by-schedule', this);
        this.#world.scheduler.note(`${this.name} says ${JSON.stringify(event)}`);
      },
      arm: (dueMs: number | null) => {
        if (this.ended || this.cutOff !== null) return;
        object.arm(dueMs === null ? null : dueMs - options.skewMs);
      },
    };
    this.table = new OpenTable(ports, PLACE);
    const commit = this.table.commit.bind(this.table);
    this.table.commit = async (operation, note) => {
      const result = await commit(operation, note);
      if (result.outcome === 'committed' && SNAPSHOTS.has(operation.kind)) world.onCommitted(this, operation.commitId);
      return result;
    };
    this.writer = new TableWriter(ports, this.table);
    this.admin = new TableAdmin(ports, this.table, this.writer);
    const eraser = new Eraser(ports, this.table);
    this.writer.alongside(eraser);
    const commits = new AdminCommits(ports, this.table, this.writer);
    this.changes = new TableChanges(ports, this.table, commits);
    this.files = new TableFiles(ports, this.table, commits);
    this.expirer = new Expirer(ports, this.table, this.changes, eraser);
    this.sweep = new OrphanSweep(ports, this.table, SWEEP_GRACE_MS);
    const compactor = new Compactor(ports, this.table);
    this.rebuild = new IndexRebuild(ports, this.table, commits, compactor.live);
    const commitsInRun = new AdminCommits(ports, this.table, this.writer, true);
    if (world.swarm.retention) {
      const clock = ports.clock;
      const retention = new Retention(
        clock,
        this.table,
        new TableFiles(ports, this.table, commitsInRun),
        compactor.live,
      );
      this.writer.alongside(new ScheduledRetention(ports, this.table, retention, compactor.live));
    }
    if (world.swarm.compactBySelf) this.writer.beside(compactor);
    if (world.swarm.expirySchedule === null) return;
    const inRun = new TableChanges(ports, this.table, commitsInRun);
    const expirer = new Expirer(ports, this.table, inRun, eraser);
    this.writer.alongside(new ScheduledExpiry(ports, this.table, expirer, world.swarm.expirySchedule));
  }

  /** As every operation of the product ends: the pointer is to follow. */
  saw(base: { version: number; metadata: { 'table-uuid': string } }): void {
    const { ledger } = this.#object;
    const known = ledger.state().table;
    if (this.cutOff !== null || known?.uuid !== base.metadata['table-uuid'] || known.version >= base.version) return;
    ledger.know({ uuid: known.uuid, version: base.version });
    void this.writer.run();
  }

  crash(): void {
    this.ended = true;
    this.#leave(new Gone('the object was reset'));
  }

  cut(): void {
    const frozen = new SimLedger('cut');
    frozen.restore(this.#object.ledger.snapshot());
    frozen.hook = (_step, side) => {
      if (side === 'before') throw new Gone('storage belongs to another incarnation');
    };
    this.cutOff = frozen;
    this.#leave(new Gone('the object was moved'));
  }

  #clock(skewMs: number): Clock {
    const { scheduler } = this.#world;
    return {
      now: () => scheduler.now() + skewMs,
      sleep: (ms) =>
        new Promise((wake) => {
          this.sleeping++;
          scheduler.after(ms, this, 'wakes', () => {
            this.sleeping--;
            wake();
          });
        }),
    };
  }

  /** Each step of the ledger, unless the storage belongs to another incarnation by now. */
  #ledger(ledger: SimLedger): Ledger {
    return new Proxy(ledger, {
      get: (target, name) => {
        const real = this.cutOff ?? target;
        const member: unknown = Reflect.get(real, name, real);
        if (typeof member !== 'function') return member;
        return (...args: unknown[]) => {
          const now = this.cutOff ?? target;
          if (now === target) this.#world.onLedger(this.#object, this, String(name), args);
          return member.apply(now, name === 'doom' ? this.#sooner(args as [string[], number]) : args);
        };
      },
    });
  }

  /**
   * An hour is longer than any run. Outputs of a compaction keep a time that is longer than its commit can be open; what an expiry
   * and a sweep queue may go as soon as it is asked for again.
   */
  #sooner([keys, notBeforeMs]: [string[], number]): [string[], number] {
    const isOutput = keys.length === 1 && keys[0].endsWith('.parquet');
    const graceMs = isOutput ? Math.max(SWEEP_GRACE_MS, this.#world.swarm.eraseMs) : this.#world.swarm.eraseMs;
    return [keys, notBeforeMs - ERASE_GRACE_MS + graceMs];
  }

  #before(call: SimCall): Promise<void> | undefined {
    const { scheduler } = this.#world;
    if (this.ended) return new Promise(() => undefined);
    // A listing that fails has no answer that could be counted.
    const isListing = call.operation === 'list' || call.operation === 'listFolders';
    if (!isListing) this.pending++;
    this.flying++;
    this.#world.onCall(this, call);
    const label = `${this.name}> ${call.operation} ${shortKey(call.key)}`;
    return new Promise((resolve) => {
      // A request that has left is nobody's: it arrives whatever became of who sent it, or it does not.
      scheduler.after(this.#latency(call), null, label, () => {
        this.flying--;
        if (!this.ended || this.#rng.chance(0.5)) resolve();
      });
    });
  }

  #after(call: SimCall): Promise<void> | undefined {
    const { scheduler } = this.#world;
    this.#world.onEffect(this, call);
    const version = versionOfMetadata(call.key);
    if (version !== null && call.operation === 'head') this.confirmed = true;
    if (version !== null && call.operation === 'putIfAbsent') this.confirmed = false;
    if (call.fault === 'late') this.#later(call);
    if (this.ended) return new Promise(() => undefined);
    const label = `<${call.operation} ${shortKey(call.key)} ${call.fault ?? ''}`;
    return new Promise((resolve) => {
      scheduler.after(this.#latency(call), this, label, () => {
        if (call.operation !== 'list' && call.operation !== 'listFolders') this.pending--;
        resolve();
      });
    });
  }

  #later(call: SimCall): void {
    const { scheduler, swarm } = this.#world;
    const { waiting } = this.store.faults;
    const entry = waiting.find((other) => other.call === call);
    if (entry === undefined) return; // a read
    if (!this.#rng.chance(swarm.landing)) {
      waiting.splice(waiting.indexOf(entry), 1);
      return;
    }
    this.flying++;
    scheduler.after(this.#rng.exponential(this.#rng.pick([300, 3_000, 20_000])), null, `${this.name}~ lands`, () => {
      this.flying--;
      const at = waiting.indexOf(entry);
      if (at < 0) return; // taken back meanwhile
      this.#world.scheduler.note(`${call.operation} ${shortKey(call.key)} lands late`);
      void this.store.faults.land(at).then((answer) => this.#world.onLanded(this, call, answer));
    });
  }

  #latency(call: SimCall): number {
    const { swarm, isCalm } = this.#world;
    const usual = this.#rng.exponential(swarm.latencyMs);
    const draw = this.#rng.float();
    const long = this.#rng.float();
    if (isCalm) return usual;
    const isVersion = call.operation === 'putIfAbsent' && versionOfMetadata(call.key) !== null;
    if (isVersion && draw < swarm.stall / 2) return 1_000 + long * 30_000;
    if (draw < swarm.slow) return 500 + long * 7_000;
    return usual;
  }
}

/** A view of the bucket that notes each write of a version as it leaves, and what its writer heard of it. */
class ObjectStore extends SimStore {
  readonly #world: SimWorld;
  readonly #incarnation: Incarnation;

  constructor(world: SimWorld, incarnation: Incarnation) {
    super(world.memory.as(incarnation.name));
    this.#world = world;
    this.#incarnation = incarnation;
  }

  override async putIfAbsent(key: string, bytes: Uint8Array): Promise<Created> {
    const attempt = this.#world.attempted(this.#incarnation, key, bytes);
    if (attempt === null) return super.putIfAbsent(key, bytes);
    try {
      const created = await super.putIfAbsent(key, bytes);
      attempt.answer = created.outcome;
      return created;
    } catch (error) {
      attempt.answer = 'error';
      throw error;
    }
  }
}

/** Operations whose commit is known by the snapshot it made. */
const SNAPSHOTS: ReadonlySet<string> = new Set([
  'append',
  'delete',
  'replace',
  'overwrite',
  'rewrite-manifests',
  'index',
]);

/** Another build compresses otherwise: the same rows, other bytes, other names. */
const otherCompress = (bytes: Uint8Array): Uint8Array => zstdCompressSync(bytes);

/** One table's object: what outlives its incarnations is the ledger and the alarm. */
export class SimObject {
  readonly name: string;
  readonly ledger: SimLedger;
  readonly incarnations: Incarnation[] = [];
  current: Incarnation | null = null;
  /** Life of the ledger: another one after it was lost or restored. */
  life = 0;
  /** Copies to restore from, of this life. */
  copies: { taken: ReturnType<SimLedger['snapshot']>; last: number }[] = [];
  readonly #world: SimWorld;
  readonly #rng: Rng;
  #alarm: Plan | null = null;

  constructor(world: SimWorld, name: string) {
    this.name = name;
    this.#world = world;
    this.#rng = new Rng(world.seed, `object ${name}`);
    this.ledger = new SimLedger(ledgerId(this.#rng));
  }

  /** The running incarnation, started if there is none. */
  running(): Incarnation {
    if (this.current !== null) return this.current;
    const { swarm, isCalm } = this.#world;
    const skew = isCalm ? 0 : Math.round((this.#rng.float() * 2 - 1) * swarm.skewMs);
    const newBuild = this.#rng.chance(swarm.newBuild);
    const incarnation = new Incarnation(this.#world, this, this.incarnations.length, { newBuild, skewMs: skew });
    this.incarnations.push(incarnation);
    this.current = incarnation;
    this.#world.scheduler.note(`${incarnation.name} starts`);
    const dueMs = incarnation.writer.dueMs();
    this.arm(dueMs === null ? null : dueMs - skew);
    return incarnation;
  }

  /** Ends the running incarnation: it stops, or runs on without its storage. */
  end(how: 'crash' | 'cut'): void {
    const { current } = this;
    if (current === null) return;
    this.#world.scheduler.note(`${current.name} ${how}`);
    this.current = null;
    if (how === 'crash') current.crash();
    else current.cut();
  }

  /** The platform's alarm: it outlives incarnations. */
  arm(dueMs: number | null): void {
    this.#alarm?.cancel();
    this.#alarm = null;
    if (dueMs === null) return;
    const { scheduler } = this.#world;
    this.#alarm = scheduler.after(dueMs - scheduler.now(), null, `${this.name} alarm`, () => {
      this.#alarm = null;
      const incarnation = this.running();
      void incarnation.writer.run().then(() => {
        if (this.current === incarnation) {
          // As the object does after each alarm.
          const due = incarnation.writer.dueMs();
          if (due !== null && this.#alarm === null) this.arm(due);
        }
      });
    });
  }

  /** A call of a client: it hears nothing of what becomes of it once the incarnation is gone. */
  call<T>(request: (incarnation: Incarnation) => Promise<T>): Promise<T> {
    const incarnation = this.running();
    return Promise.race([request(incarnation), incarnation.gone]);
  }

  keepCopy(): void {
    this.copies.push({ taken: this.ledger.snapshot(), last: this.ledger.state().lastSequence });
  }

  /** The storage is gone; who comes next finds it empty. */
  lose(): void {
    this.end('crash');
    this.ledger.lose(ledgerId(this.#rng));
    this.life++;
    this.copies = [];
    this.#world.model.release(this.name, 0);
    this.arm(null);
  }

  /**
   * The storage is put back to a copy. An operator's act: it waits until no request of the object is on its way any more,
   * else what lands afterwards could carry numbers that the restored ledger gives out again.
   */
  restore(index: number): void {
    const copy = this.copies[index];
    for (const incarnation of this.incarnations) incarnation.crash();
    this.current = null;
    // What the lost future refused, the restored ledger takes for committed where the table's progress passed it by.
    this.#world.model.forgive(this.name, (batch, sequence) => {
      const receipt = this.ledger.receipt(sequence);
      if (batch.app !== null && !batch.present) return true;
      return receipt !== null && receipt.state !== 'buffered' && receipt.state !== 'committed';
    });
    this.ledger.restore(copy.taken);
    this.life++;
    this.copies = this.copies.slice(0, index + 1);
    this.#world.model.release(this.name, copy.last);
    this.arm(this.#world.scheduler.now());
  }

  /** True while it has found a version to be the newest, and may write the next one on the strength of that. */
  get isWriting(): boolean {
    return this.incarnations.some(
      ({ confirmed, ended, pending, sleeping, flying }) =>
        confirmed && (flying > 0 || (!ended && (pending > 0 || sleeping > 0))),
    );
  }

  /** True while a request of any of its incarnations may still have an effect. */
  get isBusy(): boolean {
    return this.incarnations.some(({ flying }) => flying > 0);
  }
}

function ledgerId(rng: Rng): string {
  return Array.from(rng.bytes(8), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export function shortKey(key: string): string {
  return key.startsWith(`${PLACE.prefix}/`) ? key.slice(PLACE.prefix.length + 1) : key;
}

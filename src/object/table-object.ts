import { DurableObject } from 'cloudflare:workers';
import { hex } from '../core/base/bytes.ts';
import { type Detail, invalid, SluiceError } from '../core/base/errors.ts';
import type { NewFrame } from '../core/batch/frame.ts';
import { parseReceiptId, receiptId } from '../core/batch/receipt.ts';
import type { FileFilter } from '../core/commit/file-filter.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { type RefChange, refAt } from '../core/commit/plan-refs.ts';
import { schemaWarnings } from '../core/commit/plan-schema.ts';
import { tableKey, tableLocation } from '../core/iceberg/locations.ts';
import type { SchemaChange } from '../core/iceberg/schema-change.ts';
import type { TableDefinition } from '../core/table/definition.ts';
import { codecs } from '../engine/codecs.ts';
import { AdminCommits } from '../engine/commit-to-end.ts';
import { Eraser } from '../engine/eraser.ts';
import { Expirer } from '../engine/expirer.ts';
import { liveTable } from '../engine/live-table.ts';
import { OpenTable } from '../engine/open-table.ts';
import { TableAdmin } from '../engine/table-admin.ts';
import { TableChanges } from '../engine/table-changes.ts';
import { TableFiles } from '../engine/table-files.ts';
import { type LogEvent, TableWriter } from '../engine/table-writer.ts';
import { systemClock, systemRandom } from '../platform/system.ts';
import { type Env, settingsOf } from '../settings.ts';
import { MeteredStore } from '../store/metered.ts';
import { r2Store } from '../store/r2.ts';
import {
  type ChangedView,
  changedView,
  type ExpireView,
  expireView,
  type FilesView,
  filesView,
  type PropertiesView,
  propertiesView,
  type RefView,
  refView,
  refViews,
  type SchemaView,
  type SnapshotsView,
  schemaView,
  snapshotsView,
} from './admin-views.ts';
import { type Answer, answer } from './answer.ts';
import { SqlLedger } from './ledger.ts';
import { CountedMarks } from './marks.ts';
import { migrate } from './migrate.ts';
import { Schedule } from './schedule.ts';
import {
  type AppView,
  appView,
  type IngestView,
  ingestView,
  type ReceiptView,
  receiptView,
  type StatusView,
  type TableView,
  tableView,
} from './views.ts';

/** An accepted batch, or what was known of it already. */
export interface AppendView extends ReceiptView {
  duplicate: boolean;
}

/**
 * One table's object: the only place its rows wait, and the only writer this service has for it. Named
 * `namespace/table`. Methods answer with data for known errors; what they throw is the platform's or a bug.
 */
export class TableObject extends DurableObject<Env> {
  readonly #ledger: SqlLedger;
  readonly #table: OpenTable;
  readonly #writer: TableWriter;
  readonly #admin: TableAdmin;
  readonly #changes: TableChanges;
  readonly #files: TableFiles;
  readonly #expirer: Expirer;
  readonly #schedule: Schedule;
  readonly #store: MeteredStore;
  readonly #marks = new CountedMarks();
  readonly #startedMs = systemClock.now();
  readonly #found: StatusView['incarnation']['found'];

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const name = ctx.id.name?.split('/') ?? [];
    if (name.length !== 2) throw new Error('a table object is named namespace/table');
    const { lake } = settingsOf(env);
    const place = { location: tableLocation(lake, name[0], name[1]), prefix: tableKey(lake, name[0], name[1]) };
    // Synchronous SQL needs no blockConcurrencyWhile: nothing else runs before the constructor returns.
    migrate(ctx.storage);
    this.#ledger = new SqlLedger(ctx.storage, hex(systemRandom.bytes(8)));
    this.#schedule = new Schedule(ctx.storage);
    this.#store = new MeteredStore(r2Store(env.LAKE));
    const ports = {
      store: this.#store,
      ledger: this.#ledger,
      clock: systemClock,
      random: systemRandom,
      marks: this.#marks,
      ...codecs,
      arm: (dueMs: number | null) => this.#schedule.arm(dueMs),
      log: (event: LogEvent) => console.log(JSON.stringify(event)),
    };
    this.#table = new OpenTable(ports, place);
    this.#writer = new TableWriter(ports, this.#table);
    this.#admin = new TableAdmin(ports, this.#table, this.#writer);
    const commits = new AdminCommits(ports, this.#table, this.#writer);
    const eraser = new Eraser(ports, this.#table);
    this.#writer.alongside(eraser);
    this.#changes = new TableChanges(ports, this.#table, commits);
    this.#files = new TableFiles(ports, this.#table, commits);
    this.#expirer = new Expirer(ports, this.#table, this.#changes, eraser);
    const state = this.#ledger.state();
    this.#found = { open_intent: state.intent !== null, buffered_batches: state.buffer.frames };
    this.#schedule.arm(this.#writer.dueMs());
  }

  /** Never throws: the platform drops an alarm after six failures. What failed stays due in the ledger. */
  override async alarm(): Promise<void> {
    this.#schedule.fired();
    await this.#writer.run();
    this.#schedule.arm(this.#writer.dueMs());
  }

  /** Called by the cron sweep: sets an alarm that was lost. */
  async wake(): Promise<void> {
    await this.#schedule.repair(this.#writer.dueMs(), systemClock.now());
  }

  ingest(): Promise<Answer<IngestView>> {
    return answer(async () => {
      return ingestView(await this.#writer.live());
    });
  }

  append(frame: NewFrame, tableUuid: string, waitMs: number): Promise<Answer<AppendView>> {
    return answer(async () => {
      const accepted = await this.#writer.append(frame, tableUuid, waitMs);
      return { ...receiptView(accepted.receipt, accepted.state), duplicate: accepted.duplicate };
    });
  }

  app(app: string): Promise<Answer<AppView>> {
    return answer(async () => {
      await this.#writer.check();
      await this.#table.load();
      return appView(this.#writer.apps.status(app));
    });
  }

  skip(app: string, epoch: bigint): Promise<Answer<ReceiptView>> {
    return this.#decide(() => this.#writer.apps.skip(app, epoch));
  }

  replace(app: string, epoch: bigint, frame: NewFrame): Promise<Answer<ReceiptView>> {
    return this.#decide(() => this.#writer.apps.replace(app, epoch, frame));
  }

  retire(app: string): Promise<Answer<AppView>> {
    return answer(async () => {
      await this.#writer.check();
      this.#writer.apps.retire(app);
      return appView(this.#writer.apps.status(app));
    });
  }

  /** An owner's decision that puts a batch into the buffer; answers with its receipt. */
  #decide(decision: () => number): Promise<Answer<ReceiptView>> {
    return answer(async () => {
      await this.#writer.check();
      const sequence = decision();
      const id = receiptId(this.#ledger.state().ledgerId, sequence);
      return receiptView(id, this.#ledger.receipt(sequence) ?? { state: 'buffered' });
    });
  }

  receipt(id: string): Promise<Answer<ReceiptView>> {
    return answer(() => {
      const parsed = parseReceiptId(id);
      const isOurs = parsed !== null && this.#ledger.gave(parsed.ledgerId, parsed.sequence);
      const known = isOurs ? this.#ledger.receipt(parsed.sequence) : null;
      if (known === null) throw invalid('unknown-receipt', `receipt is not known (any more): ${id}`);
      return receiptView(id, known);
    });
  }

  create(definition: TableDefinition): Promise<Answer<{ created: boolean; table: TableView }>> {
    return answer(async () => {
      const { base, created } = await this.#admin.create(definition);
      return { created, table: tableView(base) };
    });
  }

  attach(metadataLocation: string | null): Promise<Answer<{ attached: boolean; table: TableView }>> {
    return answer(async () => {
      const { base, attached } = await this.#admin.attach(metadataLocation);
      return { attached, table: tableView(base) };
    });
  }

  describe(): Promise<Answer<{ table: TableView; status: StatusView }>> {
    return this.#withStatus(async () => {
      await this.#writer.check();
      const base = liveTable(await this.#table.load(), this.#table.place);
      return { table: tableView(base), status: this.#status() };
    });
  }

  flush(): Promise<Answer<{ flushed: boolean; table: TableView; status: StatusView }>> {
    return this.#withStatus(async () => {
      await this.#writer.live();
      const { error } = await this.#writer.flush();
      const base = liveTable(this.#table.base, this.#table.place);
      return { flushed: error === null, table: tableView(base), status: this.#status() };
    });
  }

  drop(): Promise<Answer<{ version: number; discarded_rows: number }>> {
    return answer(async () => {
      const { version, discardedRows } = await this.#admin.drop();
      return { version, discarded_rows: discardedRows };
    });
  }

  properties(): Promise<Answer<PropertiesView>> {
    return answer(async () => propertiesView(await this.#fresh()));
  }

  changeProperties(
    set: Record<string, unknown>,
    remove: readonly string[],
  ): Promise<Answer<ChangedView & PropertiesView>> {
    return answer(async () => {
      const result = await this.#changes.properties(set, remove);
      return { ...changedView(result), ...propertiesView(result.base) };
    });
  }

  upgrade(): Promise<Answer<ChangedView & PropertiesView>> {
    return answer(async () => {
      const result = await this.#changes.upgrade();
      return { ...changedView(result), ...propertiesView(result.base) };
    });
  }

  changeSchema(
    changes: readonly SchemaChange[],
    expected: number | null,
  ): Promise<Answer<ChangedView & SchemaView & { warnings: string[] }>> {
    return answer(async () => {
      const result = await this.#changes.schema(changes, expected);
      const warnings = result.changed ? schemaWarnings(changes) : [];
      return { ...changedView(result), ...schemaView(result.base), warnings };
    });
  }

  snapshots(limit: number, before: bigint | null): Promise<Answer<SnapshotsView>> {
    return answer(async () => snapshotsView(await this.#fresh(), limit, before));
  }

  refs(): Promise<Answer<{ version: number; refs: RefView[] }>> {
    return answer(async () => {
      const { version, metadata } = await this.#fresh();
      return { version, refs: refViews(metadata) };
    });
  }

  setRef(change: RefChange): Promise<Answer<ChangedView & { created: boolean; ref: RefView }>> {
    return answer(async () => {
      const result = await this.#changes.setRef(change);
      const ref = refAt(result.base.metadata, change.name);
      return { ...changedView(result), created: result.created, ref: refView(change.name, ref) };
    });
  }

  dropRef(name: string, expected?: bigint | null): Promise<Answer<ChangedView>> {
    return answer(async () => changedView(await this.#changes.dropRef(name, expected)));
  }

  fastForward(name: string, to: string): Promise<Answer<ChangedView & { ref: RefView }>> {
    return answer(async () => {
      const result = await this.#changes.fastForward(name, to);
      return { ...changedView(result), ref: refView(name, refAt(result.base.metadata, name)) };
    });
  }

  rollback(snapshotId: bigint, expected?: bigint | null): Promise<Answer<ChangedView & { table: TableView }>> {
    return answer(async () => {
      const result = await this.#changes.rollback(snapshotId, expected);
      return { ...changedView(result), table: tableView(result.base) };
    });
  }

  expire(dryRun: boolean): Promise<Answer<ExpireView>> {
    return answer(async () => expireView(await this.#expirer.expire(dryRun), dryRun));
  }

  deleteFiles(filter: FileFilter): Promise<Answer<FilesView>> {
    return answer(async () => filesView(await this.#files.delete(filter)));
  }

  overwriteFiles(frame: NewFrame, tableUuid: string, filter: FileFilter): Promise<Answer<FilesView>> {
    return answer(async () => filesView(await this.#files.overwrite(frame, tableUuid, filter)));
  }

  rewriteManifests(): Promise<Answer<FilesView>> {
    return answer(async () => filesView(await this.#files.rewriteManifests()));
  }

  /** The table as the store has it now. */
  async #fresh(): Promise<IcebergBase> {
    await this.#writer.check();
    return liveTable(await this.#table.load(), this.#table.place);
  }

  /** Problems of an object that has taken rows tell its status: the table may be gone, and rows still wait for it here. */
  #withStatus<T>(body: () => Promise<T>): Promise<Answer<T>> {
    return answer(() =>
      body().catch((error) => {
        if (!(error instanceof SluiceError) || this.#ledger.state().lastSequence === 0) throw error;
        const { kind, type, message, detail } = error;
        const told: Record<string, Detail> = { table_status: this.#status() as unknown as Detail };
        throw new SluiceError(kind, type, message, { ...detail, ...told }, error);
      }),
    );
  }

  #status(): StatusView {
    const state = this.#ledger.state();
    const { buffer, intent } = state;
    return {
      ledger_id: state.ledgerId,
      last_sequence: state.lastSequence,
      buffer: {
        batches: buffer.frames,
        rows: buffer.rows,
        bytes: buffer.bytes,
        oldest_ms: buffer.oldestMs,
        age_ms: buffer.oldestMs === null ? null : Math.max(0, systemClock.now() - buffer.oldestMs),
      },
      intent:
        intent === null
          ? null
          : {
              commit_id: intent.intent.commitId,
              rows: intent.intent.rows,
              first_sequence: intent.intent.first,
              last_sequence: intent.intent.last,
              failures: intent.failures,
              retry_ms: intent.retryMs,
            },
      last_commit: state.lastCommit,
      last_error: state.lastError,
      hinted_version: state.hintedVersion,
      doomed: { keys: state.doomed.keys, due_ms: state.doomed.dueMs },
      incarnation: {
        started_ms: this.#startedMs,
        found: this.#found,
        last_run_error: this.#writer.lastRunError,
        marks: this.#marks.counts,
        store: this.#store.usage(),
      },
    };
  }
}

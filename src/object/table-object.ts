import { DurableObject } from 'cloudflare:workers';
import { type Detail, invalid, SluiceError } from '../core/base/errors.ts';
import { ALARM_LATE_MS } from '../core/base/limits.ts';
import type { NewFrame } from '../core/batch/frame.ts';
import { parseReceiptId, receiptId } from '../core/batch/receipt.ts';
import { encodeFrameBody } from '../core/columns/frame.ts';
import type { FileFilter } from '../core/commit/file-filter.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { type RefChange, refAt } from '../core/commit/plan-refs.ts';
import { schemaWarnings } from '../core/commit/plan-schema.ts';
import { SPEC_WARNING, type SpecChange } from '../core/commit/plan-spec.ts';
import type { SchemaChange } from '../core/iceberg/schema-change.ts';
import type { MaintenancePlan } from '../core/maintain/steps.ts';
import type { TableDefinition } from '../core/table/definition.ts';
import { listFiles } from '../engine/file-listing.ts';
import { liveTable } from '../engine/live-table.ts';
import { newestWaiting } from '../engine/waiting.ts';
import { systemClock } from '../platform/system.ts';
import type { Env } from '../settings.ts';
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
  type SpecView,
  schemaView,
  snapshotsView,
  specView,
} from './admin-views.ts';
import { type Answer, answer } from './answer.ts';
import { type FileListView, fileListView } from './files-list-view.ts';
import { compactionView, type MaintainView, maintainView } from './maintain-views.ts';
import { type MetricsView, metricsView } from './metrics-view.ts';
import { makeParts, TableParts } from './table-parts.ts';
import {
  type AppView,
  appView,
  choreView,
  commitView,
  failureView,
  type IngestView,
  ingestView,
  lastValueView,
  type ReceiptView,
  receiptView,
  type StatusView,
  type TableView,
  tableView,
  type WaitingView,
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
  readonly #made: TableParts | SluiceError;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    // Synchronous SQL needs no blockConcurrencyWhile: nothing else runs before the constructor returns.
    const made = makeParts(ctx, env);
    this.#made = made;
    // Before anything else sets the alarm: most incarnations find it as it should be, and write nothing.
    if (made instanceof TableParts) void ctx.blockConcurrencyWhile(() => made.resume());
  }

  /** What the object is made of. Throws unavailable `ledger-newer` when a newer build has been here. */
  get #parts(): TableParts {
    if (this.#made instanceof SluiceError) throw this.#made;
    return this.#made;
  }

  /** Never throws: the platform drops an alarm after six failures. What failed stays due in the ledger. */
  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    if (this.#made instanceof SluiceError) {
      // What is due is for a build that knows the ledger: ask again later, for it may be this object's next.
      await this.ctx.storage.setAlarm(systemClock.now() + ALARM_LATE_MS);
      return;
    }
    await this.#made.alarm(info?.scheduledTime ?? 0);
  }

  /** Called by the cron sweep: sets an alarm that was lost. */
  async wake(): Promise<void> {
    if (this.#made instanceof SluiceError) return;
    await this.#parts.resume();
  }

  ingest(): Promise<Answer<IngestView>> {
    return this.#answer(async () => {
      const { writer } = this.#parts;
      const base = await writer.live();
      return ingestView(base, writer.proposals.waiting(base.metadata));
    });
  }

  append(frame: NewFrame, tableUuid: string, waitMs: number): Promise<Answer<AppendView>> {
    return this.#answer(async () => {
      const accepted = await this.#parts.writer.append(frame, tableUuid, waitMs);
      return { ...receiptView(accepted.receipt, accepted.state), duplicate: accepted.duplicate };
    });
  }

  /** Batches that came together, as from a queue: one ledger row, and an answer for each. */
  appendMany(frames: NewFrame[], tableUuid: string): Promise<Answer<Answer<AppendView>[]>> {
    return answer(async () => {
      const outcomes = await this.#parts.writer.appendMany(frames, tableUuid);
      return Promise.all(
        outcomes.map((outcome) =>
          answer(() => {
            if (outcome.status === 'rejected') throw outcome.reason;
            const { receipt, state, duplicate } = outcome.value;
            return { ...receiptView(receipt, state), duplicate };
          }),
        ),
      );
    });
  }

  /** The newest rows among those that wait for main, and how many wait. */
  waiting(): Promise<Answer<WaitingView>> {
    return this.#answer(async () => {
      const { writer, ledger } = this.#parts;
      const { metadata } = await writer.live();
      const newest = newestWaiting(ledger, metadata, systemClock.now());
      if (newest === null) throw invalid('no-time-column', 'table has no time column, so no row of it is the newest');
      const { rows } = ledger.state().buffer;
      return { tableUuid: metadata['table-uuid'], rows, schema: newest.schema, body: encodeFrameBody(newest) };
    });
  }

  app(app: string): Promise<Answer<AppView>> {
    return this.#answer(async () => {
      await this.#parts.writer.check();
      await this.#parts.table.load();
      return appView(this.#parts.writer.apps.status(app));
    });
  }

  skip(app: string, epoch: bigint): Promise<Answer<ReceiptView>> {
    return this.#decide(() => this.#parts.writer.apps.skip(app, epoch));
  }

  replace(app: string, epoch: bigint, frame: NewFrame): Promise<Answer<ReceiptView>> {
    return this.#decide(() => this.#parts.writer.apps.replace(app, epoch, frame));
  }

  retire(app: string): Promise<Answer<AppView>> {
    return this.#answer(async () => {
      await this.#parts.writer.check();
      this.#parts.writer.apps.retire(app);
      return appView(this.#parts.writer.apps.status(app));
    });
  }

  /** An owner's decision that puts a batch into the buffer; answers with its receipt. */
  #decide(decision: () => number): Promise<Answer<ReceiptView>> {
    return this.#answer(async () => {
      await this.#parts.writer.check();
      const sequence = decision();
      const id = receiptId(this.#parts.ledger.state().ledgerId, sequence);
      return receiptView(id, this.#parts.ledger.receipt(sequence) ?? { state: 'buffered' });
    });
  }

  receipt(id: string): Promise<Answer<ReceiptView>> {
    return this.#answer(() => {
      const parsed = parseReceiptId(id);
      const isOurs = parsed !== null && this.#parts.ledger.gave(parsed.ledgerId, parsed.sequence);
      const known = isOurs ? this.#parts.ledger.receipt(parsed.sequence) : null;
      if (known === null) throw invalid('unknown-receipt', `receipt is not known (any more): ${id}`);
      return receiptView(id, known);
    });
  }

  create(definition: TableDefinition): Promise<Answer<{ created: boolean; table: TableView }>> {
    return this.#answer(async () => {
      const { base, created } = await this.#parts.admin.create(definition);
      return { created, table: tableView(base) };
    });
  }

  attach(metadataLocation: string | null): Promise<Answer<{ attached: boolean; table: TableView }>> {
    return this.#answer(async () => {
      const { base, attached } = await this.#parts.admin.attach(metadataLocation);
      return { attached, table: tableView(base) };
    });
  }

  describe(): Promise<Answer<{ table: TableView; status: StatusView }>> {
    return this.#withStatus(async () => {
      await this.#parts.writer.check();
      const base = liveTable(await this.#parts.table.load(), this.#parts.table.place);
      return { table: tableView(base), status: this.#status() };
    });
  }

  flush(): Promise<Answer<{ flushed: boolean; table: TableView; status: StatusView }>> {
    return this.#withStatus(async () => {
      await this.#parts.writer.live();
      const { error } = await this.#parts.writer.flush();
      const base = liveTable(this.#parts.table.base, this.#parts.table.place);
      return { flushed: error === null, table: tableView(base), status: this.#status() };
    });
  }

  drop(): Promise<Answer<{ version: number; discarded_rows: number }>> {
    return this.#answer(async () => {
      const { version, discardedRows } = await this.#parts.admin.drop();
      return { version, discarded_rows: discardedRows };
    });
  }

  properties(): Promise<Answer<PropertiesView>> {
    return this.#answer(async () => propertiesView(await this.#fresh()));
  }

  changeProperties(
    set: Record<string, unknown>,
    remove: readonly string[],
  ): Promise<Answer<ChangedView & PropertiesView>> {
    return this.#answer(async () => {
      const result = await this.#parts.changes.properties(set, remove);
      return { ...changedView(result), ...propertiesView(result.base) };
    });
  }

  upgrade(): Promise<Answer<ChangedView & PropertiesView>> {
    return this.#answer(async () => {
      const result = await this.#parts.changes.upgrade();
      return { ...changedView(result), ...propertiesView(result.base) };
    });
  }

  changeSchema(
    changes: readonly SchemaChange[],
    expected: number | null,
  ): Promise<Answer<ChangedView & SchemaView & { warnings: string[] }>> {
    return this.#answer(async () => {
      const result = await this.#parts.changes.schema(changes, expected);
      const warnings = result.changed ? schemaWarnings(changes) : [];
      return { ...changedView(result), ...schemaView(result.base), warnings };
    });
  }

  changeSpec(
    changes: readonly SpecChange[],
    expected: number | null,
  ): Promise<Answer<ChangedView & SpecView & { warnings: string[] }>> {
    return this.#answer(async () => {
      const result = await this.#parts.changes.spec(changes, expected);
      const view = specView(result.base);
      const warnings = view.partition_spec.fields.length > 0 ? [SPEC_WARNING] : [];
      return { ...changedView(result), ...view, warnings };
    });
  }

  snapshots(limit: number, before: bigint | null): Promise<Answer<SnapshotsView>> {
    return this.#answer(async () => snapshotsView(await this.#fresh(), limit, before));
  }

  refs(): Promise<Answer<{ version: number; refs: RefView[] }>> {
    return this.#answer(async () => {
      const { version, metadata } = await this.#fresh();
      return { version, refs: refViews(metadata) };
    });
  }

  setRef(change: RefChange): Promise<Answer<ChangedView & { created: boolean; ref: RefView }>> {
    return this.#answer(async () => {
      const result = await this.#parts.changes.setRef(change);
      const ref = refAt(result.base.metadata, change.name);
      return { ...changedView(result), created: result.created, ref: refView(change.name, ref) };
    });
  }

  dropRef(name: string, expected?: bigint | null): Promise<Answer<ChangedView>> {
    return this.#answer(async () => changedView(await this.#parts.changes.dropRef(name, expected)));
  }

  fastForward(name: string, to: string): Promise<Answer<ChangedView & { ref: RefView }>> {
    return this.#answer(async () => {
      const result = await this.#parts.changes.fastForward(name, to);
      return { ...changedView(result), ref: refView(name, refAt(result.base.metadata, name)) };
    });
  }

  rollback(snapshotId: bigint, expected?: bigint | null): Promise<Answer<ChangedView & { table: TableView }>> {
    return this.#answer(async () => {
      const result = await this.#parts.changes.rollback(snapshotId, expected);
      return { ...changedView(result), table: tableView(result.base) };
    });
  }

  expire(dryRun: boolean): Promise<Answer<ExpireView>> {
    return this.#answer(async () => expireView(await this.#parts.expirer.expire(dryRun), dryRun));
  }

  maintain(plan: MaintenancePlan): Promise<Answer<MaintainView>> {
    return this.#answer(async () => {
      await this.#parts.writer.check();
      const report = await this.#parts.maintenance.run(plan);
      if (report.changed) {
        // The pointer follows; when it cannot now, the writer's next run moves it.
        await this.#parts.writer.runFlushes();
        await this.#parts.writer.pointed();
      }
      return maintainView(report, plan.dryRun);
    });
  }

  deleteFiles(filter: FileFilter): Promise<Answer<FilesView>> {
    return this.#answer(async () => filesView(await this.#parts.files.delete(filter)));
  }

  overwriteFiles(frame: NewFrame, tableUuid: string, filter: FileFilter): Promise<Answer<FilesView>> {
    return this.#answer(async () => filesView(await this.#parts.files.overwrite(frame, tableUuid, filter)));
  }

  rewriteManifests(): Promise<Answer<FilesView>> {
    return this.#answer(async () => filesView(await this.#parts.files.rewriteManifests()));
  }

  /** What the object counts and holds, asked of nobody else; null when it has never had to do with a table. */
  async metrics(): Promise<MetricsView | null> {
    if (this.#made instanceof SluiceError) return null;
    const { ledger, table, startedMs, marks, store, counts } = this.#made;
    return metricsView({
      state: ledger.state(),
      nowMs: systemClock.now(),
      snapshots: table.base?.metadata.snapshots.length ?? null,
      upkeep: this.#made.upkeep(),
      faults: table.faults.list,
      parkedApps: ledger.heldApps().filter((app) => ledger.app(app).parked !== null).length,
      startedMs,
      marks: marks.counts,
      store: store.usage(),
      counts: counts.view(),
    });
  }

  /** Counts requests that were refused before they came here. */
  async refused(counts: readonly { type: string; count: number }[]): Promise<void> {
    if (this.#made instanceof SluiceError) return;
    for (const { type, count } of counts) this.#made.counts.refused(type, count);
  }

  /** The answer of a method; what it refuses is counted. */
  async #answer<T>(body: () => T | Promise<T>): Promise<Answer<T>> {
    const answered = await answer(body);
    if (!answered.ok && !(this.#made instanceof SluiceError)) this.#made.counts.refused(answered.problem.type);
    return answered;
  }

  fileList(limit: number, offset: number): Promise<Answer<FileListView>> {
    return this.#answer(async () =>
      fileListView(await listFiles(this.#parts.compactor.live, await this.#fresh()), limit, offset),
    );
  }

  /** The table as the store has it now. */
  async #fresh(): Promise<IcebergBase> {
    await this.#parts.writer.check();
    return liveTable(await this.#parts.table.load(), this.#parts.table.place);
  }

  /** Problems of an object that has taken rows tell its status: the table may be gone, and rows still wait for it here. */
  #withStatus<T>(body: () => Promise<T>): Promise<Answer<T>> {
    return this.#answer(() =>
      body().catch((error) => {
        if (!(error instanceof SluiceError) || this.#parts.ledger.state().lastSequence === 0) throw error;
        const { kind, type, message, detail } = error;
        const told: Record<string, Detail> = { table_status: this.#status() as unknown as Detail };
        throw new SluiceError(kind, type, message, { ...detail, ...told }, error);
      }),
    );
  }

  #schedule(): StatusView['schedule'] {
    const { writer, retention, compactor, expiry, eraser, sweeping } = this.#parts;
    return {
      next_ms: writer.dueMs(),
      flush_ms: writer.flushMs,
      retention_ms: retention.dueMs(),
      compaction_ms: compactor.dueMs(),
      expiry_ms: expiry.dueMs(),
      erasing_ms: eraser.dueMs(),
      sweep_ms: sweeping.dueMs(),
    };
  }

  #status(): StatusView {
    const state = this.#parts.ledger.state();
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
      last_commit: commitView(state.lastCommit),
      last_error: failureView(state.lastError),
      hinted_version: state.hintedVersion,
      doomed: { keys: state.doomed.keys, due_ms: state.doomed.dueMs },
      erasing: choreView(this.#parts.eraser.state),
      expiry: choreView(this.#parts.expiry.state),
      retention: choreView(this.#parts.retention.state),
      sweep: { ...choreView(this.#parts.sweeping.state), swept_ms: state.sweptMs },
      schedule: this.#schedule(),
      last_value_index: lastValueView(this.#parts.table.base),
      compaction: compactionView(this.#parts.compactor.status),
      faults: this.#parts.table.faults.list.map(({ kind, what, sinceMs }) => ({ kind, what, since_ms: sinceMs })),
      incarnation: {
        started_ms: this.#parts.startedMs,
        found: this.#parts.found,
        last_run_error: failureView(this.#parts.writer.lastRunError),
        marks: this.#parts.marks.counts,
        store: this.#parts.store.usage(),
      },
    };
  }
}

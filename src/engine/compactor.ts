import {
  COMPACT_HELD_BYTES_MAX,
  COMPACT_HELD_FILE_BYTES_MAX,
  COMPACT_RETRY,
  COMPACT_SLICE_MS_MAX,
} from '../core/base/compact-limits.ts';
import { conflict, corrupt, SluiceError } from '../core/base/errors.ts';
import { COMPACT_RESUME_MS, COMPACT_SLICES_PER_CALL, ERASE_GRACE_MS, RUN_ALARM_MS } from '../core/base/limits.ts';
import { refusalBefore } from '../core/commit/decide-replace.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { currentOf } from '../core/commit/make-files.ts';
import type { CommitIdentity } from '../core/commit/operation.ts';
import { prepareReplace } from '../core/commit/prepare-replace.ts';
import { currentSnapshot } from '../core/iceberg/snapshot.ts';
import { totalsOf } from '../core/iceberg/summary.ts';
import type { DataFile, TableMetadata } from '../core/iceberg/types.ts';
import {
  claimsOtherOrder,
  deletedPartitions,
  heldBytesGuessed,
  type LeftAlone,
  type LiveFile,
  leftAlone,
  listedTwice,
  tableLeftAlone,
  tierFileOf,
} from '../core/maintain/live-files.ts';
import { faultOf, type TableFault } from '../core/maintain/table-fault.ts';
import { type Picked, pick, smallBelow, type TierRun } from '../core/maintain/tiers.ts';
import { tableSettings } from '../core/table/properties.ts';
import type { LogEvent } from './commit-log.ts';
import { commitToEnd } from './commit-to-end.ts';
import { errorRecord, Tries } from './failures.ts';
import { newIdentity } from './identity.ts';
import { keyAt, LiveFiles } from './live-files.ts';
import { liveTable } from './live-table.ts';
import { type MergedFiles, mergeFiles, runBytesMaxOf, runFilesMax, runRowsMaxOf } from './merge-files.ts';
import { HeldTooMuch, INPUT_PATH, type MergeInput, unsortedInputs } from './merge-inputs.ts';
import type { OpenTable, TablePorts } from './open-table.ts';
import type { Chore, ErrorRecord, Ledger } from './ports.ts';

export interface CompactorPorts extends TablePorts {
  ledger: Ledger;
  log(event: LogEvent): void;
}

/** Files that are not compacted here, and why. */
export interface LeftAloneFiles {
  reason: LeftAlone;
  files: number;
  bytes: number;
}

/** One run that was merged, or would be. */
export interface SliceReport {
  partition: readonly string[];
  reason: TierRun['reason'];
  files: number;
  bytes: number;
  rows: bigint;
  /** Null when it was only planned. */
  made: { files: number; bytes: number; rows: bigint; duplicates: number } | null;
}

export interface MaintainReport {
  base: IcebergBase;
  changed: boolean;
  slices: SliceReport[];
  /** Runs that are left for another call, as far as they can be told now. */
  remaining: number;
  leftAlone: LeftAloneFiles[];
}

export interface CompactionStatus {
  /** The last slice of this incarnation. */
  last: (SliceReport & { atMs: number }) | null;
  /** Failures in a row, the last of them, and when the next try may start. */
  failures: number;
  error: ErrorRecord | null;
  retryMs: number;
  leftAlone: LeftAloneFiles[];
}

/** What one look at a base showed. */
interface Look extends Picked {
  base: IcebergBase;
  files: ReadonlyMap<string, LiveFile>;
  leftAlone: LeftAloneFiles[];
}

/**
 * Keeps files large and few: merges runs of small files of one partition into sorted ones, a run at a time. Each run is a
 * *slice*: read, merged, written and committed as one replace. Nothing of it is remembered but the keys of its outputs,
 * which are queued for deletion before they are created and taken out of the queue once the commit stands: wherever a
 * slice ends early, the table is as it was, and the next look begins anew.
 *
 * After appends a slice is done when a tier is full or a partition is cold, beside the writer's runs: flushes go on
 * meanwhile, and the commit goes on top of theirs.
 */
export class Compactor implements Chore {
  readonly #ports: CompactorPorts;
  readonly #table: OpenTable;
  /** What the table's files are, shared with whoever lists them: each manifest is read once. */
  readonly live: LiveFiles;
  /** The state last looked at: where there is nothing to do until files are added. */
  #looked: { snapshotId: bigint; files: number; filesToNext: number } | null = null;
  /** The last slice may have left more to do. */
  #isMore = false;
  #busySinceMs: number | null = null;
  #turn: Promise<unknown> = Promise.resolve();
  /** Files that could not be merged; they are not tried again in this incarnation. */
  readonly #failed = new Map<string, LeftAlone>();
  /** Files that turned out not to be in the order they claim. */
  readonly #unsorted = new Set<string>();
  /** Memory that files hold while they are merged, where a try to merge them has told. */
  readonly #heldBytes = new Map<string, number>();
  /** Faults of files among them, by path. */
  readonly #faulty = new Map<string, TableFault>();
  #leftAlone: LeftAloneFiles[] = [];
  #last: CompactionStatus['last'] = null;
  readonly #tries = new Tries();

  constructor(ports: CompactorPorts, table: OpenTable) {
    this.#ports = ports;
    this.#table = table;
    this.live = new LiveFiles(ports, table.place, table.faults);
  }

  get status(): CompactionStatus {
    return {
      last: this.#last,
      failures: this.#tries.failures,
      error: this.#tries.lastError,
      retryMs: this.#tries.notBeforeMs,
      leftAlone: this.#leftAlone,
    };
  }

  dueMs(): number | null {
    const { base } = this.#table;
    if (base === null || !(this.#isMore || this.#isWorthALook(base))) return null;
    const { served, dropped, maintain } = tableSettings(base.metadata.properties);
    if (!served || dropped || !maintain.isAuto) return null;
    if (this.#busySinceMs === null) return this.#tries.notBeforeMs;
    // While a slice is under way the alarm stands behind it, in case it is cut off: ahead of now, or it would go off again and
    // again.
    const steps = Math.floor((this.#ports.clock.now() - this.#busySinceMs) / RUN_ALARM_MS) + 1;
    return this.#busySinceMs + steps * RUN_ALARM_MS;
  }

  /** One look and at most one slice. */
  async run(): Promise<void> {
    try {
      await this.#inTurn(async () => {
        const base = this.#tries.failures === 0 ? this.#table.base : await this.#table.load();
        const look = await this.#look(liveTable(base, this.#table.place), false);
        if (look.runs.length > 0) await this.#slice(look, look.runs[0]);
        this.#isMore = look.runs.length > 0;
      });
      this.#tries.succeeded(0);
    } catch (error) {
      this.#fail(error);
    }
  }

  /**
   * Runs slices until none is left, or `COMPACT_SLICES_PER_CALL`; `full` also those of partitions whose tiers are not full.
   * With `dryRun` it only tells what the first round would do.
   *
   * @throws invalid `unknown-table`, `not-attached`; rejected `too-many-manifests`; corrupt; unavailable, unknown; StoreError
   */
  maintain(full: boolean, dryRun: boolean): Promise<MaintainReport> {
    return this.#inTurn(async () => {
      const slices: SliceReport[] = [];
      for (let round = 1; ; round++) {
        const base = liveTable(await this.#table.load(), this.#table.place);
        const look = await this.#look(base, full);
        const report = { base, changed: slices.length > 0, leftAlone: look.leftAlone };
        if (dryRun)
          return { ...report, slices: look.runs.map((run) => planned(look, run)), remaining: look.runs.length };
        if (look.runs.length === 0 || round > COMPACT_SLICES_PER_CALL) {
          return { ...report, slices, remaining: look.runs.length };
        }
        try {
          const done = await this.#slice(look, look.runs[0]);
          if (done !== null) slices.push(done);
        } catch (error) {
          // Files were taken away meanwhile: the next look chooses among those that are there.
          if (!(error instanceof SluiceError && error.kind === 'conflict')) throw error;
        }
      }
    });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#turn.then(async () => {
      this.#busySinceMs = this.#ports.clock.now();
      try {
        return await work();
      } finally {
        this.#busySinceMs = null;
      }
    });
    this.#turn = run.catch(() => undefined);
    return run;
  }

  #isWorthALook(base: IcebergBase): boolean {
    const snapshot = currentSnapshot(base.metadata);
    if (snapshot === null) return false;
    const looked = this.#looked;
    if (looked === null) {
      // What an incarnation before this one has left is looked for only while it may be there: an idle table costs nothing.
      const { lastCommit } = this.#ports.ledger.state();
      return lastCommit !== null && lastCommit.committedMs > this.#ports.clock.now() - COMPACT_RESUME_MS;
    }
    if (looked.snapshotId === snapshot['snapshot-id']) return false;
    const files = filesOf(base);
    return files === null || files < looked.files || files >= looked.files + looked.filesToNext;
  }

  async #look(base: IcebergBase, full: boolean): Promise<Look> {
    const { metadata } = base;
    const { files, deletes, rows } = await this.live.of(base);
    const settings = tableSettings(metadata.properties);
    const whole = tableLeftAlone(metadata);
    const deleted = deletedPartitions(deletes, metadata);
    const heldBytes = files.map((file) => this.#held(file, metadata));
    const twice = listedTwice(files);
    const reasons = files.map(
      (file, i) =>
        whole ??
        this.#failed.get(file.entry.dataFile.filePath) ??
        (twice.has(file.entry.dataFile.filePath) ? 'listed-twice' : null) ??
        leftAlone(file, metadata, deleted) ??
        this.#tooLarge(file, metadata, heldBytes[i]),
    );
    const newest = files.reduce<bigint | null>(
      (latest, { newestMicros }) =>
        newestMicros !== null && (latest === null || newestMicros > latest) ? newestMicros : latest,
      null,
    );
    const { coldAfterMs, minFiles } = settings.maintain;
    const { schema, spec } = currentOf(metadata);
    const runBytesMax = runBytesMaxOf(schema);
    const policy = {
      targetBytes: Math.min(settings.targetFileBytes, runBytesMax),
      minFiles,
      dedup: settings.dedup,
      coldMicros: coldAfterMs === null || newest === null ? null : newest - BigInt(coldAfterMs) * 1000n,
      full,
      runBytesMax,
      runRowsMax: runRowsMaxOf(schema),
      runFilesMax: whole === null ? runFilesMax(schema) : 2,
      runHeldBytesMax: COMPACT_HELD_BYTES_MAX,
    };
    const picked = pick(
      files.map((file, i) => tierFileOf(file, metadata, { isUsable: reasons[i] === null, heldBytes: heldBytes[i] })),
      policy,
    );
    const byPath = new Map(files.map((file) => [file.entry.dataFile.filePath, file]));
    // Merging what no commit could take would be for nothing, again and again.
    const runs = picked.runs.filter((run) => {
      const inputs = run.files.map(({ path, sequenceNumber }) => {
        return { partition: (byPath.get(path) as LiveFile).entry.dataFile.partition, sequenceNumber };
      });
      const change = { inputs, layout: { specId: spec['spec-id'] }, dedup: settings.dedup };
      return refusalBefore(change, metadata, rows) === null;
    });
    const refused = new Set(
      picked.runs.flatMap((run) => (runs.includes(run) ? [] : run.files.map(({ path }) => path))),
    );
    const counts = new Map<LeftAlone, LeftAloneFiles>();
    files.forEach(({ entry: { dataFile } }, i) => {
      const reason = refused.has(dataFile.filePath) ? 'too-many-manifests' : reasons[i];
      // Files that are large enough are left alone anyway.
      if (reason === null || Number(dataFile.fileSizeInBytes) >= smallBelow(policy)) return;
      const count = counts.get(reason) ?? { reason, files: 0, bytes: 0 };
      count.files++;
      count.bytes += Number(dataFile.fileSizeInBytes);
      counts.set(reason, count);
    });
    this.#leftAlone = [...counts.values()];
    this.#tellFaults(byPath);
    const snapshot = currentSnapshot(metadata);
    if (!full && snapshot !== null) {
      const { filesToNext } = picked;
      this.#looked = { snapshotId: snapshot['snapshot-id'], files: files.length, filesToNext };
    }
    return { ...picked, runs, base, files: byPath, leftAlone: this.#leftAlone };
  }

  #mustSort(file: LiveFile, metadata: TableMetadata): boolean {
    return claimsOtherOrder(file, metadata) || this.#unsorted.has(file.entry.dataFile.filePath);
  }

  #held(file: LiveFile, metadata: TableMetadata): number {
    const known = this.#heldBytes.get(file.entry.dataFile.filePath);
    return known ?? heldBytesGuessed(file, currentOf(metadata).schema, this.#mustSort(file, metadata));
  }

  #tooLarge(file: LiveFile, metadata: TableMetadata, heldBytes: number): LeftAlone | null {
    if (heldBytes <= COMPACT_HELD_FILE_BYTES_MAX) return null;
    return this.#mustSort(file, metadata) ? 'unsorted-too-large' : 'row-group-too-large';
  }

  /**
   * Merges and commits one run. Null when it turned out not to be one: a file of it cannot be merged, and is left alone from now on,
   * or they take too much memory together, and the next look knows how much.
   */
  async #slice(look: Look, run: TierRun): Promise<SliceReport | null> {
    const { clock, ledger, log } = this.#ports;
    const { place } = this.#table;
    const { base } = look;
    const { metadata } = base;
    const identity = newIdentity(this.#ports, metadata);
    const startedMs = clock.now();
    const live = run.files.map(({ path }) => fileOf(look, path));
    const entries = live.map(({ entry }) => entry);
    const inputs = live.map((file) => {
      const { dataFile } = file.entry;
      return { key: keyAt(place, dataFile.filePath), file: dataFile, mustSort: this.#mustSort(file, metadata) };
    });
    const keys: string[] = [];
    let merged: MergedFiles;
    try {
      merged = await mergeFiles(this.#ports, inputs, {
        identity,
        metadata,
        place,
        tuple: entries[0].dataFile.partition,
        inputs: entries.map(({ dataFile }) => dataFile.filePath),
        targetBytes: Math.min(
          tableSettings(metadata.properties).targetFileBytes,
          runBytesMaxOf(currentOf(metadata).schema),
        ),
        creates: (key) => {
          keys.push(key);
          ledger.doom([key], clock.now() + ERASE_GRACE_MS);
        },
        begins: (key, uploadId) => ledger.uploadBegan({ key, uploadId, begunMs: clock.now() }),
        ends: (uploadId) => ledger.uploadEnded(uploadId),
      });
      if (merged.outputs.length === 0) throw corrupt('parquet-corrupt', 'files to be merged have no rows');
    } catch (error) {
      if (error instanceof HeldTooMuch) {
        for (const [i, bytes] of error.heldBytes.entries()) this.#heldBytes.set(run.files[i].path, bytes);
      } else await this.#excuse(error, metadata, inputs);
      return null;
    }
    const { outputs, duplicates } = merged;
    const report: SliceReport = { ...planned(look, run), made: { ...sums(outputs), duplicates } };
    await this.#commit(base, identity, entries, outputs, startedMs + COMPACT_SLICE_MS_MAX);
    ledger.erased(keys);
    this.#last = { ...report, atMs: clock.now() };
    const { files, bytes, reason } = report;
    log({
      event: 'compacted',
      table: place.location,
      reason,
      files,
      bytes,
      outputs: outputs.length,
      duplicates,
      ms: clock.now() - startedMs,
    });
    return report;
  }

  async #commit(
    base: IcebergBase,
    identity: CommitIdentity,
    inputs: LiveFile['entry'][],
    outputs: DataFile[],
    lastMs: number,
  ): Promise<void> {
    const { clock, ledger } = this.#ports;
    const { place } = this.#table;
    const { metadata } = base;
    const { schema, spec, sortOrder } = currentOf(metadata);
    const operation = prepareReplace({
      ...this.#ports,
      identity,
      metadata,
      layout: { schemaId: schema['schema-id'], specId: spec['spec-id'], sortOrderId: sortOrder['order-id'] },
      runs: [{ inputs, outputs }],
      uploads: [],
      place,
    });
    const inTime = () => {
      if (clock.now() <= lastMs) return;
      throw conflict('commit-conflict', 'compaction took so long that its outputs may be erased as abandoned');
    };
    const result = await commitToEnd(clock, this.#table, () => operation, inTime);
    if (result.outcome !== 'committed') {
      // Of a file beside them in their manifest: what its writer has left so stays so.
      const isUnnumbered = result.outcome === 'refused' && result.type === 'unnumbered-file';
      for (const { dataFile } of isUnnumbered ? inputs : []) this.#failed.set(dataFile.filePath, 'no-sequence-number');
      throw conflict('commit-conflict', `compaction was not committed: ${result.message}`);
    }
    if (result.base.version > base.version + 1) this.#ports.marks.hit('commits-beside-slice');
    // The writer's run moves the pointer.
    const known = ledger.state().table;
    if (known?.uuid === metadata['table-uuid'] && known.version < result.base.version) {
      ledger.know({ uuid: known.uuid, version: result.base.version });
    }
  }

  /**
   * A file that cannot be read is left alone, and the reason told; the rest of the table is still compacted, and so are the others
   * of its run where it is known which one it is. One that is not in the order it claims is sorted the next time. Not so when the
   * files have been taken away meanwhile, or the store has failed: then it is tried again.
   */
  async #excuse(error: unknown, metadata: TableMetadata, inputs: readonly MergeInput[]): Promise<void> {
    // Rejected: nulls in a required column, as writers leave them that do not check.
    if (!(error instanceof SluiceError) || !['corrupt', 'invalid', 'rejected'].includes(error.kind)) throw error;
    const newest = await this.#table.load();
    const { files } = newest === null ? { files: [] } : await this.live.of(newest);
    const live = new Set(files.map(({ entry }) => entry.dataFile.filePath));
    if (!inputs.every(({ file }) => live.has(file.filePath))) {
      throw conflict('commit-conflict', 'files were taken away while they were merged', {}, error);
    }
    const { [INPUT_PATH]: named } = error.detail;
    const unsorted = error.type === 'unsorted-input' ? await unsortedInputs(this.#ports, inputs, metadata) : [];
    for (const path of unsorted) this.#unsorted.add(path);
    // Those are sorted the next time.
    const all = unsorted.length > 0 ? [] : inputs.map(({ file }) => file.filePath);
    const paths = typeof named === 'string' ? [named] : all;
    for (const path of paths) this.#failed.set(path, 'unreadable');
    const fault = faultOf(error);
    if (fault !== null && paths.length > 0) this.#faulty.set(paths[0], fault);
    this.#tellFaults(live);
    this.#tries.lastError = errorRecord(error, this.#ports.clock.now());
    this.#ports.log({ event: 'compaction-left-alone', table: this.#table.place.location, ...this.#tries.lastError });
  }

  /** Tells the faults of files that are still in the table; what is known of others is forgotten. */
  #tellFaults(live: { has(path: string): boolean }): void {
    for (const known of [this.#failed, this.#unsorted, this.#heldBytes, this.#faulty]) {
      for (const path of known.keys()) if (!live.has(path)) known.delete(path);
    }
    this.#table.faults.found('compaction', [...this.#faulty.values()], this.#ports.clock.now());
  }

  #fail(error: unknown): void {
    this.#isMore = true;
    const told = this.#tries.failed(error, this.#ports.clock.now(), COMPACT_RETRY);
    this.#ports.log({ event: 'compaction-failed', table: this.#table.place.location, ...told });
  }
}

function fileOf(look: Look, path: string): LiveFile {
  return look.files.get(path) as LiveFile;
}

function planned(look: Look, run: TierRun): SliceReport {
  const files = run.files.map(({ path }) => fileOf(look, path).entry.dataFile);
  return { partition: files[0].partition.map(String), reason: run.reason, ...sums(files), made: null };
}

function sums(files: readonly DataFile[]): { files: number; bytes: number; rows: bigint } {
  return {
    files: files.length,
    bytes: files.reduce((sum, { fileSizeInBytes }) => sum + Number(fileSizeInBytes), 0),
    rows: files.reduce((sum, { recordCount }) => sum + recordCount, 0n),
  };
}

/** Live data files, as the current snapshot tells; null when it does not. */
function filesOf(base: IcebergBase): number | null {
  const snapshot = currentSnapshot(base.metadata);
  const totals = snapshot === null ? null : totalsOf(snapshot.summary);
  return totals === null ? null : Number(totals.dataFiles);
}

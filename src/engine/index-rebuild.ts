import { conflict, SluiceError } from '../core/base/errors.ts';
import { INDEX_SCAN_BYTES_MAX, INDEX_SCAN_FILES_MAX, INDEX_TRIES_MAX } from '../core/base/index-limits.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { indexOf, seriesOf } from '../core/commit/last-value.ts';
import type { CommitIdentity, IndexOperation } from '../core/commit/operation.ts';
import { currentSchema } from '../core/iceberg/metadata.ts';
import { ancestors, currentSnapshot } from '../core/iceberg/snapshot.ts';
import { totalsOf } from '../core/iceberg/summary.ts';
import type { TableMetadata } from '../core/iceberg/types.ts';
import { tableSettings } from '../core/table/properties.ts';
import type { AdminCommits } from './commit-to-end.ts';
import { newIdentity } from './identity.ts';
import type { LiveFiles } from './live-files.ts';
import { liveTable } from './live-table.ts';
import { readNamedIndex } from './named-index.ts';
import { NewestRows, type NoScan } from './newest-rows.ts';
import type { OpenTable, TablePorts } from './open-table.ts';

/**
 * - `kept`: the table has its index, or has no rows, no time column, or is not to have one.
 * - `needed`: it has none, and a run without `dryRun` would make it.
 * - `made`: it has one now.
 * - `impossible`: it cannot be made, for the reason told.
 */
export interface IndexReport {
  base: IcebergBase;
  changed: boolean;
  state: 'kept' | 'needed' | 'made' | 'impossible';
  reason: NoScan | null;
  /** Of an index that was made. */
  series: number;
  /** Files looked through. */
  files: number;
}

/**
 * Makes the last-value index of a table that has lost it (another writer committed without it, rows were deleted, its file is
 * gone or damaged), by looking through all live files, and names it by a snapshot of the same files. Appends go on meanwhile: what they add is looked at
 * when they have got in between, until nothing has. Anything else that got in between begins it anew.
 */
export class IndexRebuild {
  readonly #ports: TablePorts;
  readonly #table: OpenTable;
  readonly #commits: AdminCommits;
  readonly #live: LiveFiles;

  constructor(ports: TablePorts, table: OpenTable, commits: AdminCommits, live: LiveFiles) {
    this.#ports = ports;
    this.#table = table;
    this.#commits = commits;
    this.#live = live;
  }

  /**
   * @throws invalid `unknown-table`, `not-attached`; rejected `too-many-manifests`; conflict `commit-conflict`; corrupt; StoreError;
   * what commits of administrators throw
   */
  async run(dryRun: boolean): Promise<IndexReport> {
    let scan: { rows: NewestRows; snapshotId: bigint; schemaId: number } | null = null;
    for (let attempt = 0; attempt < INDEX_TRIES_MAX; attempt++) {
      const base = liveTable(await this.#table.load(), this.#table.place);
      const { metadata } = base;
      const told = { base, changed: false, reason: null, series: 0, files: scan?.rows.filesRead ?? 0 };
      const lost = indexOf(metadata);
      if (!isToHaveIndex(metadata) || (lost !== null && (await this.#isReadable(base)))) {
        return { ...told, state: 'kept' };
      }
      if (dryRun) return { ...told, state: 'needed' };
      const snapshotId = metadata['current-snapshot-id'] as bigint;
      const schemaId = metadata['current-schema-id'];
      if (scan === null || scan.schemaId !== schemaId || !isBehindByAppends(metadata, scan.snapshotId)) {
        scan = { rows: this.#newestRows(metadata), snapshotId, schemaId };
      }
      const { rows } = scan;
      const reason = await this.#look(base, rows);
      if (reason === 'overtaken') {
        // Of a file that was read in part nobody knows whether its rows are still there.
        scan = null;
        continue;
      }
      if (reason !== null) return { ...told, files: rows.filesRead, state: 'impossible', reason };
      scan.snapshotId = snapshotId;
      const done = await this.#commit(base, rows, lost);
      if (done === null) continue;
      const report = { ...told, base: done.base, files: rows.filesRead };
      if (done.outcome === 'nothing') return { ...report, state: 'kept' };
      return { ...report, changed: true, state: 'made', series: rows.rows.rows };
    }
    throw conflict('commit-conflict', 'table was changed again and again while its last-value index was made');
  }

  #newestRows(metadata: TableMetadata): NewestRows {
    const schema = currentSchema(metadata);
    const settings = tableSettings(metadata.properties);
    const series = seriesOf(schema, settings);
    if (series === null) throw new Error('a table that needs an index has series');
    return new NewestRows(this.#ports, this.#table.place, {
      schema,
      series,
      metadata,
      seriesMax: settings.lastValueSeriesMax,
      bytesMax: INDEX_SCAN_BYTES_MAX,
      filesMax: INDEX_SCAN_FILES_MAX,
    });
  }

  /** `overtaken`: what is missing has been taken away since by somebody else. */
  async #look(base: IcebergBase, rows: NewestRows): Promise<NoScan | 'overtaken' | null> {
    try {
      return await rows.add(await this.#live.of(base));
    } catch (error) {
      // Damage only when the newest version still needs what is missing.
      if (!(error instanceof SluiceError && error.kind === 'corrupt')) throw error;
      const newest = liveTable(await this.#table.load(), this.#table.place);
      if (newest.metadata['current-snapshot-id'] === base.metadata['current-snapshot-id']) throw error;
      this.#ports.marks.hit('index-overtaken');
      return 'overtaken';
    }
  }

  async #isReadable({ metadata }: IcebergBase): Promise<boolean> {
    return (await readNamedIndex(this.#ports, this.#table.place, metadata)) !== null;
  }

  /** Null when other commits got in between. */
  async #commit({ metadata }: IcebergBase, { rows: newest }: NewestRows, lost: string | null) {
    const covers = metadata['current-snapshot-id'] as bigint;
    let identity: CommitIdentity | null = null;
    try {
      return await this.#commits.commit((base): IndexOperation => {
        identity ??= newIdentity(this.#ports, base.metadata);
        return { kind: 'index', commitId: identity.commitId, uploads: [], identity, covers, lost, newest };
      });
    } catch (error) {
      if (!(error instanceof SluiceError && error.type === 'index-behind')) throw error;
      this.#ports.marks.hit('index-overtaken');
      return null;
    }
  }
}

function isToHaveIndex(metadata: TableMetadata): boolean {
  const settings = tableSettings(metadata.properties);
  const snapshot = currentSnapshot(metadata);
  if (snapshot === null || settings.lastValueSeriesMax === 0) return false;
  return totalsOf(snapshot.summary)?.records !== 0n && seriesOf(currentSchema(metadata), settings) !== null;
}

/** Since that snapshot rows were only added. */
function isBehindByAppends(metadata: TableMetadata, snapshotId: bigint): boolean {
  for (const snapshot of ancestors(metadata, metadata['current-snapshot-id'] as bigint)) {
    if (snapshot['snapshot-id'] === snapshotId) return true;
    if (snapshot.summary.operation !== 'append') return false;
  }
  return false;
}

import type { Compress } from '../core/base/codecs.ts';
import { conflict, type Detail } from '../core/base/errors.ts';
import type { NewFrame } from '../core/batch/frame.ts';
import { prepareDelete, prepareRetention } from '../core/commit/decide-delete.ts';
import { prepareOverwrite } from '../core/commit/decide-overwrite.ts';
import { prepareRewriteManifests } from '../core/commit/decide-rewrite-manifests.ts';
import type { FileFilter } from '../core/commit/file-filter.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import type { CommitIdentity, Operation } from '../core/commit/operation.ts';
import { type CommitReport, reportOf } from '../core/commit/report.ts';
import type { AdminCommits } from './commit-to-end.ts';
import { newIdentity } from './identity.ts';
import type { OpenTable, TablePorts } from './open-table.ts';

/** What an operation on files did. */
export interface FilesChanged {
  base: IcebergBase;
  /** A snapshot was made. */
  changed: boolean;
  /** Null when nothing was to be done, and in the odd case that the snapshot has expired since. */
  report: CommitReport | null;
  /** Why nothing was done. */
  reason: { message: string; detail: Record<string, Detail> } | null;
}

/** Operations on whole files of the main branch, each one snapshot. Rows that still wait in the buffer are not touched. */
export class TableFiles {
  readonly #ports: TablePorts & { compress: Compress };
  readonly #table: OpenTable;
  readonly #commits: AdminCommits;

  constructor(ports: TablePorts & { compress: Compress }, table: OpenTable, commits: AdminCommits) {
    this.#ports = ports;
    this.#table = table;
    this.#commits = commits;
  }

  /** @throws invalid `unknown-partition-field`, `bad-partition-value`, `no-time-column`; and see `AdminCommits` */
  delete(filter: FileFilter): Promise<FilesChanged> {
    return this.#run((identity, { metadata }) => prepareDelete(identity, filter, metadata));
  }

  /** Drops what ended at or before `cutoff`, microseconds, as far as the table's retention then says so. */
  retain(cutoff: bigint): Promise<FilesChanged> {
    return this.#run((identity, { metadata }) => prepareRetention(identity, cutoff, metadata));
  }

  /**
   * Puts the rows of one request in the place of what the filter covers.
   *
   * @throws conflict `table-changed` when they were read for another table or schema; and see `prepareOverwrite`
   */
  overwrite(frame: NewFrame, tableUuid: string, filter: FileFilter): Promise<FilesChanged> {
    return this.#run((identity, { metadata }) => {
      const known = metadata.schemas.some((schema) => schema['schema-id'] === frame.schemaId);
      if (metadata['table-uuid'] !== tableUuid || !known) {
        throw conflict('table-changed', 'table was replaced by another one, or does not know the schema of the rows');
      }
      const frames = [{ ...frame, sequence: 1 }];
      return prepareOverwrite({ ...this.#ports, place: this.#table.place, identity, filter, frames, metadata });
    });
  }

  rewriteManifests(): Promise<FilesChanged> {
    return this.#run((identity) => prepareRewriteManifests(identity));
  }

  async #run(prepare: (identity: CommitIdentity, base: IcebergBase) => Operation): Promise<FilesChanged> {
    let identity: CommitIdentity | null = null;
    const result = await this.#commits.commit((base) => {
      identity ??= newIdentity(this.#ports, base.metadata);
      return prepare(identity, base);
    });
    const { base } = result;
    if (result.outcome === 'nothing') {
      const { message, detail } = result;
      return { base, changed: false, report: null, reason: { message, detail } };
    }
    const { commitId } = identity as unknown as CommitIdentity;
    return { base, changed: true, report: reportOf(base.metadata, commitId), reason: null };
  }
}

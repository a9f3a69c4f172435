import { corrupt, rejected } from '../core/base/errors.ts';
import { COMPACT_FILES_KEPT_MAX, OPERATION_MANIFEST_BYTES_MAX, OPERATION_MANIFESTS_MAX } from '../core/base/limits.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { readManifestList } from '../core/iceberg/manifest-list.ts';
import { DELETED, readManifest } from '../core/iceberg/manifest-read.ts';
import { currentSchema } from '../core/iceberg/metadata.ts';
import { currentSnapshot } from '../core/iceberg/snapshot.ts';
import type { DataFile, ManifestFile } from '../core/iceberg/types.ts';
import { type LiveFile, liveFileOf, timeIdOf } from '../core/maintain/live-files.ts';
import type { TableFault } from '../core/maintain/table-fault.ts';
import type { Faults } from './faults.ts';
import type { TablePlace, TablePorts } from './open-table.ts';
import { persevere, runBounded } from './uploader.ts';

/** Live files of the current snapshot. */
export interface TableFilesNow {
  files: LiveFile[];
  /** Live delete files. */
  deletes: { file: DataFile; specId: number }[];
}

/** The same of one base, with the manifests that list them. */
export interface TableFilesOfBase extends TableFilesNow {
  rows: readonly ManifestFile[];
}

/**
 * Reads which files are live. Manifests are never changed, so what was read of one is remembered while the table has it: a
 * look after each commit reads what that commit made, which the base mostly has in memory.
 */
export class LiveFiles {
  readonly #ports: TablePorts;
  readonly #place: TablePlace;
  readonly #faults: Faults;
  #known = new Map<string, TableFilesNow>();

  /** `faults` is told what is wrong with the files, and that delete files are there, which are nobody's of this service. */
  constructor(ports: TablePorts, place: TablePlace, faults: Faults) {
    this.#ports = ports;
    this.#place = place;
    this.#faults = faults;
  }

  /**
   * @throws rejected `too-many-manifests` when they are more than one operation may read; corrupt
   * `manifest-list-missing`, `manifest-missing`; StoreError
   */
  async of(base: IcebergBase): Promise<TableFilesOfBase> {
    const { clock } = this.#ports;
    try {
      const now = await this.#read(base);
      this.#faults.found('files', deleteFaults(now, this.#place), clock.now());
      return now;
    } catch (error) {
      this.#faults.failed('files', error, clock.now());
      throw error;
    }
  }

  async #read(base: IcebergBase): Promise<TableFilesOfBase> {
    const rows = (await this.rows(base)).filter((row) => row.addedFilesCount + row.existingFilesCount > 0);
    const bytes = rows.reduce((sum, row) => sum + Number(row.manifestLength), 0);
    if (rows.length > OPERATION_MANIFESTS_MAX || bytes > OPERATION_MANIFEST_BYTES_MAX) {
      throw rejected('too-many-manifests', `table has too many manifests to look through: count=${rows.length}`);
    }
    const timeId = timeIdOf(base.metadata);
    const known = new Map<string, TableFilesNow>();
    await runBounded(
      rows.map((row) => async () => {
        const { manifestPath } = row;
        known.set(manifestPath, this.#known.get(manifestPath) ?? (await this.#manifest(base, row, timeId)));
      }),
    );
    const now: TableFilesOfBase = { files: [], deletes: [], rows };
    for (const { manifestPath } of rows) {
      const { files, deletes } = known.get(manifestPath) as TableFilesNow;
      now.files.push(...files);
      now.deletes.push(...deletes);
    }
    this.#known = now.files.length <= COMPACT_FILES_KEPT_MAX ? known : new Map();
    return now;
  }

  /**
   * Rows of the current snapshot's manifest list.
   *
   * @throws corrupt `manifest-list-missing`; StoreError
   */
  async rows(base: IcebergBase): Promise<readonly ManifestFile[]> {
    if (base.manifests !== null) return base.manifests;
    const snapshot = currentSnapshot(base.metadata);
    if (snapshot === null) return [];
    const bytes = await this.#get(snapshot['manifest-list'], 'manifest-list-missing');
    return readManifestList(bytes, this.#ports.deflate);
  }

  async #manifest(base: IcebergBase, row: ManifestFile, timeId: number | null): Promise<TableFilesNow> {
    const bytes = base.kept.get(row.manifestPath) ?? (await this.#get(row.manifestPath, 'manifest-missing'));
    const { entries } = readManifest(bytes, {
      deflate: this.#ports.deflate,
      row,
      schema: currentSchema(base.metadata),
      specs: base.metadata['partition-specs'],
    });
    const live = entries.filter(({ status }) => status !== DELETED);
    const specId = row.partitionSpecId;
    if (row.content === 1) return { files: [], deletes: live.map(({ dataFile }) => ({ file: dataFile, specId })) };
    return { files: live.map((entry) => liveFileOf(entry, row, timeId)), deletes: [] };
  }

  async #get(location: string, missing: string): Promise<Uint8Array> {
    const { store } = this.#ports;
    const key = keyAt(this.#place, location);
    const stored = await persevere(this.#ports, () => store.get(key));
    if (stored === null) throw corrupt(missing, `file of the current snapshot is missing: ${location}`);
    return stored.bytes;
  }
}

function deleteFaults({ deletes }: TableFilesNow, { location }: TablePlace): TableFault[] {
  const [first] = deletes;
  if (first === undefined) return [];
  const path = first.file.filePath;
  const name = path.startsWith(`${location}/`) ? path.slice(location.length + 1) : path;
  return [
    { kind: 'foreign-delete-files', what: deletes.length === 1 ? name : `${name} and ${deletes.length - 1} more` },
  ];
}

/** Key of a location in the table's folder. Throws corrupt `foreign-location` for any other. */
export function keyAt({ location: root, prefix }: TablePlace, location: string): string {
  if (!location.startsWith(`${root}/`)) {
    throw corrupt('foreign-location', `table refers to a file outside its folder: ${location}`);
  }
  return prefix + location.slice(root.length);
}

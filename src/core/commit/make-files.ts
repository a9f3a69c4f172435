import type { Compress, Deflate, Digest } from '../base/codecs.ts';
import { INGEST_NESTED_GROUP_ROWS } from '../base/compact-limits.ts';
import { corrupt } from '../base/errors.ts';
import { contentName } from '../base/ids.ts';
import { INGEST_ROW_GROUP_ROWS } from '../base/limits.ts';
import type { Frame } from '../batch/frame.ts';
import type { Columns } from '../columns/columns.ts';
import { concat } from '../columns/concat.ts';
import { fillNulls } from '../columns/fill.ts';
import { decodeFrameBody } from '../columns/frame.ts';
import { gather } from '../columns/gather.ts';
import { type Dedup, type FilePlan, planFiles } from '../columns/prepare-files.ts';
import { dataFilePath } from '../iceberg/locations.ts';
import { ADDED } from '../iceberg/manifest.ts';
import { currentSchema, defaultSortOrder, defaultSpec } from '../iceberg/metadata.ts';
import { partitionPath } from '../iceberg/partition-spec.ts';
import { identifiedSchema, proposedSchema } from '../iceberg/proposal.ts';
import { fieldByName } from '../iceberg/schema.ts';
import type { ManifestEntry, PartitionSpec, Schema, SortOrder, TableMetadata } from '../iceberg/types.ts';
import { foldNewest, newestOf } from '../lastvalue/fold.ts';
import { isFlat } from '../parquet/layout.ts';
import { writeParquet } from '../parquet/writer.ts';
import type { Upload } from '../sink.ts';
import { type TableSettings, tableSettings } from '../table/properties.ts';
import { type AddedManifest, addedManifest } from './added-manifest.ts';
import { dataFileOf, sortingColumnsOf } from './describe-file.ts';
import { seriesOf } from './last-value.ts';
import { seedOf } from './made-manifest.ts';
import type { CommitIdentity } from './operation.ts';
import type { Layout } from './premises.ts';
import { type Changed, ChangedFiles } from './select-files.ts';

/** What making files needs besides the rows. */
export interface FileMaking {
  identity: Pick<CommitIdentity, 'commitId' | 'snapshotId' | 'timeMs'>;
  /** The base whose schema, spec and order the files are made for. */
  metadata: TableMetadata;
  place: { location: string; prefix: string };
  compress: Compress;
  deflate: Deflate;
  digest: Digest;
}

/** Files of one commit, encoded and described. */
export interface MadeFiles {
  /** Data files, then their manifest. */
  uploads: Upload[];
  entries: ManifestEntry[];
  /** Null when there are no rows. */
  manifest: AddedManifest | null;
  added: Changed;
  layout: Layout;
  /** The newest row of each series; null in tables without a time column. */
  newest: Columns | null;
}

/**
 * Makes data files of rows: split by partition, sorted, duplicates dropped, encoded; and one manifest that describes them.
 * Nothing in it depends on the parent snapshot. The names come from the bytes, so making it again can only make the
 * same objects or new ones.
 *
 * @throws corrupt `metadata-corrupt`; invalid `too-many-partitions`
 */
export function makeFiles(columns: Columns, input: FileMaking): MadeFiles {
  const { identity, metadata, place } = input;
  const { schema, spec, sortOrder } = currentOf(metadata);
  const settings = tableSettings(metadata.properties);
  const { encodings } = settings;
  const series = seriesOf(schema, settings);
  const newest: Columns[] = [];
  const { files } = planOf(columns, metadata);
  const sortingColumns = sortingColumnsOf(schema, sortOrder);
  const rowGroupRows = isFlat(schema) ? INGEST_ROW_GROUP_ROWS : INGEST_NESTED_GROUP_ROWS;
  const uploads: Upload[] = [];
  const entries: ManifestEntry[] = [];
  const added = new ChangedFiles();
  for (const file of files) {
    const rows = gather(columns, file.rowIndexes);
    // Rows of a file are in the order of their series mostly: the newest are then found in one look.
    if (series !== null) newest.push(gather(rows, newestOf(rows, series)));
    const { bytes, facts } = writeParquet(
      rows,
      { rowGroupRows, encodings, sortingColumns, keyValues: [] },
      input.compress,
    );
    const folder = partitionPath(spec, metadata.schemas, file.tuple);
    // Two commits may hold the same rows at the same time: with one name their file would be listed twice (E2), and
    // deleted with the outputs of either.
    const hash = input.digest([seedOf(identity.commitId), bytes]);
    const path = dataFilePath(folder, contentName(identity.timeMs, hash));
    uploads.push({ key: `${place.prefix}/${path}`, bytes });
    const entry: ManifestEntry = {
      status: ADDED,
      snapshotId: identity.snapshotId,
      sequenceNumber: null,
      fileSequenceNumber: null,
      dataFile: dataFileOf(
        { schema, spec, sortOrder },
        { location: `${place.location}/${path}`, tuple: file.tuple, facts },
      ),
    };
    entries.push(entry);
    added.add(spec['spec-id'], entry.dataFile);
  }
  const manifest = entries.length === 0 ? null : addedManifest(input, { schema, spec }, entries);
  if (manifest !== null) uploads.push({ key: manifest.key, bytes: manifest.bytes });
  const layout = { schemaId: schema['schema-id'], specId: spec['spec-id'], sortOrderId: sortOrder['order-id'] };
  return {
    uploads,
    entries,
    manifest,
    added: added.sums(),
    layout,
    newest: series === null ? null : foldNewest(newest, schema, series),
  };
}

/** How the rows are split into files. */
export function planOf(columns: Columns, metadata: TableMetadata): FilePlan {
  const { schema, spec, sortOrder } = currentOf(metadata);
  const settings = tableSettings(metadata.properties);
  return planFiles(columns, {
    spec,
    sortOrder,
    dedup: dedupOf(schema, settings),
    targetRows: columns.rows,
    targetBytes: settings.targetFileBytes,
  });
}

/** What new files of a table are made for. */
export function currentOf(metadata: TableMetadata): { schema: Schema; spec: PartitionSpec; sortOrder: SortOrder } {
  return { schema: currentSchema(metadata), spec: defaultSpec(metadata), sortOrder: defaultSortOrder(metadata) };
}

/**
 * The rows of batches in the table's schema, in order, with the ingest time filled in. What the batches ask of the schema is
 * in it already (`evolvedBy`).
 *
 * @throws corrupt `frame-corrupt`; rejected `incompatible-type`, `null-in-required-column`
 */
export function rowsOf(frames: readonly Frame[], metadata: TableMetadata, timeMs: number): Columns {
  const schema = currentSchema(metadata);
  const { ingestTimeColumn } = tableSettings(metadata.properties);
  const schemas = new Map(metadata.schemas.map((known) => [known['schema-id'], known]));
  const micros = BigInt(timeMs) * 1000n;
  const parts = frames
    .filter(({ rows }) => rows > 0)
    .map((frame) => {
      const own = schemas.get(frame.schemaId);
      if (own === undefined) {
        throw corrupt('frame-corrupt', `buffered batch names a schema that the table does not have: ${frame.schemaId}`);
      }
      const columns = columnsOf(frame, own, schema);
      return ingestTimeColumn === null ? columns : fillNulls(columns, ingestTimeColumn, micros);
    });
  return concat(parts, schema);
}

function columnsOf({ body, proposal }: Frame, own: Schema, schema: Schema): Columns {
  const columns = decodeFrameBody(body, proposedSchema(own, proposal));
  return proposal === undefined ? columns : { ...columns, schema: identifiedSchema(columns.schema, schema) };
}

/** What makes rows the same row; absent when every row is kept. Throws corrupt `metadata-corrupt`. */
export function dedupOf(schema: Schema, settings: TableSettings): Dedup | undefined {
  if (!settings.dedup || settings.timeColumn === null) return undefined;
  const idOf = (name: string) => {
    const field = fieldByName(schema, name);
    if (field === null) throw corrupt('metadata-corrupt', `property names a column that the schema lacks: ${name}`);
    return field.id;
  };
  return {
    seriesIds: settings.seriesKey.map(idOf),
    timeId: idOf(settings.timeColumn),
    ingestTimeId: settings.ingestTimeColumn === null ? null : idOf(settings.ingestTimeColumn),
  };
}

import { assert } from '../base/assert.ts';
import { fromHex } from '../base/bytes.ts';
import type { Compress, Deflate, Digest } from '../base/codecs.ts';
import { corrupt, SluiceError } from '../base/errors.ts';
import { contentName, syncMarker } from '../base/ids.ts';
import { INGEST_ROW_GROUP_ROWS } from '../base/limits.ts';
import type { Frame } from '../batch/frame.ts';
import type { Intent } from '../batch/intent.ts';
import { type LeftOut, serializeLeftOut } from '../batch/left-out.ts';
import { progressOf } from '../batch/select.ts';
import type { Columns } from '../columns/columns.ts';
import { concat } from '../columns/concat.ts';
import { fillNulls } from '../columns/fill.ts';
import { decodeFrameBody } from '../columns/frame.ts';
import { gather } from '../columns/gather.ts';
import { type Dedup, type FilePlan, planFiles } from '../columns/prepare-files.ts';
import { metricsOf } from '../iceberg/bounds.ts';
import { dataFilePath, manifestName } from '../iceberg/locations.ts';
import { ADDED, manifestFileOf, writeManifest } from '../iceberg/manifest.ts';
import { currentSchema, defaultSortOrder, defaultSpec } from '../iceberg/metadata.ts';
import { partitionPath } from '../iceberg/partition-spec.ts';
import { fieldByName } from '../iceberg/schema.ts';
import { MAIN } from '../iceberg/snapshot.ts';
import type { ManifestEntry, PartitionSpec, Schema, SortOrder, TableMetadata } from '../iceberg/types.ts';
import { writeParquet } from '../parquet/writer.ts';
import type { Upload } from '../sink.ts';
import { type TableSettings, tableSettings } from '../table/properties.ts';
import type { AppendOperation } from './operation.ts';

export interface AppendInput {
  intent: Intent;
  /** Not empty, in order of sequence; all of them are committed. */
  frames: readonly Frame[];
  /** Where the commit ends, and what it leaves out on the way. */
  last: number;
  leftOut: readonly LeftOut[];
  /** The branch to append to; main when absent. */
  branch?: string;
  /** The base whose schema, spec and order the files are made for. */
  metadata: TableMetadata;
  place: { location: string; prefix: string };
  compress: Compress;
  deflate: Deflate;
  digest: Digest;
}

/**
 * Makes the files of a flush, once for all attempts: rows in the table's schema, with the ingest time filled in, split
 * by partition, sorted, duplicates dropped, encoded; and one manifest that describes them. Nothing in it depends on
 * the parent snapshot. The names come from the bytes, so making it again can only make the same objects or new ones.
 *
 * @throws corrupt `frame-corrupt`, `metadata-corrupt`; rejected `incompatible-type`, `null-in-required-column`;
 * invalid `too-many-partitions`
 */
export function prepareAppend(input: AppendInput): AppendOperation {
  const { intent, frames, metadata, place } = input;
  assert(frames.length > 0, 'an append has at least one frame');
  const { schema, spec, sortOrder } = currentOf(metadata);
  const settings = tableSettings(metadata.properties);
  const columns = gatherFrames(frames, metadata, schema, settings, intent);
  const { files } = planOf(columns, metadata);

  const sourceIds = new Set([...spec.fields, ...sortOrder.fields].map((field) => field['source-id']));
  const sortingColumns = sortOrder.fields.every((field) => field.transform === 'identity')
    ? sortOrder.fields.map((field) => ({
        columnIndex: schema.fields.findIndex((column) => column.id === field['source-id']),
        descending: field.direction === 'desc',
        nullsFirst: field['null-order'] === 'nulls-first',
      }))
    : [];
  const uploads: Upload[] = [];
  const entries: ManifestEntry[] = [];
  const added = { files: 0, records: 0, bytes: 0, partitions: new Set<string>() };
  for (const file of files) {
    const { bytes, facts } = writeParquet(
      gather(columns, file.rowIndexes),
      { rowGroupRows: INGEST_ROW_GROUP_ROWS, encodings: settings.encodings, sortingColumns, keyValues: [] },
      input.compress,
    );
    const folder = partitionPath(spec, metadata.schemas, file.tuple);
    const path = dataFilePath(folder, contentName(intent.timeMs, input.digest([bytes])));
    uploads.push({ key: `${place.prefix}/${path}`, bytes });
    entries.push({
      status: ADDED,
      snapshotId: intent.snapshotId,
      sequenceNumber: null,
      fileSequenceNumber: null,
      dataFile: {
        content: 0,
        filePath: `${place.location}/${path}`,
        fileFormat: 'PARQUET',
        partition: file.tuple,
        recordCount: BigInt(facts.recordCount),
        fileSizeInBytes: BigInt(bytes.length),
        ...metricsOf(schema, facts.columns, { sortAndPartitionIds: sourceIds }),
        keyMetadata: null,
        splitOffsets: facts.splitOffsets.map(BigInt),
        equalityIds: null,
        sortOrderId: sortOrder['order-id'] === 0 ? null : sortOrder['order-id'],
        referencedDataFile: null,
      },
    });
    added.files++;
    added.records += facts.recordCount;
    added.bytes += bytes.length;
    added.partitions.add(folder);
  }
  const manifest = entries.length === 0 ? null : describe(input, schema, spec, entries);
  if (manifest !== null) uploads.push({ key: manifest.key, bytes: manifest.bytes });
  return {
    kind: 'append',
    commitId: intent.commitId,
    uploads,
    intent,
    branch: input.branch ?? MAIN,
    first: BigInt(frames[0].sequence),
    last: BigInt(input.last),
    schemaId: schema['schema-id'],
    specId: spec['spec-id'],
    sortOrderId: sortOrder['order-id'],
    progress: progressOf(frames),
    leftOut: input.leftOut.length === 0 ? null : serializeLeftOut(input.leftOut),
    manifest,
    added: { ...added, partitions: added.partitions.size },
    batchId: frames.length === 1 ? frames[0].batchId : null,
  };
}

/** The manifest of the files, and where it lies. */
function describe(input: AppendInput, schema: Schema, spec: PartitionSpec, entries: readonly ManifestEntry[]) {
  const { intent, place, digest, deflate } = input;
  const { bytes, stats } = writeManifest({
    schema,
    spec,
    snapshotId: intent.snapshotId,
    entries,
    syncMarker: syncMarker(fromHex(intent.commitId) ?? new Uint8Array(16), 'manifest', digest),
    deflate,
  });
  const name = manifestName('added', contentName(intent.timeMs, digest([bytes])));
  return {
    key: `${place.prefix}/metadata/${name}`,
    bytes,
    row: (sequenceNumber: bigint) =>
      manifestFileOf(stats, {
        path: `${place.location}/metadata/${name}`,
        length: BigInt(bytes.length),
        specId: spec['spec-id'],
        snapshotId: intent.snapshotId,
        sequenceNumber,
      }),
  };
}

/**
 * Frames that do not fit the table any more, with the reason: asked one by one after they failed together, so that one
 * refused batch does not hold up the others.
 */
export function unfitFrames(input: AppendInput): Map<number, string> {
  const { schema } = currentOf(input.metadata);
  const settings = tableSettings(input.metadata.properties);
  const unfit = new Map<number, string>();
  for (const frame of input.frames) {
    try {
      planOf(gatherFrames([frame], input.metadata, schema, settings, input.intent), input.metadata);
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error;
      unfit.set(frame.sequence, error.type);
    }
  }
  return unfit;
}

/** How the rows are split into files. */
function planOf(columns: Columns, metadata: TableMetadata): FilePlan {
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

function gatherFrames(
  frames: readonly Frame[],
  metadata: TableMetadata,
  schema: Schema,
  settings: TableSettings,
  intent: Intent,
): Columns {
  const schemas = new Map(metadata.schemas.map((known) => [known['schema-id'], known]));
  const micros = BigInt(intent.timeMs) * 1000n;
  const parts = frames
    .filter(({ rows }) => rows > 0)
    .map((frame) => {
      const own = schemas.get(frame.schemaId);
      if (own === undefined) {
        throw corrupt('frame-corrupt', `buffered batch names a schema that the table does not have: ${frame.schemaId}`);
      }
      const columns = decodeFrameBody(frame.body, own);
      return settings.ingestTimeColumn === null ? columns : fillNulls(columns, settings.ingestTimeColumn, micros);
    });
  return concat(parts, schema);
}

function dedupOf(schema: Schema, settings: TableSettings): Dedup | undefined {
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

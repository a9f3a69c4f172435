import { openContainer, readItems, writeContainer } from '../avro/container.ts';
import { encoderOf, type Get } from '../avro/encode.ts';
import { type RecordTarget, resolve, type Target } from '../avro/resolve.ts';
import { type AvroField, type AvroRecord, parseSchema } from '../avro/schema.ts';
import { assert } from '../base/assert.ts';
import type { Deflate } from '../base/codecs.ts';
import { corrupt } from '../base/errors.ts';
import { MANIFEST_FILE_SCHEMA } from './manifest-schema.ts';
import type { FieldSummary, ManifestFile } from './types.ts';

export interface ManifestListWrite {
  snapshotId: bigint;
  /** Null for the first snapshot. */
  parentSnapshotId: bigint | null;
  sequenceNumber: bigint;
  /** Rows in order, newest first (ML12). May be empty (ML13). Rows carried over from another list stay as they are. */
  manifests: readonly ManifestFile[];
  syncMarker: Uint8Array;
  /** Null leaves the blocks uncompressed. */
  deflate: Deflate | null;
}

const MANIFEST_FILE: Readonly<Record<number, (row: ManifestFile) => unknown>> = {
  500: (row) => row.manifestPath,
  501: (row) => row.manifestLength,
  502: (row) => row.partitionSpecId,
  517: (row) => row.content,
  515: (row) => row.sequenceNumber,
  516: (row) => row.minSequenceNumber,
  503: (row) => row.addedSnapshotId,
  504: (row) => row.addedFilesCount,
  505: (row) => row.existingFilesCount,
  506: (row) => row.deletedFilesCount,
  512: (row) => row.addedRowsCount,
  513: (row) => row.existingRowsCount,
  514: (row) => row.deletedRowsCount,
  507: (row) => row.partitions,
  519: (row) => row.keyMetadata,
};

const FIELD_SUMMARY: Readonly<Record<number, (summary: FieldSummary) => unknown>> = {
  509: (summary) => summary.containsNull,
  518: (summary) => summary.containsNan,
  510: (summary) => summary.lowerBound,
  511: (summary) => summary.upperBound,
};

const schemaJson = JSON.stringify(MANIFEST_FILE_SCHEMA);
const encodeRow = encoderOf(
  parseSchema(MANIFEST_FILE_SCHEMA),
  (record: AvroRecord, field: AvroField): Get =>
    (record.name === 'manifest_file' ? MANIFEST_FILE : FIELD_SUMMARY)[field.id ?? -1],
);

/** A manifest list in the layout of the reference writer, format version 2. Equal arguments give equal bytes. */
export function writeManifestList(options: ManifestListWrite): Uint8Array {
  const { snapshotId, parentSnapshotId, sequenceNumber, manifests, syncMarker, deflate } = options;
  assert(!manifests.some((row) => row.isUncounted), 'a manifest list has the counts of every manifest');
  const metadata = {
    'snapshot-id': String(snapshotId),
    // The reference writes the text `null` for a first snapshot (ML1).
    'parent-snapshot-id': String(parentSnapshotId),
    'sequence-number': String(sequenceNumber),
    'format-version': '2',
  };
  return writeContainer({ schemaJson, metadata, syncMarker, deflate }, encodeRow, manifests);
}

const LONG: Target = { kind: 'long' };
const INT: Target = { kind: 'int' };
const BYTES: Target = { kind: 'bytes' };

const SUMMARY_TARGET: RecordTarget = {
  kind: 'record',
  fields: [
    { id: 509, name: 'contains_null', target: { kind: 'boolean' } },
    { id: 518, name: 'contains_nan', target: { kind: 'boolean' }, missing: null },
    { id: 510, name: 'lower_bound', target: BYTES, missing: null },
    { id: 511, name: 'upper_bound', target: BYTES, missing: null },
  ],
  make: ([containsNull, containsNan, lowerBound, upperBound]): FieldSummary => ({
    containsNull: containsNull as boolean,
    containsNan: containsNan as boolean | null,
    lowerBound: lowerBound as Uint8Array | null,
    upperBound: upperBound as Uint8Array | null,
  }),
};

/** File counts have no default: null means "assume some" (ML6), and a 0 in its place would let a reader skip live files. */
const ROW_TARGET: RecordTarget = {
  kind: 'record',
  fields: [
    { id: 500, name: 'manifest_path', target: { kind: 'string' } },
    { id: 501, name: 'manifest_length', target: LONG },
    { id: 502, name: 'partition_spec_id', target: INT },
    { id: 517, name: 'content', target: INT, missing: 0 },
    { id: 515, name: 'sequence_number', target: LONG, missing: 0n },
    { id: 516, name: 'min_sequence_number', target: LONG, missing: 0n },
    { id: 503, name: 'added_snapshot_id', target: LONG },
    { id: 504, name: 'added_files_count', target: INT, missing: null },
    { id: 505, name: 'existing_files_count', target: INT, missing: null },
    { id: 506, name: 'deleted_files_count', target: INT, missing: null },
    { id: 512, name: 'added_rows_count', target: LONG, missing: 0n },
    { id: 513, name: 'existing_rows_count', target: LONG, missing: 0n },
    { id: 514, name: 'deleted_rows_count', target: LONG, missing: 0n },
    { id: 507, name: 'partitions', target: { kind: 'list', element: SUMMARY_TARGET }, missing: null },
    { id: 519, name: 'key_metadata', target: BYTES, missing: null },
  ],
  make: (values): ManifestFile => ({
    manifestPath: values[0] as string,
    manifestLength: values[1] as bigint,
    partitionSpecId: values[2] as number,
    content: contentOf(values[3] as number),
    sequenceNumber: values[4] as bigint,
    minSequenceNumber: values[5] as bigint,
    addedSnapshotId: values[6] as bigint,
    ...fileCounts(values.slice(7, 10) as (number | null)[], values[1] as bigint),
    addedRowsCount: values[10] as bigint,
    existingRowsCount: values[11] as bigint,
    deletedRowsCount: values[12] as bigint,
    partitions: values[13] as FieldSummary[] | null,
    keyMetadata: values[14] as Uint8Array | null,
  }),
};

/** Stored bytes of an entry where nothing tells: a guess, for what goes by the size of a manifest. */
const ENTRY_BYTES_GUESSED = 256n;

type FileCounts = Pick<ManifestFile, 'addedFilesCount' | 'existingFilesCount' | 'deletedFilesCount' | 'isUncounted'>;

function fileCounts([added, existing, deleted]: readonly (number | null)[], length: bigint): FileCounts {
  if (added !== null && existing !== null && deleted !== null) {
    return { addedFilesCount: added, existingFilesCount: existing, deletedFilesCount: deleted };
  }
  const guess = 1 + Number(length / ENTRY_BYTES_GUESSED);
  return { addedFilesCount: 0, existingFilesCount: guess, deletedFilesCount: 0, isUncounted: true };
}

function contentOf(value: number): 0 | 1 {
  if (value !== 0 && value !== 1) throw corrupt('manifest-corrupt', `manifest list row has content ${value}`);
  return value;
}

/**
 * Rows of a manifest list of any writer, fields found by id whatever their names (ML3). Columns that version 1 did not
 * have read as 0, a missing `partitions` as null, missing file counts as `isUncounted`. Throws corrupt `avro-corrupt`, `avro-codec-unsupported` or
 * `manifest-corrupt`.
 */
export function readManifestList(bytes: Uint8Array, deflate: Deflate): ManifestFile[] {
  const container = openContainer(bytes);
  return readItems(container, resolve(container.schema, ROW_TARGET), deflate) as ManifestFile[];
}

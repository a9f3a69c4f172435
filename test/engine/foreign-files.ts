import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { hex, utf8 } from '../../src/core/base/bytes.ts';
import { snapshotIdOf, uuidV4 } from '../../src/core/base/ids.ts';
import { encodeFrameBody } from '../../src/core/columns/frame.ts';
import { partitionRows } from '../../src/core/columns/partition.ts';
import { ADDED, manifestFileOf, writeManifest } from '../../src/core/iceberg/manifest.ts';
import { readManifestList, writeManifestList } from '../../src/core/iceberg/manifest-list.ts';
import { currentSchema, defaultSpec, serializeMetadata } from '../../src/core/iceberg/metadata.ts';
import { currentSnapshot, MAIN } from '../../src/core/iceberg/snapshot.ts';
import type { DataFile, TableMetadata, Value } from '../../src/core/iceberg/types.ts';
import { applyUpdates } from '../../src/core/iceberg/updates.ts';
import type { TableDefinition } from '../../src/core/table/definition.ts';
import { codecs } from '../../src/engine/codecs.ts';
import { columnsOf } from '../core/columns/rows.ts';
import { newWorld, type Scenario } from '../sim/scenario.ts';
import { PLACE, Service } from '../sim/service.ts';
import { SimLedger } from '../sim/sim-ledger.ts';
import { metadataOf } from './file-operations.ts';

/** Data files as other writers make them: by DuckDB, with field ids or without, nested, in any order, codec and encoding. */

/** The series table with a list, a struct and a map; ids as they are given to it. */
export const NESTED: TableDefinition = {
  schema: {
    type: 'struct',
    fields: [
      { name: 'time', type: 'timestamptz', required: true },
      { name: 'device', type: 'string' },
      { name: 'v', type: 'long' },
      { name: 'tags', type: { type: 'list', element: 'string', 'element-required': false } },
      {
        name: 'place',
        type: {
          type: 'struct',
          fields: [
            { name: 'floor', type: 'int' },
            { name: 'room', type: 'string' },
          ],
        },
      },
      { name: 'counts', type: { type: 'map', key: 'string', value: 'long', 'value-required': false } },
    ],
  },
  timeColumn: 'time',
  seriesKey: ['device'],
  chunk: 'day',
  dedup: null,
  properties: {},
};

export async function newTable(definition: TableDefinition, seed = 7): Promise<Scenario> {
  const world = newWorld(seed);
  const ledger = new SimLedger('00000000000000aa');
  const service = new Service(world, ledger);
  await world.clock.until(service.admin.create(definition));
  return { world, ledger, service, acknowledged: [] };
}

/** Commits rows of values in the order of the columns, `_ingest_ts` left out, as one batch of ours. */
export async function commitRows({ world, service }: Scenario, rows: unknown[][]): Promise<void> {
  const metadata = metadataOf(service);
  const schema = currentSchema(metadata);
  const columns = columnsOf(schema, rows);
  const body = encodeFrameBody(columns);
  const frame = {
    digest: hex(codecs.digest([body])),
    batchId: null,
    producer: null,
    schemaId: schema['schema-id'],
    rows: rows.length,
    partitions: partitionRows(columns, defaultSpec(metadata)).tuples.length,
    body,
  };
  await world.clock.until(service.writer.append(frame, metadata['table-uuid'], 0));
  await service.drain();
}

/** A Parquet file of what a query gives, by DuckDB. `ids`: its `FIELD_IDS`; null leaves them out. */
export async function duckdbFile(query: string, ids: string | null, options: string): Promise<Uint8Array> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-foreign-'));
  const instance = await DuckDBInstance.create();
  const connection = await instance.connect();
  try {
    const path = join(folder, 'file.parquet');
    const all = ['format parquet', ...(ids === null ? [] : [`field_ids ${ids}`]), options];
    await connection.run("set timezone = 'UTC'");
    await connection.run(`copy (${query}) to '${path}' (${all.join(', ')})`);
    return new Uint8Array(readFileSync(path));
  } finally {
    connection.closeSync();
    instance.closeSync();
    rmSync(folder, { recursive: true });
  }
}

/** The field ids of `NESTED` in DuckDB's words. */
export const NESTED_IDS = `{time: 1, device: 2, v: 3, tags: {__duckdb_field_id: 4, element: 8},
  place: {__duckdb_field_id: 5, floor: 9, room: 10}, counts: {__duckdb_field_id: 6, key: 11, value: 12}, _ingest_ts: 7}`;

/** The name mapping of `NESTED`, for files without ids; a room is an `x` in some. */
export const NESTED_NAMES = {
  'schema.name-mapping.default': JSON.stringify([
    ...['time', 'device', 'v'].map((name, i) => ({ 'field-id': i + 1, names: [name] })),
    { 'field-id': 4, names: ['tags'], fields: [{ 'field-id': 8, names: ['element'] }] },
    {
      'field-id': 5,
      names: ['place'],
      fields: [
        { 'field-id': 9, names: ['floor'] },
        { 'field-id': 10, names: ['x', 'room'] },
      ],
    },
    {
      'field-id': 6,
      names: ['counts'],
      fields: [
        { 'field-id': 11, names: ['key'] },
        { 'field-id': 12, names: ['value'] },
      ],
    },
    { 'field-id': 7, names: ['_ingest_ts'] },
  ]),
};

/** Appends a file as another writer does that knows of no order, no metrics and none of our keys. */
export async function theirAppend(
  { world, service }: Scenario,
  bytes: Uint8Array,
  file: { rows: number; tuple: readonly Value[] } & Partial<DataFile>,
): Promise<DataFile> {
  const base = await world.clock.until(service.table.load());
  if (base === null) throw new Error('no table');
  const { metadata, version } = base;
  const { rows, tuple, ...rest } = file;
  const name = uuidV4(world.random.bytes(16));
  const dataFile: DataFile = {
    content: 0,
    filePath: `${PLACE.location}/data/theirs-${name}.parquet`,
    fileFormat: 'PARQUET',
    partition: [...tuple],
    recordCount: BigInt(rows),
    fileSizeInBytes: BigInt(bytes.length),
    columnSizes: null,
    valueCounts: null,
    nullValueCounts: null,
    nanValueCounts: null,
    lowerBounds: null,
    upperBounds: null,
    keyMetadata: null,
    splitOffsets: null,
    equalityIds: null,
    sortOrderId: null,
    referencedDataFile: null,
    ...rest,
  };
  await put(world, dataFile.filePath, bytes);
  const updates = await snapshotOf(world, metadata, dataFile);
  const next = applyUpdates(metadata, updates, {
    nowMs: world.clock.now(),
    previousMetadataLocation: `${PLACE.location}/metadata/v${version}.metadata.json`,
  });
  await put(world, `${PLACE.location}/metadata/v${version + 1}.metadata.json`, utf8(serializeMetadata(next)));
  world.memory.plant(`${PLACE.prefix}/metadata/version-hint.text`, utf8(String(version + 1)));
  await world.clock.until(service.table.load());
  return dataFile;
}

async function snapshotOf(world: Scenario['world'], metadata: TableMetadata, dataFile: DataFile) {
  const snapshotId = snapshotIdOf(world.random.bytes(8));
  const sequenceNumber = metadata['last-sequence-number'] + 1n;
  const spec = defaultSpec(metadata);
  const parent = currentSnapshot(metadata);
  const { bytes, stats } = writeManifest({
    schema: currentSchema(metadata),
    spec,
    snapshotId,
    entries: [{ status: ADDED, snapshotId, sequenceNumber: null, fileSequenceNumber: null, dataFile }],
    syncMarker: world.random.bytes(16),
    deflate: codecs.deflate,
  });
  const path = `${PLACE.location}/metadata/${uuidV4(world.random.bytes(16))}-m0.avro`;
  await put(world, path, bytes);
  const row = manifestFileOf(stats, {
    path,
    length: BigInt(bytes.length),
    specId: spec['spec-id'],
    snapshotId,
    sequenceNumber,
  });
  const before = parent === null ? [] : readManifestList(peek(world, parent['manifest-list']), codecs.deflate);
  const list = `${PLACE.location}/metadata/snap-${snapshotId}.avro`;
  await put(
    world,
    list,
    writeManifestList({
      snapshotId,
      parentSnapshotId: parent?.['snapshot-id'] ?? null,
      sequenceNumber,
      manifests: [row, ...before],
      syncMarker: world.random.bytes(16),
      deflate: codecs.deflate,
    }),
  );
  const total = (key: string, more: bigint): string => String(BigInt(parent?.summary[key] ?? 0) + more);
  return [
    {
      action: 'add-snapshot' as const,
      snapshot: {
        'snapshot-id': snapshotId,
        ...(parent === null ? {} : { 'parent-snapshot-id': parent['snapshot-id'] }),
        'sequence-number': sequenceNumber,
        'timestamp-ms': Math.max(world.clock.now(), metadata['last-updated-ms'] + 1),
        'manifest-list': list,
        summary: {
          operation: 'append' as const,
          'added-data-files': '1',
          'added-records': String(dataFile.recordCount),
          'added-files-size': String(dataFile.fileSizeInBytes),
          'changed-partition-count': '1',
          'total-data-files': total('total-data-files', 1n),
          'total-records': total('total-records', dataFile.recordCount),
          'total-files-size': total('total-files-size', dataFile.fileSizeInBytes),
          'total-delete-files': '0',
          'total-position-deletes': '0',
          'total-equality-deletes': '0',
        },
        'schema-id': metadata['current-schema-id'],
      },
    },
    { action: 'set-snapshot-ref' as const, 'ref-name': MAIN, type: 'branch' as const, 'snapshot-id': snapshotId },
  ];
}

const keyOf = (location: string): string => PLACE.prefix + location.slice(PLACE.location.length);

async function put(world: Scenario['world'], location: string, bytes: Uint8Array): Promise<void> {
  await world.memory.putIfAbsent(keyOf(location), bytes);
}

function peek(world: Scenario['world'], location: string): Uint8Array {
  const stored = world.memory.peek(keyOf(location));
  if (stored === null) throw new Error(`no such object: ${location}`);
  return stored.bytes;
}

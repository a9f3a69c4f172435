import { utf8 } from '../../../src/core/base/bytes.ts';
import { formatUuid } from '../../../src/core/base/ids.ts';
import { NEEDS_ROUNDS_MAX } from '../../../src/core/base/limits.ts';
import type { Frame } from '../../../src/core/batch/frame.ts';
import { ColumnsBuilder } from '../../../src/core/columns/builder.ts';
import { encodeFrameBody } from '../../../src/core/columns/frame.ts';
import { partitionRows } from '../../../src/core/columns/partition.ts';
import type { IcebergBase } from '../../../src/core/commit/iceberg-base.ts';
import { IcebergSink } from '../../../src/core/commit/iceberg-sink.ts';
import { makeFiles, rowsOf } from '../../../src/core/commit/make-files.ts';
import type { CommitIdentity, Operation } from '../../../src/core/commit/operation.ts';
import { prepareAppend } from '../../../src/core/commit/prepare-append.ts';
import type { SinkContext } from '../../../src/core/commit/sink-context.ts';
import { metadataKey } from '../../../src/core/iceberg/locations.ts';
import { readManifest } from '../../../src/core/iceberg/manifest.ts';
import { readManifestList } from '../../../src/core/iceberg/manifest-list.ts';
import { currentSchema, defaultSpec, serializeMetadata } from '../../../src/core/iceberg/metadata.ts';
import { currentSnapshot } from '../../../src/core/iceberg/snapshot.ts';
import type { ManifestEntry, ManifestFile, Snapshot, TableMetadata } from '../../../src/core/iceberg/types.ts';
import { applyUpdates, type MetadataUpdate } from '../../../src/core/iceberg/updates.ts';
import { IndexMemory } from '../../../src/core/lastvalue/memory.ts';
import type { Decision } from '../../../src/core/sink.ts';
import { layOut, type TableDefinition } from '../../../src/core/table/definition.ts';
import { codecs } from '../../../src/engine/codecs.ts';
import { mapBucket } from '../../oracle/bucket.ts';
import { rows as readRows } from '../../oracle/rows.ts';
import { assertValidTable } from '../../oracle/validator.ts';
import { PLACE, SERIES, SeededRandom, type SeriesRow } from '../../sim/service.ts';

const DAY_MICROS = 86_400_000_000n;
const START = BigInt(Date.UTC(2026, 0, 1)) * 1000n;

/** A row on a day from 1 January 2026, `second` seconds past midnight. */
export function row(day: number, second: number, device = 'a', v = second): SeriesRow {
  return { device, time: START + BigInt(day) * DAY_MICROS + BigInt(second) * 1_000_000n, v: BigInt(v) };
}

export const spelled = ({ device, time, v }: SeriesRow): string => `${device} ${time} ${v}`;

/**
 * A table whose commits are decided and applied at once: the driver without a store, so that a test sees decisions. What
 * a decision reads is counted.
 */
export class PureTable {
  readonly sink = new IcebergSink(PLACE, codecs);
  readonly files = new Map<string, Uint8Array>();
  readonly #random: SeededRandom;
  base: IcebergBase | null = null;
  nowMs = Date.UTC(2026, 0, 1, 0, 0, 1);
  /** Keys that the last decision had read for it. */
  read: string[] = [];
  #sequence = 0;
  /** Ingest time of the last append. */
  #ingestMs = 0;

  constructor(definition: TableDefinition = SERIES, seed = 3) {
    this.#random = new SeededRandom(seed);
    const uuid = formatUuid(this.#random.bytes(16));
    const { location } = PLACE;
    const layout = layOut(definition);
    this.run({ kind: 'create', commitId: this.identity('').commitId, uploads: [], uuid, location, layout });
  }

  get metadata(): TableMetadata {
    if (this.base === null) throw new Error('no table');
    return this.base.metadata;
  }

  get snapshot(): Snapshot {
    const snapshot = currentSnapshot(this.metadata);
    if (snapshot === null) throw new Error('no snapshot');
    return snapshot;
  }

  /** What the pure functions below the sink take. */
  get context(): SinkContext {
    return {
      location: PLACE.location,
      ...codecs,
      indexes: new IndexMemory(),
      keyOf: (path) => PLACE.prefix + path.slice(PLACE.location.length),
      versionLocation: (version) => metadataKey(PLACE.location, version),
    };
  }

  identity(tableUuid = this.metadata['table-uuid']): CommitIdentity {
    this.nowMs += 1000;
    const bytes = this.#random.bytes(24);
    const commitId = Array.from(bytes.slice(0, 16), (byte) => byte.toString(16).padStart(2, '0')).join('');
    const snapshotId = BigInt(new DataView(bytes.buffer).getUint32(16)) + 1n;
    return { commitId, snapshotId, timeMs: this.nowMs, tableUuid };
  }

  /** Decides on a base without committing. */
  decide(operation: Operation, base = this.base): Decision<IcebergBase> {
    const seen = new Map<string, Uint8Array>();
    this.read = [];
    for (let round = 0; round < NEEDS_ROUNDS_MAX; round++) {
      const needs = this.sink.needs(operation, base, seen);
      if (needs.length === 0) break;
      for (const key of needs) {
        this.read.push(key);
        const bytes = this.files.get(key);
        if (bytes !== undefined) seen.set(key, bytes);
      }
    }
    return this.sink.decide(operation, base, seen, this.nowMs);
  }

  run(operation: Operation): Decision<IcebergBase> {
    const decision = this.decide(operation);
    if (decision.kind === 'proceed') {
      for (const { key, bytes } of [...operation.uploads, ...decision.uploads]) this.files.set(key, bytes);
      const version = (this.base?.version ?? 0) + 1;
      this.files.set(this.sink.versionKey(version), decision.bytes);
      this.sink.parseBase(version, decision.bytes, '');
      this.base = decision.next(`etag-${version}`);
    }
    return decision;
  }

  /** Another writer's version with these updates. */
  update(...updates: MetadataUpdate[]): void {
    const version = this.base?.version ?? 0;
    const previousMetadataLocation = metadataKey(PLACE.location, version);
    const next = applyUpdates(this.metadata, updates, { nowMs: this.nowMs, previousMetadataLocation });
    this.files.set(this.sink.versionKey(version + 1), utf8(serializeMetadata(next)));
    this.base = this.sink.parseBase(version + 1, utf8(serializeMetadata(next)), `etag-${version + 1}`);
  }

  /** Forgets all but what the store has: the next decision reads. */
  cold(): void {
    const version = this.base?.version ?? 0;
    const bytes = this.files.get(this.sink.versionKey(version));
    if (bytes === undefined) throw new Error('no version');
    this.base = this.sink.parseBase(version, bytes, `etag-${version}`);
  }

  frame(rows: readonly SeriesRow[]): Frame {
    const schema = currentSchema(this.metadata);
    const builder = new ColumnsBuilder(schema);
    const [time, device, v] = builder.fields;
    for (const one of rows) {
      if (time.kind !== 'int64' || v.kind !== 'int64' || device.kind !== 'text') throw new Error('other table');
      time.pushBigint(one.time);
      device.pushString(one.device);
      v.pushBigint(one.v);
      builder.endRow();
    }
    const columns = builder.finish();
    return {
      sequence: ++this.#sequence,
      digest: '',
      batchId: null,
      producer: null,
      schemaId: schema['schema-id'],
      rows: columns.rows,
      partitions: partitionRows(columns, defaultSpec(this.metadata)).tuples.length,
      body: encodeFrameBody(columns),
    };
  }

  appendOf(rows: readonly SeriesRow[]): Operation {
    const frame = this.frame(rows);
    const { sequence } = frame;
    const identity = this.identity();
    this.#ingestMs = identity.timeMs;
    return prepareAppend({
      intent: {
        form: 1,
        operation: 'append',
        ...identity,
        ledgerId: '00000000000000aa',
        first: sequence,
        last: sequence,
        rows: rows.length,
        retire: [],
      },
      frames: [frame],
      last: sequence,
      leftOut: [],
      metadata: this.metadata,
      place: PLACE,
      ...codecs,
    });
  }

  append(...rows: SeriesRow[]): Decision<IcebergBase> {
    return this.run(this.appendOf(rows));
  }

  /** Files of rows as a compaction would have made them, with the uploads that bring them. */
  compacted(rows: readonly SeriesRow[], identity: CommitIdentity) {
    const columns = rowsOf([this.frame(rows)], this.metadata, this.#ingestMs);
    const made = makeFiles(columns, { identity, metadata: this.metadata, place: PLACE, ...codecs });
    return {
      outputs: made.entries.map(({ dataFile }) => dataFile),
      uploads: made.uploads.filter(({ key }) => key.endsWith('.parquet')),
      layout: made.layout,
    };
  }

  list(): ManifestFile[] {
    const bytes = this.files.get(this.context.keyOf(this.snapshot['manifest-list']));
    if (bytes === undefined) throw new Error('no list');
    return readManifestList(bytes, codecs.deflate);
  }

  entriesOf(manifest: ManifestFile): ManifestEntry[] {
    const bytes = this.files.get(this.context.keyOf(manifest.manifestPath));
    if (bytes === undefined) throw new Error('no manifest');
    return readManifest(bytes, { deflate: codecs.deflate, row: manifest }).entries;
  }

  /** Live entries, newest manifests first. */
  live(): ManifestEntry[] {
    return this.list()
      .flatMap((manifest) => this.entriesOf(manifest))
      .filter(({ status }) => status !== 2);
  }

  async rows(): Promise<string[]> {
    const found = await readRows(mapBucket(this.files), PLACE.prefix);
    return found.map((one) => `${one['device']} ${one['time']} ${one['v']}`).sort();
  }

  async valid(): Promise<void> {
    await assertValidTable(mapBucket(this.files), PLACE.prefix, { bucketName: 'sim-lake' });
  }
}

import { utf8 } from '../core/base/bytes.ts';
import type { Compress, Digest } from '../core/base/codecs.ts';
import { COMPACT_NESTED_GROUP_BYTES, COMPACT_NESTED_GROUP_ROWS } from '../core/base/compact-limits.ts';
import { contentName } from '../core/base/ids.ts';
import { COMPACT_GROUP_BYTES, COMPACT_GROUP_ROWS } from '../core/base/limits.ts';
import { release } from '../core/base/release.ts';
import type { Columns } from '../core/columns/columns.ts';
import { concat } from '../core/columns/concat.ts';
import { slice } from '../core/columns/gather.ts';
import { releaseColumns } from '../core/columns/release.ts';
import { byteSizeOf } from '../core/columns/row-bytes.ts';
import { dataFileOf, sortingColumnsOf } from '../core/commit/describe-file.ts';
import { seedOf } from '../core/commit/made-manifest.ts';
import { currentOf } from '../core/commit/make-files.ts';
import type { CommitIdentity } from '../core/commit/operation.ts';
import { dataFilePath } from '../core/iceberg/locations.ts';
import { partitionPath } from '../core/iceberg/partition-spec.ts';
import type { DataFile, TableMetadata, Value } from '../core/iceberg/types.ts';
import { isFlat } from '../core/parquet/layout.ts';
import { type ParquetOptions, ParquetWriter } from '../core/parquet/writer.ts';
import { tableSettings } from '../core/table/properties.ts';
import { type Multipart, PART_BYTES_MIN, type Store } from '../store/store.ts';
import type { TablePlace } from './open-table.ts';
import type { Clock, Random } from './ports.ts';
import { persevere } from './uploader.ts';

export interface OutputPorts {
  store: Store;
  clock: Clock;
  random: Random;
  compress: Compress;
  digest: Digest;
}

export interface OutputPlan {
  identity: CommitIdentity;
  /** The base whose schema, spec and order the files are made for. */
  metadata: TableMetadata;
  place: TablePlace;
  tuple: readonly Value[];
  /** Locations of the files whose rows these are. */
  inputs: readonly string[];
  /** Size at which the next file begins. */
  targetBytes: number;
  /** Told the key of each object before it is created. */
  creates(key: string): void;
  /** Told of each upload in parts once it is begun, and once it has ended. */
  begins(key: string, uploadId: string): void;
  ends(uploadId: string): void;
}

/**
 * Data files of one partition, written while their rows come: a row group at a time, uploaded part by part, so that a
 * file never is in memory. Keys are made of the commit, the inputs and a count, since the content is not known when an
 * upload begins. Inputs are never changed, so a key still takes one content only.
 */
export class OutputFiles {
  readonly #ports: OutputPorts;
  readonly #plan: OutputPlan;
  readonly #options: ParquetOptions;
  readonly #groupBytes: number;
  readonly #files: DataFile[] = [];
  /** Rows that fill no row group yet; of the first, those before `#from` are written. */
  readonly #pending: Columns[] = [];
  #from = 0;
  #pendingRows = 0;
  #pendingBytes = 0;
  /** Part of the upload that is under way: there is one at a time. */
  readonly #part = new Uint8Array(PART_BYTES_MIN);
  #open: { writer: ParquetWriter; upload: PartUpload; path: string } | null = null;

  constructor(ports: OutputPorts, plan: OutputPlan) {
    this.#ports = ports;
    this.#plan = plan;
    const { schema, sortOrder } = currentOf(plan.metadata);
    const { encodings, rowGroupRows } = tableSettings(plan.metadata.properties);
    const flat = isFlat(schema);
    this.#groupBytes = flat ? COMPACT_GROUP_BYTES : COMPACT_NESTED_GROUP_BYTES;
    this.#options = {
      rowGroupRows: Math.min(rowGroupRows, flat ? COMPACT_GROUP_ROWS : COMPACT_NESTED_GROUP_ROWS),
      encodings,
      sortingColumns: sortingColumnsOf(schema, sortOrder),
      keyValues: [],
    };
  }

  /** Takes rows, which follow those before in the sort order, and gives their memory back when they are written. */
  async add(rows: Columns): Promise<void> {
    if (rows.rows === 0) return;
    this.#pending.push(rows);
    this.#pendingRows += rows.rows;
    this.#pendingBytes += byteSizeOf(rows);
    while (this.#pendingRows >= this.#groupRows()) await this.#write(this.#groupRows());
  }

  /** Ends the last file; returns them all. */
  async finish(): Promise<DataFile[]> {
    while (this.#pendingRows > 0) await this.#write(Math.min(this.#pendingRows, this.#groupRows()));
    await this.#close();
    release(this.#part);
    return this.#files;
  }

  /** Gives up an upload in parts that is under way. Never throws. */
  async abort(): Promise<void> {
    await this.#open?.upload.abort();
    this.#open = null;
  }

  /** Rows of the next row group, by what a row that waits takes on average. */
  #groupRows(): number {
    const rowBytes = this.#pendingBytes / Math.max(1, this.#pendingRows);
    const fit = Math.floor(this.#groupBytes / Math.max(1, rowBytes));
    return Math.max(1, Math.min(this.#options.rowGroupRows, fit));
  }

  async #write(rows: number): Promise<void> {
    const { group, isOwn } = this.#take(rows);
    this.#open ??= this.#begin(group);
    const { writer, upload } = this.#open;
    writer.append(group);
    if (isOwn) releaseColumns(group);
    await upload.push(writer.takeChunks());
    await this.#ports.clock.sleep(0); // as between the steps of the merge
    if (writer.byteLength >= this.#plan.targetBytes) await this.#close();
  }

  /** The first rows that wait. `isOwn`: nothing that still waits is in the same memory. */
  #take(rows: number): { group: Columns; isOwn: boolean } {
    const parts: Columns[] = [];
    const usedUp: Columns[] = [];
    let from = this.#from;
    for (let wanted = rows; wanted > 0; ) {
      const first = this.#pending[0];
      const count = Math.min(wanted, first.rows - from);
      parts.push(count === first.rows ? first : slice(first, from, from + count));
      wanted -= count;
      from += count;
      if (from < first.rows) break;
      usedUp.push(first);
      this.#pending.shift();
      from = 0;
    }
    this.#from = from;
    this.#pendingBytes *= 1 - rows / this.#pendingRows;
    this.#pendingRows -= rows;
    const group = concat(parts, currentOf(this.#plan.metadata).schema);
    // One part alone is not copied.
    if (parts.length === 1) return { group, isOwn: usedUp.length === 1 };
    for (const columns of usedUp) releaseColumns(columns);
    return { group, isOwn: true };
  }

  #begin({ schema }: Columns) {
    const { identity, metadata, place, tuple, inputs } = this.#plan;
    const { spec } = currentOf(metadata);
    const count = new Uint8Array(4);
    new DataView(count.buffer).setUint32(0, this.#files.length);
    const name = contentName(
      identity.timeMs,
      this.#ports.digest([seedOf(identity.commitId), utf8(inputs.join('\n')), count]),
    );
    const path = dataFilePath(partitionPath(spec, metadata.schemas, tuple), name);
    const key = `${place.prefix}/${path}`;
    this.#plan.creates(key);
    const writer = new ParquetWriter(schema, this.#options, this.#ports.compress);
    return { writer, upload: new PartUpload(this.#ports, this.#plan, key, this.#part), path };
  }

  async #close(): Promise<void> {
    if (this.#open === null) return;
    const { writer, upload, path } = this.#open;
    const facts = writer.finish();
    await upload.push(writer.takeChunks());
    await upload.complete();
    this.#open = null;
    const { place, tuple, metadata } = this.#plan;
    this.#files.push(dataFileOf(currentOf(metadata), { location: `${place.location}/${path}`, tuple, facts }));
  }
}

/** One object whose bytes come piece by piece: created at once while it is smaller than a part, in parts of one size else. */
class PartUpload {
  readonly #ports: OutputPorts;
  readonly #plan: Pick<OutputPlan, 'begins' | 'ends'>;
  readonly #key: string;
  readonly #part: Uint8Array;
  #length = 0;
  #parts = 0;
  #multipart: Multipart | null = null;

  /** `part` is memory for one part, which the next upload may have once this one has ended. */
  constructor(ports: OutputPorts, plan: Pick<OutputPlan, 'begins' | 'ends'>, key: string, part: Uint8Array) {
    this.#ports = ports;
    this.#plan = plan;
    this.#key = key;
    this.#part = part;
  }

  async push(chunks: readonly Uint8Array[]): Promise<void> {
    for (const chunk of chunks) {
      for (let from = 0; from < chunk.length; ) {
        // A part is sent when more is to come: the last one may be smaller, never empty.
        if (this.#length === this.#part.length) await this.#send(this.#part);
        const take = Math.min(chunk.length - from, this.#part.length - this.#length);
        this.#part.set(chunk.subarray(from, from + take), this.#length);
        this.#length += take;
        from += take;
      }
      release(chunk);
    }
  }

  async complete(): Promise<void> {
    const rest = this.#part.subarray(0, this.#length);
    if (this.#multipart === null) {
      await persevere(this.#ports, () => this.#ports.store.putIfAbsent(this.#key, rest));
      return;
    }
    await this.#send(rest);
    await this.#multipart.complete();
    this.#plan.ends(this.#multipart.uploadId);
  }

  /** What cannot be ended now is ended by the eraser, and at last by the store itself. */
  async abort(): Promise<void> {
    const upload = this.#multipart;
    if (upload === null) return;
    try {
      await upload.abort();
      this.#plan.ends(upload.uploadId);
    } catch {
      // It stays noted.
    }
  }

  async #send(bytes: Uint8Array): Promise<void> {
    const { store } = this.#ports;
    const upload = this.#multipart ?? (await persevere(this.#ports, () => store.multipart(this.#key)));
    if (this.#multipart === null) {
      this.#multipart = upload;
      this.#plan.begins(this.#key, upload.uploadId);
    }
    const number = ++this.#parts;
    await persevere(this.#ports, () => upload.part(number, bytes));
    this.#length = 0;
  }
}

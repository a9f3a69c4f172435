import { readAvro } from '../../oracle/avro.ts';
import { rowsOfFile } from '../../oracle/rows.ts';
import type { WatchedMemory } from '../watched-memory.ts';

/** A version of the table as its JSON says: the checkers' own view, which shares nothing with the product. */
export interface RawMetadata {
  'table-uuid': string;
  location: string;
  'last-sequence-number': number;
  'last-updated-ms': number;
  'current-schema-id': number;
  'current-snapshot-id'?: number | null;
  schemas: { 'schema-id': number; fields: never[] }[];
  properties: Record<string, string>;
  snapshots?: RawSnapshot[];
  'metadata-log'?: { 'timestamp-ms': number; 'metadata-file': string }[];
  refs?: Record<string, { 'snapshot-id': number; type: string }>;
}

export interface RawSnapshot {
  'snapshot-id': number;
  'parent-snapshot-id'?: number;
  'sequence-number': number;
  'timestamp-ms': number;
  'manifest-list': string;
  summary: Record<string, string>;
}

export interface RawManifest {
  path: string;
  content: number;
  addedFiles: number;
  existingFiles: number;
}

export interface RawEntry {
  status: number;
  path: string;
  content: number;
  records: number;
  bytes: number;
}

/** Everything a snapshot reaches. */
export interface Reached {
  /** Object keys: its list, manifests, live files, last-value index. */
  keys: ReadonlySet<string>;
  live: readonly RawEntry[];
}

export const BUCKET = 's3://sim-lake/';

/** Where a snapshot's summary names its last-value index. */
export const INDEX_KEY = 'timelake.last-value-index';

/** The key of a location; null when it is not of this bucket. */
export function keyOf(location: string): string | null {
  return location.startsWith(BUCKET) ? location.slice(BUCKET.length) : null;
}

/** The object a snapshot needs is not there. */
export class Missing extends Error {
  override readonly name = 'Missing';
  readonly key: string;

  constructor(key: string) {
    super(`missing: ${key}`);
    this.key = key;
  }
}

/**
 * Reads metadata, lists, manifests and rows, each object once: keys other than versions and the pointer never hold two
 * contents (I2 sees to that).
 */
export class SmallReader {
  readonly #memory: WatchedMemory;
  readonly #versions = new Map<string, { etag: string; raw: RawMetadata }>();
  readonly #lists = new Map<string, RawManifest[]>();
  readonly #manifests = new Map<string, RawEntry[]>();
  readonly #rows = new Map<string, { v: number; device: string; time: bigint }[]>();

  constructor(memory: WatchedMemory) {
    this.#memory = memory;
  }

  /** The metadata under a key; null when it is missing. */
  metadata(key: string): RawMetadata | null {
    const stored = this.#memory.peek(key);
    if (stored === null) return null;
    const known = this.#versions.get(key);
    if (known?.etag === stored.etag) return known.raw;
    const raw = JSON.parse(new TextDecoder().decode(stored.bytes)) as RawMetadata;
    this.#versions.set(key, { etag: stored.etag, raw });
    return raw;
  }

  /** @throws Missing */
  manifests(list: string): RawManifest[] {
    return kept(this.#lists, list, () =>
      this.#avro(list).map((row) => ({
        path: String(row['manifest_path']),
        content: Number(row['content'] ?? 0),
        addedFiles: Number(row['added_files_count'] ?? row['added_data_files_count']),
        existingFiles: Number(row['existing_files_count'] ?? row['existing_data_files_count']),
      })),
    );
  }

  /** @throws Missing */
  entries(manifest: string): RawEntry[] {
    return kept(this.#manifests, manifest, () =>
      this.#avro(manifest).map((entry) => {
        const file = entry['data_file'] as Record<string, unknown>;
        return {
          status: Number(entry['status']),
          path: String(file['file_path']),
          content: Number(file['content'] ?? 0),
          records: Number(file['record_count']),
          bytes: Number(file['file_size_in_bytes']),
        };
      }),
    );
  }

  /** @throws Missing, also when only a data file is not there; an index, which rows never wait for, may be missing (I8) */
  reached(snapshot: RawSnapshot): Reached {
    const list = demanded(snapshot['manifest-list']);
    const keys = new Set([list]);
    this.#demand(list);
    const index = keyOf(snapshot.summary[INDEX_KEY] ?? '');
    if (index !== null) keys.add(index);
    const live: RawEntry[] = [];
    for (const row of this.manifests(list)) {
      const manifest = demanded(row.path);
      this.#demand(manifest);
      keys.add(manifest);
      for (const entry of this.entries(manifest)) {
        if (entry.status === 2) continue;
        const file = demanded(entry.path);
        this.#demand(file);
        keys.add(file);
        live.push(entry);
      }
    }
    return { keys, live };
  }

  /** The rows of a data file. @throws Missing */
  async rows(location: string, fields: readonly never[]): Promise<{ v: number; device: string; time: bigint }[]> {
    const key = demanded(location);
    const known = this.#rows.get(key);
    if (known !== undefined) return known;
    const stored = this.#memory.peek(key);
    if (stored === null) throw new Missing(key);
    const rows = (await rowsOfFile(stored.bytes, { fields: [...fields] })).map((row) => ({
      v: Number(row['v']),
      device: String(row['device']),
      time: row['time'] as bigint,
    }));
    this.#rows.set(key, rows);
    return rows;
  }

  #demand(key: string): void {
    if (!this.#memory.has(key)) throw new Missing(key);
  }

  #avro(key: string): Record<string, unknown>[] {
    const stored = this.#memory.peek(key);
    if (stored === null) throw new Missing(key);
    return readAvro(stored.bytes).records;
  }
}

function demanded(location: string): string {
  const key = keyOf(location);
  if (key === null) throw new Missing(location);
  return key;
}

function kept<T>(cache: Map<string, T>, key: string, make: () => T): T {
  const known = cache.get(key);
  if (known !== undefined) return known;
  const made = make();
  cache.set(key, made);
  return made;
}

/** The snapshot that readers see; null while there is none. */
export function currentOf(raw: RawMetadata): RawSnapshot | null {
  const id = raw['current-snapshot-id'];
  if (id === undefined || id === null || id === -1) return null;
  return (raw.snapshots ?? []).find((snapshot) => snapshot['snapshot-id'] === id) ?? null;
}

/** The snapshot with this id and its retained ancestors, newest first. */
export function ancestryOf(raw: RawMetadata, id: number): RawSnapshot[] {
  const byId = new Map((raw.snapshots ?? []).map((snapshot) => [snapshot['snapshot-id'], snapshot]));
  const found: RawSnapshot[] = [];
  let next: number | undefined = id;
  while (next !== undefined && found.length <= byId.size) {
    const snapshot = byId.get(next);
    if (snapshot === undefined) break;
    found.push(snapshot);
    next = snapshot['parent-snapshot-id'];
  }
  return found;
}

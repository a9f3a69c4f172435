import { assert } from '../core/base/assert.ts';
import { concat } from '../core/base/bytes.ts';
import { checkKey, checkNewKey, checkRange, compareKeys, PartSizes } from './rules.ts';
import {
  type Created,
  type Listed,
  type Multipart,
  PART_BYTES_MIN,
  type Replaced,
  type Store,
  type Stored,
  StoreError,
} from './store.ts';

export interface MemoryOptions {
  /** The store's clock, milliseconds since 1970; what `uploadedMs` is taken from. */
  now: () => number;
  /** Smaller only so that a test can use several parts of a few bytes. */
  partBytesMin?: number;
  /** Objects of one listing page: a listing sees what is written behind its current page, as it does on R2. */
  pageKeys?: number;
}

interface Held {
  bytes: Uint8Array;
  etag: string;
  uploadedMs: number;
}

/**
 * A map that behaves as R2 does. An effect happens at the call, its answer comes a microtask later. Bytes are copied on the
 * way in and out. The etag is a digest of the content, so equal bytes have equal etags, as on R2.
 */
export class MemoryStore implements Store {
  readonly #options: Required<MemoryOptions>;
  readonly #objects = new Map<string, Held>();
  /** Keys in order, or null after a key came or went. */
  #sorted: string[] | null = null;
  #uploads = 0;
  /** Ends an upload that is open, by its id. */
  readonly #open = new Map<string, () => void>();

  constructor(options: MemoryOptions) {
    this.#options = { partBytesMin: PART_BYTES_MIN, pageKeys: 1000, ...options };
  }

  async get(key: string): Promise<Stored | null> {
    checkKey('get', key);
    return this.peek(key);
  }

  async getRange(key: string, offset: number, length: number): Promise<Uint8Array | null> {
    checkKey('getRange', key);
    checkRange(offset, length);
    const held = this.#objects.get(key);
    return held === undefined ? null : held.bytes.slice(offset, offset + length);
  }

  async head(key: string): Promise<Listed | null> {
    checkKey('head', key);
    const held = this.#objects.get(key);
    return held === undefined ? null : listed(key, held);
  }

  async putIfAbsent(key: string, bytes: Uint8Array): Promise<Created> {
    checkNewKey('putIfAbsent', key);
    if (this.#objects.has(key)) return { outcome: 'exists' };
    return { outcome: 'created', etag: this.plant(key, bytes) };
  }

  async putIf(key: string, bytes: Uint8Array, etag: string): Promise<Replaced> {
    checkNewKey('putIf', key);
    if (this.#objects.get(key)?.etag !== etag) return { outcome: 'changed' };
    return { outcome: 'replaced', etag: this.plant(key, bytes) };
  }

  async delete(keys: readonly string[]): Promise<void> {
    for (const key of keys) checkKey('delete', key);
    for (const key of keys) this.#remove(key);
  }

  async *list(prefix: string, after?: string): AsyncIterable<Listed> {
    let from = after;
    for (;;) {
      const page = this.#page(prefix, from);
      for (const entry of page) yield entry;
      if (page.length < this.#options.pageKeys) return;
      from = page[page.length - 1].key;
    }
  }

  async *listFolders(prefix: string): AsyncIterable<string> {
    assert(prefix === '' || prefix.endsWith('/'), `prefix of folders ends in a slash: ${prefix}`);
    let last: string | null = null;
    for (const key of this.keys()) {
      if (!key.startsWith(prefix)) continue;
      const slash = key.indexOf('/', prefix.length);
      if (slash < 0) continue;
      const folder = key.slice(prefix.length, slash);
      if (folder === last) continue;
      last = folder;
      yield folder;
    }
  }

  async multipart(key: string): Promise<Multipart> {
    checkNewKey('multipart', key);
    this.#uploads += 1;
    const uploadId = `upload-${this.#uploads}`;
    const sizes = new PartSizes(this.#options.partBytesMin);
    const parts: Uint8Array[] = [];
    let open = true;
    const end = (): void => {
      open = false;
      this.#open.delete(uploadId);
    };
    this.#open.set(uploadId, end);
    const demandOpen = (operation: string): void => {
      if (!open) throw new StoreError(operation, key, 'maybe', new Error(`upload is not open: ${uploadId}`));
    };
    return {
      uploadId,
      part: async (number, bytes) => {
        demandOpen('part');
        sizes.add(number, bytes.length);
        parts[number - 1] = bytes.slice();
      },
      complete: async () => {
        demandOpen('complete');
        assert(parts.length > 0, 'an upload has at least one part');
        end();
        const bytes = concat(parts);
        const etag = this.plant(key, bytes, `${digest(bytes)}-${parts.length}`);
        return { etag, size: bytes.length };
      },
      abort: async () => end(),
    };
  }

  async abortUpload(_key: string, uploadId: string): Promise<void> {
    this.#open.get(uploadId)?.();
  }

  /** Uploads in parts that nobody has ended: what a real store keeps for days. */
  get openUploads(): number {
    return this.#open.size;
  }

  /** The object whole, at once: for checkers that must not disturb the order of events. */
  peek(key: string): Stored | null {
    const held = this.#objects.get(key);
    return held === undefined ? null : { bytes: held.bytes.slice(), etag: held.etag };
  }

  /** All keys in order, at once. The array must not be changed. */
  keys(): readonly string[] {
    this.#sorted ??= [...this.#objects.keys()].sort(compareKeys);
    return this.#sorted;
  }

  /** Puts without a condition, as a foreign writer may. Returns the etag. */
  plant(key: string, bytes: Uint8Array, etag: string = digest(bytes)): string {
    if (!this.#objects.has(key)) this.#sorted = null;
    this.#objects.set(key, { bytes: bytes.slice(), etag, uploadedMs: this.#options.now() });
    return etag;
  }

  #remove(key: string): void {
    if (this.#objects.delete(key)) this.#sorted = null;
  }

  #page(prefix: string, after: string | undefined): Listed[] {
    const page: Listed[] = [];
    for (const key of this.keys()) {
      if (!key.startsWith(prefix) || (after !== undefined && compareKeys(key, after) <= 0)) continue;
      page.push(listed(key, this.#objects.get(key)!));
      if (page.length === this.#options.pageKeys) break;
    }
    return page;
  }
}

function listed(key: string, held: Held): Listed {
  return { key, size: held.bytes.length, etag: held.etag, uploadedMs: held.uploadedMs };
}

/** Two 32-bit multiplicative hashes and the length. No cryptographic strength: nobody attacks a map in a test. */
function digest(bytes: Uint8Array): string {
  let a = 0x811c9dc5;
  let b = 0x9747b28c;
  for (let i = 0; i < bytes.length; i++) {
    a = Math.imul(a ^ bytes[i], 0x01000193);
    b = Math.imul(b + bytes[i], 0x85ebca6b) ^ (b >>> 15);
  }
  const part = (x: number): string => (x >>> 0).toString(16).padStart(8, '0');
  return `${part(a)}${part(b)}${bytes.length.toString(16).padStart(8, '0')}`;
}

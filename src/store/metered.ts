import type { Created, Listed, Multipart, Replaced, Store, Stored } from './store.ts';

/** What is counted: one name a request of the `Store` and of its uploads. */
export type StoreOperation =
  | 'get'
  | 'getRange'
  | 'head'
  | 'putIfAbsent'
  | 'putIf'
  | 'delete'
  | 'list'
  | 'listFolders'
  | 'multipart'
  | 'part'
  | 'complete'
  | 'abort';

/** How R2 bills an operation: A for writes and listings, B for reads; deleting and aborting are free. */
export const STORE_OPERATIONS: Readonly<Record<StoreOperation, 'A' | 'B' | 'free'>> = {
  get: 'B',
  getRange: 'B',
  head: 'B',
  putIfAbsent: 'A',
  putIf: 'A',
  delete: 'free',
  list: 'A',
  listFolders: 'A',
  multipart: 'A',
  part: 'A',
  complete: 'A',
  abort: 'free',
};

export interface OperationUsage {
  requests: number;
  /** Requests that threw; they are in `requests` too. */
  failed: number;
  bytesWritten: number;
  bytesRead: number;
}

/** Plain numbers, fit for JSON. */
export interface StoreUsage {
  classA: number;
  classB: number;
  free: number;
  bytesWritten: number;
  bytesRead: number;
  /** Operations used at least once. */
  operations: Partial<Record<StoreOperation, OperationUsage>>;
}

/**
 * Counts what passes through to `inner`. A request counts when it is made, whatever becomes of it: a put refused by its
 * condition is billed like any other. Listings count a page of 1,000 entries as one request and deletes 1,000 keys, as the
 * adapter splits them; a listing whose pages come shorter, and one by folders over many plain objects, costs more than is
 * counted here.
 */
export class MeteredStore implements Store {
  readonly #inner: Store;
  #operations: Partial<Record<StoreOperation, OperationUsage>> = {};

  constructor(inner: Store) {
    this.#inner = inner;
  }

  /** Everything counted since the start or the last `reset`. */
  usage(): StoreUsage {
    const usage: StoreUsage = { classA: 0, classB: 0, free: 0, bytesWritten: 0, bytesRead: 0, operations: {} };
    for (const [name, counted] of Object.entries(this.#operations) as [StoreOperation, OperationUsage][]) {
      usage.operations[name] = { ...counted };
      usage.bytesWritten += counted.bytesWritten;
      usage.bytesRead += counted.bytesRead;
      if (STORE_OPERATIONS[name] === 'A') usage.classA += counted.requests;
      else if (STORE_OPERATIONS[name] === 'B') usage.classB += counted.requests;
      else usage.free += counted.requests;
    }
    return usage;
  }

  reset(): void {
    this.#operations = {};
  }

  async get(key: string): Promise<Stored | null> {
    const stored = await this.#count('get', 0, () => this.#inner.get(key));
    this.#usageOf('get').bytesRead += stored?.bytes.length ?? 0;
    return stored;
  }

  async getRange(key: string, offset: number, length: number): Promise<Uint8Array | null> {
    const bytes = await this.#count('getRange', 0, () => this.#inner.getRange(key, offset, length));
    this.#usageOf('getRange').bytesRead += bytes?.length ?? 0;
    return bytes;
  }

  head(key: string): Promise<Listed | null> {
    return this.#count('head', 0, () => this.#inner.head(key));
  }

  putIfAbsent(key: string, bytes: Uint8Array): Promise<Created> {
    return this.#count('putIfAbsent', bytes.length, () => this.#inner.putIfAbsent(key, bytes));
  }

  putIf(key: string, bytes: Uint8Array, etag: string): Promise<Replaced> {
    return this.#count('putIf', bytes.length, () => this.#inner.putIf(key, bytes, etag));
  }

  async delete(keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return;
    this.#usageOf('delete').requests += Math.ceil(keys.length / PAGE_ENTRIES) - 1;
    await this.#count('delete', 0, () => this.#inner.delete(keys));
  }

  list(prefix: string, after?: string): AsyncIterable<Listed> {
    return this.#countPages('list', this.#inner.list(prefix, after));
  }

  listFolders(prefix: string): AsyncIterable<string> {
    return this.#countPages('listFolders', this.#inner.listFolders(prefix));
  }

  abortUpload(key: string, uploadId: string): Promise<void> {
    return this.#count('abort', 0, () => this.#inner.abortUpload(key, uploadId));
  }

  async multipart(key: string): Promise<Multipart> {
    const upload = await this.#count('multipart', 0, () => this.#inner.multipart(key));
    return {
      uploadId: upload.uploadId,
      part: (number, bytes) => this.#count('part', bytes.length, () => upload.part(number, bytes)),
      complete: () => this.#count('complete', 0, () => upload.complete()),
      abort: () => this.#count('abort', 0, () => upload.abort()),
    };
  }

  async #count<T>(operation: StoreOperation, bytesWritten: number, request: () => Promise<T>): Promise<T> {
    const usage = this.#usageOf(operation);
    usage.requests += 1;
    usage.bytesWritten += bytesWritten;
    try {
      return await request();
    } catch (error) {
      usage.failed += 1;
      throw error;
    }
  }

  async *#countPages<T>(operation: StoreOperation, entries: AsyncIterable<T>): AsyncIterable<T> {
    const usage = this.#usageOf(operation);
    usage.requests += 1;
    let seen = 0;
    try {
      for await (const entry of entries) {
        // The entry behind a full page shows that another page was fetched.
        if (seen > 0 && seen % PAGE_ENTRIES === 0) usage.requests += 1;
        seen += 1;
        yield entry;
      }
    } catch (error) {
      usage.failed += 1;
      throw error;
    }
  }

  #usageOf(operation: StoreOperation): OperationUsage {
    this.#operations[operation] ??= { requests: 0, failed: 0, bytesWritten: 0, bytesRead: 0 };
    return this.#operations[operation];
  }
}

/** Entries of one listing page and keys of one delete (platform limit of R2). */
const PAGE_ENTRIES = 1000;

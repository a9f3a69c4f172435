/**
 * What the service needs of an object store, and nothing else. There is no plain `put`: every object is created once,
 * except the version hint, which moves by compare-and-set.
 *
 * Guarantees asked of an adapter: strong consistency after an answer; conditional create is atomic; `null` from `get`,
 * `getRange` and `head` means the object is certainly missing. Anything else throws a `StoreError`.
 */
export interface Store {
  /** The object whole, or null when it is certainly missing. */
  get(key: string): Promise<Stored | null>;
  /** `length` bytes from `offset`, fewer at the end of the object; null when the object is certainly missing. */
  getRange(key: string, offset: number, length: number): Promise<Uint8Array | null>;
  head(key: string): Promise<Listed | null>;
  /** Creates the object. `exists`: some object is there, possibly ours from an earlier try. */
  putIfAbsent(key: string, bytes: Uint8Array): Promise<Created>;
  /** Replaces the object whose etag is `etag`. `changed`: it has another etag or is missing. For the hint alone. */
  putIf(key: string, bytes: Uint8Array, etag: string): Promise<Replaced>;
  /** Deletes; missing keys are fine. Adapters split by the store's own limit. */
  delete(keys: readonly string[]): Promise<void>;
  /** All objects whose key begins with `prefix` and sorts after `after`, in key order: by UTF-8 bytes. */
  list(prefix: string, after?: string): AsyncIterable<Listed>;
  /**
   * The distinct next path segments under `prefix` (which is empty or ends in "/"), without the slash, in the order of
   * their keys, that is as if the slash were there: `a-b`, then `a`.
   */
  listFolders(prefix: string): AsyncIterable<string>;
  /** Starts an upload in parts. All parts but the last have one size, at least `PART_BYTES_MIN`. */
  multipart(key: string): Promise<Multipart>;
  /** Gives up an upload in parts that somebody began, perhaps long ago; one that has ended is fine. */
  abortUpload(key: string, uploadId: string): Promise<void>;
}

export interface Stored {
  bytes: Uint8Array;
  etag: string;
}

export interface Listed {
  key: string;
  size: number;
  etag: string;
  /** The store's clock, milliseconds since 1970. */
  uploadedMs: number;
}

export type Created = { outcome: 'created'; etag: string } | { outcome: 'exists' };
export type Replaced = { outcome: 'replaced'; etag: string } | { outcome: 'changed' };

export interface Multipart {
  readonly uploadId: string;
  /** Part numbers count from 1 and are uploaded in order. */
  part(number: number, bytes: Uint8Array): Promise<void>;
  complete(): Promise<{ etag: string; size: number }>;
  abort(): Promise<void>;
}

/**
 * A request that gave no clear answer. `applied` says whether it may have taken effect: `no` only when the adapter is
 * sure (refused before it was sent, a definite client error); otherwise `maybe`, also for throttling, since the
 * throttled request can be a retry of one that landed.
 */
export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly applied: 'no' | 'maybe';
  readonly operation: string;
  readonly key: string;

  constructor(operation: string, key: string, applied: 'no' | 'maybe', cause?: unknown) {
    const reason = cause instanceof Error ? cause.message : cause === undefined ? '' : String(cause);
    super(`store ${operation} failed${reason === '' ? '' : `: ${reason}`} key=${key} applied=${applied}`, { cause });
    this.operation = operation;
    this.key = key;
    this.applied = applied;
  }
}

/** R2 and S3: parts smaller than this are refused, except the last (platform limit). */
export const PART_BYTES_MIN = 5 * 1024 * 1024;

/** Longest key, in UTF-8 bytes (platform limit of R2). */
export const KEY_BYTES_MAX = 1024;

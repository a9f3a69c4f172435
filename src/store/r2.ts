import { assert } from '../core/base/assert.ts';
import { checkKey, checkNewKey, checkRange, PartSizes } from './rules.ts';
import {
  type Created,
  type Listed,
  type Multipart,
  type Replaced,
  type Store,
  type Stored,
  StoreError,
} from './store.ts';

/**
 * A `Store` over an R2 bucket binding.
 *
 * Nothing is retried here: only the driver knows what a second try of a request means. Bytes are handed to the runtime as
 * they are, not copied, so the caller leaves them alone until the promise settles; nothing keeps them after that.
 *
 * **What an error says.** The binding throws a plain `Error` whose message ends in R2's code in parentheses. What changes
 * nothing (get, head, list) is always `applied: 'no'`. For the rest `no` is claimed for the codes of `REFUSED_CODES` alone:
 * these depend on the shape of the request and on nothing else, so however often and wherever it was sent, it was refused.
 * Everything else is `maybe`, among it:
 *
 * - 10001 internal error, 10043 unavailable, 10054 client disconnect, 0 unspecified, `Network connection lost`, any error
 *   without a code: the request may have been carried out and its answer lost;
 * - 10058 too many requests: one write a second to a key, and the write that was let through may have been ours;
 * - 10002, 10003, 10006, 10042 (not authorised, no bucket, not entitled): these depend on state that may have changed since;
 * - 10013 incomplete body, 10037 bad digest: what arrived was refused, which says nothing of what arrived before;
 * - 10024 no such upload, 10025 invalid part: also the answer to completing an upload that was completed already;
 * - 10069 locked by a bucket rule: also the answer for an object that an earlier try of ours created.
 */
export function r2Store(bucket: R2Bucket): Store {
  return {
    async get(key: string): Promise<Stored | null> {
      checkKey('get', key);
      const object = await read('get', key, () => bucket.get(key));
      if (object === null) return null;
      const bytes = await read('get', key, async () => new Uint8Array(await object.arrayBuffer()));
      checkLength('get', key, bytes, object.size);
      return { bytes, etag: object.etag };
    },

    async getRange(key: string, offset: number, length: number): Promise<Uint8Array | null> {
      checkKey('getRange', key);
      checkRange(offset, length);
      if (length === 0) {
        // The runtime leaves a zero out of the request it encodes, and then everything from the offset would be sent.
        const head = await read('getRange', key, () => bucket.head(key));
        return head === null ? null : new Uint8Array(0);
      }
      let object: R2ObjectBody | null;
      try {
        object = await bucket.get(key, { range: { offset, length } });
      } catch (cause) {
        const code = codeOf(cause);
        // Behind the end of an object that exists.
        if (code === INVALID_RANGE) return new Uint8Array(0);
        // The local simulator breaks on the very end of an object, with an error that says nothing.
        if (code === UNSPECIFIED && (await endsAt(bucket, key, offset))) return new Uint8Array(0);
        throw new StoreError('getRange', key, 'no', cause);
      }
      if (object === null) return null;
      const body = object;
      const bytes = await read('getRange', key, async () => new Uint8Array(await body.arrayBuffer()));
      checkLength('getRange', key, bytes, Math.max(0, Math.min(length, body.size - offset)));
      return bytes;
    },

    async head(key: string): Promise<Listed | null> {
      checkKey('head', key);
      const object = await read('head', key, () => bucket.head(key));
      return object === null ? null : listed(object);
    },

    async putIfAbsent(key: string, bytes: Uint8Array): Promise<Created> {
      checkNewKey('putIfAbsent', key);
      // A bare asterisk is the wildcard. With quotes around it, as a header has its etags, it is the name of one etag: as a
      // header such a put overwrites; as an option the runtime refuses it.
      const object = await putWhen('putIfAbsent', bucket, key, bytes, { etagDoesNotMatch: '*' });
      return object === null ? { outcome: 'exists' } : { outcome: 'created', etag: object.etag };
    },

    async putIf(key: string, bytes: Uint8Array, etag: string): Promise<Replaced> {
      checkNewKey('putIf', key);
      assert(etag !== '*' && etag !== '' && !etag.includes('"'), `etag is the bare one of a stored object: ${etag}`);
      const object = await putWhen('putIf', bucket, key, bytes, { etagMatches: etag });
      return object === null ? { outcome: 'changed' } : { outcome: 'replaced', etag: object.etag };
    },

    async delete(keys: readonly string[]): Promise<void> {
      for (const key of keys) checkKey('delete', key);
      for (let at = 0; at < keys.length; at += DELETE_KEYS_MAX) {
        const chunk = keys.slice(at, at + DELETE_KEYS_MAX);
        try {
          await bucket.delete(chunk);
        } catch (cause) {
          throw new StoreError('delete', chunk[0], at === 0 ? appliedBy(cause) : 'maybe', cause);
        }
      }
    },

    async *list(prefix: string, after?: string): AsyncIterable<Listed> {
      for await (const page of pages(bucket, 'list', { prefix, startAfter: after })) {
        for (const object of page.objects) yield listed(object);
      }
    },

    async *listFolders(prefix: string): AsyncIterable<string> {
      assert(prefix === '' || prefix.endsWith('/'), `prefix of folders ends in a slash: ${prefix}`);
      let last: string | null = null;
      for await (const page of pages(bucket, 'listFolders', { prefix, delimiter: '/' })) {
        for (const folder of page.delimitedPrefixes) {
          // A folder that straddles two pages may be named on both.
          if (folder === last) continue;
          last = folder;
          yield folder.slice(prefix.length, -1);
        }
      }
    },

    async multipart(key: string): Promise<Multipart> {
      checkNewKey('multipart', key);
      const upload = await change('multipart', key, () => bucket.createMultipartUpload(key));
      return multipartOf(upload);
    },

    abortUpload: (key: string, uploadId: string): Promise<void> =>
      abort(bucket.resumeMultipartUpload(key, uploadId), key),
  };
}

/** R2 finds unequal parts only at `complete`, when every byte has been sent; `PartSizes` refuses the first wrong one. */
function multipartOf(upload: R2MultipartUpload): Multipart {
  const key = upload.key;
  const sizes = new PartSizes();
  const parts: R2UploadedPart[] = [];
  return {
    uploadId: upload.uploadId,
    async part(number, bytes) {
      sizes.add(number, bytes.length);
      parts[number - 1] = await change('part', key, () => upload.uploadPart(number, bytes));
    },
    async complete() {
      assert(sizes.count > 0, 'an upload has at least one part');
      for (let i = 0; i < sizes.count; i++) assert(parts[i] !== undefined, `part was uploaded: ${i + 1}`);
      const object = await change('complete', key, () => upload.complete(parts));
      return { etag: object.etag, size: object.size };
    },
    abort: () => abort(upload, key),
  };
}

async function abort(upload: R2MultipartUpload, key: string): Promise<void> {
  try {
    await upload.abort();
  } catch (cause) {
    // Aborted or completed before: there is nothing left to abort.
    if (codeOf(cause) !== NO_SUCH_UPLOAD) throw new StoreError('abort', key, appliedBy(cause), cause);
  }
}

/** The object, or null when the condition did not hold. */
async function putWhen(
  operation: string,
  bucket: R2Bucket,
  key: string,
  bytes: Uint8Array,
  onlyIf: R2Conditional,
): Promise<R2Object | null> {
  try {
    return await bucket.put(key, bytes, { onlyIf });
  } catch (cause) {
    // The runtime turns this code into null. Said as an error it would mean the same.
    if (codeOf(cause) === PRECONDITION_FAILED) return null;
    throw new StoreError(operation, key, appliedBy(cause), cause);
  }
}

/** Pages of a listing until R2 says it is complete; a page may hold few objects or none and still not be the last. */
async function* pages(bucket: R2Bucket, operation: string, options: R2ListOptions): AsyncIterable<R2Objects> {
  const prefix = options.prefix ?? '';
  let cursor: string | undefined;
  for (;;) {
    const request: R2ListOptions = cursor === undefined ? options : { ...options, startAfter: undefined, cursor };
    const page = await read(operation, prefix, () => bucket.list(request));
    yield page;
    if (!page.truncated) return;
    if (page.cursor === cursor) throw new StoreError(operation, prefix, 'no', new Error('listing does not advance'));
    cursor = page.cursor;
  }
}

/** True when the object exists and has no byte at `offset`. */
async function endsAt(bucket: R2Bucket, key: string, offset: number): Promise<boolean> {
  const object = await read('getRange', key, () => bucket.head(key));
  return object !== null && object.size <= offset;
}

async function read<T>(operation: string, key: string, request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (cause) {
    throw new StoreError(operation, key, 'no', cause);
  }
}

async function change<T>(operation: string, key: string, request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (cause) {
    throw new StoreError(operation, key, appliedBy(cause), cause);
  }
}

/** A body that ended early is an error, never a short file. */
function checkLength(operation: string, key: string, bytes: Uint8Array, expected: number): void {
  if (bytes.length === expected) return;
  throw new StoreError(operation, key, 'no', new Error(`body has ${bytes.length} of ${expected} bytes`));
}

function listed(object: R2Object): Listed {
  return { key: object.key, size: object.size, etag: object.etag, uploadedMs: object.uploaded.getTime() };
}

/** R2's code at the end of an error's message, or null. */
function codeOf(cause: unknown): number | null {
  const match = cause instanceof Error ? /\((\d{1,6})\)$/.exec(cause.message) : null;
  return match === null ? null : Number(match[1]);
}

function appliedBy(cause: unknown): 'no' | 'maybe' {
  const code = codeOf(cause);
  return code !== null && REFUSED_CODES.has(code) ? 'no' : 'maybe';
}

/** Keys of one delete (platform limit; the local simulator takes more). */
const DELETE_KEYS_MAX = 1000;

const UNSPECIFIED = 0;
const NO_SUCH_UPLOAD = 10024;
const PRECONDITION_FAILED = 10031;
const INVALID_RANGE = 10039;

/** Codes that follow from the request alone (https://developers.cloudflare.com/r2/api/error-codes/). */
const REFUSED_CODES: ReadonlySet<number> = new Set([
  10005, // bucket name not valid
  10011, // part too small, at complete
  10012, // metadata too large
  10014, // digest header malformed
  10020, // object name not valid
  10022, // max keys not valid
  10033, // length missing
  10048, // parts of unequal size, at complete
  100100, // object too large
]);

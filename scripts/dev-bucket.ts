/**
 * Development only: the bucket of the running service, used from Node.
 *
 * The runtime's own way to reach a binding from outside asks for every property of every object in turn, which makes a
 * listing of a thousand keys take many seconds. Here one call is one request: `withBucketAccess` wraps the service and
 * answers requests that carry a secret of this run; `remoteBucket` sends them.
 */

export interface ObjectFacts {
  key: string;
  size: number;
  /** Without quotes. */
  etag: string;
  uploadedMs: number;
  contentType?: string;
}

/** What a get may ask of an object: from an offset, or that many bytes of its end. */
export type RangeAsked = { offset: number; length?: number } | { suffix: number };

export interface PutAsked {
  contentType?: string;
  /** Create only; or replace only what has this etag. */
  onlyIf?: { absent: true } | { etag: string };
}

export interface ListAsked {
  prefix?: string;
  delimiter?: string;
  cursor?: string;
  startAfter?: string;
  limit?: number;
}

export interface ListPage {
  objects: ObjectFacts[];
  folders: string[];
  /** Present when there is more. */
  cursor?: string;
}

export interface DevBucket {
  /** Null: certainly missing. A range behind the end throws R2's error 10039. */
  get(key: string, range?: RangeAsked): Promise<{ facts: ObjectFacts; bytes: Uint8Array } | null>;
  head(key: string): Promise<ObjectFacts | null>;
  /** Null: the condition did not hold. */
  put(key: string, bytes: Uint8Array, asked: PutAsked): Promise<ObjectFacts | null>;
  delete(keys: string[]): Promise<void>;
  list(asked: ListAsked): Promise<ListPage>;
  createUpload(key: string, contentType?: string): Promise<string>;
  /** The part's etag. */
  uploadPart(key: string, uploadId: string, number: number, bytes: Uint8Array): Promise<string>;
  completeUpload(key: string, uploadId: string, parts: R2UploadedPart[]): Promise<ObjectFacts>;
  abortUpload(key: string, uploadId: string): Promise<void>;
}

/** A `DevBucket` over an R2 binding. */
export function bucketOver(r2: R2Bucket): DevBucket {
  return {
    async get(key, range) {
      const object = await r2.get(key, range === undefined ? {} : { range });
      return object === null ? null : { facts: facts(object), bytes: new Uint8Array(await object.arrayBuffer()) };
    },
    async head(key) {
      const object = await r2.head(key);
      return object === null ? null : facts(object);
    },
    async put(key, bytes, { contentType, onlyIf }) {
      const options: R2PutOptions = contentType === undefined ? {} : { httpMetadata: { contentType } };
      if (onlyIf !== undefined) {
        options.onlyIf = 'absent' in onlyIf ? { etagDoesNotMatch: '*' } : { etagMatches: onlyIf.etag };
      }
      const object = (await r2.put(key, bytes, options)) as R2Object | null;
      return object === null ? null : facts(object);
    },
    delete: (keys) => r2.delete(keys),
    async list(asked) {
      const page = await r2.list(asked);
      const objects = page.objects.map(facts);
      return { objects, folders: page.delimitedPrefixes, ...(page.truncated ? { cursor: page.cursor } : {}) };
    },
    async createUpload(key, contentType) {
      const options = contentType === undefined ? {} : { httpMetadata: { contentType } };
      return (await r2.createMultipartUpload(key, options)).uploadId;
    },
    uploadPart: async (key, id, number, bytes) =>
      (await r2.resumeMultipartUpload(key, id).uploadPart(number, bytes)).etag,
    completeUpload: async (key, id, parts) => facts(await r2.resumeMultipartUpload(key, id).complete(parts)),
    abortUpload: (key, id) => r2.resumeMultipartUpload(key, id).abort(),
  };
}

function facts(object: R2Object): ObjectFacts {
  const { key, size, etag, uploaded, httpMetadata } = object;
  const contentType = httpMetadata?.contentType;
  return { key, size, etag, uploadedMs: uploaded.getTime(), ...(contentType === undefined ? {} : { contentType }) };
}

/** Name of the variable that holds the secret; absent outside `startDev`, and then no request is answered here. */
export const SECRET_VARIABLE = 'DEV_BUCKET_SECRET';
const SECRET_HEADER = 'x-dev-bucket-secret';
const CALL_HEADER = 'x-dev-bucket-call';
const FACTS_HEADER = 'x-dev-bucket-facts';

interface Call {
  method: keyof DevBucket;
  /** Arguments but for bytes, which are the body then. Absent: they are the body, since a header does not hold a thousand keys. */
  args?: unknown[];
  /** Where among the arguments the body belongs. */
  bytesAt?: number;
}

/** The service, and beside it its bucket for callers that know the secret. */
export function withBucketAccess<Handler extends ExportedHandler<never>>(service: Handler, binding: string): Handler {
  const fetchService = service.fetch as unknown as (
    request: Request,
    env: unknown,
    context: unknown,
  ) => Promise<Response>;
  const fetch = async (request: Request, env: Record<string, unknown>, context: unknown): Promise<Response> => {
    const secret = env[SECRET_VARIABLE];
    if (typeof secret !== 'string' || request.headers.get(SECRET_HEADER) !== secret) {
      return fetchService(request, env, context);
    }
    const call = JSON.parse(decodeURIComponent(request.headers.get(CALL_HEADER) ?? '')) as Call;
    const { method, bytesAt } = call;
    const args = call.args ?? ((await request.json()) as unknown[]);
    if (bytesAt !== undefined) args.splice(bytesAt, 0, new Uint8Array(await request.arrayBuffer()));
    try {
      const bucket = bucketOver(env[binding] as R2Bucket);
      const result = await (bucket[method] as (...args: unknown[]) => Promise<unknown>)(...args);
      if (method !== 'get' || result === null) return Response.json(result ?? null);
      const { facts, bytes } = result as { facts: ObjectFacts; bytes: Uint8Array<ArrayBuffer> };
      return new Response(bytes, { headers: { [FACTS_HEADER]: encodeURIComponent(JSON.stringify(facts)) } });
    } catch (error) {
      return Response.json({ message: error instanceof Error ? error.message : String(error) }, { status: 500 });
    }
  };
  return { ...service, fetch } as unknown as Handler;
}

/** The bucket behind a service that `withBucketAccess` wraps. Errors have the messages of the binding's own. */
export function remoteBucket(send: typeof fetch, url: string, secret: string): DevBucket {
  const call = async (
    method: keyof DevBucket,
    args: unknown[],
    bytes?: Uint8Array,
    bytesAt?: number,
  ): Promise<Response> => {
    const given: Call = bytes === undefined ? { method } : { method, args, bytesAt };
    const header = encodeURIComponent(JSON.stringify(given));
    // The path says nothing to the service; it makes the request log of `npm run dev` readable.
    const response = await send(`${url}/.bucket/${method}`, {
      method: 'POST',
      headers: { [SECRET_HEADER]: secret, [CALL_HEADER]: header },
      body: bytes === undefined ? JSON.stringify(args) : (bytes as Uint8Array<ArrayBuffer>),
    });
    if (response.ok) return response;
    throw new Error(((await response.json()) as { message: string }).message);
  };
  const json = async <T>(...parameters: Parameters<typeof call>): Promise<T> =>
    (await (await call(...parameters)).json()) as T;
  return {
    async get(key, range) {
      const response = await call('get', range === undefined ? [key] : [key, range]);
      const header = response.headers.get(FACTS_HEADER);
      const bytes = new Uint8Array(await response.arrayBuffer());
      return header === null ? null : { facts: JSON.parse(decodeURIComponent(header)) as ObjectFacts, bytes };
    },
    head: (key) => json('head', [key]),
    put: (key, bytes, asked) => json('put', [key, asked], bytes, 1),
    delete: (keys) => json('delete', [keys]),
    list: (asked) => json('list', [asked]),
    createUpload: (key, contentType) => json('createUpload', contentType === undefined ? [key] : [key, contentType]),
    uploadPart: (key, uploadId, number, bytes) => json('uploadPart', [key, uploadId, number], bytes, 3),
    completeUpload: (key, uploadId, parts) => json('completeUpload', [key, uploadId, parts]),
    abortUpload: (key, uploadId) => json('abortUpload', [key, uploadId]),
  };
}

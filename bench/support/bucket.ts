import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * A bucket in the memory of this process, behind the protocol in which the runtime's R2 binding speaks to its server. So
 * a bare runtime has a bucket, and what the bucket costs is not in the runtime's CPU time.
 *
 * It knows what the service asks for: get with ranges, head, put with `onlyIf` on etags, delete, list, uploads in parts.
 */
export interface MemoryBucket {
  port: number;
  objects: Map<string, StoredObject>;
  /** Parts of uploads under way, by their id. */
  uploads: Map<string, Uint8Array[]>;
  /** Requests so far, by method. */
  requests: Map<string, number>;
  /** Awaited before each answer, when set: the runtime stands still there, so its heap can be looked at. */
  beforeAnswer: ((method: string, key: string) => Promise<void>) | null;
  close(): Promise<void>;
}

export interface StoredObject {
  bytes: Uint8Array;
  etag: string;
  version: string;
  uploadedMs: number;
}

interface EtagCondition {
  type: 'strong' | 'weak' | 'wildcard';
  value?: string;
}

interface Asked {
  method: string;
  object?: string;
  objects?: string[];
  range?: { offset?: number | string; length?: number | string; suffix?: number | string };
  onlyIf?: { etagMatches?: EtagCondition[]; etagDoesNotMatch?: EtagCondition[] };
  prefix?: string;
  cursor?: string;
  startAfter?: string;
  delimiter?: string;
  limit?: number;
  uploadId?: string;
  partNumber?: number;
}

/** Starts one on a free port of this machine. */
export async function startBucket(): Promise<MemoryBucket> {
  const objects = new Map<string, StoredObject>();
  const server = createServer((request, response) => {
    answer(bucket, request, response).catch((error) => {
      refuse(response, 500, 10001, error instanceof Error ? error.message : String(error));
    });
  });
  const bucket: MemoryBucket = {
    port: 0,
    objects,
    uploads: new Map(),
    requests: new Map(),
    beforeAnswer: null,
    close: () => closed(server),
  };
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  bucket.port = (server.address() as AddressInfo).port;
  return bucket;
}

function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}

async function answer(bucket: MemoryBucket, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  const body = Buffer.concat(pieces);
  let asked: Asked;
  let value = body.subarray(0, 0);
  const header = request.headers['cf-r2-request'];
  if (typeof header === 'string') asked = JSON.parse(header) as Asked;
  else {
    const length = Number(request.headers['cf-r2-metadata-size']);
    asked = JSON.parse(body.subarray(0, length).toString('utf8')) as Asked;
    value = body.subarray(length);
  }
  const key = asked.object ?? asked.prefix ?? asked.objects?.[0] ?? '';
  bucket.requests.set(asked.method, (bucket.requests.get(asked.method) ?? 0) + 1);
  await bucket.beforeAnswer?.(asked.method, key);
  const { objects } = bucket;
  switch (asked.method) {
    case 'head': {
      const found = objects.get(key);
      if (found === undefined) return refuse(response, 404, 10007, 'the specified key does not exist');
      return send(response, facts(key, found));
    }
    case 'get': {
      const found = objects.get(key);
      if (found === undefined) return refuse(response, 404, 10007, 'the specified key does not exist');
      const range = rangeOf(asked.range, found.bytes.length);
      if (range === null) return refuse(response, 416, 10039, 'the requested range is not satisfiable');
      const { offset, length } = range;
      return send(response, { ...facts(key, found), range }, found.bytes.subarray(offset, offset + length));
    }
    case 'put': {
      if (!holds(asked.onlyIf, objects.get(key))) {
        return refuse(response, 412, 10031, 'at least one of the pre-conditions did not hold');
      }
      return send(response, facts(key, stored(objects, key, new Uint8Array(value))));
    }
    case 'createMultipartUpload': {
      const uploadId = `upload-${bucket.requests.get(asked.method)}`;
      bucket.uploads.set(uploadId, []);
      return send(response, { uploadId });
    }
    case 'uploadPart': {
      const parts = bucket.uploads.get(asked.uploadId ?? '');
      if (parts === undefined) return refuse(response, 400, 10024, 'there is no such upload');
      parts[(asked.partNumber ?? 1) - 1] = new Uint8Array(value);
      return send(response, { etag: createHash('md5').update(value).digest('hex') });
    }
    case 'completeMultipartUpload': {
      const parts = bucket.uploads.get(asked.uploadId ?? '') ?? [];
      bucket.uploads.delete(asked.uploadId ?? '');
      return send(response, facts(key, stored(objects, key, new Uint8Array(Buffer.concat(parts)))));
    }
    case 'abortMultipartUpload':
      bucket.uploads.delete(asked.uploadId ?? '');
      return send(response, {});
    case 'delete': {
      for (const name of asked.objects ?? [key]) objects.delete(name);
      response.writeHead(200).end();
      return;
    }
    case 'list':
      return send(response, listed(objects, asked));
    default:
      return refuse(response, 400, 10029, `bucket of the benchmark does not know: ${asked.method}`);
  }
}

function stored(objects: Map<string, StoredObject>, key: string, bytes: Uint8Array): StoredObject {
  const etag = createHash('md5').update(bytes).digest('hex');
  const object = { bytes, etag, version: `${objects.size}-${etag}`, uploadedMs: Date.now() };
  objects.set(key, object);
  return object;
}

function facts(key: string, { bytes, etag, version, uploadedMs }: StoredObject): object {
  return {
    name: key,
    version,
    size: bytes.length,
    etag,
    uploaded: uploadedMs,
    httpFields: {},
    customFields: [],
    checksums: {},
  };
}

function rangeOf(range: Asked['range'], size: number): { offset: number; length: number } | null {
  if (range === undefined) return { offset: 0, length: size };
  if (range.suffix !== undefined) {
    const length = Math.min(size, Number(range.suffix));
    return { offset: size - length, length };
  }
  const offset = Number(range.offset ?? 0);
  if (offset >= size) return null;
  return { offset, length: Math.min(Number(range.length ?? size), size - offset) };
}

function holds(onlyIf: Asked['onlyIf'], found: StoredObject | undefined): boolean {
  const matches = ({ type, value }: EtagCondition) =>
    found !== undefined && (type === 'wildcard' || value === found.etag);
  if (onlyIf?.etagMatches !== undefined && !onlyIf.etagMatches.some(matches)) return false;
  return onlyIf?.etagDoesNotMatch === undefined || !onlyIf.etagDoesNotMatch.some(matches);
}

function listed(objects: Map<string, StoredObject>, asked: Asked): object {
  const { prefix = '', delimiter = '', limit = 1000 } = asked;
  const after = asked.cursor === undefined ? (asked.startAfter ?? '') : asked.cursor;
  const page: object[] = [];
  const folders = new Set<string>();
  let last = '';
  let truncated = false;
  for (const key of [...objects.keys()].sort()) {
    if (!key.startsWith(prefix) || key <= after) continue;
    if (page.length + folders.size >= limit) {
      truncated = true;
      break;
    }
    const end = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
    if (end >= 0) folders.add(key.slice(0, end + delimiter.length));
    else page.push(facts(key, objects.get(key) as StoredObject));
    last = key;
  }
  return { objects: page, truncated, ...(truncated ? { cursor: last } : {}), delimitedPrefixes: [...folders] };
}

function send(response: ServerResponse, metadata: object, body?: Uint8Array): void {
  const head = Buffer.from(JSON.stringify(metadata));
  response.writeHead(200, {
    'cf-r2-metadata-size': String(head.length),
    'content-type': 'application/json',
    'content-length': String(head.length + (body?.length ?? 0)),
  });
  response.write(head);
  response.end(body);
}

function refuse(response: ServerResponse, status: number, code: number, message: string): void {
  response.writeHead(status, { 'cf-r2-error': JSON.stringify({ version: 1, v4code: code, message }) }).end();
}

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { DevBucket, ListAsked, ListPage, ObjectFacts, PutAsked } from './dev-bucket.ts';
import {
  type Address,
  decodeAwsChunked,
  element,
  elementTexts,
  parseRange,
  parseTarget,
  type Raw,
  S3Error,
  urlEncodeKey,
  xmlDocument,
} from './s3-wire.ts';

/**
 * Development only: the local bucket over the S3 protocol, so that query engines read what the service writes.
 *
 * Path-style addresses, one bucket. Signatures are **not** checked, so it listens on the loopback address alone and
 * refuses requests that name another host. Bodies are held whole in memory.
 */
export interface GatewayOptions {
  /** The bucket's name in addresses. */
  bucket: string;
  store: DevBucket;
  /** 0 or absent: any free port. */
  port?: number;
  /** Plants a fault. Tests of what an engine does about one. */
  fault?: (request: GatewayRequest) => Fault | undefined;
}

export interface GatewayRequest {
  method: string;
  key: string;
  query: ReadonlyMap<string, string>;
}

/** `refuse`: 500 and nothing done. `lose-answer`: done, then 500. `cut`: done, then the connection is cut. */
export type Fault = 'refuse' | 'lose-answer' | 'cut';

export interface Gateway {
  /** Address without a trailing slash, e.g. `http://127.0.0.1:9000`. */
  url: string;
  stop(): Promise<void>;
}

/** Largest body held in memory. Engines upload data files of 256 MiB in parts of 8 to 64 MiB. */
const BODY_BYTES_MAX = 512 * 1024 * 1024;
/** S3's own bound for a listing page and for one multi-object delete. */
const KEYS_MAX = 1000;

/** Starts the gateway on 127.0.0.1. Rejects when the port is taken. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const server = createServer((request, response) => {
    void answer(options, request, response);
  });
  // Engines keep connections open for minutes; a stop must not wait for them.
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, stop: () => stop(server) };
}

function stop(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

interface Answer {
  status: number;
  headers?: Record<string, string>;
  body?: Buffer | string;
}

async function answer(options: GatewayOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const method = request.method ?? 'GET';
  try {
    checkHost(request);
    const address = parseTarget(request.url ?? '/');
    const fault = options.fault?.({ method, key: address.key, query: address.query });
    const body = await readBody(request);
    if (fault === 'refuse') throw new S3Error(500, 'InternalError', 'planted fault before the effect');
    const result = await route(options, method, address, request, body);
    if (fault === 'cut') {
      response.destroy();
      return;
    }
    if (fault === 'lose-answer') throw new S3Error(500, 'InternalError', 'planted fault after the effect');
    send(response, method, result);
  } catch (error) {
    // What was not read of the body must not be taken for the next request on this connection.
    request.resume();
    send(response, method, errorAnswer(error, request.url ?? '/'));
  }
}

/** A page in a browser can name any host; only one that means this machine is answered. */
function checkHost(request: IncomingMessage): void {
  const host = (request.headers.host ?? '').replace(/:\d+$/, '');
  if (host === '127.0.0.1' || host === 'localhost') return;
  throw new S3Error(403, 'AccessDenied', `host is not this machine: ${host}`);
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > BODY_BYTES_MAX) throw new S3Error(400, 'EntityTooLarge', `body is above ${BODY_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks, length);
  const streaming = header(request, 'x-amz-content-sha256')?.startsWith('STREAMING-') === true;
  if (!streaming && header(request, 'content-encoding')?.includes('aws-chunked') !== true) return body;
  const payload = decodeAwsChunked(body);
  const declared = header(request, 'x-amz-decoded-content-length');
  if (declared !== undefined && Number(declared) !== payload.length) {
    throw new S3Error(400, 'IncompleteBody', `body has ${payload.length} bytes, declared ${declared}`);
  }
  return payload;
}

function header(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

async function route(
  options: GatewayOptions,
  method: string,
  address: Address,
  request: IncomingMessage,
  body: Buffer,
): Promise<Answer> {
  if (address.bucket === '') return method === 'GET' ? listBuckets(options.bucket) : notImplemented(method, address);
  if (address.bucket !== options.bucket) {
    throw new S3Error(404, 'NoSuchBucket', `bucket does not exist: ${address.bucket}`);
  }
  const bucket = options.store;
  const { key, query } = address;
  if (key === '') return onBucket(bucket, options.bucket, method, address, body);
  const uploadId = query.get('uploadId');
  switch (method) {
    case 'GET':
      return uploadId === undefined ? getObject(bucket, key, request) : notImplemented(method, address);
    case 'HEAD':
      return headObject(bucket, key, request);
    case 'PUT':
      if (header(request, 'x-amz-copy-source') !== undefined) return notImplemented('copy', address);
      return uploadId === undefined
        ? putObject(bucket, key, request, body)
        : putPart(bucket, key, uploadId, Number(query.get('partNumber')), body);
    case 'POST':
      if (query.has('uploads')) return createUpload(bucket, options.bucket, key, request);
      return uploadId === undefined
        ? notImplemented(method, address)
        : completeUpload(bucket, options.bucket, key, uploadId, request, body);
    case 'DELETE':
      if (uploadId !== undefined) await bucket.abortUpload(key, uploadId);
      else await bucket.delete([key]);
      return { status: 204 };
    default:
      return notImplemented(method, address);
  }
}

async function onBucket(
  bucket: DevBucket,
  name: string,
  method: string,
  address: Address,
  body: Buffer,
): Promise<Answer> {
  const { query } = address;
  if (method === 'HEAD') return { status: 200 };
  if (method === 'POST' && query.has('delete')) return deleteObjects(bucket, body.toString('utf8'));
  if (method !== 'GET') return notImplemented(method, address);
  if (query.has('location')) return xml(element('LocationConstraint'));
  if (query.has('versioning')) return xml(element('VersioningConfiguration'));
  for (const unknown of ['uploads', 'versions', 'policy', 'acl'])
    if (query.has(unknown)) return notImplemented(unknown, address);
  return listObjects(bucket, name, query);
}

async function getObject(bucket: DevBucket, key: string, request: IncomingMessage): Promise<Answer> {
  const range = parseRange(header(request, 'range'));
  if (range !== null && 'suffix' in range && range.suffix === 0) {
    throw new S3Error(416, 'InvalidRange', `range is not satisfiable: no bytes of ${key}`);
  }
  const found = await bucket.get(key, range ?? undefined).catch(async (error: unknown) => {
    // The local runtime has more than one error for a range that begins at or behind the end.
    const size = (await bucket.head(key))?.size;
    if (range === null || !('offset' in range) || size === undefined || range.offset < size) throw error;
    throw new S3Error(416, 'InvalidRange', `range is not satisfiable: from ${range.offset} of ${size} bytes`);
  });
  if (found === null) throw noSuchKey(key);
  const { facts, bytes } = found;
  const unchanged = preconditions(facts, request);
  if (unchanged !== null) return unchanged;
  if (range === null) return { status: 200, headers: objectHeaders(facts), body: Buffer.from(bytes) };
  const start = 'suffix' in range ? facts.size - bytes.length : range.offset;
  const contentRange = `bytes ${start}-${start + bytes.length - 1}/${facts.size}`;
  return { status: 206, headers: { ...objectHeaders(facts), 'content-range': contentRange }, body: Buffer.from(bytes) };
}

async function headObject(bucket: DevBucket, key: string, request: IncomingMessage): Promise<Answer> {
  const facts = await bucket.head(key);
  if (facts === null) throw noSuchKey(key);
  const unchanged = preconditions(facts, request);
  if (unchanged !== null) return unchanged;
  return { status: 200, headers: { ...objectHeaders(facts), 'content-length': String(facts.size) } };
}

/** `If-Match` and `If-None-Match` of a read: 412, 304, or null to go on. */
function preconditions(facts: ObjectFacts, request: IncomingMessage): Answer | null {
  const match = header(request, 'if-match');
  if (match !== undefined && match !== '*' && bareEtag(match) !== facts.etag) {
    throw new S3Error(412, 'PreconditionFailed', `object has another etag: ${facts.key}`);
  }
  const noneMatch = header(request, 'if-none-match');
  if (noneMatch === undefined || (noneMatch !== '*' && bareEtag(noneMatch) !== facts.etag)) return null;
  return { status: 304, headers: { etag: quoted(facts.etag) } };
}

async function putObject(bucket: DevBucket, key: string, request: IncomingMessage, body: Buffer): Promise<Answer> {
  const match = header(request, 'if-match');
  const noneMatch = header(request, 'if-none-match');
  if (noneMatch !== undefined && noneMatch !== '*') return notImplemented('if-none-match', { key });
  const asked: PutAsked = { contentType: contentTypeOf(request) };
  if (noneMatch === '*') asked.onlyIf = { absent: true };
  else if (match !== undefined) asked.onlyIf = { etag: bareEtag(match) };
  const facts = await bucket.put(key, body, asked);
  if (facts === null) throw new S3Error(412, 'PreconditionFailed', `condition of the put does not hold: ${key}`);
  return { status: 200, headers: { etag: quoted(facts.etag) } };
}

async function createUpload(bucket: DevBucket, name: string, key: string, request: IncomingMessage): Promise<Answer> {
  const uploadId = await bucket.createUpload(key, contentTypeOf(request));
  return xml(
    element(
      'InitiateMultipartUploadResult',
      element('Bucket', name),
      element('Key', key),
      element('UploadId', uploadId),
    ),
  );
}

async function putPart(
  bucket: DevBucket,
  key: string,
  uploadId: string,
  number: number,
  body: Buffer,
): Promise<Answer> {
  if (!Number.isInteger(number) || number < 1 || number > 10_000) {
    throw new S3Error(400, 'InvalidArgument', `part number is out of range: ${number}`);
  }
  return { status: 200, headers: { etag: quoted(await bucket.uploadPart(key, uploadId, number, body)) } };
}

async function completeUpload(
  bucket: DevBucket,
  name: string,
  key: string,
  uploadId: string,
  request: IncomingMessage,
  body: Buffer,
): Promise<Answer> {
  // R2 has no condition on completing an upload; answering success to one would be a lie about atomicity.
  if (header(request, 'if-none-match') !== undefined || header(request, 'if-match') !== undefined) {
    return notImplemented('conditional complete', { key });
  }
  const text = body.toString('utf8');
  const numbers = elementTexts(text, 'PartNumber').map(Number);
  const etags = elementTexts(text, 'ETag').map(bareEtag);
  if (numbers.length === 0 || numbers.length !== etags.length)
    throw new S3Error(400, 'MalformedXML', 'parts are not listed');
  const parts = numbers.map((partNumber, i) => ({ partNumber, etag: etags[i] ?? '' }));
  const facts = await bucket.completeUpload(key, uploadId, parts);
  return xml(
    element(
      'CompleteMultipartUploadResult',
      element('Location', `/${name}/${key}`),
      element('Bucket', name),
      element('Key', key),
      element('ETag', quoted(facts.etag)),
    ),
  );
}

async function deleteObjects(bucket: DevBucket, text: string): Promise<Answer> {
  const keys = elementTexts(text, 'Key');
  if (keys.length === 0 || keys.length > KEYS_MAX)
    throw new S3Error(400, 'MalformedXML', `keys to delete: ${keys.length}`);
  await bucket.delete(keys);
  const quiet = elementTexts(text, 'Quiet')[0] === 'true';
  return xml(element('DeleteResult', ...(quiet ? [] : keys.map((key) => element('Deleted', element('Key', key))))));
}

async function listObjects(bucket: DevBucket, name: string, query: ReadonlyMap<string, string>): Promise<Answer> {
  const version2 = query.get('list-type') === '2';
  const encode = query.get('encoding-type') === 'url' ? urlEncodeKey : (key: string) => key;
  const [prefix, delimiter] = [query.get('prefix') ?? '', query.get('delimiter') ?? ''];
  const maxKeys = Math.min(KEYS_MAX, Number(query.get('max-keys') ?? KEYS_MAX));
  if (!Number.isInteger(maxKeys) || maxKeys < 0) throw new S3Error(400, 'InvalidArgument', 'max-keys is not a count');
  const after = version2 ? query.get('start-after') : query.get('marker');
  const token = query.get('continuation-token');
  const list: ListAsked = { limit: maxKeys };
  if (prefix !== '') list.prefix = prefix;
  if (delimiter !== '') list.delimiter = delimiter;
  if (after !== undefined && after !== '') list.startAfter = after;
  if (token !== undefined) list.cursor = token;
  const page: ListPage = maxKeys === 0 ? { objects: [], folders: [] } : await bucket.list(list);
  const truncated = page.cursor !== undefined;
  const last = [page.objects.at(-1)?.key ?? '', page.folders.at(-1) ?? ''].sort().at(-1) ?? '';
  const fields: Raw[] = [element('Name', name), element('Prefix', encode(prefix)), element('MaxKeys', String(maxKeys))];
  if (delimiter !== '') fields.push(element('Delimiter', encode(delimiter)));
  if (query.get('encoding-type') === 'url') fields.push(element('EncodingType', 'url'));
  fields.push(element('IsTruncated', String(truncated)));
  if (version2) {
    fields.push(element('KeyCount', String(page.objects.length + page.folders.length)));
    if (after !== undefined) fields.push(element('StartAfter', encode(after)));
    if (token !== undefined) fields.push(element('ContinuationToken', token));
    if (truncated) fields.push(element('NextContinuationToken', page.cursor ?? ''));
  } else {
    fields.push(element('Marker', encode(after ?? '')));
    if (truncated) fields.push(element('NextMarker', encode(last)));
  }
  for (const object of page.objects) fields.push(contents(object, encode));
  for (const folder of page.folders) fields.push(element('CommonPrefixes', element('Prefix', encode(folder))));
  return xml(element('ListBucketResult', ...fields));
}

function contents(facts: ObjectFacts, encode: (key: string) => string): Raw {
  return element(
    'Contents',
    element('Key', encode(facts.key)),
    element('LastModified', new Date(facts.uploadedMs).toISOString()),
    element('ETag', quoted(facts.etag)),
    element('Size', String(facts.size)),
    element('StorageClass', 'STANDARD'),
  );
}

function listBuckets(name: string): Answer {
  const bucket = element('Bucket', element('Name', name), element('CreationDate', '1970-01-01T00:00:00.000Z'));
  return xml(element('ListAllMyBucketsResult', element('Buckets', bucket)));
}

function objectHeaders(facts: ObjectFacts): Record<string, string> {
  return {
    etag: quoted(facts.etag),
    'last-modified': new Date(facts.uploadedMs).toUTCString(),
    'content-type': facts.contentType ?? DEFAULT_TYPE,
    'accept-ranges': 'bytes',
  };
}

const DEFAULT_TYPE = 'binary/octet-stream';

function contentTypeOf(request: IncomingMessage): string {
  return header(request, 'content-type') ?? DEFAULT_TYPE;
}

function quoted(etag: string): string {
  return `"${etag}"`;
}

function bareEtag(etag: string): string {
  return etag
    .trim()
    .replace(/^W\//, '')
    .replace(/^"(.*)"$/, '$1');
}

function noSuchKey(key: string): S3Error {
  return new S3Error(404, 'NoSuchKey', `key does not exist: ${key}`);
}

function notImplemented(what: string, address: Pick<Address, 'key'>): never {
  throw new S3Error(501, 'NotImplemented', `gateway does not do this: ${what} ${address.key}`);
}

function xml(root: Raw): Answer {
  return { status: 200, headers: { 'content-type': 'application/xml' }, body: xmlDocument(root) };
}

/** R2's codes (in parentheses at the end of its messages) that have an S3 name of their own. */
const R2_CODES: Record<string, [status: number, code: string]> = {
  '10007': [404, 'NoSuchKey'],
  '10011': [400, 'EntityTooSmall'],
  '10024': [404, 'NoSuchUpload'],
  '10025': [400, 'InvalidPart'],
  '10029': [400, 'KeyTooLongError'],
  '10031': [412, 'PreconditionFailed'],
  '10039': [416, 'InvalidRange'],
  '10048': [400, 'InvalidPart'],
};

function errorAnswer(error: unknown, resource: string): Answer {
  const message = error instanceof Error ? error.message : String(error);
  const [status, code] =
    error instanceof S3Error
      ? [error.status, error.code]
      : (R2_CODES[/\((\d+)\)$/.exec(message)?.[1] ?? ''] ?? [500, 'InternalError']);
  const body = element('Error', element('Code', code), element('Message', message), element('Resource', resource));
  // The error document of S3 has no namespace.
  return {
    status,
    headers: { 'content-type': 'application/xml' },
    body: `<?xml version="1.0" encoding="UTF-8"?>\n${body.xml}`,
  };
}

function send(response: ServerResponse, method: string, result: Answer): void {
  const bodiless = method === 'HEAD' || result.status === 204 || result.status === 304;
  const body = bodiless ? Buffer.alloc(0) : Buffer.from(result.body ?? '');
  const headers: Record<string, string> = { 'x-amz-request-id': '0', ...result.headers };
  if (!bodiless) headers['content-length'] = String(body.length);
  response.writeHead(result.status, headers);
  response.end(body);
}

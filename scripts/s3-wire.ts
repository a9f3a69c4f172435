/**
 * The parts of the S3 protocol that are plain data: addresses, ranges, chunked bodies, XML. Nothing here does I/O.
 * Development only, like `s3-gateway.ts`, which uses it.
 */

/** An answer that is not a success, as S3 names it. */
export class S3Error extends Error {
  override readonly name = 'S3Error';
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export interface Address {
  bucket: string;
  /** Empty for the bucket itself. */
  key: string;
  query: Map<string, string>;
}

/** Reads a path-style request target, `/bucket/key?query`. Throws `S3Error` when an escape is broken. */
export function parseTarget(target: string): Address {
  const mark = target.indexOf('?');
  const path = mark < 0 ? target : target.slice(0, mark);
  const query = new Map<string, string>();
  for (const pair of mark < 0 ? [] : target.slice(mark + 1).split('&')) {
    if (pair === '') continue;
    const [name, ...rest] = pair.split('=');
    // In a query a plus is a blank; in a path it is itself.
    query.set(decode((name ?? '').replaceAll('+', ' ')), decode(rest.join('=').replaceAll('+', ' ')));
  }
  const slash = path.indexOf('/', 1);
  const bucket = decode(slash < 0 ? path.slice(1) : path.slice(1, slash));
  return { bucket, key: slash < 0 ? '' : decode(path.slice(slash + 1)), query };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new S3Error(400, 'InvalidURI', `request target has a broken escape: ${text}`);
  }
}

/** Bytes from an offset, or that many bytes of the end. */
export type ByteRange = { offset: number; length?: number } | { suffix: number };

/**
 * The range a `Range` header asks for. Null when there is none to honour: no header, another unit, several ranges, an
 * end before the start; S3 answers all of these with the whole object. Whether the object reaches so far is not known here.
 */
export function parseRange(header: string | undefined): ByteRange | null {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header?.trim() ?? '');
  if (match === null) return null;
  const [first, last] = [match[1] ?? '', match[2] ?? ''];
  if (first === '') return last === '' ? null : { suffix: Number(last) };
  if (last === '') return { offset: Number(first) };
  return Number(last) < Number(first) ? null : { offset: Number(first), length: Number(last) - Number(first) + 1 };
}

/**
 * The payload of an `aws-chunked` body: lines `<hex size>[;chunk-signature=…]`, each followed by that many bytes and a
 * line end, until a chunk of size 0; trailers after it (checksums) are not read.
 */
export function decodeAwsChunked(body: Buffer): Buffer {
  const parts: Buffer[] = [];
  let at = 0;
  for (;;) {
    const lineEnd = body.indexOf('\r\n', at);
    const size = lineEnd < 0 ? Number.NaN : Number.parseInt(body.toString('latin1', at, lineEnd), 16);
    if (!Number.isInteger(size) || size < 0) throw broken(at);
    if (size === 0) return Buffer.concat(parts);
    const start = lineEnd + 2;
    if (start + size + 2 > body.length || body.toString('latin1', start + size, start + size + 2) !== '\r\n')
      throw broken(at);
    parts.push(body.subarray(start, start + size));
    at = start + size + 2;
  }
}

function broken(at: number): S3Error {
  return new S3Error(400, 'IncompleteBody', `aws-chunked body is broken at byte ${at}`);
}

/** An XML element from its name and its children: text, or elements already rendered. */
export function element(name: string, ...children: (string | Raw)[]): Raw {
  const inner = children.map((child) => (typeof child === 'string' ? escapeXml(child) : child.xml)).join('');
  return { xml: `<${name}>${inner}</${name}>` };
}

export interface Raw {
  xml: string;
}

export function xmlDocument(root: Raw): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${root.xml.replace(/^<(\w+)>/, '<$1 xmlns="http://s3.amazonaws.com/doc/2006-03-01/">')}`;
}

/** Control characters become references too: XML 1.1 permits them so, and clients that cannot read them ask for url encoding. */
function escapeXml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replace(/\p{Cc}/gu, (c) => `&#x${c.charCodeAt(0).toString(16)};`);
}

/** The texts of all elements `name` in a request body, unescaped, in order. Enough for the two bodies S3 clients send. */
export function elementTexts(xml: string, name: string): string[] {
  return [...xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, 'g'))].map((match) => unescapeXml(match[1] ?? ''));
}

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function unescapeXml(text: string): string {
  return text.replace(/&(#x[0-9a-f]+|#\d+|\w+);/gi, (whole, entity: string) => {
    if (!entity.startsWith('#')) return ENTITIES[entity] ?? whole;
    const code = /^#x/i.test(entity) ? Number.parseInt(entity.slice(2), 16) : Number(entity.slice(1));
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

/** `encoding-type=url` of a listing: every byte but unreserved characters and the slash. */
export function urlEncodeKey(key: string): string {
  return encodeURIComponent(key)
    .replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%2F', '/');
}

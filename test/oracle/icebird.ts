import { icebergMetadata, icebergRead } from 'icebird';
import type { NestedField, Schema, Type } from '../../src/core/iceberg/types.ts';
import type { Bucket } from './bucket.ts';
import { type ReadOptions, readTable } from './reader.ts';
import type { Row } from './rows.ts';
import { parsePrimitive } from './values.ts';

type IcebirdMetadata = Awaited<ReturnType<typeof icebergMetadata>>;

/**
 * Rows of the current snapshot as icebird reads them, through the version hint, the manifests and the Parquet files.
 * Its values have its own types: microseconds become a Date, a decimal a number.
 *
 * icebird 0.3.1 knows URLs alone: `s3://` turns into the public address of the bucket, and it calls the global `fetch`.
 * That is replaced while it reads. With `lossless` it gets the metadata from the oracle, ids as bigint, because its own
 * `JSON.parse` rounds ids above 2^53.
 */
export async function icebirdRows(
  bucket: Bucket,
  tablePrefix: string,
  options: ReadOptions & { lossless?: boolean } = {},
): Promise<Record<string, unknown>[]> {
  const table = await readTable(bucket, tablePrefix, { snapshots: 'none', ...options });
  const tableUrl = table.metadata.location;
  const local = (url: string): string | null => {
    const s3 = /^https:\/\/([^./]+)\.s3\.amazonaws\.com\/(.*)$/.exec(url);
    return table.keyOf(s3 === null ? url : `s3://${s3[1]}/${s3[2]}`);
  };
  return withFetch(bucket, local, async () => {
    const metadata = options.lossless
      ? (table.metadata as unknown as IcebirdMetadata)
      : await icebergMetadata({ tableUrl });
    return icebergRead({ tableUrl, metadata });
  });
}

/**
 * Rows of the oracle as icebird would give them, for a comparison: instants as Date (whole milliseconds), decimals as
 * number, binary as text, uuid as bytes, maps as objects.
 */
export function asIcebird(rows: readonly Row[], schema: Pick<Schema, 'fields'>): Row[] {
  return rows.map((row) => seenStruct(schema.fields, row));
}

function seenStruct(fields: readonly NestedField[], row: Row): Row {
  return Object.fromEntries(fields.map((field) => [field.name, seen(field.type, row[field.name] ?? null)]));
}

function seen(type: Type, value: unknown): unknown {
  if (value === null) return null;
  if (typeof type !== 'string') {
    if (type.type === 'struct') return seenStruct(type.fields, value as Row);
    if (type.type === 'list') return (value as unknown[]).map((item) => seen(type.element, item));
    return Object.fromEntries(
      (value as [unknown, unknown][]).map(([key, item]) => [String(key), seen(type.value, item)]),
    );
  }
  const { name, scale } = parsePrimitive(type) ?? { name: type, scale: 0 };
  if (name === 'timestamp' || name === 'timestamptz') return new Date(Number((value as bigint) / 1000n));
  if (name === 'date') return new Date((value as number) * 86_400_000);
  if (name === 'decimal') return Number(value as bigint) / 10 ** scale;
  if (name === 'uuid') return Uint8Array.from(Buffer.from(String(value).replaceAll('-', ''), 'hex'));
  return name === 'binary' ? new TextDecoder().decode(value as Uint8Array) : value;
}

async function withFetch<T>(bucket: Bucket, keyOf: (url: string) => string | null, run: () => Promise<T>): Promise<T> {
  const original = globalThis.fetch;
  globalThis.fetch = (async (input: RequestInfo | URL, init?: RequestInit) => {
    const url = input instanceof Request ? input.url : String(input);
    const key = keyOf(url);
    const bytes = key === null ? null : await bucket.get(key);
    if (bytes === null) return new Response(null, { status: 404, statusText: `no object for ${url}` });
    const range = /^bytes=(\d*)-(\d*)$/.exec(new Headers(init?.headers).get('range') ?? '');
    if (init?.method === 'HEAD')
      return new Response(null, { headers: { 'content-length': String(bytes.length), 'accept-ranges': 'bytes' } });
    if (range === null) return new Response(Uint8Array.from(bytes));
    const start = range[1] === '' ? bytes.length - Number(range[2]) : Number(range[1]);
    const end = range[1] === '' || range[2] === '' ? bytes.length : Number(range[2]) + 1;
    return new Response(Uint8Array.from(bytes.subarray(start, end)), { status: 206 });
  }) as typeof fetch;
  try {
    return await run();
  } finally {
    globalThis.fetch = original;
  }
}

import { gzipSync } from 'node:zlib';
import type { SluiceError } from '../../src/core/base/errors.ts';
import { type Column, entry, isNull } from '../../src/core/columns/columns.ts';
import type { NestedField, Schema, Type } from '../../src/core/iceberg/types.ts';
import { type RowError, type RowsOptions, type RowsRead, readRows } from '../../src/http/rows.ts';

/** `name: type`, required when the type ends in "!". */
export function schemaOf(fields: Record<string, Type>): Schema {
  const list = Object.entries(fields).map(([name, type], i): NestedField => {
    const required = typeof type === 'string' && type.endsWith('!');
    return { id: i + 1, name, required, type: required ? (type as string).slice(0, -1) : type };
  });
  return { type: 'struct', 'schema-id': 0, fields: list };
}

export function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function gzip(text: string): Uint8Array {
  return new Uint8Array(gzipSync(text));
}

/** A stream of the bytes in pieces that end at `cuts`. Counts what was pulled. */
export function streamOf(bytes: Uint8Array, cuts: readonly number[] = [], onPull?: (bytes: number) => void) {
  const edges = [0, ...[...cuts].sort((a, b) => a - b), bytes.length];
  let next = 1;
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      if (next === edges.length) return controller.close();
      const piece = bytes.slice(edges[next - 1], edges[next]);
      next++;
      onPull?.(piece.length);
      controller.enqueue(piece);
    },
  });
}

/** The same as a byte stream, which is read with buffers of the reader's own. */
export function byteStreamOf(bytes: Uint8Array, pieceBytes: number): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    type: 'bytes',
    pull(controller) {
      if (at >= bytes.length) {
        controller.close();
        controller.byobRequest?.respond(0);
        return;
      }
      controller.enqueue(bytes.slice(at, at + pieceBytes));
      at += pieceBytes;
    },
  });
}

export interface Sent {
  type?: string | null;
  encoding?: string | null;
  cuts?: readonly number[];
  options?: Partial<RowsOptions>;
}

export const NDJSON = 'application/x-ndjson';
export const JSON_TYPE = 'application/json';

/** Sends a body to a table of these columns. */
export function send(schema: Schema, body: string | Uint8Array | null, sent: Sent = {}): Promise<RowsRead> {
  const { type = NDJSON, encoding = null, cuts, options } = sent;
  const bytes = typeof body === 'string' ? bytesOf(body) : body;
  return readRows({
    body: bytes === null ? null : streamOf(bytes, cuts),
    contentType: type,
    contentEncoding: encoding,
    schema,
    options: { onError: 'refuse', epochUnit: 'ms', ingestTimeField: null, ...options },
  });
}

/** The error that a promise ends in; fails when it does not. */
export async function refusal(promise: Promise<unknown>): Promise<SluiceError> {
  try {
    await promise;
  } catch (error) {
    return error as SluiceError;
  }
  throw new Error('was accepted');
}

/** Values of a column as JavaScript gives them; text for strings, hexadecimal for fixed. */
export function valuesOf(column: Column): unknown[] {
  const rows = lengthOf(column);
  return Array.from({ length: rows }, (_, row) => {
    if (isNull(column, row)) return null;
    switch (column.kind) {
      case 'boolean':
        return column.values[row] === 1;
      case 'fixed':
        return Buffer.from(column.values.subarray(row * column.width, (row + 1) * column.width)).toString('hex');
      case 'dictionary':
        return Buffer.from(entry(column.dictionary, column.codes[row])).toString();
      case 'bytes':
        return Buffer.from(entry(column.values, row)).toString();
      default:
        return column.values[row];
    }
  });
}

function lengthOf(column: Column): number {
  if (column.kind === 'dictionary') return column.codes.length;
  if (column.kind === 'bytes') return column.values.offsets.length - 1;
  return column.kind === 'fixed' ? column.values.length / column.width : column.values.length;
}

/** All rows as lists of values. */
export function tableOf({ columns }: RowsRead): unknown[][] {
  const lists = columns.columns.map(valuesOf);
  return Array.from({ length: columns.rows }, (_, row) => lists.map((list) => list[row]));
}

/** A table of four columns, of which the first is required. */
export const SCHEMA = schemaOf({ id: 'long!', name: 'string', at: 'timestamptz', v: 'double' });
/** Three rows for it. */
export const THREE = '{"id":1,"name":"a"}\n{"id":2,"v":0.5}\n{"id":3,"at":"2026-01-03T00:00:00Z"}\n';
export const THREE_ROWS = [
  [1n, 'a', null, null],
  [2n, null, null, 0.5],
  [3n, null, 1_767_398_400_000_000n, null],
];

/** Errors of a refused batch. */
export async function errorsOf(promise: Promise<unknown>): Promise<Pick<RowError, 'line' | 'field' | 'type'>[]> {
  const error = await refusal(promise);
  if (error.type !== 'invalid-rows') throw error;
  const { errors } = error.detail as { errors: unknown[] };
  return (errors as RowError[]).map(({ line, field, type }) => ({ line, field, type }));
}

import { describe, expect, test } from 'vitest';
import type { Schema, Type } from '../../../src/core/iceberg/types.ts';
import { footerLength, parseFooter } from '../../../src/core/parquet/reader.ts';
import { fieldsByReader, generalBytes, planGeneral, readGeneral } from '../../../src/core/parquet/table-columns.ts';
import { writeParquet } from '../../../src/core/parquet/writer.ts';
import { compressZstd, decompressGzip, decompressZstd } from '../../../src/platform/zlib.ts';
import { columnsOf, rowsOf } from '../columns/rows.ts';

const optional = (id: number, name: string, type: Type) => ({ id, name, required: false, type });
const struct = (...fields: ReturnType<typeof optional>[]): Type => ({ type: 'struct', fields });
const tags: Type = { type: 'list', 'element-id': 5, element: 'string', 'element-required': false };
const map: Type = { type: 'map', 'key-id': 7, key: 'string', 'value-id': 8, value: 'double', 'value-required': false };
const schemaOf = (...fields: ReturnType<typeof optional>[]): Schema => ({ type: 'struct', 'schema-id': 0, fields });

const WRITTEN = schemaOf(
  optional(1, 'n', 'long'),
  optional(2, 's', struct(optional(3, 'old', 'int'), optional(9, 'gone', 'string'))),
  optional(4, 'tags', tags),
  optional(6, 'm', map),
);

function written(rows: unknown[][], schema = WRITTEN) {
  const options = { rowGroupRows: 1, encodings: 'auto' as const, sortingColumns: [], keyValues: [] };
  const { bytes } = writeParquet(columnsOf(schema, rows), options, compressZstd);
  const footer = parseFooter(bytes.subarray(bytes.length - footerLength(bytes)), bytes.length);
  return { bytes, footer };
}

function read({ bytes, footer }: ReturnType<typeof written>, group: number, schema: Schema, bytesMax = 1_000_000) {
  // Only what is planned is there to be read.
  const pieces = planGeneral(footer, group, schema.fields).map(({ offset, length }) => ({
    offset,
    bytes: bytes.slice(offset, offset + length),
  }));
  const codecs = { zstd: decompressZstd, gzip: decompressGzip };
  return rowsOf(readGeneral(footer, group, schema, pieces, { codecs, bytesMax }));
}

describe('columns of a table by the general reader', () => {
  const rows = [
    [1n, { old: 7, gone: 'x' }, ['a', null], new Map([['k', 0.5]])],
    [2n, null, null, null],
  ];

  test('inner fields are found by id: renamed, widened, added, dropped, and a name that was given again', () => {
    const file = written(rows);
    const now = schemaOf(
      optional(2, 'is', struct(optional(12, 'gone', 'long'), optional(3, 'new', 'long'))),
      optional(4, 'tags', tags),
      optional(6, 'm', map),
    );
    expect(read(file, 0, now)).toEqual([[{ gone: null, new: 7n }, ['a', null], new Map([['k', 0.5]])]]);
    expect(read(file, 1, now)).toEqual([[null, null, null]]);
  });

  test('nested columns go by the general reader, flat ones and those that are not in the file by windows', () => {
    const { footer } = written(rows);
    const schema = schemaOf(...WRITTEN.fields, optional(20, 'later', tags));
    const { windowed, general } = fieldsByReader(footer, schema);
    expect(windowed.map(({ name }) => name)).toEqual(['n', 'later']);
    expect(general.map(({ name }) => name)).toEqual(['s', 'tags', 'm']);
  });

  test('a column goes by windows only when all that its footer names is read there', () => {
    const schema = schemaOf(
      optional(1, 'long', 'long'),
      optional(2, 'double', 'double'),
      optional(3, 'text', 'string'),
      optional(4, 'flag', 'boolean'),
    );
    const { footer } = written([[7n, 0.5, 'x', true]], schema);
    const [{ chunks }] = footer.rowGroups;
    const byWindows = (given: { codec?: number; encodings?: number[] }): string => {
      const altered = { ...footer, rowGroups: [{ rows: 1, chunks: chunks.map((chunk) => ({ ...chunk, ...given })) }] };
      return fieldsByReader(altered, schema)
        .windowed.map(({ name }) => name)
        .join(' ');
    };
    const all = 'long double text flag';
    // By number: plain, both dictionaries, levels; deltas; deltas of lengths and of texts; streams of bytes; a later one.
    expect(Array.from({ length: 11 }, (_, encoding) => byWindows({ encodings: [0, encoding] }))).toEqual([
      all,
      '',
      all,
      all,
      all,
      'long',
      '',
      '',
      all,
      'double',
      '',
    ]);
    // Plain, snappy and zstd.
    expect(Array.from({ length: 8 }, (_, codec) => byWindows({ codec }))).toEqual([all, all, '', '', '', '', all, '']);
  });

  test('memory is told by the footer, and pages that inflate to more are refused', () => {
    const text = 'x'.repeat(10_000);
    const file = written([[1n, null, Array.from({ length: 50 }, (_, i) => text + i), null]]);
    const [, , tagsField] = WRITTEN.fields;
    const bytes = generalBytes(file.footer, 0, [tagsField]);
    expect(bytes).toBeGreaterThan(2 * 500_000);
    expect(bytes).toBeLessThan(2 * 510_000);
    expect(() => read(file, 0, schemaOf(tagsField), 400_000)).toThrow(
      expect.objectContaining({ type: 'parquet-unsupported' }),
    );
  });

  test('a type that is none of the field is told by column', () => {
    const file = written(rows);
    expect(() => read(file, 0, schemaOf(optional(4, 'tags', { ...tags, element: 'date' })))).toThrow(
      expect.objectContaining({
        message: 'parquet file: column tags has an element that is stored as text, not as date',
      }),
    );
    expect(() => read(file, 0, schemaOf(optional(2, 's', tags)))).toThrow(
      expect.objectContaining({ message: 'parquet file: column s is stored as struct, not as list' }),
    );
  });
});

import { describe, expect, it } from 'vitest';
import { type AvroFile, readAvro, writeAvro } from './avro.ts';
import { loadFixture } from './fixtures/load.ts';
import { parseJson, printJson } from './json.ts';
import { readFooter, readPageIndex, readRecords } from './parquet.ts';
import { readThrift, writeThrift } from './thrift.ts';

describe('json: without loss', () => {
  it('reads integers as bigint and other numbers as number', () => {
    expect(parseJson('{"a":9223372036854775807,"b":-0.5,"c":1e3,"d":[true,null,"\\u00e9\\n"]}')).toEqual({
      a: 9223372036854775807n,
      b: -0.5,
      c: 1000,
      d: [true, null, 'é\n'],
    });
    expect(printJson({ a: 9223372036854775807n, b: [] })).toBe('{"a":9223372036854775807,"b":[]}');
  });

  it.each(['', '{', '[1,]', '{"a":1,"a":2}', '{} {}', '\uFEFF{}', '01', 'nul', '"a', '{a:1}', '[1 2]'])(
    'refuses %j',
    (text) => {
      expect(() => parseJson(text)).toThrow(/^json: |JSON/);
    },
  );

  it('refuses bytes that are not UTF-8', () => {
    expect(() => parseJson(Uint8Array.of(0x22, 0xff, 0x22))).toThrow();
  });
});

describe('avro: containers', () => {
  const file: AvroFile = {
    schema: {
      type: 'record',
      name: 'r',
      fields: [
        { name: 'id', type: 'long' },
        { name: 'bytes', type: ['null', 'bytes'], default: null },
      ],
    },
    meta: new Map([['key', 'é']]),
    codec: 'deflate',
    sync: new Uint8Array(16).fill(7),
    blocks: 1,
    records: [0n, -1n, 2n ** 63n - 1n, -(2n ** 63n), -4503599627370497n].map((id) => ({
      id,
      bytes: id === 0n ? null : Uint8Array.of(1, 2),
    })),
  };

  it.each(['null', 'deflate'])('J5 keeps every long in codec %s', (codec) => {
    expect(readAvro(writeAvro({ ...file, codec }))).toEqual({ ...file, codec });
  });

  it('reads several blocks', () => {
    const one = writeAvro({ ...file, records: [] });
    const whole = writeAvro(file);
    const block = whole.slice(one.length);
    const two = Uint8Array.of(...whole, ...block);
    expect(readAvro(two)).toMatchObject({ blocks: 2, records: [...file.records, ...file.records] });
  });

  it('reads the same with the plain decoder, which stands in where avsc cannot be loaded', () => {
    for (const name of ['types', 'paged', 'engine'] as const)
      for (const [key, bytes] of loadFixture(name))
        if (key.endsWith('.avro')) expect(readAvro(bytes, true)).toEqual(readAvro(bytes));
    expect(readAvro(writeAvro(file), true)).toEqual(file);
    expect(() => readAvro(writeAvro(file).slice(0, -1), true)).toThrow('past the end');
  });

  it('refuses what is cut, broken or of another codec', () => {
    const bytes = writeAvro(file);
    expect(() => readAvro(bytes.slice(0, -1))).toThrow('past the end');
    expect(() => readAvro(Uint8Array.of(...bytes.slice(0, -1), 8))).toThrow('sync of block 0');
    expect(() => readAvro(new Uint8Array(40))).toThrow('no container file');
    expect(() => readAvro(writeAvro({ ...file, codec: 'zstandard' }))).toThrow('codec zstandard');
  });
});

describe('thrift and parquet: footers', () => {
  it('writes a footer back byte for byte', () => {
    for (const name of ['types', 'paged', 'engine'] as const)
      for (const [key, bytes] of loadFixture(name)) {
        if (!key.endsWith('.parquet')) continue;
        const { start } = readFooter(bytes);
        const { value, end } = readThrift(bytes, start);
        expect(writeThrift(value)).toEqual(bytes.slice(start, end));
      }
  });

  it('finds row groups, pages and statistics', () => {
    const objects = loadFixture('paged');
    const key = [...objects.keys()].find((name) => name.endsWith('.parquet')) as string;
    const footer = readFooter(objects.get(key) as Uint8Array);
    expect(footer.leaves.map((leaf) => [leaf.name, leaf.fieldId, leaf.physical, leaf.logical])).toEqual([
      ['time', 1, 'INT64', 'TIMESTAMP(MICROS,true)'],
      ['device', 2, 'BYTE_ARRAY', 'STRING'],
      ['value', 3, 'DOUBLE', undefined],
      ['count', 4, 'INT64', undefined],
    ]);
    expect(footer.rowGroups.map((group) => group.rows)).toEqual([240n, 120n]);
    const index = readPageIndex(objects.get(key) as Uint8Array, footer.rowGroups[0].chunks[0]);
    expect(index?.pages.map((page) => page.firstRow)).toEqual([0, 60, 120, 180]);
    expect(index?.nullCounts).toEqual([0n, 0n, 0n, 0n]);
  });

  it('gives bare records: no instant, no text, no number is converted', async () => {
    const objects = loadFixture('paged');
    const key = [...objects.keys()].find((name) => name.endsWith('.parquet')) as string;
    const [first] = await readRecords(objects.get(key) as Uint8Array);
    expect(first).toEqual({
      time: 1_764_000_000_000_007n,
      device: new TextEncoder().encode('device-number-0000'),
      value: null,
      count: 2n ** 60n,
    });
  });

  it('refuses a file without its magic bytes', () => {
    expect(() => readFooter(new Uint8Array(20))).toThrow('magic');
  });
});

import { describe, expect, test } from 'vitest';
import { formatOf } from '../../../scripts/cli/formats.ts';
import { type Bounds, pieces } from '../../../scripts/cli/pieces.ts';

const LARGE: Bounds = { rowsMax: 1000, bytesMax: 1 << 20 };

/** Bodies of a file that comes in chunks of `chunk` bytes: text, records and line offset. */
async function cut(file: string, text: string, bounds: Partial<Bounds> = {}, chunk = 7) {
  const bytes = Buffer.from(text);
  async function* source() {
    for (let at = 0; at < bytes.length; at += chunk) yield bytes.subarray(at, at + chunk);
  }
  const out: [body: string, records: number, lineOffset: number][] = [];
  for await (const piece of pieces(source(), formatOf(file, null).format, { ...LARGE, ...bounds })) {
    expect(piece.number).toBe(out.length);
    out.push([Buffer.from(piece.body).toString(), piece.records, piece.lineOffset]);
  }
  return out;
}

describe('pieces of a file', () => {
  test('lines: whole ones, by rows and by bytes, the last without its end', async () => {
    expect(await cut('a.ndjson', '{"a":1}\n{"a":2}\n{"a":3}', { rowsMax: 2 })).toEqual([
      ['{"a":1}\n{"a":2}\n', 2, 0],
      ['{"a":3}', 1, 2],
    ]);
    expect(await cut('a.ndjson', '{"a":1}\n{"a":2}\n{"a":3}\n', { bytesMax: 8 })).toHaveLength(3);
    expect(await cut('a.ndjson', '')).toEqual([]);
    expect(await cut('a.ndjson', '\ufeff{"a":1}\n')).toEqual([['{"a":1}\n', 1, 0]]);
  });

  test('csv: each piece has the header, newlines in quotes end nothing, lines are those of the file', async () => {
    const text = 'a,"b\nc"\r\n1,"x\ny"\r\n2,"say ""hi""\n"\r\n3,z\r\n';
    expect(await cut('a.csv', text, { rowsMax: 2 })).toEqual([
      ['a,"b\nc"\r\n1,"x\ny"\r\n2,"say ""hi""\n"\r\n', 2, 0],
      ['a,"b\nc"\r\n3,z\r\n', 1, 4],
    ]);
    expect(await cut('a.csv', 'a,b\n')).toEqual([['a,b\n', 0, 0]]);
    expect(await cut('a.csv', 'a,b')).toEqual([['a,b', 0, 0]]);
  });

  test('points: a newline in a text ends nothing, quotes elsewhere open nothing', async () => {
    const text = 'm,t="q v="a\nb\\"" 1\nm x=1 2\nm v="c:\\\\" 3\n';
    expect(await cut('a.lp', text, { rowsMax: 1 })).toEqual([
      ['m,t="q v="a\nb\\"" 1\n', 1, 0],
      ['m x=1 2\n', 1, 2],
      ['m v="c:\\\\" 3\n', 1, 3],
    ]);
  });

  test('json: elements, however they are written', async () => {
    const text = ' [{"a":[1,2],"b":"],["},\n {"a":"\\"}"}\n, 3 ]\n ';
    for (const chunk of [1, 7, 1000]) {
      const found = await cut('a.json', text, { rowsMax: 1 }, chunk);
      expect(found.map(([body]) => JSON.parse(body))).toEqual([[{ a: [1, 2], b: '],[' }], [{ a: '"}' }], [3]]);
      expect(found.map(([, records, offset]) => [records, offset])).toEqual([
        [1, 0],
        [1, 1],
        [1, 2],
      ]);
    }
    expect(await cut('a.json', '[{"a":1},{"a":2}]')).toEqual([['[{"a":1},{"a":2}]', 2, 0]]);
    expect(await cut('a.json', '[]')).toEqual([['[]', 1, 0]]);
    expect(await cut('a.json', '{"a":[1,2]}')).toEqual([['{"a":[1,2]}', 1, 0]]);
  });

  test('B068: a JSON array that is cut is not taken for a whole one', async () => {
    await expect(cut('a.json', '[1,2,12')).rejects.toThrow('file ends inside of its array, behind 0 elements');
    await expect(cut('a.json', '[1,2,', { rowsMax: 1 })).rejects.toThrow('behind 2 elements');
    await expect(cut('a.json', '[1] [2]')).rejects.toThrow('goes on behind its array');
  });

  test('files that are not cut are sent whole', async () => {
    expect(await cut('a.parquet', 'PAR1\nx\n')).toEqual([['PAR1\nx\n', 0, 0]]);
  });
});

test('formats: by suffix, also before .gz and .zst, or as told', () => {
  const of = (file: string, given: string | null = null) => {
    const { format, packing } = formatOf(file, given);
    return [format.name, packing];
  };
  expect(of('x/rows.JSONL')).toEqual(['ndjson', null]);
  expect(of('rows.csv.gz')).toEqual(['csv', 'gzip']);
  expect(of('rows.v2.tsv.zst')).toEqual(['tsv', 'zstd']);
  expect(of('rows.gz', 'points')).toEqual(['points', 'gzip']);
  expect(of('-')).toEqual(['ndjson', null]);
  expect(() => of('rows')).toThrow('--format');
  expect(() => of('rows.csv', 'xml')).toThrow('--format is one of');
});

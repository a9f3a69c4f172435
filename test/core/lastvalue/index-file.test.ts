import { describe, expect, test } from 'vitest';
import { INDEXES_KEPT_MAX } from '../../../src/core/base/index-limits.ts';
import type { Columns } from '../../../src/core/columns/columns.ts';
import { concat } from '../../../src/core/columns/concat.ts';
import { newestOf } from '../../../src/core/lastvalue/fold.ts';
import { readIndex, writeIndex } from '../../../src/core/lastvalue/index-file.ts';
import { IndexMemory } from '../../../src/core/lastvalue/memory.ts';
import { codecs } from '../../../src/engine/codecs.ts';
import { readFooter } from '../../oracle/parquet.ts';
import { rowsOfFile, spell } from '../../oracle/rows.ts';
import { flatSample, nestedSample } from './samples.ts';

const { compress, decompress } = codecs;

const spelled = async (bytes: Uint8Array, { schema }: Columns) => (await rowsOfFile(bytes, schema)).map(spell);

describe('index file', () => {
  test.each([
    ['flat columns of every type', flatSample()],
    ['lists, structs and maps', nestedSample()],
  ])('what is written is read again: %s', async (_name, columns) => {
    const bytes = writeIndex(columns, 'auto', compress);
    const again = readIndex(bytes, columns.schema, decompress);
    expect(again.rows).toBe(columns.rows);
    // Read by a reader that is not ours, both must say the same.
    expect(await spelled(writeIndex(again, 'auto', compress), again)).toEqual(await spelled(bytes, columns));
  });

  test('it has the table’s field ids and states no order of its rows', () => {
    const { root } = readFooter(writeIndex(flatSample(), 'auto', compress));
    expect(JSON.stringify(root.children.map(({ fieldId }) => fieldId))).toBe(
      JSON.stringify(flatSample().schema.fields.map(({ id }) => id)),
    );
  });

  test('of an older schema: a column that is new is null, one that is gone is left out', () => {
    const columns = flatSample();
    const [first, ...others] = columns.schema.fields;
    const schema = {
      ...columns.schema,
      fields: [...others, { id: 99, name: 'new', required: false, type: 'string' as const }],
    };
    const read = readIndex(writeIndex(columns, 'auto', compress), schema, decompress);
    expect(read.schema.fields.map(({ name }) => name)).not.toContain(first.name);
    expect(read.columns.at(-1)?.validity).toEqual(new Uint8Array(columns.rows));
  });

  test('damaged bytes are told as such, never read as rows', () => {
    const columns = flatSample();
    const bytes = writeIndex(columns, 'auto', compress);
    for (const broken of [new Uint8Array(), new Uint8Array(40), bytes.slice(0, bytes.length / 2), bytes.slice(9)]) {
      expect(() => readIndex(broken, columns.schema, decompress)).toThrow(
        expect.objectContaining({ name: 'SluiceError' }) as Error,
      );
    }
  });

  test('no rows make a file too', () => {
    const { schema } = flatSample();
    expect(readIndex(writeIndex(concat([], schema), 'auto', compress), schema, decompress).rows).toBe(0);
  });
});

describe('index memory', () => {
  test('the last few are kept, those used last the longest', () => {
    const memory = new IndexMemory();
    const rows = flatSample();
    expect(newestOf(rows, { keyIds: [], timeId: rows.schema.fields[0].id, ingestTimeId: null })).toHaveLength(1);
    for (let i = 0; i < INDEXES_KEPT_MAX; i++) memory.put(`i${i}`, rows);
    expect(memory.get('i0')).toBe(rows);
    memory.put('more', rows);
    expect(memory.get('i0')).toBe(rows);
    expect(memory.get('i1')).toBeNull();
  });
});

import { snappyUncompress } from 'hyparquet';
import { describe, expect, test } from 'vitest';
import { decompressSnappy } from '../../../src/core/parquet/snappy.ts';

/** Length of six, a literal of two, a copy of four from two back. */
const ABAB = Uint8Array.of(6, 0x04, 97, 98, 0x01, 2);
const CORRUPT = expect.objectContaining({ kind: 'corrupt', type: 'parquet-corrupt' });

describe('snappy', () => {
  test('literals and copies of all forms, also such as overlap themselves', () => {
    const cases: [block: number[], text: string][] = [
      [[0], ''],
      [[3, 0x08, 97, 98, 99], 'abc'],
      [[6, 0x04, 97, 98, 0x01, 2], 'ababab'],
      [[5, 0x00, 97, ((4 - 1) << 2) | 2, 1, 0], 'aaaaa'],
      [[5, 0x00, 97, ((4 - 1) << 2) | 3, 1, 0, 0, 0], 'aaaaa'],
      [[61, 60 << 2, 60, ...new Array(61).fill(98)], 'b'.repeat(61)],
      [[61, 61 << 2, 60, 0, ...new Array(61).fill(98)], 'b'.repeat(61)],
    ];
    for (const [block, text] of cases) {
      const out = decompressSnappy(Uint8Array.from(block), text.length);
      expect(Buffer.from(out).toString()).toBe(text);
      const other = new Uint8Array(text.length);
      if (text !== '') snappyUncompress(Uint8Array.from(block), other);
      expect(out).toEqual(other);
    }
  });

  test('damage is told: wrong length, copies from nowhere, ends too early', () => {
    const broken: [block: number[], length: number][] = [
      [[], 0],
      [[0xff, 0xff, 0xff, 0xff, 0xff], 3],
      [[3, 0x08, 97, 98, 99], 4],
      [[3, 0x08, 97, 98], 3],
      [[4, 0x08, 97, 98, 99], 4],
      [[4, 0x00, 97, 0x01, 2], 4],
      [[5, 0x00, 97, 0x01, 0], 5],
      [[3, 0x00, 97, 0x01, 1], 3],
      [[3, 0x00, 97, 0x02, 1], 3],
      [[3, 63 << 2, 0xff, 0xff, 0xff, 0xff, 97], 3],
    ];
    for (const [block, length] of broken) {
      expect(() => decompressSnappy(Uint8Array.from(block), length)).toThrow(CORRUPT);
    }
    expect(Buffer.from(decompressSnappy(ABAB, 6)).toString()).toBe('ababab');
    expect(() => decompressSnappy(ABAB, 5)).toThrow(CORRUPT);
  });
});

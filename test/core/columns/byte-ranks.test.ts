import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compareBytes, concat } from '../../../src/core/base/bytes.ts';
import { ranksOf } from '../../../src/core/columns/byte-ranks.ts';
import type { ByteStrings } from '../../../src/core/columns/columns.ts';

function stringsOf(entries: Uint8Array[]): ByteStrings {
  const offsets = new Int32Array(entries.length + 1);
  entries.forEach((entry, i) => {
    offsets[i + 1] = offsets[i] + entry.length;
  });
  return { bytes: concat(entries), offsets };
}

function naiveRanks(entries: Uint8Array[]): { ranks: Uint32Array; distinct: number } {
  const order = entries.map((_, i) => i).sort((a, b) => compareBytes(entries[a], entries[b]));
  const ranks = new Uint32Array(entries.length);
  let distinct = 0;
  order.forEach((index, i) => {
    if (i > 0 && compareBytes(entries[order[i - 1]], entries[index]) !== 0) distinct++;
    ranks[index] = distinct;
  });
  return { ranks, distinct: entries.length === 0 ? 0 : distinct + 1 };
}

// Few different bytes and shared beginnings: prefixes, extensions by zero, ties and deep recursion all occur.
const alike = fc
  .tuple(
    fc.constantFrom([], [1, 1, 1, 1], [1, 1, 1, 1, 0, 255, 7]),
    fc.array(fc.constantFrom(0, 1, 255), { maxLength: 9 }),
  )
  .map(([beginning, rest]) => Uint8Array.from([...beginning, ...rest]));

test('byte ranks: few entries, as comparing them says', () => {
  fc.assert(
    fc.property(fc.array(alike, { maxLength: 20 }), (entries) => {
      expect(ranksOf(stringsOf(entries))).toEqual(naiveRanks(entries));
    }),
  );
});

test.each([200, 3000])('byte ranks: %d entries, which take the radix passes', (count) => {
  for (let seed = 1; seed <= 5; seed++) {
    const entries = fc.sample(fc.oneof(alike, fc.uint8Array({ maxLength: 12 })), { seed, numRuns: count });
    expect(ranksOf(stringsOf(entries))).toEqual(naiveRanks(entries));
  }
});

test('byte ranks: thousands of long texts that differ only at the end take no quadratic time', () => {
  const entries = Array.from({ length: 2000 }, (_, i) =>
    new TextEncoder().encode(`${'x'.repeat(2000)}${(i * 7919) % 2000}`),
  );
  entries.push(Uint8Array.of(1));
  expect(ranksOf(stringsOf(entries))).toEqual(naiveRanks(entries));
});

import { expect, test } from 'vitest';
import { leftAlone, liveFileOf } from '../../../src/core/maintain/live-files.ts';
import { PureTable, row } from '../commit/pure-table.ts';

test('a file whose manifest list says that its manifest holds only later ones is left alone: no replace would find it', () => {
  const table = new PureTable();
  for (let i = 1; i <= 3; i++) table.append(row(0, i));
  const reasons = table.list().flatMap((manifest) =>
    table.entriesOf(manifest).map((entry) => {
      const stated = { ...manifest, minSequenceNumber: 2n };
      return [entry.sequenceNumber, leftAlone(liveFileOf(entry, stated, null), table.metadata, new Set())];
    }),
  );
  expect(reasons).toEqual([
    [3n, null],
    [2n, null],
    [1n, 'no-sequence-number'],
  ]);
});

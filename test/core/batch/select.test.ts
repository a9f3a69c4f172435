import { describe, expect, test } from 'vitest';
import type { Frame, Producer } from '../../../src/core/batch/frame.ts';
import { select } from '../../../src/core/batch/select.ts';

const LEDGER = '00000000000000aa';
const NONE: ReadonlySet<string> = new Set();

function frame(sequence: number, producer: Producer | null = null): Frame {
  return {
    sequence,
    producer,
    digest: '',
    batchId: null,
    schemaId: 0,
    rows: 1,
    partitions: 1,
    body: new Uint8Array(1),
  };
}

const dense = (app: string, epoch: bigint): Producer => ({ app, epoch, sparse: false });

function selected(frames: Frame[], epochs: Record<string, bigint>) {
  const input = { epochs: new Map(Object.entries(epochs)), ledgerId: LEDGER, refused: new Map(), parked: NONE };
  const { included, leftOut } = select(frames, input);
  return { included: included.map(({ sequence }) => sequence), leftOut };
}

describe('select: frames that a commit of this ledger has gone past', () => {
  const own = `sluice/${LEDGER}`;

  test('select: they are in the table, as far as anybody can tell', () => {
    const frames = [frame(1), frame(2, dense('a', 4n)), frame(3)];
    expect(selected(frames, { [own]: 2n, a: 4n })).toEqual({
      included: [3],
      leftOut: [
        { sequence: 1, outcome: 'committed', type: '' },
        { sequence: 2, outcome: 'committed', type: '' },
      ],
    });
  });

  test('select: not those whose own epoch the table has not reached; that app waits for its owner', () => {
    const frames = [frame(1, dense('a', 4n)), frame(2, dense('b', 1n)), frame(3, dense('a', 5n)), frame(4)];
    expect(selected(frames, { [own]: 2n, a: 3n })).toEqual({
      included: [4],
      leftOut: [
        { sequence: 1, outcome: 'parked', type: 'epoch-left-out' },
        { sequence: 2, outcome: 'parked', type: 'epoch-left-out' },
        { sequence: 3, outcome: 'parked', type: 'app-parked' },
      ],
    });
  });
});

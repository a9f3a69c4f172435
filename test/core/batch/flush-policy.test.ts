import { describe, expect, test } from 'vitest';
import { flushDueMs } from '../../../src/core/batch/flush-policy.ts';
import { parseIntent, serializeIntent } from '../../../src/core/batch/intent.ts';
import { parseReceiptId, receiptId } from '../../../src/core/batch/receipt.ts';

const flush = { intervalMs: 10_000, rows: 100, bytes: 1000 };
const bounds = { gatherMs: 50, commitIntervalMinMs: 1000 };
const facts = { rows: 1, bytes: 1, oldestMs: 5000, waiterMs: null, lastCommitMs: null };

describe('flush policy', () => {
  test('due: never while the buffer is empty', () => {
    expect(flushDueMs({ ...facts, oldestMs: null, waiterMs: 1 }, flush, bounds)).toBeNull();
  });

  test('due: at the age of the oldest row', () => {
    expect(flushDueMs(facts, flush, bounds)).toBe(15_000);
  });

  test('B209 due: at once with enough rows or bytes, whatever their age', () => {
    expect(flushDueMs({ ...facts, rows: 100 }, flush, bounds)).toBe(5000);
    expect(flushDueMs({ ...facts, bytes: 1000 }, flush, bounds)).toBe(5000);
  });

  test('due: a waiting caller hurries it, but not below the least interval between commits', () => {
    expect(flushDueMs({ ...facts, waiterMs: 6000 }, flush, bounds)).toBe(6050);
    expect(flushDueMs({ ...facts, waiterMs: 6000, lastCommitMs: 5900 }, flush, bounds)).toBe(6900);
    expect(flushDueMs({ ...facts, waiterMs: 14_990, lastCommitMs: 14_900 }, flush, bounds)).toBe(15_000);
  });
});

describe('intent', () => {
  const intent = {
    form: 1 as const,
    operation: 'append' as const,
    commitId: 'c'.repeat(32),
    snapshotId: 9007199254740991n,
    timeMs: 1,
    ledgerId: '00000000000000aa',
    first: 1,
    last: 2,
    rows: 3,
    tableUuid: 'u',
    retire: [],
  };

  test('intent: comes back from its text as it was', () => {
    expect(parseIntent(serializeIntent(intent))).toEqual(intent);
  });

  test('intent: of a newer build is not run', () => {
    expect(() => parseIntent(serializeIntent(intent).replace('"form":1', '"form":3'))).toThrow('unknown form');
    expect(() => parseIntent(serializeIntent(intent).replace('"append"', '"replace"'))).toThrow('unknown form');
  });
});

describe('receipt id', () => {
  test('receipt id: names ledger and sequence, and nothing else is one', () => {
    const id = receiptId('00000000000000aa', 42);
    expect(parseReceiptId(id)).toEqual({ ledgerId: '00000000000000aa', sequence: 42 });
    for (const text of ['', '42', '00000000000000aa-0', '00000000000000aa-', '00000000000000AA-1', `${id} `]) {
      expect(parseReceiptId(text), text).toBeNull();
    }
  });
});

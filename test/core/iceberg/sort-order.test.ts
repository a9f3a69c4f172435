import { describe, expect, it } from 'vitest';
import {
  checkSortOrder,
  comparator,
  parseSortOrder,
  rebindSortOrder,
  sameSortOrder,
  seriesTimeOrder,
  UNSORTED,
} from '../../../src/core/iceberg/sort-order.ts';
import type { SortField, SortOrder, Value } from '../../../src/core/iceberg/types.ts';
import { field, SCHEMA } from './fixtures.ts';

const by = (
  source: number,
  direction: SortField['direction'],
  nulls: SortField['null-order'],
  transform = 'identity',
) => ({
  'source-id': source,
  transform,
  direction,
  'null-order': nulls,
});

describe('seriesTimeOrder', () => {
  it('is series columns in turn, then time, ascending, nulls first, under id 1', () => {
    expect(seriesTimeOrder(SCHEMA, ['device'], 'time')).toEqual({
      'order-id': 1,
      fields: [by(2, 'asc', 'nulls-first'), by(1, 'asc', 'nulls-first')],
    });
    expect(() => seriesTimeOrder(SCHEMA, ['nope'], 'time')).toThrow(
      expect.objectContaining({ type: 'bad-sort-order' }),
    );
  });
});

describe('comparator', () => {
  const sorted = (order: SortOrder, rows: Value[][]) => [...rows].sort(comparator(order, SCHEMA));

  it('compares field by field, with text by code point', () => {
    const order = seriesTimeOrder(SCHEMA, ['device'], 'time');
    const rows: Value[][] = [
      ['😀', 1n],
      ['\uFFFD', 2n],
      ['a', 9007199254740993n],
      ['a', 9007199254740992n],
      [null, 5n],
    ];
    expect(sorted(order, rows)).toEqual([rows[4], rows[3], rows[2], rows[1], rows[0]]);
  });
  it('puts nulls where the order says, whatever the direction', () => {
    const rows: Value[][] = [[1], [null], [2]];
    expect(sorted({ 'order-id': 1, fields: [by(3, 'desc', 'nulls-first')] }, rows)).toEqual([[null], [2], [1]]);
    expect(sorted({ 'order-id': 1, fields: [by(3, 'desc', 'nulls-last')] }, rows)).toEqual([[2], [1], [null]]);
    expect(sorted({ 'order-id': 1, fields: [by(3, 'asc', 'nulls-last')] }, rows)).toEqual([[1], [2], [null]]);
  });
  it('compares what the transform makes of a value', () => {
    const compare = comparator({ 'order-id': 1, fields: [by(1, 'asc', 'nulls-first', 'day')] }, SCHEMA);
    expect(compare([1n], [2n])).toBe(0);
    expect(compare([-1n], [0n])).toBeLessThan(0);
  });
  it('says equal under the unsorted order', () => {
    expect(comparator(UNSORTED, SCHEMA)([], [])).toBe(0);
  });
});

describe('sort orders', () => {
  it('M10: 0 is for unsorted and for nothing else', () => {
    expect(parseSortOrder({ 'order-id': 0, fields: [] })).toEqual(UNSORTED);
    expect(() => parseSortOrder({ 'order-id': 1, fields: [] })).toThrow(
      expect.objectContaining({ type: 'bad-sort-order' }),
    );
    expect(() => parseSortOrder({ 'order-id': 0, fields: [by(3, 'asc', 'nulls-first')] })).toThrow();
  });
  it('parse strictly', () => {
    for (const wrong of [{ direction: 'up' }, { 'null-order': 'last' }, { transform: 'zip' }, { 'source-id': 'x' }]) {
      expect(() => parseSortOrder({ 'order-id': 1, fields: [{ ...by(3, 'asc', 'nulls-first'), ...wrong }] })).toThrow(
        expect.objectContaining({ kind: 'invalid' }),
      );
    }
  });
  it('need sources with one value a row', () => {
    const list = { type: 'list' as const, 'element-id': 5, element: 'int', 'element-required': false };
    const schema = { ...SCHEMA, fields: [...SCHEMA.fields, field(4, 'l', list)] };
    for (const id of [99, 4, 5]) {
      expect(() => checkSortOrder({ 'order-id': 1, fields: [by(id, 'asc', 'nulls-first')] }, schema)).toThrow(
        expect.objectContaining({ type: 'bad-sort-order' }),
      );
    }
  });
  it('follow fresh ids, and are compared without their own', () => {
    const order = { 'order-id': 3, fields: [by(3, 'asc', 'nulls-first')] };
    const moved = rebindSortOrder(order, new Map([[3, 8]]));
    expect(moved.fields[0]['source-id']).toBe(8);
    expect(sameSortOrder(order, { ...order, 'order-id': 9 })).toBe(true);
    expect(sameSortOrder(order, moved)).toBe(false);
    expect(() => rebindSortOrder(order, new Map())).toThrow();
  });
});

import { describe, expect, test } from 'vitest';
import { QUERY_VALUES_MAX } from '../../src/core/base/limits.ts';
import { bindFilters, splitQuery, timeParameter } from '../../src/read/query.ts';
import { schemaOf } from '../core/columns/rows.ts';

const SCHEMA = schemaOf([
  ['device', 'string'],
  ['limit', 'long'],
  ['site', 'int'],
  ['value', 'double'],
]);
const SERIES = ['device', 'limit', 'site'];

function filters(query: string) {
  return bindFilters(splitQuery(new URLSearchParams(query), ['limit', 'from', 'to']).filters, SCHEMA, SERIES);
}

describe('filters of an address', () => {
  test('a column by its values, each by its type; parameters are apart', () => {
    expect(filters('device=a&device=b%26c&site=-7')).toEqual([
      { fieldId: 1, type: 'string', values: ['a', 'b&c'] },
      { fieldId: 3, type: 'int', values: [-7] },
    ]);
    const { parameters } = splitQuery(new URLSearchParams('limit=3&device=a'), ['limit']);
    expect([...parameters]).toEqual([['limit', '3']]);
  });

  test('columns named like a parameter, rows without a value', () => {
    expect(filters('where.limit=9007199254740993&limit=5')).toEqual([
      { fieldId: 2, type: 'long', values: [9_007_199_254_740_993n] },
    ]);
    expect(filters('is_null=device&device=')).toEqual([{ fieldId: 1, type: 'string', values: [null, ''] }]);
  });

  test.each([
    ['other=1', 'device, limit, site'],
    ['value=1', 'device, limit, site'],
    ['site=x', 'column site must be'],
    ['site=9999999999', 'column site must be'],
    ['limit=1&limit=2', 'given twice'],
    [Array.from({ length: QUERY_VALUES_MAX + 1 }, (_, i) => `site=${i}`).join('&'), 'more than'],
  ])('refused: %.20s', (query, reason) => {
    expect(() => filters(query)).toThrow(reason);
  });

  test('times: UTC, zones, and a plus that was not encoded', () => {
    const time = (query: string) => timeParameter(new Map(new URLSearchParams(query)), 'from');
    expect(time('')).toBeNull();
    expect(time('from=1970-01-01T00:00:01Z')).toBe(1_000_000n);
    expect(time('from=1970-01-01T00:00:01')).toBe(1_000_000n);
    expect(time('from=1970-01-01T01:00:01+01:00')).toBe(1_000_000n);
    expect(time('from=1970-01-01T01:00:01%2B01:00')).toBe(1_000_000n);
    expect(() => time('from=yesterday')).toThrow('from is not a time');
  });
});

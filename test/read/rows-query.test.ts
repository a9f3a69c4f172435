import { describe, expect, test } from 'vitest';
import { ROWS_LIMIT } from '../../src/core/base/read-limits.ts';
import { parseRowsQuery } from '../../src/read/rows-query.ts';

const parse = (query: string) => parseRowsQuery(new URLSearchParams(query));

describe('the address of rows', () => {
  test('without parameters: the first rows of main, all columns', () => {
    expect(parse('')).toEqual({
      from: null,
      to: null,
      filters: { columns: new Map() },
      columns: null,
      limit: ROWS_LIMIT.default,
      order: 'asc',
      at: null,
    });
  });

  test('all of them; what is no parameter is a filter', () => {
    const query =
      'from=1969-12-31T23:59:59.999999Z&to=1970-01-01T00:00:00Z&columns=b,a&limit=7&order=desc&ref=x&d=1&d=2';
    expect(parse(query)).toEqual({
      from: -1n,
      to: 0n,
      filters: { columns: new Map([['d', ['1', '2']]]) },
      columns: ['b', 'a'],
      limit: 7,
      order: 'desc',
      at: { ref: 'x' },
    });
    expect(parse('from=2026-01-01')).toMatchObject({ from: 1_767_225_600_000_000n, to: null });
  });

  test('columns named like a parameter, or twice', () => {
    expect(parse('where.limit=3&where.where.x=1&is_null=ref').filters.columns).toEqual(
      new Map([
        ['limit', ['3']],
        ['where.x', ['1']],
        ['ref', [null]],
      ]),
    );
    expect(parse('columns=a,b,a,').columns).toEqual(['a', 'b']);
  });

  test('bounds of the limit, ids of 64 bits', () => {
    expect(parse('limit=1').limit).toBe(1);
    expect(parse(`limit=${ROWS_LIMIT.max}`).limit).toBe(ROWS_LIMIT.max);
    expect(parse('snapshot_id=9223372036854775807').at).toEqual({ snapshotId: 2n ** 63n - 1n });
  });

  test.each([
    ['limit', `limit=${ROWS_LIMIT.max + 1}`, `limit is not from 1 to ${ROWS_LIMIT.max}: ${ROWS_LIMIT.max + 1}`],
    ['limit', 'limit=0', 'limit is not from 1'],
    ['limit', 'limit=-1', 'limit is not from 1'],
    ['limit', 'limit=1e3', 'limit is not from 1'],
    ['limit', 'limit=', 'limit is not from 1'],
    ['limit', 'limit=1&limit=2', 'given twice: limit'],
    ['from', 'from=yesterday', 'from is not a time'],
    ['to', 'to=2026-13-01T00:00:00Z', 'to is not a time'],
    ['from', 'from=', 'from is not a time'],
    ['from', 'from=1767225600', 'from is not a time'],
    ['from', 'from=2026-01-02&to=2026-01-01', 'from is not before to'],
    ['from', 'from=2026-01-01T00:00:00Z&to=2026-01-01T01:00:00%2B01:00', 'from is not before to'],
    ['order', 'order=newest', 'order is neither asc nor desc: newest'],
    ['columns', 'columns=', 'columns names none'],
    ['columns', 'columns=,,', 'columns names none'],
    ['snapshot_id', 'snapshot_id=main', 'snapshot_id is no id: main'],
    ['snapshot_id', 'snapshot_id=-1', 'snapshot_id is no id: -1'],
    ['snapshot_id', 'snapshot_id=99999999999999999999', 'snapshot_id is no id'],
    ['ref', 'snapshot_id=1&ref=main', 'exclude each other'],
  ])('refused, and %s named: %s', (parameter, query, reason) => {
    expect(() => parse(query)).toThrow(
      expect.objectContaining({
        kind: 'invalid',
        type: 'malformed',
        message: expect.stringContaining(reason),
        detail: expect.objectContaining({ parameter }),
      }),
    );
  });
});

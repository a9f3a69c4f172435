import { ROWS_LIMIT } from '../core/base/read-limits.ts';
import { malformedQuery, type QueryFilters, splitQuery, timeParameter } from './query.ts';

/** Which rows of a table are asked for. */
export interface RowsQuery {
  /** UTC microseconds; `from` is in the range, `to` is not; null leaves a side open. */
  from: bigint | null;
  to: bigint | null;
  filters: QueryFilters;
  /** Names of the columns that are answered; null: all. */
  columns: readonly string[] | null;
  limit: number;
  order: 'asc' | 'desc';
  /** A snapshot, or a branch or tag; null: main. */
  at: { snapshotId: bigint } | { ref: string } | null;
}

/** Parameters of a request for rows; all others are filters. */
export const ROWS_PARAMETERS = ['from', 'to', 'columns', 'limit', 'order', 'snapshot_id', 'ref'] as const;

/** @throws invalid `malformed` */
export function parseRowsQuery(query: URLSearchParams): RowsQuery {
  const { parameters, filters } = splitQuery(query, ROWS_PARAMETERS);
  const from = timeParameter(parameters, 'from');
  const to = timeParameter(parameters, 'to');
  if (from !== null && to !== null && from >= to) throw malformedQuery('from is not before to', { parameter: 'from' });
  return {
    from,
    to,
    filters,
    columns: columnsOf(parameters.get('columns')),
    limit: limitOf(parameters.get('limit')),
    order: orderOf(parameters.get('order')),
    at: stateOf(parameters.get('snapshot_id'), parameters.get('ref')),
  };
}

function columnsOf(text: string | undefined): string[] | null {
  if (text === undefined) return null;
  const names = text.split(',').filter((name) => name !== '');
  if (names.length === 0) throw malformedQuery('columns names none', { parameter: 'columns' });
  return [...new Set(names)];
}

function limitOf(text: string | undefined): number {
  if (text === undefined) return ROWS_LIMIT.default;
  const limit = /^[0-9]{1,6}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= ROWS_LIMIT.max) return limit;
  throw malformedQuery(`limit is not from 1 to ${ROWS_LIMIT.max}: ${text.slice(0, 100)}`, { parameter: 'limit' });
}

function orderOf(text: string | undefined): 'asc' | 'desc' {
  if (text === undefined || text === 'asc') return 'asc';
  if (text === 'desc') return 'desc';
  throw malformedQuery(`order is neither asc nor desc: ${text.slice(0, 100)}`, { parameter: 'order' });
}

function stateOf(snapshotId: string | undefined, ref: string | undefined): RowsQuery['at'] {
  if (snapshotId !== undefined && ref !== undefined) {
    throw malformedQuery('snapshot_id and ref exclude each other', { parameter: 'ref' });
  }
  if (ref !== undefined) return { ref };
  if (snapshotId === undefined) return null;
  if (/^[0-9]{1,19}$/.test(snapshotId)) return { snapshotId: BigInt(snapshotId) };
  throw malformedQuery(`snapshot_id is no id: ${snapshotId.slice(0, 100)}`, { parameter: 'snapshot_id' });
}

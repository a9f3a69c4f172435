import { usage } from './failure.ts';

export interface TableName {
  namespace: string;
  table: string;
}

/** `namespace/table`. Throws usage. */
export function tableName(text: string | undefined): TableName {
  const match = /^([A-Za-z0-9_][A-Za-z0-9_-]*)\/([A-Za-z0-9_][A-Za-z0-9_-]*)$/.exec(text ?? '');
  if (match !== null) return { namespace: match[1], table: match[2] };
  throw usage(text === undefined ? 'table is missing: NAMESPACE/TABLE' : `table is NAMESPACE/TABLE: ${text}`);
}

export function tablePath({ namespace, table }: TableName): string {
  return `/v1/tables/${namespace}/${table}`;
}

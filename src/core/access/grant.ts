import { isName } from '../iceberg/locations.ts';

/**
 * What a request needs: `read` to see tables and receipts, `append` to put rows in, `admin` for all that changes a table
 * itself. Who has `admin` has the others.
 */
export type Scope = 'read' | 'append' | 'admin';

export const SCOPES: readonly Scope[] = ['read', 'append', 'admin'];

/** What a caller may do: each of the scopes, on each of the tables. */
export interface Grant {
  /** Who it is, for logs. Tokens of one holder may share it. */
  name: string;
  scopes: readonly Scope[];
  /** Patterns: `namespace/table`, `namespace/*` or `*`. */
  tables: readonly string[];
}

/** For a service that asks nobody who they are. */
export const EVERYTHING: Grant = { name: 'anybody', scopes: ['admin'], tables: ['*'] };

/** True for a pattern that can match: its names are names of tables. */
export function isPattern(pattern: string): boolean {
  if (pattern === '*') return true;
  const [namespace, table, ...rest] = pattern.split('/');
  if (table === undefined || rest.length > 0) return false;
  return isName(namespace) && (table === '*' || isName(table));
}

export function hasScope({ scopes }: Grant, scope: Scope): boolean {
  return scopes.includes(scope) || scopes.includes('admin');
}

/** True when the grant covers a table, whatever its name; whether there is one is not asked. */
export function coversTable({ tables }: Pick<Grant, 'tables'>, namespace: string, table: string): boolean {
  return tables.some(
    (pattern) => pattern === '*' || pattern === `${namespace}/*` || pattern === `${namespace}/${table}`,
  );
}

/** True when the grant may cover tables of a namespace: others need not be looked at. */
export function coversNamespace({ tables }: Grant, namespace: string): boolean {
  return tables.some((pattern) => pattern === '*' || pattern.startsWith(`${namespace}/`));
}

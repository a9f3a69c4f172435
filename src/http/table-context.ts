import type { Context } from 'hono';
import { invalid, SluiceError } from '../core/base/errors.ts';
import { checkName } from '../core/iceberg/locations.ts';
import type { Answer } from '../object/answer.ts';
import type { AppEnv, TableCalls } from './app.ts';

export type Ctx = Context<AppEnv>;

/** The table that a request is about. Throws invalid `bad-name`. */
export function nameOf(context: Ctx): { namespace: string; table: string; key: string } {
  const namespace = checkName(context.req.param('namespace') ?? '', 'namespace');
  const table = checkName(context.req.param('table') ?? '', 'table');
  return { namespace, table, key: `${namespace}/${table}` };
}

/** The object of the table that a request is about. */
export function objectOf(context: Ctx): TableCalls {
  const { namespace, table } = nameOf(context);
  return context.var.ports.object(namespace, table);
}

/** The value of an object's answer. Throws the problem it carries otherwise. */
export function unwrap<T>(answered: Answer<T>): T {
  if (answered.ok) return answered.value;
  const { kind, type, message, detail } = answered.problem;
  const error = new SluiceError(kind, type, message, detail);
  ofObject.add(error);
  throw error;
}

/** Errors that an object answered with: it has counted them. */
const ofObject = new WeakSet<object>();

export function isOfObject(error: unknown): boolean {
  return typeof error === 'object' && error !== null && ofObject.has(error);
}

/** Entries of a page, from the query. Throws invalid `malformed`. */
export function pageLength(limit: string | undefined, fallback: number): number {
  if (limit === undefined) return fallback;
  if (!/^[1-9][0-9]{0,5}$/.test(limit)) throw invalid('malformed', `limit is not a number above zero: ${limit}`);
  return Number(limit);
}

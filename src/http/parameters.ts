import { routePath } from 'hono/route';
import { invalid } from '../core/base/errors.ts';
import { OPERATIONS } from './openapi/document.ts';
import { describedPath } from './openapi/operation.ts';
import type { Ctx } from './table-context.ts';

/**
 * Refuses a parameter that the address does not have: one that is misspelt, or meant for another address, would be passed
 * over, and `?dry_run=true` of a request that knows no such thing would be no dry run. Clients of InfluxDB send what theirs
 * has; and where parameters name columns, the query is checked as it is read.
 *
 * @throws invalid `malformed`
 */
export function checkParameters(context: Ctx): void {
  const path = describedPath(routePath(context));
  if (!path.startsWith('/v1/')) return;
  const method = context.req.method === 'HEAD' ? 'GET' : context.req.method;
  const operation = OPERATIONS[`${method} ${path}`];
  if (operation === undefined || operation.columns === true) return;
  const known = (operation.parameters ?? []).filter((parameter) => parameter.in === 'query');
  const expected = known.map((parameter) => parameter.name);
  for (const name of Object.keys(context.req.query())) {
    if (expected.includes(name)) continue;
    const why =
      expected.length === 0 ? 'address takes no parameters' : `parameter is not one of ${expected.join(', ')}`;
    throw invalid('malformed', `${why}: ${name}`, { parameter: name, expected });
  }
}

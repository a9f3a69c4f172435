import type { MiddlewareHandler } from 'hono';
import { coversTable, EVERYTHING, type Grant, hasScope, type Scope } from '../core/access/grant.ts';
import { type Token, tokenOf } from '../core/access/tokens.ts';
import { utf8 } from '../core/base/bytes.ts';
import { invalid, type SluiceError } from '../core/base/errors.ts';
import { sha256 } from '../platform/hash.ts';
import type { AppEnv, AppPorts } from './app.ts';
import { checkParameters } from './parameters.ts';

/**
 * What the caller of a request may do. Digests are compared, so that neither length nor content of a token shows in the
 * time it takes.
 *
 * @throws invalid `unauthorized`, the same for a missing, a wrong and an expired token
 */
export function authenticate(header: string | null, tokens: readonly Token[] | null, nowMs: number): Grant {
  if (tokens === null) return EVERYTHING;
  // `Token` is what clients of InfluxDB say.
  const match = /^(?:Bearer|Token) +([^ ]+) *$/i.exec(header ?? '');
  const found = tokenOf(tokens, sha256([utf8(match?.[1] ?? '')]), nowMs);
  if (match === null || found === null) throw invalid('unauthorized', 'request carries no valid bearer token');
  return found;
}

/**
 * Refuses what the grant does not cover. Asked before anything else is: the answer is the same whether or not there is
 * such a table.
 *
 * @throws invalid `forbidden`
 */
export function permit(grant: Grant, scope: Scope, namespace: string, table: string): void {
  if (!hasScope(grant, scope) || !coversTable(grant, namespace, table)) throw forbidden(scope);
}

/** The refusal of a known caller; it says nothing of what is there. */
export function forbidden(scope: Scope): SluiceError {
  return invalid('forbidden', `token does not allow this here: scope=${scope}`, { scope });
}

/** The scope that a route declares, on the handler that checks it. */
export type Needs = MiddlewareHandler<AppEnv> & { scope: Scope };

/**
 * Declares what a route needs, and lets nobody else through. Every route behind a token has one: it is what hands the
 * ports on, so a route without it reaches no object. The ports it hands on reach only what the caller may. A parameter that
 * the address does not have is refused here too, before any body is read.
 */
export function needs(scope: Scope): Needs {
  const check: MiddlewareHandler<AppEnv> = async (context, next) => {
    const { grant, ports } = context.var.caller;
    const { namespace, table } = context.req.param() as Record<string, string | undefined>;
    if (namespace !== undefined && table !== undefined) permit(grant, scope, namespace, table);
    else if (!hasScope(grant, scope)) throw forbidden(scope);
    checkParameters(context);
    context.set('about', namespace === undefined || table === undefined ? null : { namespace, table });
    context.set('ports', limited(ports, grant, scope));
    await next();
  };
  return Object.assign(check, { scope });
}

function limited(ports: AppPorts, grant: Grant, scope: Scope): AppPorts {
  return {
    ...ports,
    object(namespace, table) {
      permit(grant, scope, namespace, table);
      return ports.object(namespace, table);
    },
    async latest(namespace, table, query, waiting) {
      permit(grant, scope, namespace, table);
      return ports.latest(namespace, table, query, waiting);
    },
    async rows(namespace, table, query) {
      permit(grant, scope, namespace, table);
      return ports.rows(namespace, table, query);
    },
  };
}

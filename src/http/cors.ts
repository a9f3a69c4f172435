import type { MiddlewareHandler } from 'hono';
import type { AppEnv } from './app.ts';
import { factHeader, ROWS_FACTS } from './rows-answer.ts';

/** What a page may send and read besides what browsers always let it. */
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';
const REQUEST_HEADERS = 'authorization, content-type, content-encoding, idempotency-key, prefer, x-request-id';
const RESPONSE_HEADERS = [
  ...['location', 'preference-applied', 'retry-after', 'x-request-id', 'link', 'allow', 'www-authenticate'],
  ...ROWS_FACTS.map(factHeader),
].join(', ');

/** Seconds a browser remembers the answer to its question; none remembers longer. */
const MAX_AGE_S = 86_400;

/**
 * Lets pages of the given origins call the service (`*`: of any); without origins browsers let none. A browser's question
 * before a request carries no token and is answered alike at every address, before one is asked for.
 */
export function cors<Bindings extends object>(
  originsOf: (env: Bindings) => readonly string[],
): MiddlewareHandler<AppEnv & { Bindings: Bindings }> {
  return async (context, next) => {
    const origins = originsOf(context.env);
    const origin = context.req.header('origin');
    const isOpen = origins.includes('*');
    const isAllowed = origin !== undefined && (isOpen || origins.includes(origin));
    if (isAllowed && context.req.method === 'OPTIONS' && context.req.header('access-control-request-method')) {
      context.res = new Response(null, {
        status: 204,
        headers: {
          'access-control-allow-methods': METHODS,
          'access-control-allow-headers': REQUEST_HEADERS,
          'access-control-max-age': String(MAX_AGE_S),
        },
      });
    } else await next();
    if (isAllowed) {
      context.header('access-control-allow-origin', isOpen ? '*' : origin);
      context.header('access-control-expose-headers', RESPONSE_HEADERS);
    }
    // Caches keep the answers to one origin from another.
    if (origins.length > 0 && !isOpen) context.header('vary', 'Origin', { append: true });
  };
}

import { SluiceError } from '../core/base/errors.ts';
import { REFUSALS_GATHER_MS, REFUSALS_TABLES_MAX } from '../core/base/limits.ts';
import type { AppPorts } from './app.ts';
import { type Ctx, isOfObject } from './table-context.ts';

/** Characters of a path in the log. */
const PATH_LOGGED_MAX = 300;

/**
 * Writes the line of a request that is answered with a problem, and has it counted by the table's object where that has
 * not seen it. Neither token nor query nor message is in it, which can hold what is not for a log; only what is the
 * service's own fault is told in full.
 */
export function logRefusal(context: Ctx, error: unknown, status: number): void {
  const { requestId, caller, about } = context.var;
  const { method, path } = context.req;
  const type = error instanceof SluiceError ? error.type : 'internal';
  const who = caller === undefined ? {} : { caller: caller.grant.name };
  const request = { request: requestId, ...who, method, path: path.slice(0, PATH_LOGGED_MAX), status, type };
  if (status === 500) {
    const stack = error instanceof Error ? error.stack : String(error);
    console.error(JSON.stringify({ event: 'request-failed', ...request, stack }));
  } else if (status > 500) {
    const message = error instanceof Error ? error.message : String(error);
    console.error(JSON.stringify({ event: 'refused', ...request, message }));
  } else console.log(JSON.stringify({ event: 'refused', ...request }));
  // Asked only once the caller is known to be let at the table: no other refusal calls an object.
  if (about !== null && about !== undefined && error instanceof SluiceError && error.type !== 'bad-name') {
    countRefusal(context, about.namespace, about.table, error);
  }
}

/** Has the table's object count a refusal, behind the answer to the request. One that the object made is counted there. */
export function countRefusal(context: Ctx, namespace: string, table: string, error: SluiceError): void {
  if (isOfObject(error)) return;
  const told = tellRefused(context.var.ports, namespace, table, error.type);
  try {
    context.executionCtx.waitUntil(told);
  } catch {
    // Not in the runtime: nobody ends what still waits.
  }
}

interface Gathered {
  counts: Map<string, number>;
  /** When its object is to be told, and by whom that is awaited. */
  dueMs: number;
}

/**
 * Refusals that this isolate made by itself, for tables' objects to count: a body that is malformed never gets as far as
 * an object. A burst of them is one call.
 */
const gathered = new Map<string, Gathered>();

/**
 * Counts a refusal of a request about a table. Resolves when its object has been told, which is for nobody to wait for; the
 * object may be down, and what an isolate has gathered ends with it.
 */
export async function tellRefused(
  ports: Pick<AppPorts, 'object' | 'now' | 'sleep'>,
  namespace: string,
  table: string,
  type: string,
): Promise<void> {
  const key = `${namespace}/${table}`;
  const nowMs = ports.now();
  const known = gathered.get(key);
  if (known !== undefined) known.counts.set(type, (known.counts.get(type) ?? 0) + 1);
  // One that is long due was left by a request whose end the platform did not wait for.
  if (known !== undefined && nowMs < known.dueMs + REFUSALS_GATHER_MS) return;
  if (known === undefined && gathered.size >= REFUSALS_TABLES_MAX) return;
  const own = { counts: known?.counts ?? new Map([[type, 1]]), dueMs: nowMs + REFUSALS_GATHER_MS };
  gathered.set(key, own);
  await ports.sleep(REFUSALS_GATHER_MS);
  if (gathered.get(key) === own) gathered.delete(key);
  const counts = [...own.counts].map(([name, count]) => ({ type: name, count }));
  own.counts.clear();
  if (counts.length === 0) return;
  try {
    await ports.object(namespace, table).refused(counts);
  } catch {
    // The refusals are in the log all the same.
  }
}

import { Hono } from 'hono';
import { coversNamespace } from '../core/access/grant.ts';
import { hex } from '../core/base/bytes.ts';
import { type Detail, invalid, SluiceError, unavailable } from '../core/base/errors.ts';
import type { EpochUnit } from '../core/columns/times.ts';
import { checkName } from '../core/iceberg/locations.ts';
import type { AppEnv, AppPorts } from './app.ts';
import { forbidden, needs, permit } from './auth.ts';
import { type PointsRead, type Refusal, readPoints, refusalOf, type TablePoints } from './influx-points.ts';
import { isViewStale } from './ingest.ts';
import { forgetViewOf, ingestViewOf } from './ingest-views.ts';
import { batchIdOf, newFrame } from './new-frame.ts';
import { methodNotAllowed, problemOf } from './problem.ts';
import { countRefusal } from './refusals.ts';
import { type Ctx, unwrap } from './table-context.ts';

/**
 * The write interface of InfluxDB 2, for Telegraf and other clients that have it: bucket and measurement are namespace and
 * table, `org` is not looked at.
 *
 * - A line that is no line protocol refuses the request: nothing is written.
 * - The points of a measurement are one batch, all or nothing. When those of one are refused, the others are written, and
 *   the answer is 400 with a message that begins `partial write`, as InfluxDB's is: its clients do not send it again.
 * - A measurement whose table the token does not cover refuses the request, and nothing is written: a refusal for that
 *   alone would be told from one for a table that is missing.
 * - What may pass later (a full buffer, a table being changed, a fault that an owner has to mend) is answered 429, 500 or 503,
 *   upon which clients send the same body again. Batches of it that were taken are not taken twice: without an `Idempotency-Key`, a batch whose points all
 *   carry a time is known by its body.
 */
export function influxRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();
  routes.post('/write', needs('append'), (context) => postPoints(context));
  routes.all('/write', (context) => methodNotAllowed(context.req.method, 'POST'));
  return routes;
}

const PRECISIONS: ReadonlySet<string> = new Set<EpochUnit>(['ns', 'us', 'ms', 's']);

async function postPoints(context: Ctx): Promise<Response> {
  const { req } = context;
  const { ports } = context.var;
  const bucket = req.query('bucket') ?? '';
  if (bucket === '') throw invalid('malformed', 'bucket is missing: it is the namespace that points go to');
  if (!coversNamespace(context.var.caller.grant, bucket)) throw forbidden('append');
  const namespace = checkName(bucket, 'namespace');
  const precision = req.query('precision') ?? 'ns';
  if (!PRECISIONS.has(precision)) throw invalid('malformed', `precision is ns, us, ms or s: ${precision}`);
  const onError = req.query('on_error') ?? 'refuse';
  if (onError !== 'refuse' && onError !== 'skip') throw invalid('malformed', `on_error is refuse or skip: ${onError}`);
  const batchId = batchIdOf(req.header('idempotency-key') ?? null);
  const read = await readPoints({
    body: req.raw.body,
    contentEncoding: req.header('content-encoding') ?? null,
    precision: precision as EpochUnit,
    onError,
    nowMs: ports.now(),
    viewOf(table) {
      permit(context.var.caller.grant, 'append', namespace, table);
      return ingestViewOf(ports, namespace, table);
    },
  });
  // The same digits are other times in another precision.
  const contentId = `points/${precision}/${hex(read.digest)}`;
  const tables = await Promise.all(
    read.tables.map((table) =>
      appended(ports, namespace, table, read.digest, batchId ?? (table.untimed ? null : contentId)),
    ),
  );
  for (const { measurement, read: told } of tables) {
    // A name that is none has no object.
    if (told instanceof SluiceError && told.type !== 'bad-name') countRefusal(context, namespace, measurement, told);
    else if (!(told instanceof SluiceError) && told.collected.errorCount > 0) {
      countRefusal(context, namespace, measurement, invalid('invalid-rows', 'points were left out'));
    }
  }
  return answerTo({ ...read, tables });
}

/** Sends the points of one table to its object; what refuses them takes the place of what was read. */
async function appended(
  ports: AppPorts,
  namespace: string,
  table: TablePoints,
  digest: Uint8Array,
  batchId: string | null,
): Promise<TablePoints> {
  const { measurement, read } = table;
  if (read instanceof SluiceError || read.collected.columns.rows === 0) return table;
  try {
    const frame = newFrame(read.collected.columns, read.view, { batchId, producer: null }, digest);
    const answered = await ports.object(namespace, measurement).append(frame, read.view.tableUuid, 0);
    if (isViewStale(frame, answered)) forgetViewOf(namespace, measurement);
    const receipt = unwrap(answered);
    if (receipt.state !== 'refused') return table;
    // Sent again after it was refused.
    throw invalid(receipt.type ?? 'commit-refused', receipt.message ?? 'batch was refused');
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return { ...table, read: error };
  }
}

/** 204, a problem that passes, or a partial write. */
function answerTo({ tables, malformed, malformedCount }: PointsRead): Response {
  for (const { read } of tables) if (read instanceof SluiceError && mayPass(read)) throw passing(read);
  const refusals = tables.map(refusalOf).filter((refusal) => refusal !== null);
  if (refusals.length === 0 && malformedCount === 0) return new Response(null, { status: 204 });
  const accepted = tables.reduce(
    (sum, { read }) => sum + (read instanceof SluiceError ? 0 : read.collected.columns.rows),
    0,
  );
  const dropped = refusals.reduce((sum, refusal) => sum + refusal.dropped, malformedCount);
  const reasons = [
    ...(malformedCount === 0
      ? []
      : [`${malformedCount} lines are malformed, first at line ${malformed[0].line}: ${malformed[0].message}`]),
    ...refusals.map(({ measurement, message }) => `${measurement}: ${message}`),
  ];
  const told = reasons.slice(0, REASONS_TOLD_MAX).join('; ');
  const rest = reasons.length > REASONS_TOLD_MAX ? '; and others' : '';
  throw invalid(
    'partial-write',
    `${accepted > 0 ? 'partial write' : 'nothing written'}: ${told}${rest}; dropped=${dropped}`,
    {
      accepted,
      dropped,
      malformed: malformed.map((error): { [key: string]: Detail } => ({ ...error })),
      tables: refusals.map((refusal: Refusal): { [key: string]: Detail } => ({ ...refusal })),
    },
  );
}

/** Reasons in the message, which clients put into their logs; all of them are in `tables`. */
const REASONS_TOLD_MAX = 3;

/** What is not for the points to answer for. */
function mayPass({ kind }: SluiceError): boolean {
  return kind === 'unavailable' || kind === 'unknown' || kind === 'conflict' || kind === 'corrupt';
}

/** A conflict is no word of this interface: its clients would drop the points. */
function passing(error: SluiceError): SluiceError {
  return error.kind === 'conflict' ? unavailable('table-changed', error.message, error.detail, error) : error;
}

/** Words of InfluxDB's errors. */
const CODES: Readonly<Record<number, string>> = {
  400: 'invalid',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not found',
  405: 'method not allowed',
  413: 'request too large',
  415: 'unsupported media type',
  422: 'unprocessable entity',
  429: 'too many requests',
  503: 'unavailable',
  504: 'unavailable',
};

/** The answer to an error as clients of InfluxDB read it: a problem body with `code` and `message` besides. */
export function influxProblem(error: unknown): Response {
  const { status, headers, body } = problemOf(error);
  const own = { ...body, code: CODES[status] ?? 'internal error', message: body.detail };
  return new Response(JSON.stringify(own), { status, headers: { ...headers, 'content-type': 'application/json' } });
}

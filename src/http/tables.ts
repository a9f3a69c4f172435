import { type Context, Hono } from 'hono';
import { hex } from '../core/base/bytes.ts';
import { invalid, rejected, SluiceError } from '../core/base/errors.ts';
import {
  BATCH_ID_LENGTH_MAX,
  BATCH_PARTITIONS_MAX,
  FRAME_BYTES_MAX,
  INGEST_VIEW_MS,
  INGEST_VIEWS_MAX,
  WAIT_MAX_MS,
} from '../core/base/limits.ts';
import { encodeFrameBody } from '../core/columns/frame.ts';
import { partitionRows } from '../core/columns/partition.ts';
import { checkName } from '../core/iceberg/locations.ts';
import type { Answer } from '../object/answer.ts';
import type { IngestView } from '../object/views.ts';
import type { AppEnv } from './app.ts';
import { readAttachment, readDefinition } from './definition.ts';
import { methodNotAllowed } from './problem.ts';
import { readRows } from './rows.ts';

type Ctx = Context<AppEnv>;

/** Routes below one table. */
export function tableRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();

  routes.put('/', async (context) => {
    const definition = await readDefinition(context.req.raw);
    const name = nameOf(context);
    const { created, table } = unwrap(await objectOf(context).create(definition));
    views.delete(name.key);
    return context.json({ created, ...table }, created ? 201 : 200);
  });

  routes.get('/', async (context) => {
    const { table, status } = unwrap(await objectOf(context).describe());
    return context.json({ ...table, status });
  });

  routes.delete('/', async (context) => {
    const dropped = unwrap(await objectOf(context).drop());
    views.delete(nameOf(context).key);
    return context.json({ dropped: true, ...dropped });
  });

  routes.post('/attach', async (context) => {
    const { metadataLocation } = await readAttachment(context.req.raw);
    const { attached, table } = unwrap(await objectOf(context).attach(metadataLocation));
    views.delete(nameOf(context).key);
    return context.json({ attached, ...table });
  });

  routes.post('/flush', async (context) => {
    const { flushed, table, status } = unwrap(await objectOf(context).flush());
    return context.json({ flushed, version: table.version, snapshot: table.snapshot, status }, flushed ? 200 : 202);
  });

  routes.get('/receipts/:id', async (context) => {
    return context.json(unwrap(await objectOf(context).receipt(context.req.param('id'))));
  });

  routes.post('/rows', (context) => postRows(context));

  // A known address with another method.
  for (const [path, allowed] of Object.entries(ALLOWED)) {
    routes.all(path, (context) => methodNotAllowed(context.req.method, allowed));
  }
  return routes;
}

const ALLOWED: Readonly<Record<string, string>> = {
  '/': 'PUT, GET, DELETE',
  '/attach': 'POST',
  '/flush': 'POST',
  '/rows': 'POST',
  '/receipts/:id': 'GET',
};

async function postRows(context: Ctx): Promise<Response> {
  const { req } = context;
  const batchId = batchIdOf(req.header('idempotency-key') ?? null);
  const waitMs = waitOf(req.header('prefer') ?? null);
  const onError = req.query('on_error') ?? 'refuse';
  if (onError !== 'refuse' && onError !== 'skip') throw invalid('malformed', `on_error is refuse or skip: ${onError}`);
  const view = await ingestView(context);
  const { settings, schema } = view;
  const { columns, rowsRead, errors, errorCount, digest } = await readRows({
    body: req.raw.body,
    contentType: req.header('content-type') ?? null,
    contentEncoding: req.header('content-encoding') ?? null,
    schema,
    options: { onError, epochUnit: settings.epochUnit, ingestTimeField: settings.ingestTimeColumn },
  });
  const counts = {
    rows: columns.rows,
    ...(onError === 'skip' ? { rows_read: rowsRead, rows_skipped: errorCount, errors } : {}),
  };
  // No rows, no batch: an empty commit would only make versions.
  if (columns.rows === 0) return context.json({ state: 'empty', ...counts });

  const { tuples } = partitionRows(columns, view.spec, BATCH_PARTITIONS_MAX);
  const body = encodeFrameBody(columns);
  if (body.length > FRAME_BYTES_MAX) {
    throw invalid('too-large', `batch is larger than a flush takes: bytes=${body.length} most=${FRAME_BYTES_MAX}`);
  }
  const frame = {
    digest: hex(digest),
    batchId,
    producer: null,
    schemaId: schema['schema-id'],
    rows: columns.rows,
    partitions: tuples.length,
    body,
  };
  const answered = await objectOf(context).append(frame, view.tableUuid, waitMs);
  if (!answered.ok && answered.problem.type === 'table-changed') views.delete(nameOf(context).key);
  const { duplicate, ...receipt } = unwrap(answered);
  const location = `${new URL(req.url).pathname.replace(/\/rows\/?$/, '')}/receipts/${receipt.receipt}`;
  // Waited for, or sent again: a success here would be taken for rows in the table.
  if (receipt.state === 'refused') {
    throw rejected(receipt.type ?? 'commit-refused', receipt.message ?? 'batch was refused', {
      receipt: receipt.receipt,
    });
  }
  const status = duplicate ? 200 : receipt.state === 'committed' ? 201 : 202;
  context.header('location', location);
  if (waitMs > 0) context.header('preference-applied', `wait=${waitMs / 1000}`);
  return context.json({ ...receipt, ...(duplicate ? { duplicate } : {}), ...counts }, status);
}

/** `Idempotency-Key`, bare or as the quoted string of its draft standard. */
function batchIdOf(header: string | null): string | null {
  if (header === null) return null;
  const key = /^"(.*)"$/.exec(header)?.[1] ?? header;
  if (key === '' || key.length > BATCH_ID_LENGTH_MAX || !/^[\x20-\x7e]+$/.test(key)) {
    throw invalid('malformed', `idempotency-key is 1 to ${BATCH_ID_LENGTH_MAX} printable ASCII characters`);
  }
  return key;
}

/** Milliseconds of `Prefer: wait=N` (RFC 7240, seconds), at most `WAIT_MAX_MS`; 0 without it. */
function waitOf(header: string | null): number {
  const match = /(?:^|[,;\s])wait\s*=\s*"?([0-9]{1,6})"?(?=$|[,;\s])/i.exec(header ?? '');
  return match === null ? 0 : Math.min(Number(match[1]) * 1000, WAIT_MAX_MS);
}

/** What this isolate knows of tables it ingests into. Short-lived: the object refuses what was made for another table. */
const views = new Map<string, { view: IngestView; untilMs: number }>();

async function ingestView(context: Ctx): Promise<IngestView> {
  const { key } = nameOf(context);
  const nowMs = context.var.ports.now();
  const known = views.get(key);
  if (known !== undefined && known.untilMs > nowMs) return known.view;
  views.delete(key);
  const view = unwrap(await objectOf(context).ingest());
  if (views.size >= INGEST_VIEWS_MAX) views.delete(views.keys().next().value ?? '');
  views.set(key, { view, untilMs: nowMs + INGEST_VIEW_MS });
  return view;
}

function nameOf(context: Ctx): { namespace: string; table: string; key: string } {
  const namespace = checkName(context.req.param('namespace') ?? '', 'namespace');
  const table = checkName(context.req.param('table') ?? '', 'table');
  return { namespace, table, key: `${namespace}/${table}` };
}

function objectOf(context: Ctx) {
  const { namespace, table } = nameOf(context);
  return context.var.ports.object(namespace, table);
}

/** The value of an object's answer. Throws the problem it carries otherwise. */
function unwrap<T>(answered: Answer<T>): T {
  if (answered.ok) return answered.value;
  const { kind, type, message, detail } = answered.problem;
  throw new SluiceError(kind, type, message, detail);
}

import { Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { coversNamespace, coversTable, type Grant } from '../core/access/grant.ts';
import type { Token } from '../core/access/tokens.ts';
import { invalid } from '../core/base/errors.ts';
import { METRICS_TABLES_MAX } from '../core/base/limits.ts';
import type { RowsMessage } from '../core/batch/message.ts';
import type { TablePage, Visible } from '../lake/lake.ts';
import type { TableObject } from '../object/table-object.ts';
import type { LatestFound, LatestQuery, WaitingRows } from '../read/latest.ts';
import type { RowsFound } from '../read/rows.ts';
import type { RowsQuery } from '../read/rows-query.ts';
import { authenticate, needs } from './auth.ts';
import { cors } from './cors.ts';
import { postSample } from './infer/infer.ts';
import { influxProblem, influxRoutes } from './influx.ts';
import { lakeMetrics, type Page } from './metrics.ts';
import { documentOf } from './openapi/document.ts';
import { methodNotAllowed, problemResponse } from './problem.ts';
import { logRefusal } from './refusals.ts';
import { type Ctx, pageLength } from './table-context.ts';
import { tableRoutes } from './tables.ts';

/** The object's methods, as a caller far away sees them. */
export type TableCalls = Pick<
  TableObject,
  | 'ingest'
  | 'waiting'
  | 'append'
  | 'appendMany'
  | 'receipt'
  | 'create'
  | 'attach'
  | 'describe'
  | 'flush'
  | 'drop'
  | 'app'
  | 'skip'
  | 'replace'
  | 'retire'
  | 'properties'
  | 'changeProperties'
  | 'upgrade'
  | 'changeSchema'
  | 'changeSpec'
  | 'snapshots'
  | 'refs'
  | 'setRef'
  | 'dropRef'
  | 'fastForward'
  | 'rollback'
  | 'expire'
  | 'maintain'
  | 'fileList'
  | 'deleteFiles'
  | 'overwriteFiles'
  | 'rewriteManifests'
  | 'metrics'
  | 'refused'
>;

/** What the routes need of the world around them. */
export interface AppPorts {
  /** Tokens that requests are held against; null: none is asked for. */
  tokens: readonly Token[] | null;
  /** The object of a table. */
  object(namespace: string, table: string): TableCalls;
  tables(after: string | null, limit: number, visible: Visible): Promise<TablePage>;
  /** The newest rows of a table, read beside its object. */
  latest(namespace: string, table: string, query: LatestQuery, waiting: WaitingRows | null): Promise<LatestFound>;
  /** Rows of a table, read beside its object. */
  rows(namespace: string, table: string, query: RowsQuery): Promise<RowsFound>;
  /** The queue of rows. Throws invalid `bad-settings`. */
  queue(): RowsQueue;
  names(after: string | null, most: number, visible: Visible): Promise<{ namespace: string; table: string }[]>;
  now(): number;
  sleep(ms: number): Promise<void>;
}

/** The queue that rows are put into, as the routes need it. */
export interface RowsQueue {
  /** True when the consumer takes messages for the table. */
  allows(namespace: string, table: string): boolean;
  /** Sends the messages and returns how many were not taken, and why; never throws. */
  send(messages: readonly { message: RowsMessage; bytes: number }[]): Promise<{ missed: number; reason: unknown }>;
}

export type AppEnv = {
  Variables: {
    requestId: string;
    /** Who asks, and the ports as they are: for `needs` alone. */
    caller: { grant: Grant; ports: AppPorts };
    /** The table that the address names, once `needs` has let the caller through; null when it names none. */
    about: { namespace: string; table: string } | null;
    /** The ports, limited to what the caller may. Set by `needs`. */
    ports: AppPorts;
  };
};

/**
 * All routes. `portsOf` and `originsOf` are asked once a request, inside error handling: wrong settings become a problem,
 * not a crash.
 */
export function createApp<Bindings extends object>(
  portsOf: (env: Bindings) => AppPorts,
  originsOf: (env: Bindings) => readonly string[] = () => [],
) {
  const app = new Hono<AppEnv & { Bindings: Bindings }>();

  app.use(async (context, next) => {
    const given = context.req.header('x-request-id') ?? '';
    const requestId = /^[A-Za-z0-9._-]{1,64}$/.test(given) ? given : crypto.randomUUID();
    context.set('requestId', requestId);
    await next();
    context.header('x-request-id', requestId);
  });

  app.use(cors(originsOf));

  app.get('/health', (context) => context.json({ status: 'ok' }));

  // What clients of InfluxDB ask before they write.
  app.get('/ping', () => new Response(null, { status: 204, headers: { 'x-influxdb-build': 'sluice' } }));

  // Made when it is first asked for: it describes all routes, and few ask.
  let described: string | undefined;
  app.get('/openapi.json', () => {
    described ??= JSON.stringify(documentOf(app.routes));
    return new Response(described, { headers: { 'content-type': 'application/json' } });
  });

  for (const paths of ['/v1/*', '/api/v2/*']) {
    app.use(paths, async (context, next) => {
      const ports = portsOf(context.env);
      const grant = authenticate(context.req.header('authorization') ?? null, ports.tokens, ports.now());
      context.set('caller', { grant, ports });
      await next();
    });
  }

  app.get('/v1/tables', needs('read'), async (context) => {
    const { after, limit } = pageOf(context.req.query('after'), context.req.query('limit'), 100);
    return context.json(await context.var.ports.tables(after, limit, visibleTo(context.var.caller.grant)));
  });

  app.get('/v1/metrics', needs('read'), (context) => {
    const page = pageOf(context.req.query('after'), context.req.query('limit'), METRICS_TABLES_MAX);
    return lakeMetrics(context as unknown as Ctx, visibleTo(context.var.caller.grant), page);
  });

  app.post('/v1/infer', needs('read'), postSample);

  app.route('/v1/tables/:namespace/:table', tableRoutes());
  app.route('/api/v2', influxRoutes());

  for (const path of ['/health', '/ping', '/openapi.json', '/v1/tables', '/v1/metrics']) {
    app.all(path, (context) => methodNotAllowed(context.req.method, 'GET'));
  }

  app.all('/v1/infer', (context) => methodNotAllowed(context.req.method, 'POST'));

  app.notFound((context) =>
    problemResponse(invalid('not-found', `nothing is at ${context.req.method} ${context.req.path}`)),
  );

  app.onError((error, context) => {
    const known = error instanceof HTTPException ? invalid('malformed', error.message) : error;
    const response = context.req.path.startsWith('/api/v2/') ? influxProblem(known) : problemResponse(known);
    logRefusal(context as unknown as Ctx, known, response.status);
    response.headers.set('x-request-id', context.var.requestId);
    return response;
  });

  return app;
}

/** What of the lake a caller with the scope may be told of. */
function visibleTo(grant: Grant): Visible {
  return {
    namespace: (namespace) => coversNamespace(grant, namespace),
    table: (namespace, table) => coversTable(grant, namespace, table),
  };
}

/** Where a page of tables begins, and how many it holds. Throws invalid `malformed`. */
function pageOf(after: string | undefined, limit: string | undefined, fallback: number): Page {
  const length = pageLength(limit, fallback);
  if (after !== undefined) checkPosition(after);
  return { after: after ?? null, limit: length };
}

/** A position is the name of a folder, which need not be one that a table can have. */
function checkPosition(after: string): void {
  const names = after.split('/');
  if (names.length !== 2 || names.includes('')) throw invalid('malformed', `after is not namespace/table: ${after}`);
}

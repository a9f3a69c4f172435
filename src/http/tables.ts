import { Hono } from 'hono';
import { parseLatestQuery } from '../read/latest.ts';
import { parseRowsQuery } from '../read/rows-query.ts';
import { adminRoutes } from './admin.ts';
import type { AppEnv } from './app.ts';
import { appRoutes } from './apps.ts';
import { needs } from './auth.ts';
import { readAttachment, readDefinition } from './definition.ts';
import { enqueueRows } from './enqueue.ts';
import { forgetView, postRows } from './ingest.ts';
import { tableMetrics } from './metrics.ts';
import { methodNotAllowed } from './problem.ts';
import { rowsFormat, rowsResponse } from './rows-answer.ts';
import { nameOf, objectOf, unwrap } from './table-context.ts';

/** Routes below one table. */
export function tableRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();

  routes.put('/', needs('admin'), async (context) => {
    const definition = await readDefinition(context.req.raw);
    const { created, table } = unwrap(await objectOf(context).create(definition));
    forgetView(context);
    return context.json({ created, ...table }, created ? 201 : 200);
  });

  routes.get('/', needs('read'), async (context) => {
    const { table, status } = unwrap(await objectOf(context).describe());
    return context.json({ ...table, status });
  });

  routes.delete('/', needs('admin'), async (context) => {
    const dropped = unwrap(await objectOf(context).drop());
    forgetView(context);
    return context.json({ dropped: true, ...dropped });
  });

  routes.post('/attach', needs('admin'), async (context) => {
    const { metadataLocation } = await readAttachment(context.req.raw);
    const { attached, table } = unwrap(await objectOf(context).attach(metadataLocation));
    forgetView(context);
    return context.json({ attached, ...table });
  });

  routes.post('/flush', needs('append'), async (context) => {
    const { flushed, table, status } = unwrap(await objectOf(context).flush());
    return context.json({ flushed, version: table.version, snapshot: table.snapshot, status }, flushed ? 200 : 202);
  });

  routes.get('/receipts/:id', needs('read'), async (context) => {
    return context.json(unwrap(await objectOf(context).receipt(context.req.param('id'))));
  });

  routes.get('/metrics', needs('read'), (context) => tableMetrics(context));

  routes.get('/latest', needs('read'), async (context) => {
    const answer = rowsFormat(context.req.header('accept'));
    const query = parseLatestQuery(new URL(context.req.url).searchParams);
    // Asked for first: rows that are committed meanwhile are then found in both places, and not in neither.
    const waiting = query.buffered ? unwrap(await objectOf(context).waiting()) : null;
    const { namespace, table } = nameOf(context);
    const { columns, facts } = await context.var.ports.latest(namespace, table, query, waiting);
    return rowsResponse(answer, columns, facts);
  });

  routes.get('/rows', needs('read'), async (context) => {
    const answer = rowsFormat(context.req.header('accept'));
    const query = parseRowsQuery(new URL(context.req.url).searchParams);
    const { namespace, table } = nameOf(context);
    const { columns, facts } = await context.var.ports.rows(namespace, table, query);
    return rowsResponse(answer, columns, facts);
  });

  routes.post('/rows', needs('append'), (context) => postRows(context));

  routes.post('/enqueue', needs('append'), (context) => enqueueRows(context));

  routes.route('/apps', appRoutes());
  routes.route('/', adminRoutes());

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
  '/metrics': 'GET',
  '/latest': 'GET',
  '/rows': 'GET, POST',
  '/enqueue': 'POST',
  '/receipts/:id': 'GET',
};

import { Hono } from 'hono';
import { invalid } from '../core/base/errors.ts';
import type { AppEnv } from './app.ts';
import { needs } from './auth.ts';
import { appOf, epochOf, readFrame } from './ingest.ts';
import { methodNotAllowed } from './problem.ts';
import { type Ctx, objectOf, unwrap } from './table-context.ts';

/** Progress of producers, and what their owners decide: below `/apps/{app}` of a table. */
export function appRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();

  routes.get('/:app', needs('read'), async (context) =>
    context.json(unwrap(await objectOf(context).app(named(context)))),
  );

  routes.post('/:app/skip', needs('admin'), async (context) => {
    const epoch = epochOf(context.req.query('epoch'));
    return context.json(unwrap(await objectOf(context).skip(named(context), epoch)), 202);
  });

  routes.post('/:app/replace', needs('admin'), async (context) => {
    const epoch = epochOf(context.req.query('epoch'));
    const { frame, counts } = await readFrame(context, { batchId: null, producer: null });
    if (frame === null) throw invalid('empty-body', 'replacement has no rows; skip the epoch instead');
    return context.json({ ...unwrap(await objectOf(context).replace(named(context), epoch, frame)), ...counts }, 202);
  });

  routes.post('/:app/retire', needs('admin'), async (context) => {
    return context.json(unwrap(await objectOf(context).retire(named(context))), 202);
  });

  for (const [path, allowed] of Object.entries(ALLOWED)) {
    routes.all(path, (context) => methodNotAllowed(context.req.method, allowed));
  }
  return routes;
}

const ALLOWED: Readonly<Record<string, string>> = {
  '/:app': 'GET',
  '/:app/skip': 'POST',
  '/:app/replace': 'POST',
  '/:app/retire': 'POST',
};

function named(context: Ctx): string {
  return appOf(context.req.param('app') ?? '');
}

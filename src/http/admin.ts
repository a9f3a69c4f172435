import { Hono } from 'hono';
import { invalid } from '../core/base/errors.ts';
import { FILE_PARTITIONS_PAGE, SNAPSHOTS_PAGE } from '../core/base/limits.ts';
import {
  filterOf,
  idOf,
  readDelete,
  readExpire,
  readFastForward,
  readMaintain,
  readNothing,
  readProperties,
  readRef,
  readRollback,
  readSchemaChanges,
  readSpecChanges,
} from './admin-bodies.ts';
import type { AppEnv } from './app.ts';
import { needs } from './auth.ts';
import { forgetView, isViewStale, readFrame } from './ingest.ts';
import { methodNotAllowed } from './problem.ts';
import { type Ctx, objectOf, pageLength, unwrap } from './table-context.ts';

/** Changes of a table that are not rows: below its address. Each answers with a report; `changed: false` wrote nothing. */
export function adminRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();

  routes.get('/properties', needs('read'), async (context) =>
    context.json(unwrap(await objectOf(context).properties())),
  );

  routes.patch('/properties', needs('admin'), async (context) => {
    const { set, remove } = await readProperties(context.req.raw);
    return changed(context, unwrap(await objectOf(context).changeProperties(set, remove)));
  });

  routes.post('/upgrade', needs('admin'), async (context) => {
    await readNothing(context.req.raw);
    return changed(context, unwrap(await objectOf(context).upgrade()));
  });

  routes.post('/schema', needs('admin'), async (context) => {
    const { changes, expected } = await readSchemaChanges(context.req.raw);
    return changed(context, unwrap(await objectOf(context).changeSchema(changes, expected)));
  });

  routes.post('/partition-spec', needs('admin'), async (context) => {
    const { changes, expected } = await readSpecChanges(context.req.raw);
    return changed(context, unwrap(await objectOf(context).changeSpec(changes, expected)));
  });

  routes.get('/snapshots', needs('read'), async (context) => {
    const limit = pageLength(context.req.query('limit'), SNAPSHOTS_PAGE.default);
    const before = context.req.query('before') ?? null;
    if (before !== null && !/^[0-9]{1,19}$/.test(before)) {
      throw invalid('malformed', `before is not a sequence number: ${before}`);
    }
    const position = before === null ? null : BigInt(before);
    return context.json(unwrap(await objectOf(context).snapshots(limit, position)));
  });

  routes.get('/files', needs('read'), async (context) => {
    const limit = pageLength(context.req.query('limit'), FILE_PARTITIONS_PAGE.default);
    const offset = context.req.query('offset') ?? '0';
    if (!/^[0-9]{1,9}$/.test(offset)) throw invalid('malformed', `offset is not a number of a partition: ${offset}`);
    return context.json(unwrap(await objectOf(context).fileList(limit, Number(offset))));
  });

  routes.get('/refs', needs('read'), async (context) => context.json(unwrap(await objectOf(context).refs())));

  routes.get('/refs/:ref', needs('read'), async (context) => {
    const { refs } = unwrap(await objectOf(context).refs());
    const found = refs.find((ref) => ref.name === refOf(context));
    if (found === undefined) {
      throw invalid('unknown-ref', `table has no branch or tag of this name: ${refOf(context)}`);
    }
    return context.json(found);
  });

  routes.put('/refs/:ref', needs('admin'), async (context) => {
    const change = await readRef(context.req.raw, refOf(context));
    const { created, ...report } = unwrap(await objectOf(context).setRef(change));
    return context.json({ ...report, created }, created ? 201 : 200);
  });

  routes.delete('/refs/:ref', needs('admin'), async (context) => {
    const expected = idOf(context.req.query('expect_snapshot_id'), 'expect_snapshot_id');
    return context.json(unwrap(await objectOf(context).dropRef(refOf(context), expected)));
  });

  routes.post('/refs/:ref/fast-forward', needs('admin'), async (context) => {
    const { to } = await readFastForward(context.req.raw);
    return context.json(unwrap(await objectOf(context).fastForward(refOf(context), to)));
  });

  routes.post('/rollback', needs('admin'), async (context) => {
    const { snapshotId, expected } = await readRollback(context.req.raw);
    const { changed, version, table } = unwrap(await objectOf(context).rollback(snapshotId, expected));
    return context.json({ changed, version, snapshot: table.snapshot });
  });

  routes.post('/expire', needs('admin'), async (context) => {
    const { dryRun } = await readExpire(context.req.raw, context.req.query('dry_run'));
    return context.json(unwrap(await objectOf(context).expire(dryRun)));
  });

  routes.post('/maintain', needs('admin'), async (context) => {
    const plan = await readMaintain(context.req.raw, context.req.query('dry_run'));
    return context.json(unwrap(await objectOf(context).maintain(plan)));
  });

  routes.post('/delete', needs('admin'), async (context) => {
    const filter = await readDelete(context.req.raw);
    return context.json(unwrap(await objectOf(context).deleteFiles(filter)));
  });

  routes.post('/overwrite', needs('admin'), async (context) => {
    const filter = filterOf(context.req.query('filter'));
    const { frame, tableUuid, counts } = await readFrame(context, { batchId: null, producer: null });
    if (frame === null) throw invalid('empty-body', 'overwrite has no rows: delete what is to go');
    const answered = await objectOf(context).overwriteFiles(frame, tableUuid, filter);
    if (isViewStale(frame, answered)) forgetView(context);
    return context.json({ ...unwrap(answered), ...counts });
  });

  routes.post('/rewrite-manifests', needs('admin'), async (context) => {
    await readNothing(context.req.raw);
    return context.json(unwrap(await objectOf(context).rewriteManifests()));
  });

  for (const [path, allowed] of Object.entries(ALLOWED)) {
    routes.all(path, (context) => methodNotAllowed(context.req.method, allowed));
  }
  return routes;
}

const ALLOWED: Readonly<Record<string, string>> = {
  '/properties': 'GET, PATCH',
  '/upgrade': 'POST',
  '/schema': 'POST',
  '/partition-spec': 'POST',
  '/snapshots': 'GET',
  '/files': 'GET',
  '/refs': 'GET',
  '/refs/:ref': 'GET, PUT, DELETE',
  '/refs/:ref/fast-forward': 'POST',
  '/rollback': 'POST',
  '/expire': 'POST',
  '/maintain': 'POST',
  '/delete': 'POST',
  '/overwrite': 'POST',
  '/rewrite-manifests': 'POST',
};

/** A change of what rows are read by: this isolate asks the object again at the next batch. */
function changed(context: Ctx, report: object): Response {
  forgetView(context);
  return context.json(report);
}

function refOf(context: Ctx): string {
  return context.req.param('ref') ?? '';
}

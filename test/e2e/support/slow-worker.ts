import { withBucketAccess } from '../../../scripts/dev-bucket.ts';
import service, { TableObject as PlainTableObject } from '../../../src/index.ts';
import type { Env } from '../../../src/settings.ts';
import { CODE_GENERATION_PATH, PLAN_VARIABLE, type SlowPlan, slowBucket } from './slow-bucket.ts';

/** The service as it is, but that its tables reach the bucket through a slow one. Never deployed. */
export class TableObject extends PlainTableObject {
  constructor(ctx: DurableObjectState, env: Env) {
    const plan = (env as unknown as Record<string, unknown>)[PLAN_VARIABLE];
    super(ctx, typeof plan === 'string' ? { ...env, LAKE: slowBucket(env.LAKE, JSON.parse(plan) as SlowPlan) } : env);
  }
}

const probed = {
  ...service,
  fetch(request: Request, env: Env, context: ExecutionContext): Response | Promise<Response> {
    if (new URL(request.url).pathname !== CODE_GENERATION_PATH) return service.fetch(request, env, context);
    try {
      return new Response(String(new Function('return 1')()));
    } catch (error) {
      return new Response((error as Error).name);
    }
  },
} satisfies ExportedHandler<Env>;

export default withBucketAccess(probed, 'LAKE');

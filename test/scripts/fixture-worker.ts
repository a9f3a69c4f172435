import { DurableObject } from 'cloudflare:workers';
import { withBucketAccess } from '../../scripts/dev-bucket.ts';

/** The least that `wrangler.toml` can start: it reads and writes the bucket as the service would. */
export class TableObject extends DurableObject {}

const service = {
  async fetch(request: Request, env: { LAKE: R2Bucket; ACCESS: string }): Promise<Response> {
    const key = decodeURIComponent(new URL(request.url).pathname.slice(1));
    if (request.method === 'PUT') {
      const object = await env.LAKE.put(key, await request.arrayBuffer());
      return Response.json({ etag: object?.etag, access: env.ACCESS });
    }
    const object = await env.LAKE.get(key);
    return object === null ? new Response(null, { status: 404 }) : new Response(object.body);
  },
  queue(batch: MessageBatch): void {
    batch.ackAll();
  },
  scheduled(): void {},
};

export default withBucketAccess(service, 'LAKE');

/**
 * A table's object over a simulated store and clock, in the real runtime for its database: `GET /begin`, `/appends?count=`,
 * `/rest`, each answered with what was used. Never deployed.
 */
import { DurableObject } from 'cloudflare:workers';
import type { Env } from '../src/settings.ts';
import { CostObject, IN_ORDER, LATE } from './cost-run.ts';

const TABLES = [IN_ORDER, LATE];
const START_MS = Date.UTC(2026, 0, 8, 12);
const EVERY_MS = 10_000;

export class CostHost extends DurableObject<Env> {
  #object: CostObject | null = null;

  override async fetch(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const table = TABLES.find(({ name }) => name === searchParams.get('table'));
    if (table === undefined) return new Response('no such table', { status: 404 });
    if (pathname === '/begin') {
      this.#object = new CostObject(this.ctx, this.env, START_MS);
      await this.#object.create(table.definition);
    }
    const object = this.#object;
    if (object === null) return new Response('not begun', { status: 409 });
    if (pathname === '/appends') await object.appends(table, Number(searchParams.get('count')), EVERY_MS);
    if (pathname === '/rest') await object.rest();
    if (pathname === '/sweep') {
      // By the next sweep the object is gone from memory.
      await object.evict();
      await object.wake();
    }
    return Response.json({ ...object.used(), alarmMs: object.alarmMs });
  }
}

export default {
  fetch(request, env) {
    const name = new URL(request.url).searchParams.get('table') ?? '';
    return env.TABLES.getByName(name).fetch(request as never) as never;
  },
} satisfies ExportedHandler<{ TABLES: DurableObjectNamespace<CostHost> }>;

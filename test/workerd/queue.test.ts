import { createExecutionContext, createMessageBatch, getQueueResult, runInDurableObject } from 'cloudflare:test';
import { env, exports } from 'cloudflare:workers';
import { describe, expect, test, vi } from 'vitest';
import handler from '../../src/index.ts';
import type { Env } from '../../src/settings.ts';

/** Deliveries of a queue on the real runtime, and what they cost the ledger. */
const bindings = env as unknown as Env;
const { TABLES, DEAD_LETTERS } = bindings;
const service = (exports as unknown as { default: { fetch: typeof fetch } }).default;

async function newTable(name: string): Promise<string> {
  const body = JSON.stringify({ schema: { type: 'struct', fields: [{ name: 'id', type: 'long', required: true }] } });
  const init = { method: 'PUT', headers: { 'content-type': 'application/json' }, body };
  const response = await service.fetch(`http://sluice/v1/tables/queue/${name}`, init);
  expect(response.status, await response.text()).toBe(201);
  return `queue/${name}`;
}

/** Rows of the object's database: groups of batches, and batch ids. */
function ledgerOf(table: string): Promise<{ groups: number; ids: number }> {
  return runInDurableObject(TABLES.getByName(table), (_, { storage: { sql } }) => ({
    groups: sql.exec<{ n: number }>('SELECT count(*) AS n FROM frame_groups').one().n,
    ids: sql.exec<{ n: number }>('SELECT count(*) AS n FROM batches').one().n,
  }));
}

async function deliver(bodies: readonly unknown[], attempts = 1) {
  const timestamp = new Date();
  const messages = bodies.map((body, n) => ({ id: `m-${n}`, timestamp, attempts, body }));
  const batch = createMessageBatch('sluice-rows', messages);
  const context = createExecutionContext();
  await handler.queue(batch, bindings);
  return getQueueResult(batch, context);
}

describe('queue: a delivery on the runtime', () => {
  test('delivery: one ledger row for each table, an acknowledgement for each message, and again nothing', async () => {
    const tables = [await newTable('a'), await newTable('b')];
    const bodies = Array.from({ length: 100 }, (_, id) => ({ table: tables[id % 2], row: { id } }));
    for (const attempts of [1, 2]) {
      const result = await deliver(bodies, attempts);
      expect(result).toMatchObject({ outcome: 'ok', ackAll: false, retryMessages: [], retryBatch: { retry: false } });
      expect(result.explicitAcks).toHaveLength(100);
      for (const table of tables) expect(await ledgerOf(table), table).toEqual({ groups: 1, ids: 50 });
    }
  });

  test('delivery: a letter that is not taken brings its message back; the others are acknowledged', async () => {
    const table = await newTable('c');
    const refused = vi.spyOn(DEAD_LETTERS, 'sendBatch').mockRejectedValueOnce(new Error('Too Many Requests'));
    const bodies = [
      { table, row: { id: 1 } },
      { table, row: { id: 'x' } },
    ];
    const result = await deliver(bodies, 4);
    expect(refused).toHaveBeenCalledTimes(1);
    expect(result).toMatchObject({ explicitAcks: ['m-0'], retryMessages: [{ msgId: 'm-1' }] });
    refused.mockRestore();
    expect(await deliver(bodies)).toMatchObject({ explicitAcks: ['m-0', 'm-1'], retryMessages: [] });
  });
});

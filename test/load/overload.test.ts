import { afterAll, beforeAll, expect, test } from 'vitest';
import { BUFFER_BYTES_MAX, BUFFER_FRAMES_MAX } from '../../src/core/base/limits.ts';
import { ask, JSON_TYPE, NDJSON } from '../e2e/support/http.ts';
import { BUCKET_NAME, type RunningService, startService, until, WAREHOUSE } from '../e2e/support/service.ts';
import { PLAN_VARIABLE, type SlowPlan, seededRandom } from '../e2e/support/slow-bucket.ts';
import { openDuckdb } from '../oracle/duckdb.ts';

/**
 * More than a table can take, for half a minute, on the production bundle over a bucket that answers as slowly as one
 * across a network. Rows are wide, so that the buffer fills by bytes.
 */
const LOADED_MS = 30_000;
const UNLOADED_MS = 8_000;
const SENDERS = 16;
const BATCH_ROWS = 400;
/** What a sender waits after a refusal: far less than it is asked to. */
const IMPATIENCE_MS = 100;

const PLAN: SlowPlan = {
  seed: 7,
  rules: [{ operation: 'put', key: '.', side: 'before', chance: 1, ms: [30, 120] }],
};

/** Text that compresses badly, of which each row takes a piece. */
const PAYLOAD_CHARS = 4000;
const NOISE = (() => {
  const random = seededRandom(13);
  return Array.from({ length: 200_000 }, () => Math.floor(random() * 2 ** 32).toString(36)).join('');
})();

let service: RunningService;
beforeAll(async () => {
  service = await startService({
    entry: 'test/e2e/support/slow-worker.ts',
    vars: { [PLAN_VARIABLE]: JSON.stringify(PLAN) },
  });
});

afterAll(() => service?.stop());

/** One table and what was sent to it. */
class Load {
  readonly path: string;
  readonly #name: string;
  readonly acknowledged: number[] = [];
  readonly statuses = new Map<number, number>();
  retryAfter = new Set<string | null>();
  #next = 0;
  readonly #random = seededRandom(11);

  constructor(name: string) {
    this.#name = name;
    this.path = `/v1/tables/load/${name}`;
  }

  async create(): Promise<void> {
    const fields = [
      { name: 'id', type: 'long' },
      { name: 'payload', type: 'string' },
    ];
    const body = JSON.stringify({ schema: { type: 'struct', fields } });
    const created = await ask(service.send, 'PUT', this.path, { headers: JSON_TYPE, body });
    expect(created.status, created.text).toBe(201);
  }

  /** Sends one batch; its ids are kept when it is acknowledged. */
  async send(): Promise<number> {
    const first = this.#next;
    this.#next += BATCH_ROWS;
    const lines: string[] = [];
    for (let i = 0; i < BATCH_ROWS; i++) {
      const at = Math.floor(this.#random() * (NOISE.length - PAYLOAD_CHARS));
      lines.push(`{"id":${first + i},"payload":"${NOISE.slice(at, at + PAYLOAD_CHARS)}"}`);
    }
    const { status, headers, text } = await ask(service.send, 'POST', `${this.path}/rows`, {
      headers: NDJSON,
      body: lines.join('\n'),
    });
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    if (status === 202) this.acknowledged.push(first);
    else if (status === 429) this.retryAfter.add(headers.get('retry-after'));
    else throw new Error(`${status} ${text}`);
    return status;
  }

  async status() {
    const { body } = await ask<{ status: { buffer: { bytes: number; batches: number; rows: number } } }>(
      service.send,
      'GET',
      this.path,
    );
    return body.status;
  }

  /** Waits until nothing is buffered. */
  async drained(): Promise<void> {
    await ask(service.send, 'POST', `${this.path}/flush`);
    await until('buffer is empty', async () => (await this.status()).buffer.batches === 0, { timeoutMs: 60_000 });
  }

  async expectEachOnce(): Promise<void> {
    const prefix = `${WAREHOUSE}/load/${this.#name}`;
    const table = await openDuckdb(service.bucket, prefix, { bucketName: BUCKET_NAME });
    const found = await table.query(
      'SELECT count(*) AS rows, count(DISTINCT id) AS ids, CAST(sum(id) AS BIGINT) AS sum FROM live',
    );
    table.close();
    const rows = this.acknowledged.length * BATCH_ROWS;
    const sum = this.acknowledged.reduce((total, first) => total + BATCH_ROWS * first, 0);
    const within = (BATCH_ROWS * (BATCH_ROWS - 1)) / 2;
    expect(found).toEqual([
      { rows: BigInt(rows), ids: BigInt(rows), sum: BigInt(sum + this.acknowledged.length * within) },
    ]);
  }
}

test('overload: refused in time, never failed, and what was acknowledged is there once', async () => {
  const calm = new Load('calm');
  await calm.create();
  const calmFrom = performance.now();
  while (performance.now() - calmFrom < UNLOADED_MS) expect(await calm.send()).toBe(202);
  await calm.drained();
  const unloaded = (calm.acknowledged.length * BATCH_ROWS) / (performance.now() - calmFrom);

  const load = new Load('beyond');
  await load.create();
  const from = performance.now();
  let bytesMost = 0;
  const watch = async (): Promise<void> => {
    while (performance.now() - from < LOADED_MS) {
      const { buffer } = await load.status();
      bytesMost = Math.max(bytesMost, buffer.bytes);
      expect(buffer.batches).toBeLessThanOrEqual(BUFFER_FRAMES_MAX);
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  };
  const sender = async (): Promise<void> => {
    while (performance.now() - from < LOADED_MS) {
      if ((await load.send()) === 429) await new Promise((resolve) => setTimeout(resolve, IMPATIENCE_MS));
    }
  };
  await Promise.all([watch(), ...Array.from({ length: SENDERS }, sender)]);
  const accepted = (load.acknowledged.length * BATCH_ROWS) / (performance.now() - from);
  console.log(
    JSON.stringify({
      unloadedRowsPerSecond: Math.round(unloaded * 1000),
      acceptedRowsPerSecond: Math.round(accepted * 1000),
      statuses: Object.fromEntries(load.statuses),
      bufferBytesMost: bytesMost,
    }),
  );
  expect(load.statuses.get(429)).toBeGreaterThan(0);
  expect([...load.retryAfter]).toEqual(['5']);
  expect(bytesMost).toBeGreaterThan(BUFFER_BYTES_MAX / 2);
  expect(bytesMost).toBeLessThanOrEqual(BUFFER_BYTES_MAX);
  expect(accepted).toBeGreaterThanOrEqual(unloaded / 2);
  await load.drained();
  await load.expectEachOnce();
});

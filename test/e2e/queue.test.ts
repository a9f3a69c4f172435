import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { DeadLetter } from '../../src/queue/dead-letter.ts';
import { rows } from '../oracle/rows.ts';
import { assertValidTable } from '../oracle/validator.ts';
import { Rng } from '../sim/rng.ts';
import { ask, expectProblem, JSON_TYPE, NDJSON } from './support/http.ts';
import type { Sent } from './support/producer-worker.ts';
import { CHAOS_VARIABLE, QUEUE_FACTS_PATH, type QueueFacts } from './support/queue-chaos.ts';
import { BUCKET_NAME, type RunningService, startService, until, WAREHOUSE } from './support/service.ts';

/** The consumer and the way into the queue, on the production bundle with the local queue; messages come from another Worker. */

const SEED = 20_261_130;
const PRODUCER = join(import.meta.dirname, 'support/producer-worker.ts');

let service: RunningService;

beforeAll(async () => {
  service = await startService(
    {
      entry: 'test/e2e/support/queue-worker.ts',
      vars: {
        [CHAOS_VARIABLE]: JSON.stringify({ seed: SEED, ackLost: 0.2, letterLost: 0.3 }),
        QUEUE_TABLES: 'queue/* other/listed',
        QUEUE_TABLE: 'bound-rows=queue/bound',
      },
      config: (toml) =>
        `${toml.replace(/^max_batch_timeout = .*$/m, 'max_batch_timeout = 0.2')}
[[queues.consumers]]
queue = "bound-rows"
max_batch_timeout = 0.2
dead_letter_queue = "sluice-dead-letters"

[[queues.consumers]]
queue = "sluice-dead-letters"
max_batch_timeout = 0.1
`,
    },
    { name: 'producer', config: () => producerConfig('producer', 'sluice-rows') },
    { name: 'bound-producer', config: () => producerConfig('bound-producer', 'bound-rows') },
  );
});

afterAll(() => service?.stop());

function producerConfig(name: string, queue: string): string {
  return `name = "${name}"
main = ${JSON.stringify(PRODUCER)}
compatibility_date = "2026-11-09"

[[queues.producers]]
binding = "OUT"
queue = "${queue}"
`;
}

async function send(messages: readonly Sent[], worker = 'producer'): Promise<void> {
  const init = { method: 'POST', body: JSON.stringify(messages) };
  const response = await service.server.getWorker(worker).fetch('/', init as never);
  expect(response.status, await response.text()).toBe(200);
}

async function facts(): Promise<QueueFacts> {
  return (await ask<QueueFacts>(service.send, 'GET', QUEUE_FACTS_PATH)).body;
}

async function letters(): Promise<DeadLetter[]> {
  return (await facts()).letters.map(({ body }) => body as DeadLetter);
}

/** Waits until none of the messages comes again: its rows are in the ledger, or its letter in the dead letter queue. */
async function settled(messages: readonly Sent[], times = 1): Promise<void> {
  const texts = messages.map(({ body }) => (typeof body === 'string' ? body : JSON.stringify(body)));
  await until('all messages settled', async () => {
    const { settled, letters, buried } = await facts();
    return letters.length >= buried && texts.every((text) => (settled[text] ?? []).length >= times);
  });
}

function slugOf(reason: { type: string }): string | undefined {
  return reason.type.split(':').at(-1);
}

/** What `POST …/enqueue` answers. */
interface QueuedBody {
  state: string;
  rows: number;
  messages: number;
  batch_ids: string[];
}

/** Makes a table `queue/<name>` and returns ways to look at it. */
async function newTable(name: string) {
  const table = service.table('queue', name);
  await table.create({
    schema: {
      type: 'struct',
      fields: [
        { name: 'id', type: 'long', required: true },
        { name: 'v', type: 'string' },
      ],
    },
  });
  const prefix = `${WAREHOUSE}/queue/${name}`;
  return {
    ...{ name: `queue/${name}`, path: table.path },
    flush: () => table.flush(),
    batches: async () => (await table.describe()).status.last_sequence,
    /** Ids and values in the table, in the order of the ids; the table is checked as a whole. */
    async contents(): Promise<[bigint, unknown][]> {
      await table.flush();
      await assertValidTable(service.bucket, prefix, { bucketName: BUCKET_NAME, hintRequired: true });
      const found = await rows(service.bucket, prefix);
      return found
        .map((row): [bigint, unknown] => [row['id'] as bigint, row['v']])
        .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    },
  };
}

interface Row {
  id: number;
  v: string;
}

/** A message of each of the forms that a queue for any table takes. */
function messageOf(form: number, table: string, batch: Row[], batchId: string | null): Sent {
  const about = { table, ...(batchId === null ? {} : { batch_id: batchId }) };
  const ndjson = batch.map((row) => JSON.stringify(row)).join('\n');
  switch (form % 5) {
    case 0:
      return { body: { ...about, rows: batch } };
    case 1:
      return { body: { ...about, ndjson } };
    case 2:
      return { body: JSON.stringify({ ...about, rows: batch }), contentType: 'text' };
    case 3:
      return { body: JSON.stringify({ ...about, ndjson }), contentType: 'bytes' };
    default:
      return { body: { ...about, rows: batch }, contentType: 'v8' };
  }
}

test('queue: 1,000 messages with 1% poison and random redelivery: all good rows once, poison in the dead letter queue with reasons', async () => {
  const rng = new Rng(SEED, 'messages');
  const tables = [await newTable('a'), await newTable('b'), await newTable('c')];
  const wanted = new Map<string, [bigint, unknown][]>(tables.map(({ name }) => [name, []]));
  const poison: [form: object, type: string][] = [
    [{ rows: [{ id: 1 }] }, 'malformed-message'],
    [{ table: 'queue/a', rows: [{ id: 'x' }] }, 'invalid-rows'],
    [{ table: 'queue/a', rows: [{ id: 1, other: 2 }] }, 'invalid-rows'],
    [{ table: 'queue/a', ndjson: '{"id":1}\n{"id":' }, 'invalid-rows'],
    [{ table: 'queue/missing', row: { id: 1 } }, 'unknown-table'],
    [{ table: 'other/table', row: { id: 1 } }, 'table-not-queued'],
    [{ table: 'a.b/c', row: { id: 1 } }, 'bad-name'],
    [{ table: 'queue/a', row: { id: 1 }, rows: [{ id: 2 }] }, 'malformed-message'],
    [{ table: 'queue/a', batchid: 'x', row: { id: 1 } }, 'malformed-message'],
    [{ table: 'queue/a', ndjson: '' }, 'empty-body'],
  ];
  const messages: Sent[] = poison.map(([body]) => ({ body }));
  let id = 0;
  for (let n = 0; messages.length < 1000; n++) {
    const batch = Array.from({ length: rng.between(1, 20) }, (): Row => ({ id: ++id, v: `v${rng.below(1000)}` }));
    const { name } = rng.pick(tables);
    wanted.get(name)?.push(...batch.map((row): [bigint, unknown] => [BigInt(row.id), row.v]));
    messages.push(messageOf(rng.below(5), name, batch, rng.chance(0.5) ? `batch-${n}` : null));
  }
  expect(id).toBeGreaterThan(10_000);
  for (let at = messages.length - 1; at > 0; at--) {
    const other = rng.below(at + 1);
    [messages[at], messages[other]] = [messages[other], messages[at]];
  }

  await send(messages);
  await settled(messages);
  for (const { name, contents } of tables) expect(await contents(), name).toEqual(wanted.get(name));

  const dead = await letters();
  const told = dead.map(({ reason, body }) => `${JSON.stringify(body)} ${slugOf(reason)}`);
  expect([...new Set(told)].sort()).toEqual(poison.map(([body, type]) => `${JSON.stringify(body)} ${type}`).sort());
  for (const { reason, message_id, batch_id } of dead) {
    expect(reason.detail).not.toBe('');
    expect(batch_id).toBe(message_id);
  }
  // The test reached what it is about.
  const { acksLost, lettersLost } = await facts();
  expect(acksLost).toBeGreaterThan(100);
  expect(lettersLost).toBeGreaterThan(0);
});

test('dead letter: sent again it is a no-op if its message landed, and lands once when what was in its way is gone', async () => {
  const { name, path, batches, contents } = await newTable('letters');
  const landed = { body: { table: name, row: { id: 1, v: 'landed' } } };
  const failed = { body: { table: name, batch_id: 'mine', row: { id: 2, v: 'failed', more: 'x' } } };
  await send([landed, failed]);
  await settled([landed, failed]);
  const [letter] = (await letters()).filter(({ batch_id }) => batch_id === 'mine');
  expect(letter).toMatchObject({
    reason: { status: 422, errors: [{ line: 1, field: 'more', type: 'unknown-column' }] },
  });
  expect(await batches()).toBe(1);

  // As the letter would be if only the answer had been lost, every time.
  const id = (await facts()).settled[JSON.stringify(landed.body)][0];
  const ofLanded = { body: { ...letter, message_id: id, batch_id: id, body: landed.body } };
  await send([ofLanded]);
  await settled([ofLanded]);
  expect(await batches()).toBe(1);

  const changes = JSON.stringify({ changes: [{ add: 'more', type: 'string' }] });
  expect(await ask(service.send, 'POST', `${path}/schema`, { headers: JSON_TYPE, body: changes })).toMatchObject({
    status: 200,
  });
  for (const [times, again] of [letter, JSON.stringify(letter)].entries()) {
    const contentType = typeof again === 'string' ? 'text' : 'json';
    await send([{ body: again, contentType }]);
    await settled([{ body: again }], times + 1);
    expect(await batches()).toBe(2);
  }
  expect(await contents()).toEqual([
    [1n, 'landed'],
    [2n, 'failed'],
  ]);
});

test('bound queue: rows as they are, of every form; a dead letter of it lands from any queue', async () => {
  const { name, path, contents } = await newTable('bound');
  const messages: Sent[] = [
    { body: { id: 1, v: 'object' } },
    { body: [{ id: 2, v: 'list' }, { id: 3 }] },
    { body: '{"id":9007199254740993,"v":"text"}\n{"id":4}\n', contentType: 'text' },
    { body: '{"id":5,"v":"bytes"}', contentType: 'bytes' },
    { body: { id: 6, more: 'x' } },
    { body: { table: name, row: { id: 7 } } },
  ];
  await send(messages, 'bound-producer');
  await settled(messages);
  const dead = (await letters()).filter(({ bound }) => bound === name);
  expect([...new Set(dead.map(({ body, reason }) => `${JSON.stringify(body)} ${slugOf(reason)}`))].sort()).toEqual([
    '{"id":6,"more":"x"} invalid-rows',
    `{"table":"${name}","row":{"id":7}} invalid-rows`,
  ]);
  const changes = JSON.stringify({ changes: [{ add: 'more', type: 'string' }] });
  await ask(service.send, 'POST', `${path}/schema`, { headers: JSON_TYPE, body: changes });
  const again = dead.find(({ body }) => JSON.stringify(body).includes('more'));
  await send([{ body: again }]);
  await settled([{ body: again }]);
  expect(await contents()).toEqual([
    [1n, 'object'],
    [2n, 'list'],
    [3n, null],
    [4n, null],
    [5n, 'bytes'],
    [6n, null],
    [9_007_199_254_740_993n, 'text'],
  ]);
});

test('message too large for a letter: its letter tells the reason, and it follows as it was', async () => {
  const body = { table: 'queue/missing', ndjson: `{"v":"${'x'.repeat(127_900)}` };
  await send([{ body }]);
  await settled([{ body }]);
  const kept = (await facts()).letters;
  const at = kept.findIndex(({ body }) => (body as DeadLetter).body_follows === true);
  expect(kept[at].body).toMatchObject({ body: null, reason: { status: 404 } });
  expect(kept.map(({ body }) => JSON.stringify(body))).toContain(JSON.stringify(body));
});

test('enqueue: 10,000 rows over HTTP into the queue are in the table once, also when the request is sent again', async () => {
  const { path, contents, batches } = await newTable('enqueued');
  const lines = Array.from(
    { length: 10_000 },
    (_, n) => `{"id":${9_007_199_254_740_993n + BigInt(n)},"v":"row ${n} ü"}`,
  );
  const headers = { ...NDJSON, 'idempotency-key': 'all' };
  const answers = [];
  for (let times = 0; times < 2; times++) {
    answers.push(await ask<QueuedBody>(service.send, 'POST', `${path}/enqueue`, { headers, body: lines.join('\n') }));
  }
  const [{ status, body, text }] = answers;
  expect(status, text).toBe(202);
  expect(body).toMatchObject({ state: 'queued', rows: 10_000 });
  expect(body.messages).toBeGreaterThan(2);
  expect(body.batch_ids).toEqual(Array.from({ length: body.messages }, (_, n) => `all/${n}`));
  expect(answers[1].body).toEqual(body);
  await until('both times were delivered', async () => {
    const { deliveriesOf } = await facts();
    return body.batch_ids.every((id) => (deliveriesOf[id] ?? 0) >= 2);
  });
  await until('all landed', async () => (await batches()) === body.messages);
  const found = await contents();
  expect(found).toHaveLength(10_000);
  found.forEach(([id, v], n) => {
    if (id !== 9_007_199_254_740_993n + BigInt(n) || v !== `row ${n} ü`) expect([id, v]).toBe(n);
  });
  expect(await batches()).toBe(body.messages);
});

test('enqueue: neither a table nor its object is needed, only that the table may take messages', async () => {
  const rows = { headers: JSON_TYPE, body: '[{"id":1},{"id":2}]' };
  const answer = await ask(service.send, 'POST', '/v1/tables/other/listed/enqueue', rows);
  expect(answer).toMatchObject({ status: 202, body: { state: 'queued', rows: 2, messages: 1 } });
  const [batchId] = answer.body['batch_ids'] as string[];
  await until('a dead letter', async () =>
    (await letters()).some(({ batch_id, reason }) => batch_id === batchId && slugOf(reason) === 'unknown-table'),
  );
  expectProblem(await ask(service.send, 'POST', '/v1/tables/other/table/enqueue', rows), 403, 'table-not-queued');
  const bad = { headers: NDJSON, body: '{"id":1}\n[2]\n' };
  const problem = expectProblem(
    await ask(service.send, 'POST', '/v1/tables/other/listed/enqueue', bad),
    422,
    'invalid-rows',
  );
  expect(problem.errors).toMatchObject([{ line: 2, type: 'not-an-object' }]);
});

import { describe, expect, it } from 'vitest';
import { parseQueueSettings } from '../../src/core/access/queues.ts';
import { conflict, invalid, rejected, type SluiceError, unavailable } from '../../src/core/base/errors.ts';
import { GROUP_BYTES_MAX, QUEUE_DELIVERIES_MAX } from '../../src/core/base/limits.ts';
import type { NewFrame } from '../../src/core/batch/frame.ts';
import { decodeFrameBody } from '../../src/core/columns/frame.ts';
import type { Schema } from '../../src/core/iceberg/types.ts';
import { tableSettings } from '../../src/core/table/properties.ts';
import type { TableCalls } from '../../src/http/app.ts';
import type { Answer } from '../../src/object/answer.ts';
import { type ConsumerPorts, consume } from '../../src/queue/consumer.ts';
import type { DeadLetter } from '../../src/queue/dead-letter.ts';
import { schemaOf, valuesOf } from '../http/bodies.ts';

function problemOf({ kind, type, message, detail }: SluiceError): Answer<never> {
  return { ok: false, problem: { kind, type, message, detail } };
}

let made = 0;

/** Objects of tables and a dead letter queue that keep what they are sent, and what went wrong on the way. */
class World {
  /** Its own, for what an isolate remembers of tables outlives a test. */
  readonly namespace = `ns${++made}`;
  readonly schemas = new Map<string, Schema>();
  readonly frames = new Map<string, NewFrame[]>();
  readonly calls: string[] = [];
  /** Thrown by, or answered to, the next calls for a table. */
  readonly faults = new Map<string, (Error | SluiceError)[]>();
  /** What is in the way of a batch, by its id. */
  readonly refusals = new Map<string, SluiceError>();
  /** Outcome of a batch that was taken before. */
  readonly refused = new Set<string>();
  readonly letters: DeadLetter[] = [];
  readonly logged: Record<string, unknown>[] = [];
  settings = parseQueueSettings('*', '');
  /** Of all tables. */
  properties: Record<string, string> = {};
  lettersFail = false;
  /** Bytes of the largest call. */
  largest = 0;

  add(table: string, fields: Parameters<typeof schemaOf>[0]): string {
    const key = `${this.namespace}/${table}`;
    this.schemas.set(key, schemaOf(fields));
    return key;
  }

  ports(): ConsumerPorts {
    return {
      settings: () => this.settings,
      now: () => 5000,
      draw: () => 0,
      log: (event) => this.logged.push(event),
      deadLetters: {
        sendBatch: async (messages) => {
          if (this.lettersFail) throw new Error('queue is overloaded');
          for (const { body } of messages) this.letters.push(body as DeadLetter);
        },
      },
      object: (namespace, table) => {
        const key = `${namespace}/${table}`;
        return {
          ingest: async () => {
            this.calls.push(`ingest ${table}`);
            const schema = this.schemas.get(key);
            if (schema === undefined) return problemOf(invalid('unknown-table', `table does not exist: ${key}`));
            const settings = tableSettings(this.properties);
            return { ok: true, value: { tableUuid: key, schema, spec: { 'spec-id': 0, fields: [] }, settings } };
          },
          appendMany: async (frames: NewFrame[]) => {
            this.calls.push(`append ${table} ${frames.length}`);
            const bytes = frames.reduce((sum, { body }) => sum + body.length, 0);
            this.largest = Math.max(this.largest, bytes);
            const fault = this.faults.get(key)?.shift();
            if (fault !== undefined) {
              if (fault.name !== 'SluiceError') throw fault;
              return problemOf(fault as SluiceError);
            }
            return { ok: true, value: frames.map((frame) => this.#take(key, frame)) };
          },
        } as unknown as Pick<TableCalls, 'ingest' | 'appendMany'>;
      },
    };
  }

  #take(key: string, frame: NewFrame): Answer<{ receipt: string; state: string; duplicate: boolean }> {
    const id = frame.batchId as string;
    const refusal = this.refusals.get(id);
    if (refusal !== undefined) return problemOf(refusal);
    if (this.refused.has(id)) return { ok: true, value: { receipt: 'r', state: 'refused', duplicate: true } };
    const frames = this.frames.get(key) ?? [];
    this.frames.set(key, frames);
    const duplicate = frames.some(({ batchId }) => batchId === id);
    if (!duplicate) frames.push(frame);
    return { ok: true, value: { receipt: 'r', state: 'buffered', duplicate } };
  }

  /** Delivers messages given as bodies; tells for each what was asked of the platform. */
  async deliver(bodies: readonly unknown[], { attempts = 1, queue = 'rows' } = {}): Promise<string[]> {
    const outcomes = bodies.map((): string[] => []);
    const messages = bodies.map((body, n) => ({
      ...{ id: `m-${n}`, body, attempts, timestamp: new Date(1000) },
      ack: () => outcomes[n].push('ack'),
      retry: ({ delaySeconds }: { delaySeconds: number }) => outcomes[n].push(`retry ${delaySeconds}`),
    }));
    await consume({ queue, messages }, this.ports());
    return outcomes.map((asked) => asked.join(' '));
  }

  /** Batches of a table: id and rows. */
  batches(key: string): [string | null, unknown[][]][] {
    return (this.frames.get(key) ?? []).map(({ batchId, body }) => {
      const columns = decodeFrameBody(body, this.schemas.get(key) as Schema);
      const lists = columns.columns.map(valuesOf);
      return [batchId, Array.from({ length: columns.rows }, (_, row) => lists.map((list) => list[row]))];
    });
  }

  reasons(): string[] {
    return this.letters.map(({ batch_id, reason }) => `${batch_id} ${reason.type.split(':').at(-1)}`);
  }
}

describe('a delivery', () => {
  it('brings each message to its table as a batch of its own, in one call a table', async () => {
    const world = new World();
    const [a, b] = [world.add('a', { n: 'long', s: 'string' }), world.add('b', { n: 'long' })];
    const outcomes = await world.deliver([
      { table: a, row: { n: 1, s: 'x' } },
      { table: b, rows: [{ n: 2 }, { n: 3 }] },
      { table: a, batch_id: 'mine', ndjson: '{"n":9007199254740993}\n{"n":5}' },
      { table: b, rows: [] },
    ]);
    expect(outcomes).toEqual(['ack', 'ack', 'ack', 'ack']);
    expect(world.batches(a)).toEqual([
      ['m-0', [[1n, 'x']]],
      [
        'mine',
        [
          [9_007_199_254_740_993n, null],
          [5n, null],
        ],
      ],
    ]);
    expect(world.batches(b)).toEqual([['m-1', [[2n], [3n]]]]);
    expect(world.calls.sort()).toEqual(['append a 2', 'append b 1', 'ingest a', 'ingest b']);
    expect(world.logged).toEqual([]);
  });

  it('of more than the ledger takes in one step goes in several calls, in order, and is not kept until the last', async () => {
    const world = new World();
    const a = world.add('a', { s: 'string' });
    const ndjson = JSON.stringify({ s: 'x'.repeat(GROUP_BYTES_MAX / 3) });
    const bodies = Array.from({ length: 8 }, () => ({ table: a, ndjson }));
    expect(await world.deliver(bodies)).toEqual(bodies.map(() => 'ack'));
    expect(world.frames.get(a)?.map(({ batchId }) => batchId)).toEqual(bodies.map((_, n) => `m-${n}`));
    const calls = world.calls.filter((call) => call.startsWith('append'));
    expect(calls).toEqual(['append a 2', 'append a 2', 'append a 2', 'append a 2']);
    expect(world.largest).toBeLessThanOrEqual(GROUP_BYTES_MAX);
  });

  it('again, changes nothing and is acknowledged', async () => {
    const world = new World();
    const a = world.add('a', { n: 'long' });
    const bodies = [
      { table: a, row: { n: 1 } },
      { table: a, batch_id: 'b', row: { n: 2 } },
    ];
    await world.deliver(bodies);
    expect(await world.deliver(bodies, { attempts: 2 })).toEqual(['ack', 'ack']);
    expect(world.batches(a)).toHaveLength(2);
  });

  it('the same rows have the same digest, other rows or another form another', async () => {
    const world = new World();
    const a = world.add('a', { n: 'long' });
    await world.deliver([
      { table: a, rows: [{ n: 1 }] },
      { table: a, row: { n: 1 } },
      { table: a, row: { n: 2 } },
    ]);
    await world.deliver([
      { table: a, batch_id: 'x', row: { n: 1n } },
      { table: a, batch_id: 'y', ndjson: '{"n":1}' },
    ]);
    const digests = world.frames.get(a)?.map(({ digest }) => digest) ?? [];
    expect(digests[0]).toBe(digests[1]);
    expect(new Set(digests.slice(1)).size).toBe(4);
  });

  it('poison goes to the dead letter queue with its reason, and holds up nobody', async () => {
    const world = new World();
    const a = world.add('a', { n: 'long!' });
    world.settings = parseQueueSettings(`${world.namespace}/a ${world.namespace}/missing`, '');
    world.refusals.set('twice', invalid('idempotency-conflict', 'batch id was used for another body: twice'));
    world.refusals.set('app', rejected('commit-refused', 'no'));
    world.refused.add('late');
    const bodies = [
      { table: a, row: { n: 1 } },
      'no json',
      { table: a, row: { n: 'x' } },
      { table: a, row: { n: 1, other: 2 } },
      { table: a, ndjson: '{"n":1}\nnonsense' },
      { table: a, ndjson: ' ' },
      { table: `${world.namespace}/missing`, row: { n: 1 } },
      { table: `${world.namespace}/b`, row: { n: 1 } },
      { table: a, batch_id: 'twice', row: { n: 1 } },
      { table: a, batch_id: 'app', row: { n: 1 } },
      { table: a, batch_id: 'late', row: { n: 1 } },
      { table: a, row: { n: 2 } },
    ];
    expect(await world.deliver(bodies)).toEqual(bodies.map(() => 'ack'));
    expect(world.batches(a)).toEqual([
      ['m-0', [[1n]]],
      ['m-11', [[2n]]],
    ]);
    expect(world.reasons()).toEqual([
      'm-1 malformed-message',
      'm-2 invalid-rows',
      'm-3 invalid-rows',
      'm-4 invalid-rows',
      'm-5 empty-body',
      'm-6 unknown-table',
      'm-7 table-not-queued',
      'twice idempotency-conflict',
      'app commit-refused',
      'late commit-refused',
    ]);
    expect(world.letters[1]).toMatchObject({
      ...{ queue: 'rows', message_id: 'm-2', attempts: 1, sent_ms: 1000, failed_ms: 5000, body: bodies[2] },
      reason: { status: 422, errors: [{ line: 1, field: 'n', type: 'wrong-type' }] },
    });
    expect(world.logged.map(({ event, message }) => `${event} ${message}`)).toEqual(
      world.letters.map(({ message_id }) => `dead-letter ${message_id}`),
    );
    expect(JSON.stringify(world.logged)).not.toContain('nonsense');
    expect(JSON.stringify(world.logged)).not.toContain('whole number');
  });

  it('a message whose dead letter is not taken comes again', async () => {
    const world = new World();
    world.lettersFail = true;
    expect(await world.deliver(['no json', 7], { attempts: 3 })).toEqual(['retry 4', 'retry 4']);
    expect(world.logged.at(-1)).toMatchObject({ event: 'dead-letters-not-taken', messages: 2 });
  });

  it('what may pass comes again later, alone: a full buffer, a restarted object, a store that is down', async () => {
    const world = new World();
    const tables = ['a', 'b', 'c', 'd', 'e'].map((name) => world.add(name, { n: 'long' }));
    world.refusals.set('full', unavailable('busy', 'buffer is full', { retryAfter: 7 }));
    world.faults.set(tables[1], [Object.assign(new Error('reset'), { durableObjectReset: true })]);
    world.faults.set(tables[2], [unavailable('store-unavailable', 'store is down')]);
    world.faults.set(tables[3], [new Error('a bug')]);
    const outcomes = await world.deliver([
      { table: tables[0], batch_id: 'full', row: { n: 1 } },
      { table: tables[0], row: { n: 2 } },
      ...tables.slice(1).map((table) => ({ table, row: { n: 1 } })),
    ]);
    expect(outcomes).toEqual(['retry 7', 'ack', 'retry 1', 'retry 1', 'retry 1', 'ack']);
    expect(world.letters).toEqual([]);
    expect(world.logged.map(({ event, table, type }) => `${event} ${table} ${type}`)).toEqual([
      `messages-deferred ${tables[0]} busy`,
      `messages-deferred ${tables[1]} object-unavailable`,
      `messages-deferred ${tables[2]} store-unavailable`,
      `messages-deferred ${tables[3]} internal`,
    ]);
  });

  it('what did not pass in all its deliveries becomes a dead letter with its last reason', async () => {
    const world = new World();
    const a = world.add('a', { n: 'long' });
    world.refusals.set('full', unavailable('busy', 'buffer is full'));
    const bodies = [{ table: a, batch_id: 'full', row: { n: 1 } }];
    expect(await world.deliver(bodies, { attempts: QUEUE_DELIVERIES_MAX - 1 })).toEqual(['retry 450']);
    expect(await world.deliver(bodies, { attempts: QUEUE_DELIVERIES_MAX })).toEqual(['ack']);
    expect(world.reasons()).toEqual(['full busy']);
  });

  it('wrong settings are no fault of a message: it waits', async () => {
    const world = new World();
    const a = world.add('a', { n: 'long' });
    world.faults.set(a, [invalid('bad-location', 'location does not begin with s3://')]);
    expect(await world.deliver([{ table: a, row: { n: 1 } }], { attempts: 1000 })).toEqual(['retry 450']);
    Object.defineProperty(world, 'settings', { get: () => parseQueueSettings('nonsense', '') });
    expect(await world.deliver([{ table: a, row: { n: 1 } }, 'no json'])).toEqual(['retry 1', 'retry 1']);
    expect(world.letters).toEqual([]);
  });

  it('a column that was added a moment ago is no poison: the table is looked at anew', async () => {
    const world = new World();
    const a = world.add('a', { n: 'long' });
    await world.deliver([{ table: a, row: { n: 1 } }]);
    world.add('a', { n: 'long', more: 'string' });
    const bodies = [
      { table: a, batch_id: 'b0', row: { n: 2 } },
      { table: a, batch_id: 'b1', row: { n: 3, more: 'x' } },
      { table: a, batch_id: 'b2', row: { n: 4, never: 'x' } },
    ];
    expect(await world.deliver(bodies)).toEqual(['ack', 'ack', 'ack']);
    expect(world.frames.get(a)?.map(({ batchId }) => batchId)).toEqual(['m-0', 'b0', 'b1']);
    expect(world.reasons()).toEqual(['b2 invalid-rows']);
  });

  it('a table that allows it takes new columns from messages, and the next delivery knows of them', async () => {
    const world = new World();
    const a = world.add('a', { n: 'long' });
    world.properties = { 'sluice.schema-evolution': 'additive' };
    const bodies = [
      { table: a, row: { n: 1, s: 'x' } },
      { table: a, ndjson: '{"n":2,"d":9007199254740993}' },
    ];
    expect(await world.deliver(bodies)).toEqual(['ack', 'ack']);
    const proposals = world.frames.get(a)?.map(({ proposal }) => JSON.stringify(proposal));
    expect(proposals?.[0]).toContain('"s"');
    expect(proposals?.[1]).toContain('"long"');
    await world.deliver([{ table: a, row: { n: 3 } }]);
    expect(world.calls).toEqual(['ingest a', 'append a 2', 'ingest a', 'append a 1']);
  });

  it('a table that was changed meanwhile is looked at anew, once', async () => {
    const world = new World();
    const a = world.add('a', { n: 'long' });
    const changed = conflict('table-changed', 'table was replaced by another one');
    world.faults.set(a, [changed]);
    expect(await world.deliver([{ table: a, row: { n: 1 } }])).toEqual(['ack']);
    expect(world.calls).toEqual(['ingest a', 'append a 1', 'ingest a', 'append a 1']);
    world.faults.set(a, [changed, changed]);
    expect(await world.deliver([{ table: a, batch_id: 'b', row: { n: 1 } }])).toEqual(['retry 1']);
  });

  it('a queue that is bound to a table takes rows, and its table needs no mention among those allowed', async () => {
    const world = new World();
    const a = world.add('a', { n: 'long' });
    world.settings = parseQueueSettings('', `raw=${a}`);
    expect(await world.deliver([{ n: 1 }, [{ n: 2 }, { n: 3 }], '{"n":4}\n', { x: 5 }], { queue: 'raw' })).toEqual([
      ...['ack', 'ack', 'ack', 'ack'],
    ]);
    expect(world.batches(a).flatMap(([, rows]) => rows)).toEqual([[1n], [2n], [3n], [4n]]);
    expect(world.letters).toMatchObject([{ bound: a, body: { x: 5 } }]);
  });

  it('a dead letter that is sent again lands once, under its own id; one that fails again is no letter in a letter', async () => {
    const world = new World();
    const a = world.add('a', { n: 'long' });
    await world.deliver([{ table: a, row: { n: 1, more: 'x' } }]);
    const again = JSON.parse(JSON.stringify(world.letters[0]));
    expect(await world.deliver(['other', again])).toEqual(['ack', 'ack']);
    expect(world.letters[2]).toEqual({ ...world.letters[0], attempts: 1 });

    world.add('a', { n: 'long', more: 'string' });
    expect(await world.deliver(['other', again])).toEqual(['ack', 'ack']);
    expect(await world.deliver([again])).toEqual(['ack']);
    expect(world.batches(a)).toEqual([['m-0', [[1n, 'x']]]]);
  });
});

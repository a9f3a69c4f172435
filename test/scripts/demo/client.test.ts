import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { batchOf, TableClient } from '../../../scripts/demo/client.ts';

interface Seen {
  key: string | null;
  body: string;
}

/** A service that gives these answers one after the other. */
function client(answers: (Response | Error)[]) {
  const seen: Seen[] = [];
  const waits: number[] = [];
  const fetch = (async (_: string, init: RequestInit) => {
    const body = gunzipSync(init.body as Uint8Array).toString();
    seen.push({ key: new Headers(init.headers).get('idempotency-key'), body });
    const answer = answers.shift();
    if (answer === undefined) throw new Error('asked once too often');
    if (answer instanceof Error) throw answer;
    return answer;
  }) as unknown as typeof globalThis.fetch;
  const sleep = async (ms: number) => {
    waits.push(ms);
  };
  return { table: new TableClient('http://service/v1/tables/a/b', { fetch, sleep }), seen, waits };
}

const taken = (status: number, rows: number) => Response.json({ receipt: 'r-1', state: 'buffered', rows }, { status });

describe('client of the demonstration', () => {
  test('send: told to come later, it waits as long as it was told and sends the same batch under the same key', async () => {
    const later = () => Response.json({ detail: 'buffer is full' }, { status: 429, headers: { 'retry-after': '5' } });
    const { table, seen, waits } = client([later(), later(), taken(202, 2)]);
    const sent = await table.send(await batchOf('k-1', ['{"a":1}', '{"a":2}']));
    expect(sent).toEqual({ status: 202, receipt: 'r-1', rows: 2, retries: 2 });
    expect(waits).toEqual([5000, 5000]);
    expect(seen).toEqual(Array(3).fill({ key: 'k-1', body: '{"a":1}\n{"a":2}\n' }));
  });

  test('send: an answer that was lost is asked for again under the same key', async () => {
    const { table, seen } = client([new TypeError('fetch failed'), taken(200, 1)]);
    expect(await table.send(await batchOf('k-1', ['{}']))).toMatchObject({ status: 200, retries: 1 });
    expect(seen.map(({ key }) => key)).toEqual(['k-1', 'k-1']);
  });

  test('send: a refusal is not repeated and says why', async () => {
    const { table, seen } = client([Response.json({ detail: 'batch has 1 bad rows' }, { status: 400 })]);
    await expect(table.send(await batchOf('k-1', ['{}']))).rejects.toThrow('answered 400: batch has 1 bad rows');
    expect(seen).toHaveLength(1);
  });

  test('send: a service that is never ready is given up', async () => {
    const { table, seen } = client(Array.from({ length: 40 }, () => new Response('busy', { status: 503 })));
    await expect(table.send(await batchOf('k-1', ['{}']))).rejects.toThrow('answered 503: busy');
    expect(seen).toHaveLength(30);
  });

  test('send: another count of rows than was sent is an error', async () => {
    const { table } = client([taken(202, 1)]);
    await expect(table.send(await batchOf('k-1', ['{}', '{}']))).rejects.toThrow('service counted 1 of 2 rows');
  });
});

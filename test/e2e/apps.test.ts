import { describe, expect, test } from 'vitest';
import { rows } from '../oracle/rows.ts';
import { assertValidTable } from '../oracle/validator.ts';
import { ask, expectProblem, NDJSON } from './support/http.ts';
import { BUCKET_NAME, WAREHOUSE } from './support/service.ts';
import { sharedService } from './support/shared.ts';

const service = sharedService();
let made = 0;

/** A table of its own, and a way to send epochs to it. */
async function newTable() {
  const name = `t${++made}`;
  const table = service.table('apps', name);
  await table.create({ schema: { type: 'struct', fields: [{ name: 'n', type: 'long', required: true }] } });
  const send = (query: string, n: number, headers: Record<string, string> = {}) =>
    ask(service.send, 'POST', `${table.path}/rows?${query}`, {
      headers: { ...NDJSON, ...headers },
      body: `{"n":${n}}`,
    });
  const app = (path: string, method = 'GET', body?: string) =>
    ask(service.send, method, `${table.path}/apps/${path}`, body === undefined ? {} : { headers: NDJSON, body });
  const numbers = async () => (await rows(service.bucket, `${WAREHOUSE}/apps/${name}`)).map((row) => row['n']).sort();
  const valid = () => assertValidTable(service.bucket, `${WAREHOUSE}/apps/${name}`, { bucketName: BUCKET_NAME });
  return { table, send, app, numbers, valid };
}

describe('epochs over HTTP', () => {
  test('epoch: 201 with the rows, 200 for the replay, 422, 409 and 409 for what does not fit', async () => {
    const { send, app, numbers, valid, table } = await newTable();
    const first = await send('app=a&epoch=1', 1, { prefer: 'wait=20' });
    expect(first.status).toBe(201);
    const replay = await send('app=a&epoch=1', 1);
    expect(replay.status).toBe(200);
    expect(replay.body).toMatchObject({ duplicate: true, receipt: first.body['receipt'], state: 'committed' });
    expectProblem(await send('app=a&epoch=1', 2), 422, 'epoch-conflict');
    expect(expectProblem(await send('app=a&epoch=3', 3), 409, 'epoch-gap')['expected']).toBe('2');
    expect((await send('app=a&epoch=2', 2)).status).toBe(202);
    expect((await app('a')).body).toEqual({
      app: 'a',
      committed_epoch: '1',
      accepted_epoch: '2',
      parked: null,
      retiring: false,
    });
    await table.flush();
    expect((await app('a')).body).toMatchObject({ committed_epoch: '2', accepted_epoch: null });
    expect(await numbers()).toEqual([1n, 2n]);
    await valid();
  });

  test('epoch: sparse, 64-bit, and a name with slashes', async () => {
    const { send, app, table } = await newTable();
    const name = encodeURIComponent('kafka:topic/3');
    expect((await send(`app=${name}&epoch=9007199254740993&epochs=sparse`, 1)).status).toBe(202);
    await table.flush();
    expect((await app(name)).body).toMatchObject({ app: 'kafka:topic/3', committed_epoch: '9007199254740993' });
    const behind = expectProblem(await send(`app=${name}&epoch=5&epochs=sparse`, 2), 409, 'epoch-behind');
    expect(behind['committed']).toBe('9007199254740993');
  });

  test('epoch: what is no epoch, no app or half of both is refused before the body counts', async () => {
    const { send, app } = await newTable();
    for (const query of ['app=a', 'epoch=1', 'app=a&epoch=-1', 'app=a&epoch=x', 'app=a&epoch=1&epochs=odd']) {
      expectProblem(await send(query, 1), 400, 'malformed');
    }
    expectProblem(await send('app=sluice/0&epoch=1', 1), 400, 'bad-name');
    expectProblem(await app('nobody'), 404, 'unknown-app');
    expectProblem(await app('a/skip?epoch=1', 'POST'), 409, 'app-not-parked');
    expectProblem(await app('a/replace?epoch=1', 'POST', '{"n":1}'), 409, 'app-not-parked');
    expectProblem(await app('a', 'DELETE'), 405, 'method-not-allowed');
  });

  test('retire: the app leaves the map with a commit and may begin anew', async () => {
    const { send, app, table, valid } = await newTable();
    await send('app=a&epoch=7', 1);
    expectProblem(await app('a/retire', 'POST'), 409, 'app-busy');
    await table.flush();
    expect((await app('a/retire', 'POST')).status).toBe(202);
    await table.flush();
    expectProblem(await app('a'), 404, 'unknown-app');
    expect((await send('app=a&epoch=1', 2)).status).toBe(202);
    await table.flush();
    await valid();
  });
});

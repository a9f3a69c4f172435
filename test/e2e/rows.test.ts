import { tableFromIPC } from 'apache-arrow';
import { expect, test } from 'vitest';
import { ask, expectProblem, NDJSON } from './support/http.ts';
import { readings } from './support/readings.ts';
import { sharedService } from './support/shared.ts';

/** Rows of a table, on the production bundle and the local bucket. */
const service = sharedService();

interface Found {
  version: number;
  more: boolean;
  files_considered: number;
  files_read: number;
  rows: Record<string, unknown>[];
}

const at = (hour: number, minute = 0) => new Date(Date.UTC(2026, 0, 1, hour, minute)).toISOString();

test('rows: by time and series, newest first, of an older state, in each format, the later copy of a key', async () => {
  const table = service.table('rows', 't');
  await table.create(readings({ 'timelake.auto-maintain': 'false' }));
  const get = (query: string, accept = 'application/json') =>
    ask<Found>(service.send, 'GET', `${table.path}/rows?${query}`, { headers: { accept } });
  const found = async (query: string) => {
    const { status, body, text } = await get(query);
    expect(status, text).toBe(200);
    return body.rows.map(({ device, v }) => `${device} ${v}`);
  };
  expect((await get('')).body).toMatchObject({ version: 1, more: false, rows: [] });

  const hours = [0, 1, 2, 3];
  for (const hour of hours) {
    const rows = ['a', 'b'].map((device, i) => ({ time: at(hour, i), device, v: 10 * hour + i }));
    await table.post(rows, { waitSeconds: 30 });
  }
  const before = (await get('')).body;
  expect(before.rows.map(({ v }) => v)).toEqual([0, 1, 10, 11, 20, 21, 30, 31]);
  // The same key again, with digits that a double does not hold: it takes the place of the first.
  const body = `{"time":"${at(1)}","device":"a","v":9007199254740993}`;
  const headers = { ...NDJSON, prefer: 'wait=30' };
  expect((await ask(service.send, 'POST', `${table.path}/rows`, { headers, body })).status).toBe(201);

  expect(await found(`from=${at(1)}&to=${at(2, 1)}&device=b`)).toEqual(['b 11']);
  const newest = (await get('order=desc&limit=2')).body;
  expect(newest).toMatchObject({ more: true, files_considered: 5, rows: [{ v: 31 }, { v: 30 }] });
  expect(newest.files_read).toBeLessThan(5);
  const text = (await get(`from=${at(1)}&to=${at(1, 1)}&columns=v,time`, 'application/x-ndjson')).text;
  expect(text).toBe('{"v":"9007199254740993","time":"2026-01-01T01:00:00.000000Z"}\n');
  const snapshots = await ask<{ snapshots: { snapshot_id: string }[] }>(
    service.send,
    'GET',
    `${table.path}/snapshots?limit=2`,
  );
  const { snapshot_id: older } = snapshots.body.snapshots[1];
  expect(await found(`snapshot_id=${older}&device=a`)).toEqual(['a 0', 'a 10', 'a 20', 'a 30']);

  const response = await service.send(`${table.path}/rows?columns=device,v&limit=3`, {
    headers: { accept: 'application/vnd.apache.arrow.stream' },
  });
  const arrow = tableFromIPC(new Uint8Array(await response.arrayBuffer()));
  expect(arrow.toArray().map((row) => [row.device, row.v])).toEqual([
    ['a', 0n],
    ['b', 1n],
    ['a', 9_007_199_254_740_993n],
  ]);

  expectProblem(await get('v=1'), 400, 'malformed');
  expectProblem(await get('limit=0'), 400, 'malformed');
  expectProblem(await get('columns=nope'), 400, 'malformed');
  expectProblem(await get('ref=nope'), 404, 'unknown-ref');
  expectProblem(await get('snapshot_id=7'), 400, 'unknown-snapshot');
  expectProblem(await get('', 'text/html'), 406, 'not-acceptable');
});

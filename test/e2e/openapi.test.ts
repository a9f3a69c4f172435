import { beforeAll, expect, test } from 'vitest';
import type { JsonSchema } from '../../src/http/openapi/json-schema.ts';
import { answerFaults } from '../http/openapi/validate.ts';
import { type Asked, ask, JSON_TYPE, NDJSON } from './support/http.ts';
import { sharedService } from './support/shared.ts';

/** Answers of the running service, held against the description that it serves of itself. */
const service = sharedService();
let document: JsonSchema;
const met = new Set<string>();

beforeAll(async () => {
  document = (await ask<JsonSchema>(service.send, 'GET', '/openapi.json')).body;
});

const TABLE = '/v1/tables/{namespace}/{table}';

/** Sends a request, and wants its answer as it is described. `template` has the parameters of the path in braces. */
async function described(status: number, method: string, template: string, query = '', asked: Asked = {}) {
  const path = template
    .replace('{namespace}', 'api')
    .replace('{table}', 't')
    .replace('{ref}', 'r')
    .replace('{app}', 'a')
    .replace('{id}', receipt);
  const answer = await ask(service.send, method, path + query, asked);
  expect(answer.status, `${method} ${path}${query} ${answer.text.slice(0, 500)}`).toBe(status);
  const contentType = answer.headers.get('content-type');
  const told = { method, status, contentType, body: answer.text === '' ? null : answer.body };
  expect(answerFaults(document, template, told)).toEqual([]);
  met.add(`${method} ${template}`);
  return answer;
}

let receipt = '';
const json = (value: object): Asked => ({ headers: JSON_TYPE, body: JSON.stringify(value) });
const rows = (text: string, headers: Record<string, string> = {}): Asked => ({
  headers: { ...NDJSON, ...headers },
  body: text,
});

test('openapi: every operation answers as the document says', async () => {
  const fields = [
    { name: 'time', type: 'timestamptz' },
    { name: 'device', type: 'string' },
    { name: 'v', type: 'int' },
  ];
  const definition = { schema: { type: 'struct', fields }, time_column: 'time', series_key: ['device'] };
  await described(200, 'GET', '/health');
  await described(204, 'GET', '/ping');
  await described(200, 'GET', '/openapi.json');
  await described(404, 'GET', TABLE);
  await described(200, 'POST', '/v1/infer', '', rows('{"time":"2026-01-01T00:00:00Z","v":1}'));
  await described(400, 'PUT', TABLE, '', json({ schema: {} }));
  await described(201, 'PUT', TABLE, '', json(definition));
  await described(200, 'PUT', TABLE, '', json(definition));
  await described(409, 'PUT', TABLE, '', json({ schema: { type: 'struct', fields: [fields[1]] } }));
  await described(200, 'POST', `${TABLE}/attach`, '', json({}));
  await described(200, 'GET', TABLE);

  const row = (day: number, v: unknown) => JSON.stringify({ time: `2026-01-0${day}T00:00:00Z`, device: 'd', v });
  const taken = await described(202, 'POST', `${TABLE}/rows`, '', rows(row(1, 1), { 'idempotency-key': 'k' }));
  receipt = String(taken.body['receipt']);
  await described(200, 'POST', `${TABLE}/rows`, '', rows(row(1, 1), { 'idempotency-key': 'k' }));
  await described(422, 'POST', `${TABLE}/rows`, '', rows(row(1, 2), { 'idempotency-key': 'k' }));
  await described(422, 'POST', `${TABLE}/rows`, '', rows(row(1, 'x')));
  await described(400, 'POST', `${TABLE}/rows`, '', rows(''));
  await described(415, 'POST', `${TABLE}/rows`, '', { headers: { 'content-type': 'text/plain' }, body: 'x' });
  await described(200, 'GET', `${TABLE}/receipts/{id}`);
  await described(
    201,
    'POST',
    `${TABLE}/rows`,
    '?on_error=skip',
    rows(`${row(2, 2)}\n${row(2, 'x')}`, { prefer: 'wait=30' }),
  );
  await described(200, 'POST', `${TABLE}/rows`, '', { headers: JSON_TYPE, body: '[]' });
  // Of no column of the table: it ends as a dead letter.
  await described(202, 'POST', `${TABLE}/enqueue`, '', rows('{"nothing":1}'));
  await described(200, 'POST', `${TABLE}/enqueue`, '', { headers: JSON_TYPE, body: '[]' });
  await described(422, 'POST', `${TABLE}/enqueue`, '', rows('7'));
  await described(415, 'POST', `${TABLE}/enqueue`, '', { headers: { 'content-type': 'text/csv' }, body: 'v' });
  await described(200, 'POST', `${TABLE}/flush`);
  await described(200, 'GET', `${TABLE}/latest`, '?buffered=true&device=d');
  await described(400, 'GET', `${TABLE}/latest`, '?v=1');
  await described(200, 'GET', `${TABLE}/rows`, '?order=desc&limit=2');
  await described(400, 'GET', `${TABLE}/rows`, '?limit=0');
  await described(200, 'GET', `${TABLE}/receipts/{id}`);
  receipt = 'nobody-1';
  await described(404, 'GET', `${TABLE}/receipts/{id}`);
  await described(200, 'GET', '/v1/tables', '?limit=1');
  await described(200, 'GET', '/v1/metrics', '?limit=1');
  await described(200, 'GET', `${TABLE}/metrics`);
  await described(400, 'GET', '/v1/tables', '?limit=x');

  const point = `t,device=d v=5i ${Date.UTC(2026, 0, 3)}000000`;
  await described(204, 'POST', '/api/v2/write', '?bucket=api', { body: point });
  await described(400, 'POST', '/api/v2/write', '?bucket=api', { body: `nobody v=1\n${point}` });

  await described(202, 'POST', `${TABLE}/rows`, '?app=a&epoch=1', rows(row(3, 3)));
  await described(409, 'POST', `${TABLE}/rows`, '?app=a&epoch=9', rows(row(3, 3)));
  await described(200, 'POST', `${TABLE}/flush`);
  await described(200, 'GET', `${TABLE}/apps/{app}`);
  await described(409, 'POST', `${TABLE}/apps/{app}/skip`, '?epoch=1');
  await described(409, 'POST', `${TABLE}/apps/{app}/replace`, '?epoch=1', rows(row(3, 4)));
  await described(202, 'POST', `${TABLE}/apps/{app}/retire`);

  await described(200, 'GET', `${TABLE}/properties`);
  await described(200, 'PATCH', `${TABLE}/properties`, '', json({ set: { owner: 'me' } }));
  await described(400, 'PATCH', `${TABLE}/properties`, '', json({ set: { 'sluice.flush-interval': 'x' } }));
  await described(200, 'POST', `${TABLE}/upgrade`);
  await described(200, 'POST', `${TABLE}/schema`, '', json({ changes: [{ promote: 'v', type: 'long' }] }));
  await described(422, 'POST', `${TABLE}/schema`, '', json({ changes: [{ drop: 'time' }] }));
  await described(
    422,
    'POST',
    `${TABLE}/partition-spec`,
    '',
    json({ changes: [{ add: 'nothing', transform: 'identity' }] }),
  );
  await described(200, 'GET', `${TABLE}/files`, '?limit=1');
  await described(400, 'GET', `${TABLE}/files`, '?offset=-1');
  const snapshots = await described(200, 'GET', `${TABLE}/snapshots`, '?limit=1');
  const snapshot_id = String(snapshots.body['current_snapshot_id']);
  await described(404, 'GET', `${TABLE}/refs/{ref}`);
  await described(409, 'PUT', `${TABLE}/refs/{ref}`, '', json({ type: 'tag', snapshot_id: '1' }));
  await described(201, 'PUT', `${TABLE}/refs/{ref}`, '', json({ type: 'branch', max_ref_age_ms: 86_400_000 }));
  await described(200, 'PUT', `${TABLE}/refs/{ref}`, '', json({}));
  await described(200, 'GET', `${TABLE}/refs`);
  await described(200, 'GET', `${TABLE}/refs/{ref}`);
  await described(200, 'POST', `${TABLE}/refs/{ref}/fast-forward`, '', json({ to: 'main' }));
  await described(200, 'DELETE', `${TABLE}/refs/{ref}`, `?expect_snapshot_id=${snapshot_id}`);
  await described(200, 'POST', `${TABLE}/rewrite-manifests`);
  const filter = { partitions: [{ time_day: '2026-01-02' }] };
  await described(
    200,
    'POST',
    `${TABLE}/overwrite`,
    `?filter=${encodeURIComponent(JSON.stringify(filter))}`,
    rows(row(2, 7)),
  );
  await described(200, 'POST', `${TABLE}/delete`, '', json({ filter }));
  await described(200, 'POST', `${TABLE}/rollback`, '', json({ snapshot_id }));
  await described(409, 'POST', `${TABLE}/rollback`, '', json({ snapshot_id: '1' }));
  await described(200, 'POST', `${TABLE}/expire`, '', json({ dry_run: true }));
  await described(200, 'POST', `${TABLE}/maintain`);
  await described(200, 'DELETE', TABLE);

  const all = Object.entries(document['paths'] as Record<string, object>).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect([...met].sort()).toEqual(all.sort());
});

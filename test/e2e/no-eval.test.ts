import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { readAvro } from '../oracle/avro.ts';
import { readFooter } from '../oracle/parquet.ts';
import { rows } from '../oracle/rows.ts';
import { assertValidTable } from '../oracle/validator.ts';
import { ask, JSON_TYPE, NDJSON } from './support/http.ts';
import { BUCKET_NAME, NO_EVAL_ENTRY, WAREHOUSE } from './support/service.ts';
import { sharedService } from './support/shared.ts';

/**
 * The tests of this folder prove that the bundle generates no code only because the runtime they run in refuses it. Here
 * the premise is proven in the very isolate that then does each kind of work that libraries like to compile for.
 */
const service = sharedService(NO_EVAL_ENTRY);

async function expectCodeGenerationRefused(): Promise<void> {
  for (const path of ['/probe/function', '/probe/eval', '/probe/constructor']) {
    const answer = await ask(service.send, 'GET', path);
    expect(answer.body, path).toEqual({ refused: 'EvalError' });
  }
  // The probe would say so if it were allowed.
  expect((await ask(service.send, 'GET', '/probe/nothing')).body).toEqual({ allowed: null });
}

test('bundle: gzip, flat and nested Parquet, zstd and Avro work where code generation is refused', async () => {
  await expectCodeGenerationRefused();
  const nested = [
    { name: 'tags', type: { type: 'list', element: 'string' } },
    { name: 'place', type: { type: 'struct', fields: [{ name: 'city', type: 'string' }] } },
    { name: 'counts', type: { type: 'map', key: 'string', value: 'long' } },
  ];
  const columns: [name: string, columns: object[], json: string, value: object][] = [
    ['flat', [{ name: 'x', type: 'double' }], '"x": 1.5', { x: 1.5 }],
    [
      'nested',
      nested,
      '"tags": ["a", null], "place": {"city": "b"}, "counts": {"c": 9007199254740993}',
      { tags: ['a', null], place: { city: 'b' }, counts: [['c', 9_007_199_254_740_993n]] },
    ],
  ];
  for (const [name, own, json, value] of columns) {
    const path = `/v1/tables/noeval/${name}`;
    const prefix = `${WAREHOUSE}/noeval/${name}`;
    const fields = [{ name: 'time', type: 'timestamptz' }, { name: 'device', type: 'string' }, ...own];
    const definition = { schema: { type: 'struct', fields }, time_column: 'time', series_key: ['device'] };
    const created = await ask(service.send, 'PUT', path, { headers: JSON_TYPE, body: JSON.stringify(definition) });
    expect(created.status, created.text).toBe(201);
    // Twice: the second commit reads the first one's manifest list.
    for (const second of [1, 2]) {
      const taken = await ask(service.send, 'POST', `${path}/rows`, {
        headers: { ...NDJSON, 'content-encoding': 'gzip', prefer: 'wait=30' },
        body: gzipSync(`{"time": "2026-01-03T00:00:0${second}Z", "device": "a", ${json}}`),
      });
      expect(taken.status, taken.text).toBe(201);
    }
    const found = await rows(service.bucket, prefix, { bucketName: BUCKET_NAME });
    expect(found, name).toEqual([expect.objectContaining(value), expect.objectContaining(value)]);
    await assertValidTable(service.bucket, prefix, { bucketName: BUCKET_NAME, zstdRequired: true });
    // The paths meant were the paths taken.
    const objects = await service.bucket.list(`${prefix}/`);
    const ofKind = async (end: string) => {
      const key = objects.find((object) => object.key.endsWith(end))?.key ?? '';
      return (await service.bucket.get(key)) ?? new Uint8Array();
    };
    expect(readAvro(await ofKind('.avro')).codec).toBe('deflate');
    expect(readFooter(await ofKind('.parquet')).root.children.length).toBe(fields.length + 1);
  }
  await expectCodeGenerationRefused();
});

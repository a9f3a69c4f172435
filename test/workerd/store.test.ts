import { env } from 'cloudflare:workers';
import { expect, test } from 'vitest';
import { utf8 } from '../../src/core/base/bytes.ts';
import { r2Store } from '../../src/store/r2.ts';
import { storeSuite } from '../suites/store.ts';

const bucket = (env as unknown as { LAKE: R2Bucket }).LAKE;

storeSuite('R2', async () => {
  for (;;) {
    const page = await bucket.list();
    if (page.objects.length === 0) return r2Store(bucket);
    await bucket.delete(page.objects.map((object) => object.key));
  }
});

test('R2: B129 an asterisk in quotes is one etag, not the wildcard, so the adapter writes it bare', async () => {
  await bucket.put('quoted', utf8('1'));
  const bare = { etagDoesNotMatch: '*' };
  const header = (value: string): Headers => new Headers({ 'If-None-Match': value });
  expect(await bucket.put('quoted', utf8('2'), { onlyIf: bare })).toBeNull();
  expect(await bucket.put('quoted', utf8('2'), { onlyIf: header('*') })).toBeNull();
  await expect(bucket.put('quoted', utf8('2'), { onlyIf: { etagDoesNotMatch: '"*"' } })).rejects.toThrow(TypeError);
  expect(await (await bucket.get('quoted'))?.text()).toBe('1');
  expect(await bucket.put('quoted', utf8('3'), { onlyIf: header('"*"') })).not.toBeNull();
  expect(await (await bucket.get('quoted'))?.text()).toBe('3');
});

test('R2: refuses a listing of more than a thousand and a name of more than 1,024 bytes, with its code at the end of the message', async () => {
  await expect(bucket.list({ limit: 5000 })).rejects.toThrow(/\(10022\)$/);
  await expect(bucket.head('k'.repeat(1025))).rejects.toThrow(/\(10020\)$/);
});

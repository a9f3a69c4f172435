import { expect, test } from 'vitest';
import { utf8 } from '../../src/core/base/bytes.ts';
import { MemoryStore } from '../../src/store/memory.ts';
import { MeteredStore, STORE_OPERATIONS } from '../../src/store/metered.ts';
import { storeSuite } from '../suites/store.ts';

const now = (): number => Date.UTC(2026, 0, 1);
const metered = (): MeteredStore => new MeteredStore(new MemoryStore({ now, partBytesMin: 2 }));

storeSuite('metered memory', () => new MeteredStore(new MemoryStore({ now })));

test('metered: counts requests and bytes by operation and by billing class', async () => {
  const store = metered();
  await store.putIfAbsent('a', utf8('12345'));
  await store.putIfAbsent('a', utf8('123'));
  await store.get('a');
  await store.getRange('a', 1, 2);
  await store.head('a');
  await store.delete(['a', 'b']);
  const usage = store.usage();
  expect(usage).toMatchObject({ classA: 2, classB: 3, free: 1, bytesWritten: 8, bytesRead: 7 });
  expect(usage.operations.putIfAbsent).toEqual({ requests: 2, failed: 0, bytesWritten: 8, bytesRead: 0 });
  expect(usage.operations.putIf).toBeUndefined();
});

test('metered: an upload in parts counts each request', async () => {
  const store = metered();
  const upload = await store.multipart('m');
  await upload.part(1, utf8('12'));
  await upload.part(2, utf8('3'));
  await upload.complete();
  await upload.abort();
  expect(store.usage()).toMatchObject({ classA: 4, free: 1, bytesWritten: 3 });
});

test('metered: a request that throws is counted, and as failed', async () => {
  const store = metered();
  await expect(store.get('')).rejects.toThrow();
  expect(store.usage().operations.get).toEqual({ requests: 1, failed: 1, bytesWritten: 0, bytesRead: 0 });
});

test('metered: a listing counts its pages, a delete its thousands', async () => {
  const inner = new MemoryStore({ now });
  const store = new MeteredStore(inner);
  const keys = Array.from({ length: 2001 }, (_, i) => `k/${String(i).padStart(4, '0')}`);
  for (const key of keys) inner.plant(key, utf8('1'));
  const listed = async (prefix: string): Promise<number> => {
    store.reset();
    for await (const _ of store.list(prefix)) {
      // Only the requests matter.
    }
    return store.usage().classA;
  };
  expect(await listed('k/')).toBe(3);
  expect(await listed('k/0')).toBe(1);
  expect(await listed('none/')).toBe(1);
  store.reset();
  await store.delete(keys);
  await store.delete([]);
  expect(store.usage().operations.delete?.requests).toBe(3);
});

test('metered: writes and listings are class A, reads class B, deletes and aborts free, as R2 bills them', () => {
  const operations = Object.entries(STORE_OPERATIONS);
  const named = (billing: string): string[] => operations.filter(([, is]) => is === billing).map(([name]) => name);
  expect(named('A').sort()).toEqual(['complete', 'list', 'listFolders', 'multipart', 'part', 'putIf', 'putIfAbsent']);
  expect(named('B').sort()).toEqual(['get', 'getRange', 'head']);
  expect(named('free').sort()).toEqual(['abort', 'delete']);
});

test('metered: usage is a copy, and plain JSON', async () => {
  const store = metered();
  await store.head('a');
  const before = store.usage();
  await store.head('a');
  expect(before.classB).toBe(1);
  expect(before.operations.head?.requests).toBe(1);
  expect(store.usage().classB).toBe(2);
  expect(JSON.parse(JSON.stringify(before))).toEqual(before);
});

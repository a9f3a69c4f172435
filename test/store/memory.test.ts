import { expect, test } from 'vitest';
import { utf8 } from '../../src/core/base/bytes.ts';
import { MemoryStore } from '../../src/store/memory.ts';
import { storeSuite } from '../suites/store.ts';

const now = (): number => Date.UTC(2026, 0, 1);

storeSuite('memory', () => new MemoryStore({ now }));
storeSuite('memory, pages of two', () => new MemoryStore({ now, pageKeys: 2 }));

test('memory: the upload time is the clock of the moment', async () => {
  let ms = 1_700_000_000_000;
  const store = new MemoryStore({ now: () => ms });
  await store.putIfAbsent('a', utf8('1'));
  ms += 5000;
  await store.putIfAbsent('b', utf8('1'));
  expect((await store.head('a'))?.uploadedMs).toBe(1_700_000_000_000);
  expect((await store.head('b'))?.uploadedMs).toBe(1_700_000_005_000);
});

test('memory: the effect happens at the call, before its answer', async () => {
  const store = new MemoryStore({ now });
  const pending = store.putIfAbsent('a', utf8('1'));
  expect(store.peek('a')?.bytes).toEqual(utf8('1'));
  await pending;
});

test('memory: the etag names the content, so that a change and back again has the first etag', () => {
  const store = new MemoryStore({ now });
  const one = store.plant('hint', utf8('1'));
  const two = store.plant('hint', utf8('2'));
  expect(two).not.toBe(one);
  expect(store.plant('hint', utf8('1'))).toBe(one);
});

test('memory: a listing shows what was created behind its current page', async () => {
  const store = new MemoryStore({ now, pageKeys: 2 });
  for (const key of ['t/a', 't/b', 't/d']) await store.putIfAbsent(key, utf8('1'));
  const seen: string[] = [];
  for await (const entry of store.list('t/')) {
    seen.push(entry.key);
    if (entry.key === 't/a') await store.putIfAbsent('t/c', utf8('1'));
  }
  expect(seen).toEqual(['t/a', 't/b', 't/c', 't/d']);
});

test('memory: plant overwrites and peek reads without a request', () => {
  const store = new MemoryStore({ now });
  store.plant('a', utf8('1'));
  store.plant('a', utf8('2'));
  expect(store.peek('a')?.bytes).toEqual(utf8('2'));
  expect(store.peek('b')).toBeNull();
  expect(store.keys()).toEqual(['a']);
});

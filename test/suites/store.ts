import { describe, expect, test } from 'vitest';
import { utf8 } from '../../src/core/base/bytes.ts';
import { type Listed, PART_BYTES_MIN, type Store, StoreError } from '../../src/store/store.ts';

/**
 * What every `Store` promises. `makeStore` gives an empty one for each test.
 * An adapter that passes here may be put in the place of another.
 */
export function storeSuite(name: string, makeStore: () => Store | Promise<Store>): void {
  describe(`store suite on ${name}`, () => {
    test('get, getRange, head: a missing object is null', async () => {
      const store = await makeStore();
      expect(await store.get('a/missing')).toBeNull();
      expect(await store.getRange('a/missing', 0, 10)).toBeNull();
      expect(await store.getRange('a/missing', 0, 0)).toBeNull();
      expect(await store.head('a/missing')).toBeNull();
    });

    test('putIfAbsent: creates, and get gives the bytes back with the same etag', async () => {
      const store = await makeStore();
      const created = await store.putIfAbsent('a/v1.metadata.json', utf8('{"x":1}'));
      expect(created.outcome).toBe('created');
      const stored = await store.get('a/v1.metadata.json');
      expect(stored?.bytes).toEqual(utf8('{"x":1}'));
      expect(stored?.bytes).toBeInstanceOf(Uint8Array);
      expect(created).toEqual({ outcome: 'created', etag: stored?.etag });
    });

    test('putIfAbsent: B025 B129 an existing object is refused and left as it is', async () => {
      const store = await makeStore();
      const first = await store.putIfAbsent('a/v1.metadata.json', utf8('first'));
      expect(await store.putIfAbsent('a/v1.metadata.json', utf8('second'))).toEqual({ outcome: 'exists' });
      expect(await store.putIfAbsent('a/v1.metadata.json', utf8('first'))).toEqual({ outcome: 'exists' });
      const stored = await store.get('a/v1.metadata.json');
      expect(stored?.bytes).toEqual(utf8('first'));
      expect(first).toEqual({ outcome: 'created', etag: stored?.etag });
    });

    test('putIfAbsent: B186 of several at once exactly one creates', async () => {
      const store = await makeStore();
      const contents = ['a', 'b', 'c', 'd', 'e'];
      const results = await Promise.all(contents.map((text) => store.putIfAbsent('a/v2.metadata.json', utf8(text))));
      const winners = contents.filter((_, i) => results[i].outcome === 'created');
      expect(winners).toHaveLength(1);
      expect((await store.get('a/v2.metadata.json'))?.bytes).toEqual(utf8(winners[0]));
    });

    test('putIfAbsent: a deleted name can be created again', async () => {
      const store = await makeStore();
      await store.putIfAbsent('a/x', utf8('1'));
      await store.delete(['a/x']);
      expect((await store.putIfAbsent('a/x', utf8('2'))).outcome).toBe('created');
    });

    test('putIfAbsent: an object may be empty', async () => {
      const store = await makeStore();
      await store.putIfAbsent('a/empty', new Uint8Array(0));
      expect((await store.get('a/empty'))?.bytes).toHaveLength(0);
      expect((await store.head('a/empty'))?.size).toBe(0);
      expect(await store.getRange('a/empty', 0, 10)).toHaveLength(0);
      expect(await store.getRange('a/empty', 0, 0)).toHaveLength(0);
    });

    test('putIfAbsent: only the bytes of a view are stored, not the buffer beneath', async () => {
      const store = await makeStore();
      const whole = utf8('0123456789');
      await store.putIfAbsent('a/view', whole.subarray(2, 5));
      expect((await store.get('a/view'))?.bytes).toEqual(utf8('234'));
    });

    test('bytes: what the caller does to them afterwards changes nothing in the store', async () => {
      const store = await makeStore();
      const bytes = utf8('abc');
      await store.putIfAbsent('a/b', bytes);
      bytes.fill(0);
      const read = await store.get('a/b');
      expect(read?.bytes).toEqual(utf8('abc'));
      read?.bytes.fill(0);
      expect((await store.get('a/b'))?.bytes).toEqual(utf8('abc'));
    });

    test('putIf: replaces while the etag holds, once', async () => {
      const store = await makeStore();
      await store.putIfAbsent('a/version-hint.text', utf8('1'));
      const one = (await store.get('a/version-hint.text'))!;
      const replaced = await store.putIf('a/version-hint.text', utf8('2'), one.etag);
      const two = (await store.get('a/version-hint.text'))!;
      expect(replaced).toEqual({ outcome: 'replaced', etag: two.etag });
      expect(two.bytes).toEqual(utf8('2'));
      expect(two.etag).not.toBe(one.etag);
      expect(await store.putIf('a/version-hint.text', utf8('3'), one.etag)).toEqual({ outcome: 'changed' });
      expect((await store.get('a/version-hint.text'))?.bytes).toEqual(utf8('2'));
    });

    test('putIf: a missing object counts as changed and is not created', async () => {
      const store = await makeStore();
      const { etag } = (await store.putIfAbsent('a/other', utf8('1'))) as { etag: string };
      expect(await store.putIf('a/hint', utf8('1'), etag)).toEqual({ outcome: 'changed' });
      expect(await store.get('a/hint')).toBeNull();
    });

    test('putIf: of several at once with one etag exactly one replaces', async () => {
      const store = await makeStore();
      const created = (await store.putIfAbsent('a/hint', utf8('0'))) as { etag: string };
      const results = await Promise.all(['1', '2', '3'].map((text) => store.putIf('a/hint', utf8(text), created.etag)));
      expect(results.filter((result) => result.outcome === 'replaced')).toHaveLength(1);
    });

    test('getRange: gives the middle, clips at the end, and is empty behind it', async () => {
      const store = await makeStore();
      await store.putIfAbsent('a/r', utf8('0123456789'));
      expect(await store.getRange('a/r', 2, 3)).toEqual(utf8('234'));
      expect(await store.getRange('a/r', 0, 10)).toEqual(utf8('0123456789'));
      expect(await store.getRange('a/r', 8, 100)).toEqual(utf8('89'));
      expect(await store.getRange('a/r', 10, 1)).toHaveLength(0);
      expect(await store.getRange('a/r', 11, 5)).toHaveLength(0);
      expect(await store.getRange('a/r', 1_000_000, 5)).toHaveLength(0);
    });

    test('getRange: zero bytes are zero bytes, not the rest of the object', async () => {
      const store = await makeStore();
      await store.putIfAbsent('a/r', utf8('0123456789'));
      expect(await store.getRange('a/r', 0, 0)).toHaveLength(0);
      expect(await store.getRange('a/r', 4, 0)).toHaveLength(0);
    });

    test('getRange: a negative or broken number is a programming error', async () => {
      const store = await makeStore();
      await expect(store.getRange('a/r', -1, 5)).rejects.toThrow(/range offset is a whole number: -1/);
      await expect(store.getRange('a/r', 0, 1.5)).rejects.toThrow(/range length is a whole number: 1.5/);
    });

    test('head: tells size, etag and when it was uploaded', async () => {
      const store = await makeStore();
      const created = (await store.putIfAbsent('a/h', utf8('12345'))) as { etag: string };
      const head = await store.head('a/h');
      expect(head).toMatchObject({ key: 'a/h', size: 5, etag: created.etag });
      expect(head?.uploadedMs).toBeGreaterThan(Date.UTC(2020, 0, 1));
      expect(head?.uploadedMs).toBeLessThan(Date.UTC(2100, 0, 1));
      expect(await collect(store.list('a/'))).toEqual([head]);
    });

    test('delete: removes, and a missing key is fine', async () => {
      const store = await makeStore();
      await store.putIfAbsent('a/1', utf8('1'));
      await store.putIfAbsent('a/2', utf8('2'));
      await store.delete(['a/1', 'a/never']);
      expect(await store.get('a/1')).toBeNull();
      expect((await store.get('a/2'))?.bytes).toEqual(utf8('2'));
      await store.delete(['a/1']);
      await store.delete([]);
    });

    test('list: in key order, by prefix, whatever the order of creation', async () => {
      const store = await makeStore();
      for (const key of ['t/b', 't/a/2', 'u/x', 't/a/10', 't/a', 't/Z']) await store.putIfAbsent(key, utf8(key));
      expect(await keysOf(store.list('t/'))).toEqual(['t/Z', 't/a', 't/a/10', 't/a/2', 't/b']);
      expect(await keysOf(store.list('t/a/'))).toEqual(['t/a/10', 't/a/2']);
      expect(await keysOf(store.list('t/a'))).toEqual(['t/a', 't/a/10', 't/a/2']);
      expect(await keysOf(store.list('nothing/'))).toEqual([]);
      expect(await keysOf(store.list(''))).toHaveLength(6);
    });

    test('list: percent and underscore in a prefix are themselves', async () => {
      const store = await makeStore();
      for (const key of ['p_1/a', 'px1/a', 'p%/a', 'pp/a']) await store.putIfAbsent(key, utf8('1'));
      expect(await keysOf(store.list('p_1/'))).toEqual(['p_1/a']);
      expect(await keysOf(store.list('p%/'))).toEqual(['p%/a']);
    });

    test('list: begins behind `after`, which need not exist', async () => {
      const store = await makeStore();
      for (const key of ['t/a', 't/b', 't/c', 'u/a']) await store.putIfAbsent(key, utf8('1'));
      expect(await keysOf(store.list('t/', 't/a'))).toEqual(['t/b', 't/c']);
      expect(await keysOf(store.list('t/', 't/bb'))).toEqual(['t/c']);
      expect(await keysOf(store.list('t/', 't/c'))).toEqual([]);
      expect(await keysOf(store.list('t/', 'a'))).toEqual(['t/a', 't/b', 't/c']);
    });

    test('list: order is by UTF-8 bytes, not by UTF-16', async () => {
      const store = await makeStore();
      // U+FFFD is three bytes from EF, U+1F600 four from F0; as UTF-16 the latter begins with D83D and would come first.
      for (const key of ['t/\u{1F600}', 't/\uFFFD', 't/z']) await store.putIfAbsent(key, utf8('1'));
      expect(await keysOf(store.list('t/'))).toEqual(['t/z', 't/\uFFFD', 't/\u{1F600}']);
      expect(await keysOf(store.list('t/', 't/\uFFFD'))).toEqual(['t/\u{1F600}']);
    });

    // More than one page and more than one delete; on R2 this takes seconds when the machine is busy.
    test('list, listFolders, delete: what lies behind the first thousand is reached', { timeout: 60_000 }, async () => {
      const store = await makeStore();
      const folders = Array.from({ length: 1005 }, (_, i) => String(i).padStart(5, '0'));
      const keys = folders.map((folder) => `many/${folder}/x`);
      for (let at = 0; at < keys.length; at += 50) {
        await Promise.all(keys.slice(at, at + 50).map((key) => store.putIfAbsent(key, utf8('1'))));
      }
      expect(await keysOf(store.list('many/'))).toEqual(keys);
      expect(await keysOf(store.list('many/', keys[3]))).toEqual(keys.slice(4));
      expect(await collect(store.listFolders('many/'))).toEqual(folders);
      await store.delete(keys);
      expect(await keysOf(store.list('many/'))).toEqual([]);
    });

    test('list: a reader may stop early', async () => {
      const store = await makeStore();
      for (const key of ['t/a', 't/b', 't/c']) await store.putIfAbsent(key, utf8('1'));
      const seen: string[] = [];
      for await (const entry of store.list('t/')) {
        seen.push(entry.key);
        if (seen.length === 2) break;
      }
      expect(seen).toEqual(['t/a', 't/b']);
    });

    test('listFolders: each next segment once, in key order, plain objects left out', async () => {
      const store = await makeStore();
      const keys = ['w/db/a/1', 'w/db/a/2', 'w/db/a-b/1', 'w/db/c/d/e', 'w/db/file', 'w/other/x', 'top'];
      for (const key of keys) await store.putIfAbsent(key, utf8('1'));
      expect(await collect(store.listFolders('w/db/'))).toEqual(['a-b', 'a', 'c']);
      expect(await collect(store.listFolders('w/'))).toEqual(['db', 'other']);
      expect(await collect(store.listFolders(''))).toEqual(['w']);
      expect(await collect(store.listFolders('w/db/a/'))).toEqual([]);
      expect(await collect(store.listFolders('none/'))).toEqual([]);
    });

    test('key: an empty, a too long and a malformed one are refused before anything is sent', async () => {
      const store = await makeStore();
      for (const key of ['', 'k'.repeat(1025), '\u20ac'.repeat(342), 'lone\ud800']) {
        for (const request of [
          () => store.putIfAbsent(key, utf8('1')),
          () => store.putIf(key, utf8('1'), 'etag'),
          () => store.multipart(key),
          () => store.get(key),
          () => store.getRange(key, 0, 1),
          () => store.head(key),
          () => store.delete(['fine', key]),
        ]) {
          const error = await request().then(
            () => null,
            (caught: unknown) => caught,
          );
          expect(error).toBeInstanceOf(StoreError);
          expect((error as StoreError).applied).toBe('no');
        }
      }
    });

    test('key: 1,024 bytes are allowed', async () => {
      const store = await makeStore();
      const keys = ['k'.repeat(1024), `k${'\u20ac'.repeat(341)}`];
      for (const key of keys) {
        expect((await store.putIfAbsent(key, utf8('1'))).outcome).toBe('created');
        expect(await keysOf(store.list(key))).toEqual([key]);
      }
    });

    test('key: one that R2 would normalise to another is not created', async () => {
      const store = await makeStore();
      await expect(store.putIfAbsent('t/He\u0301llo', utf8('1'))).rejects.toThrow(/normal form C/);
      expect((await store.putIfAbsent('t/H\u00e9llo', utf8('1'))).outcome).toBe('created');
    });

    test('multipart: equal parts and a shorter last one make one object', { timeout: 60_000 }, async () => {
      const store = await makeStore();
      const upload = await store.multipart('m/data.parquet');
      expect(upload.uploadId).not.toBe('');
      expect(await store.head('m/data.parquet')).toBeNull();
      await upload.part(1, new Uint8Array(PART_BYTES_MIN).fill(1));
      await upload.part(2, new Uint8Array(PART_BYTES_MIN).fill(2));
      await upload.part(3, utf8('tail'));
      expect(await store.head('m/data.parquet')).toBeNull();
      const done = await upload.complete();
      expect(done.size).toBe(2 * PART_BYTES_MIN + 4);
      expect(await store.head('m/data.parquet')).toMatchObject({ etag: done.etag, size: done.size });
      expect(await store.getRange('m/data.parquet', PART_BYTES_MIN - 1, 2)).toEqual(Uint8Array.of(1, 2));
      expect(await store.getRange('m/data.parquet', 2 * PART_BYTES_MIN, 100)).toEqual(utf8('tail'));
    });

    test('multipart: one short part is enough', async () => {
      const store = await makeStore();
      const upload = await store.multipart('m/one');
      await upload.part(1, utf8('only'));
      expect((await upload.complete()).size).toBe(4);
      expect((await store.get('m/one'))?.bytes).toEqual(utf8('only'));
    });

    test('multipart: a wrong part fails at once, not when all have been sent', async () => {
      const store = await makeStore();
      const small = await store.multipart('m/small');
      await small.part(1, utf8('short'));
      await expect(small.part(2, utf8('more'))).rejects.toThrow(/parts but the last have at least 5242880 bytes: 5/);
      await small.abort();

      const unequal = await store.multipart('m/unequal');
      await unequal.part(1, new Uint8Array(PART_BYTES_MIN));
      await expect(unequal.part(2, new Uint8Array(PART_BYTES_MIN + 1))).rejects.toThrow(/no part is longer/);
      await expect(unequal.part(3, utf8('x'))).rejects.toThrow(/parts are uploaded in order: 3 after 1/);
      await unequal.part(2, utf8('last'));
      await expect(unequal.part(3, utf8('x'))).rejects.toThrow(/only the last part is shorter: 2/);
      await unequal.abort();
      await expect((await store.multipart('m/none')).complete()).rejects.toThrow(/at least one part/);
    });

    test('multipart: an aborted upload leaves nothing, and can be aborted again', async () => {
      const store = await makeStore();
      const upload = await store.multipart('m/aborted');
      await upload.part(1, utf8('x'));
      await upload.abort();
      await upload.abort();
      expect(await store.head('m/aborted')).toBeNull();
      await expect(upload.complete()).rejects.toBeInstanceOf(StoreError);
      expect(await store.head('m/aborted')).toBeNull();
    });

    test('multipart: an upload is given up by its id alone, and one that has ended stays as it is', async () => {
      const store = await makeStore();
      const upload = await store.multipart('m/left');
      await upload.part(1, new Uint8Array(10));
      await store.abortUpload('m/left', upload.uploadId);
      await store.abortUpload('m/left', upload.uploadId);
      await expect(upload.complete()).rejects.toBeInstanceOf(StoreError);
      expect(await store.head('m/left')).toBeNull();
      const done = await store.multipart('m/done');
      await done.part(1, new Uint8Array(10));
      await done.complete();
      await store.abortUpload('m/done', done.uploadId);
      expect((await store.head('m/done'))?.size).toBe(10);
    });

    test('multipart: completing twice is doubtful, and the object stays', async () => {
      const store = await makeStore();
      const upload = await store.multipart('m/twice');
      await upload.part(1, utf8('x'));
      await upload.complete();
      await expect(upload.complete()).rejects.toMatchObject({ name: 'StoreError', applied: 'maybe' });
      expect((await store.get('m/twice'))?.bytes).toEqual(utf8('x'));
    });
  });
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

async function keysOf(items: AsyncIterable<Listed>): Promise<string[]> {
  return (await collect(items)).map((item) => item.key);
}

import { mkdtempSync, rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Dev, startDev } from '../../scripts/dev.ts';
import type { Fault, GatewayRequest } from '../../scripts/s3-gateway.ts';

let dev: Dev;
let base: string;
let fault: ((request: GatewayRequest) => Fault | undefined) | undefined;
const persist = mkdtempSync(join(tmpdir(), 'sluice-gateway-'));

beforeAll(async () => {
  const entrypoint = new URL('./fixture-worker.ts', import.meta.url).pathname;
  dev = await startDev({ persist, entrypoint, quiet: true, fault: (request) => fault?.(request) });
  base = `${dev.s3}/${dev.bucketName}`;
}, 30_000);

afterAll(async () => {
  await dev?.stop();
  rmSync(persist, { recursive: true, force: true });
});

const put = (key: string, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
  fetch(`${base}/${key}`, { method: 'PUT', body, headers });
const get = (key: string, headers: Record<string, string> = {}) => fetch(`${base}/${key}`, { headers });
const codeOf = async (response: Response) => /<Code>(.*)<\/Code>/.exec(await response.text())?.[1];

describe('objects', () => {
  test('objects: what the gateway wrote the service reads at once, and the other way round', async () => {
    expect((await put('seen/by%20service', 'one')).status).toBe(200);
    expect(await (await fetch(`${dev.url}/seen/by%20service`)).text()).toBe('one');
    const written = await fetch(`${dev.url}/seen/by-gateway`, { method: 'PUT', body: 'two' });
    expect(await written.json()).toMatchObject({ access: 'local' });
    expect(await (await get('seen/by-gateway')).text()).toBe('two');
    expect(await (await (await dev.bucket()).get('seen/by-gateway'))?.text()).toBe('two');
  });

  test('objects: etag, size and time of a head are those of the get', async () => {
    await put('headed', '0123456789');
    const [head, whole] = [await fetch(`${base}/headed`, { method: 'HEAD' }), await get('headed')];
    expect(head.status).toBe(200);
    expect(head.headers.get('content-length')).toBe('10');
    expect(head.headers.get('etag')).toMatch(/^"[0-9a-f]{32}"$/);
    expect(whole.headers.get('etag')).toBe(head.headers.get('etag'));
    expect(new Date(whole.headers.get('last-modified') ?? '').getTime()).toBeGreaterThan(Date.now() - 60_000);
  });

  test('objects: ranges answer 206 with the bytes asked for, and 416 behind the end', async () => {
    await put('ranged', '0123456789');
    const middle = await get('ranged', { range: 'bytes=2-4' });
    expect([middle.status, middle.headers.get('content-range'), await middle.text()]).toEqual([
      206,
      'bytes 2-4/10',
      '234',
    ]);
    const tail = await get('ranged', { range: 'bytes=-4' });
    expect([tail.headers.get('content-range'), await tail.text()]).toEqual(['bytes 6-9/10', '6789']);
    const over = await get('ranged', { range: 'bytes=8-99' });
    expect([over.headers.get('content-range'), await over.text()]).toEqual(['bytes 8-9/10', '89']);
    for (const range of ['bytes=10-20', 'bytes=10-', 'bytes=99-', 'bytes=-0']) {
      const behind = await get('ranged', { range });
      expect([range, behind.status, await codeOf(behind)]).toEqual([range, 416, 'InvalidRange']);
    }
  });

  test('objects: a missing key and another bucket are 404 with their own codes', async () => {
    const missing = await get('nothing');
    expect([missing.status, await codeOf(missing)]).toEqual([404, 'NoSuchKey']);
    const other = await fetch(`${dev.s3}/other-bucket/key`);
    expect([other.status, await codeOf(other)]).toEqual([404, 'NoSuchBucket']);
    expect((await fetch(`${base}/nothing`, { method: 'HEAD' })).status).toBe(404);
  });

  test('objects: a conditional create wins once, also when eight come at the same time', async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) => put('once', `body ${i}`, { 'if-none-match': '*' })),
    );
    expect(answers.map((a) => a.status).sort()).toEqual([200, 412, 412, 412, 412, 412, 412, 412]);
    const winner = answers.findIndex((a) => a.status === 200);
    expect(await (await get('once')).text()).toBe(`body ${winner}`);
    expect(await codeOf(await put('once', 'late', { 'if-none-match': '*' }))).toBe('PreconditionFailed');
  });

  test('objects: a compare-and-set needs the etag of now', async () => {
    const first = (await put('swapped', 'a')).headers.get('etag') ?? '';
    expect((await put('swapped', 'b', { 'if-match': first })).status).toBe(200);
    expect((await put('swapped', 'c', { 'if-match': first })).status).toBe(412);
    expect((await put('absent', 'c', { 'if-match': first })).status).toBe(412);
    expect(await (await get('swapped')).text()).toBe('b');
  });

  test('objects: conditions of a read', async () => {
    const etag = (await put('cached', 'a')).headers.get('etag') ?? '';
    expect((await get('cached', { 'if-none-match': etag })).status).toBe(304);
    expect((await get('cached', { 'if-match': '"other"' })).status).toBe(412);
  });

  test('objects: a chunked body is stored without its framing', async () => {
    const body = '6;chunk-signature=00\r\nchunks\r\n0;chunk-signature=00\r\n\r\n';
    const headers = {
      'x-amz-content-sha256': 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD',
      'x-amz-decoded-content-length': '6',
    };
    expect((await put('chunked', body, headers)).status).toBe(200);
    expect(await (await get('chunked')).text()).toBe('chunks');
    expect((await put('chunked', body, { ...headers, 'x-amz-decoded-content-length': '7' })).status).toBe(400);
  });

  test('objects: one delete and a multi-object delete, missing keys included', async () => {
    await Promise.all(['gone/1', 'gone/2&3', 'gone/4'].map((key) => put(encodeURIComponent(key), 'x')));
    expect((await fetch(`${base}/gone/1`, { method: 'DELETE' })).status).toBe(204);
    const body = '<Delete><Object><Key>gone/2&amp;3</Key></Object><Object><Key>gone/never</Key></Object></Delete>';
    const answer = await fetch(`${base}?delete`, { method: 'POST', body });
    expect(await answer.text()).toContain('<Deleted><Key>gone/2&amp;3</Key></Deleted>');
    expect(await (await fetch(`${base}?list-type=2&prefix=gone/`)).text()).toMatch(/<KeyCount>1<\/KeyCount>.*gone\/4/);
  });

  test('objects: a multi-object delete takes as many keys as S3 does, long ones too', async () => {
    await put('many/0', 'x');
    const keys = Array.from({ length: 1000 }, (_, i) => (i === 999 ? 'many/0' : `many/${'ü'.repeat(100)}/${i}`));
    const body = `<Delete>${keys.map((key) => `<Object><Key>${key}</Key></Object>`).join('')}</Delete>`;
    const answer = await fetch(`${base}?delete`, { method: 'POST', body });
    expect([answer.status, ((await answer.text()).match(/<Deleted>/g) ?? []).length]).toEqual([200, 1000]);
    expect((await get('many/0')).status).toBe(404);
  });
});

describe('listing', () => {
  const keys = Array.from({ length: 5 }, (_, i) => `list/v${i}.json`).concat('list/sub/a', 'list/sub/b', 'list/z é&');
  const keysOf = (xml: string) => [...xml.matchAll(/<Contents><Key>([^<]*)/g)].map((m) => m[1]);

  beforeAll(async () => {
    await Promise.all(keys.map((key) => put(encodeURIComponent(key), key)));
  });

  test('listing: pages follow each other by token until all is told, in order', async () => {
    const seen: (string | undefined)[] = [];
    let token = '';
    let pages = 0;
    do {
      const at = token === '' ? '' : `&continuation-token=${encodeURIComponent(token)}`;
      const xml = await (await fetch(`${base}?list-type=2&prefix=list/&max-keys=3${at}`)).text();
      seen.push(...keysOf(xml));
      token = /<NextContinuationToken>(.*)<\/NextContinuationToken>/.exec(xml)?.[1] ?? '';
      pages += 1;
    } while (token !== '' && pages < 9);
    expect(seen).toEqual([...keys].sort().map((key) => key.replace('&', '&amp;')));
    expect(pages).toBe(3);
  });

  test('listing: a delimiter folds folders, a start key skips, url encoding encodes', async () => {
    const folded = await (await fetch(`${base}?list-type=2&prefix=list/&delimiter=/`)).text();
    expect(folded).toContain('<CommonPrefixes><Prefix>list/sub/</Prefix></CommonPrefixes>');
    expect(keysOf(folded)).toHaveLength(6);
    const after = await (await fetch(`${base}?list-type=2&prefix=list/v&start-after=list/v2.json`)).text();
    expect(keysOf(after)).toEqual(['list/v3.json', 'list/v4.json']);
    const encoded = await (await fetch(`${base}?list-type=2&prefix=list/z&encoding-type=url`)).text();
    expect(keysOf(encoded)).toEqual(['list/z%20%C3%A9%26']);
  });

  test('listing: version 1 pages by marker', async () => {
    const first = await (await fetch(`${base}?prefix=list/v&max-keys=2`)).text();
    const marker = /<NextMarker>(.*)<\/NextMarker>/.exec(first)?.[1] ?? '';
    expect(marker).toBe('list/v1.json');
    expect(keysOf(await (await fetch(`${base}?prefix=list/v&marker=${marker}`)).text())).toHaveLength(3);
  });
});

describe('uploads in parts', () => {
  const begin = async (key: string) => {
    const xml = await (await fetch(`${base}/${key}?uploads`, { method: 'POST' })).text();
    return /<UploadId>(.*)<\/UploadId>/.exec(xml)?.[1] ?? '';
  };
  const part = async (key: string, id: string, number: number, body: Uint8Array<ArrayBuffer>) => {
    const answer = await put(`${key}?partNumber=${number}&uploadId=${encodeURIComponent(id)}`, body);
    return `<Part><PartNumber>${number}</PartNumber><ETag>${answer.headers.get('etag')}</ETag></Part>`;
  };

  test('uploads in parts: two parts become one object', async () => {
    const id = await begin('parts');
    const first = new Uint8Array(5 * 1024 * 1024).fill(1);
    const parts = [await part('parts', id, 1, first), await part('parts', id, 2, new Uint8Array([2, 3]))];
    const body = `<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`;
    const done = await fetch(`${base}/parts?uploadId=${encodeURIComponent(id)}`, { method: 'POST', body });
    expect(await done.text()).toContain('<Key>parts</Key>');
    const tail = await get('parts', { range: 'bytes=-3' });
    expect(tail.headers.get('content-range')).toBe('bytes 5242879-5242881/5242882');
    expect([...new Uint8Array(await tail.arrayBuffer())]).toEqual([1, 2, 3]);
  });

  test('uploads in parts: an aborted upload leaves nothing, a condition on completing is refused', async () => {
    const id = await begin('aborted');
    const one = await part('aborted', id, 1, new Uint8Array([1]));
    const body = `<CompleteMultipartUpload>${one}</CompleteMultipartUpload>`;
    const url = `${base}/aborted?uploadId=${encodeURIComponent(id)}`;
    expect((await fetch(url, { method: 'POST', body, headers: { 'if-none-match': '*' } })).status).toBe(501);
    expect((await fetch(url, { method: 'DELETE' })).status).toBe(204);
    expect((await fetch(url, { method: 'POST', body })).status).toBe(404);
    expect((await get('aborted')).status).toBe(404);
  });
});

describe('safety', () => {
  test('safety: a request that names another host is refused', async () => {
    const { port } = new URL(dev.s3);
    const status = await new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port, path: `/${dev.bucketName}/x`, headers: { host: 'lake.example' } };
      httpRequest(options, (response) => resolve(response.resume().statusCode))
        .on('error', reject)
        .end();
    });
    expect(status).toBe(403);
  });

  test('safety: planted faults hit before or after the effect, and once', async () => {
    let armed: Fault | undefined = 'refuse';
    fault = ({ method, key }) => {
      if (method !== 'PUT' || key !== 'faulty') return undefined;
      const now = armed;
      armed = undefined;
      return now;
    };
    expect((await put('faulty', 'a')).status).toBe(500);
    expect((await get('faulty')).status).toBe(404);
    armed = 'lose-answer';
    expect((await put('faulty', 'b')).status).toBe(500);
    expect(await (await get('faulty')).text()).toBe('b');
    armed = 'cut';
    await expect(put('faulty', 'c')).rejects.toThrow();
    expect(await (await get('faulty')).text()).toBe('c');
    fault = undefined;
  });
});

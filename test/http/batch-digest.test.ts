import { expect, it } from 'vitest';
import { hex, utf8 } from '../../src/core/base/bytes.ts';
import type { NewFrame } from '../../src/core/batch/frame.ts';
import { tableSettings } from '../../src/core/table/properties.ts';
import { type AppPorts, createApp, type TableCalls } from '../../src/http/app.ts';
import { sha256 } from '../../src/platform/hash.ts';
import { tokenFor } from '../core/access/token-for.ts';
import { bytesOf, schemaOf, streamOf } from './bodies.ts';

const frames: NewFrame[] = [];

const view = {
  tableUuid: 'u',
  schema: schemaOf({ v: 'long' }),
  spec: { 'spec-id': 0, fields: [] },
  settings: tableSettings({}),
};

const object = {
  ingest: async () => ({ ok: true, value: view }),
  append: async (frame: NewFrame) => {
    frames.push(frame);
    return { ok: true, value: { receipt: '1', state: 'buffered', duplicate: false } };
  },
  replace: async (_app: string, _epoch: bigint, frame: NewFrame) => {
    frames.push(frame);
    return { ok: true, value: {} };
  },
};

const app = createApp(
  () =>
    ({
      tokens: [tokenFor('secret', { name: 'all', scopes: ['append', 'admin'], tables: ['*'] })],
      object: () => object as unknown as TableCalls,
      now: () => 0,
    }) as unknown as AppPorts,
);

it('a batch has the digest of its body where a later one may be held against it', async () => {
  const digests: string[] = [];
  for (const [address, key] of [
    ['rows', null],
    ['rows', 'k'],
    ['rows?app=a&epoch=1', null],
    ['apps/a/replace?epoch=1', null],
  ] as const) {
    const response = await app.request(`/v1/tables/n/t/${address}`, {
      method: 'POST',
      body: streamOf(bytesOf('{"v":1}')),
      duplex: 'half',
      headers: {
        authorization: 'Bearer secret',
        'content-type': 'application/x-ndjson',
        ...(key === null ? {} : { 'idempotency-key': key }),
      },
    } as RequestInit);
    expect(response.status).toBe(202);
    digests.push(frames.pop()?.digest ?? 'none');
  }
  const digest = hex(sha256([utf8('{"v":1}')]));
  expect(digests).toEqual(['', digest, digest, digest]);
});

import { evictDurableObject, runDurableObjectAlarm } from 'cloudflare:test';
import { env, exports } from 'cloudflare:workers';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ERASE_GRACE_MS } from '../../src/core/base/limits.ts';
import { tablePlace } from '../../src/core/iceberg/locations.ts';
import { codecs } from '../../src/engine/codecs.ts';
import { LiveFiles } from '../../src/engine/live-files.ts';
import { OpenTable } from '../../src/engine/open-table.ts';
import type { MaintainView } from '../../src/object/maintain-views.ts';
import type { StatusView } from '../../src/object/views.ts';
import { systemClock, systemRandom } from '../../src/platform/system.ts';
import { type Env, settingsOf } from '../../src/settings.ts';
import { r2Store } from '../../src/store/r2.ts';
import { plantedFile } from '../engine/planted-file.ts';
import { parseMetrics, sampleOf } from '../http/prometheus.ts';

/** Tables with something wrong with their files, from the request to the bucket. The date is moved. */
const bindings = env as unknown as Env;
const { LAKE, TABLES } = bindings;
const service = (exports as unknown as { default: { fetch: typeof fetch } }).default;

vi.setConfig({ testTimeout: 30_000 });

let aheadMs = 0;
const realNow = Date.now;
Date.now = () => realNow() + aheadMs;

beforeEach(() => {
  vi.spyOn(console, 'log').mockImplementation(() => undefined);
});

afterEach(() => {
  vi.restoreAllMocks();
  aheadMs = 0;
});

let made = 0;

class Table {
  readonly name = `t${++made}`;
  readonly place = tablePlace(settingsOf(bindings).lake, 'faulty', this.name);
  #rows = 0;

  get #stub() {
    return TABLES.getByName(`faulty/${this.name}`);
  }

  /** A table of two days in three commits: two files of the first, one of the second; nothing is merged by itself. */
  async create(): Promise<void> {
    const fields = [
      { name: 'time', type: 'timestamptz', required: true },
      { name: 'device', type: 'string' },
    ];
    await this.call('PUT', '', {
      schema: { type: 'struct', fields },
      time_column: 'time',
      series_key: ['device'],
      chunk: 'day',
      properties: { 'timelake.auto-maintain': 'false' },
    });
    for (const day of [1, 1, 2]) await this.ingest(day);
  }

  /** A row is taken, and in the table after the alarm. */
  async ingest(day: number): Promise<void> {
    const time = `2026-01-0${day}T00:00:0${this.#rows++}Z`;
    await this.call('POST', '/rows', [{ time, device: 'a' }]);
    aheadMs += 10_000;
    await runDurableObjectAlarm(this.#stub);
    expect(await this.status()).toMatchObject({ buffer: { rows: 0 }, intent: null, last_error: null });
  }

  /** The object is gone from memory: what it knows of files is what it reads. */
  evict(): Promise<void> {
    return evictDurableObject(this.#stub as never);
  }

  async keys(pattern = /./): Promise<string[]> {
    const { objects } = await LAKE.list({ prefix: `${this.place.prefix}/` });
    return objects.map(({ key }) => key).filter((key) => pattern.test(key));
  }

  below(key: string): string {
    return key.slice(this.place.prefix.length + 1);
  }

  async status(): Promise<StatusView> {
    return (await this.call<{ status: StatusView }>('GET', '')).status;
  }

  maintain(): Promise<MaintainView> {
    return this.call('POST', '/maintain', {});
  }

  /** What status and metrics tell of faults. */
  async faults(): Promise<{ told: [kind: string, what: string][]; counted: Record<string, number | null> }> {
    const told = (await this.status()).faults.map(({ kind, what }): [string, string] => [kind, what]);
    const samples = parseMetrics(await this.#text('GET', '/metrics'));
    const counted = Object.fromEntries(told.map(([kind]) => [kind, sampleOf(samples, 'sluice_faults', { kind })]));
    return { told, counted };
  }

  /** Once all that could be queued has had its hour, all the objects are there. */
  async expectKept(before: readonly string[]): Promise<void> {
    aheadMs += ERASE_GRACE_MS + 60_000;
    await this.call('POST', '/maintain', { erase: true });
    const now = await this.keys();
    expect(before.filter((key) => !now.includes(key))).toEqual([]);
  }

  async call<T>(method: string, path: string, body?: object): Promise<T> {
    return JSON.parse(await this.#text(method, path, body)) as T;
  }

  async #text(method: string, path: string, body?: object): Promise<string> {
    const init = body === undefined ? {} : { body: JSON.stringify(body) };
    const headers = { 'content-type': 'application/json' };
    const url = `http://sluice/v1/tables/faulty/${this.name}${path}`;
    const response = await service.fetch(url, { method, headers, ...init });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text;
  }
}

let table: Table;

beforeEach(async () => {
  table = new Table();
  await table.create();
});

describe('faulted table: told by kind, nothing deleted, ingest goes on', () => {
  test('a missing data file: it alone is left alone, the rest of its day is merged', async () => {
    const [gone] = await table.keys(/\/data\/.*2026-01-01/);
    await LAKE.delete(gone);
    const before = await table.keys();
    await table.evict();
    await table.ingest(1);
    const report = await table.maintain();
    expect(report).toMatchObject({
      changed: true,
      slices: [{ files: 2 }],
      left_alone: [{ reason: 'unreadable', files: 1 }],
      steps: { compact: { error: null }, expire: { error: null } },
    });
    expect(await table.faults()).toEqual({
      told: [['missing-data-file', table.below(gone)]],
      counted: { 'missing-data-file': 1 },
    });
    await table.expectKept(before);
    await table.ingest(2);
  });

  test('a corrupt manifest: upkeep that needs it says so, rows are committed past it', async () => {
    const [manifest] = await table.keys(/-added-m\.avro$/);
    const bytes = (await (await LAKE.get(manifest))?.arrayBuffer()) ?? '';
    await LAKE.put(manifest, 'no manifest');
    const before = await table.keys();
    await table.evict();
    await table.ingest(1);
    const report = await table.maintain();
    const error = { type: 'avro-corrupt', message: expect.stringContaining(table.below(manifest)) };
    expect(report).toMatchObject({ changed: false, steps: { compact: { error, report: null } } });
    const { told, counted } = await table.faults();
    expect(told).toContainEqual(['corrupt-manifest', table.below(manifest)]);
    expect(counted['corrupt-manifest']).toBe(1);
    await table.expectKept(before);
    await table.ingest(2);
    // It is put right by hand: the same work gets through again.
    await LAKE.put(manifest, bytes);
    await table.maintain();
    expect((await table.faults()).told).toEqual([]);
  });

  test('delete files of another writer: their day is not merged, the other one is', async () => {
    await table.ingest(2);
    const ports = { ...codecs, store: r2Store(LAKE), clock: systemClock, random: systemRandom };
    const theirs = new OpenTable({ ...ports, marks: { hit: () => undefined } }, table.place);
    const live = new LiveFiles({ ...ports, marks: { hit: () => undefined } }, table.place, theirs.faults);
    const base = await theirs.load();
    if (base === null) throw new Error('no table');
    for (const { key, bytes } of await plantedFile(ports, { place: table.place, base, live }, { content: 1 })) {
      await LAKE.put(key, bytes);
    }
    const before = await table.keys();
    await table.evict();
    await table.ingest(1);
    const report = await table.maintain();
    expect(report).toMatchObject({
      changed: true,
      slices: [{ files: 2 }],
      left_alone: [{ reason: 'delete-files', files: 3 }],
    });
    expect(await table.faults()).toEqual({
      told: [['foreign-delete-files', 'data/d.parquet']],
      counted: { 'foreign-delete-files': 1 },
    });
    await table.expectKept(before);
    await table.ingest(2);
  });
});

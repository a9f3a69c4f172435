import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { remoteBucket, SECRET_VARIABLE } from '../../scripts/dev-bucket.ts';
import type { StatusView } from '../../src/object/views.ts';
import { TableClient, UnexpectedAnswer } from '../e2e/support/client.ts';
import { type Bundle, buildBundle, HostProcess } from '../e2e/support/process.ts';
import { BUCKET_NAME, oracleBucket, until, VARS, WAREHOUSE } from '../e2e/support/service.ts';
import {
  CODE_GENERATION_PATH,
  PLAN_VARIABLE,
  type SlowPlan,
  seededRandom,
  VERSION_KEY,
} from '../e2e/support/slow-bucket.ts';
import { rows } from '../oracle/rows.ts';
import { assertValidTable } from '../oracle/validator.ts';

/**
 * The whole runtime is killed under load, again and again, and started on the state it left. Producers post batches
 * under a batch id and send a batch again until they hear that it was taken, or give it up after an error. The
 * conditional write of a commit is often held before its effect, after it, or both, so that kills meet both kinds of
 * open intent; between two commits rows are in the ledger alone.
 */
const SEED = Number(process.env['KILL_SEED'] ?? 7);
const KILLS_MIN = 10;
/** Killing ends after this long, with what has happened by then. */
const KILLING_MS_MAX = 80_000;
/** A quiet machine needs a fifth of it; the runtimes of the other tests may be running beside. */
const TEST_MS_MAX = 120_000;
const PRODUCERS = 4;
/** Share of batches that a producer gives up when a request fails; they may be in the table, once. */
const GIVE_UP = 0.3;
/** Tries of one batch. One kill costs one; the others wait until the service is there again. */
const TRIES_MAX = 20;
/** Least and most milliseconds from the start of a runtime to its end. */
const LIFE_MS = [200, 1500] as const;

/** What must have happened before the test is content, beside `KILLS_MIN`. */
const WANTED = { openIntent: 3, ledgerOnly: 3, replayed: 1, readBackOwn: 1, duplicates: 1 };

const random = seededRandom(SEED);
const persist = mkdtempSync(join(tmpdir(), 'sluice-kill-'));
let bundle: Bundle;
let running: HostProcess | null = null;
let standby = new HostProcess();

beforeAll(async () => {
  bundle = await buildBundle('test/e2e/support/slow-worker.ts');
});

afterAll(async () => {
  await running?.kill();
  await standby.kill();
  bundle?.remove();
  rmSync(persist, { recursive: true, force: true });
});

const planOf = (seed: number): string =>
  JSON.stringify({
    seed,
    rules: [
      { operation: 'put', key: VERSION_KEY, side: 'before', chance: 0.4, ms: [100, 700] },
      { operation: 'put', key: VERSION_KEY, side: 'after', chance: 0.6, ms: [200, 900] },
    ],
  } satisfies SlowPlan);

/** Where the service is now; while it is down, a promise of where it will be. */
class Address {
  #url: Promise<string> = Promise.resolve('');
  #set: (url: string) => void = () => undefined;

  down(): void {
    this.#url = new Promise((resolve) => {
      this.#set = resolve;
    });
  }

  up(url: string): void {
    this.#set(url);
  }

  readonly send = async (path: string, init?: RequestInit): Promise<Response> =>
    fetch((await this.#url) + path, { ...init, signal: AbortSignal.timeout(10_000) });
}

interface Sent {
  acknowledged: string[];
  /** Given up after an error: nobody knows. */
  givenUp: string[];
  failures: number;
  duplicates: number;
}

const TIME_MS = Date.UTC(2026, 0, 1);

/** Posts batches of rows that no other call has made until `isOver`. */
async function produce(device: string, table: TableClient, sent: Sent, isOver: () => boolean): Promise<void> {
  let made = 0;
  for (let batch = 0; !isOver(); batch++) {
    const given = Array.from({ length: 1 + Math.floor(random() * 20) }, () => ({
      time: TIME_MS + made++,
      device,
      batch,
    }));
    const taken = await postUntilTaken(table, given, `${device}-${batch}`, sent);
    (taken ? sent.acknowledged : sent.givenUp).push(...given.map((row) => `${row.device} ${row.time}`));
  }
}

async function postUntilTaken(table: TableClient, given: object[], batchId: string, sent: Sent): Promise<boolean> {
  for (let tries = 1; ; tries++) {
    try {
      // One in eight waits for its commit.
      const waitSeconds = random() < 0.125 ? 5 : undefined;
      const { duplicate } = await table.post(given, { batchId, ...(waitSeconds === undefined ? {} : { waitSeconds }) });
      if (duplicate === true) sent.duplicates++;
      return true;
    } catch (error) {
      // The service's own refusals are not what this test is about; only a runtime that dies is.
      if (error instanceof UnexpectedAnswer && error.status < 500) throw error;
      if (tries === TRIES_MAX) throw new Error(`batch ${batchId} was not taken in ${tries} tries`, { cause: error });
      sent.failures++;
      if (random() < GIVE_UP) return false;
    }
  }
}

test('kill: rows that were acknowledged are in the table once, however often the runtime died', {
  timeout: TEST_MS_MAX,
}, async () => {
  const address = new Address();
  const table = new TableClient(address.send, 'kill', 't');
  const sent: Sent = { acknowledged: [], givenUp: [], failures: 0, duplicates: 0 };
  const seen = { kills: 0, openIntent: 0, ledgerOnly: 0, empty: 0, replayed: 0, readBackOwn: 0 };

  const start = async (): Promise<void> => {
    running = standby;
    const vars = { ...VARS, [PLAN_VARIABLE]: planOf(SEED * 1000 + seen.kills) };
    const url = await running.start({ worker: bundle.worker(vars), persist });
    standby = new HostProcess();
    address.up(url);
  };

  address.down();
  await start();
  expect(await (await address.send(CODE_GENERATION_PATH)).text(), 'code generation').toBe('EvalError');
  await table.create({
    schema: {
      type: 'struct',
      fields: [
        { name: 'time', type: 'timestamptz', required: true },
        { name: 'device', type: 'string' },
        { name: 'batch', type: 'long' },
      ],
    },
    time_column: 'time',
    series_key: ['device'],
    chunk: 'day',
    properties: { 'sluice.flush-interval': '1s' },
  });

  let isOver = false;
  const producers = Promise.all(
    Array.from({ length: PRODUCERS }, (_, index) => produce(`p${index}`, table, sent, () => isOver)),
  );
  const isContent = (): boolean =>
    seen.kills >= KILLS_MIN &&
    seen.openIntent >= WANTED.openIntent &&
    seen.ledgerOnly >= WANTED.ledgerOnly &&
    seen.replayed >= WANTED.replayed &&
    seen.readBackOwn >= WANTED.readBackOwn &&
    sent.duplicates >= WANTED.duplicates;

  const look = async (): Promise<StatusView['incarnation']> => (await table.describe()).status.incarnation;
  let incarnation = await look();
  const killingEndMs = performance.now() + KILLING_MS_MAX;
  while (!isContent() && performance.now() < killingEndMs) {
    const [least, most] = LIFE_MS;
    const endMs = performance.now() + least + random() * (most - least);
    // Asked until the end comes, since marks die with the runtime.
    await until('end of this runtime', async () => {
      incarnation = await look();
      return performance.now() >= endMs;
    });
    const startedMs = incarnation.started_ms;
    seen.replayed += incarnation.marks['intent-replayed'] ?? 0;
    seen.readBackOwn += incarnation.marks['read-back-own'] ?? 0;

    address.down();
    await running?.kill();
    seen.kills++;
    await start();

    incarnation = await look();
    expect(incarnation.started_ms).toBeGreaterThan(startedMs);
    const { found } = incarnation;
    if (found.open_intent) seen.openIntent++;
    else if (found.buffered_batches > 0) seen.ledgerOnly++;
    else seen.empty++;
  }
  isOver = true;
  await producers;
  const { status } = await until('all rows in the table', async () => {
    const flushed = await table.flush();
    return flushed.flushed && flushed.status.buffer.rows === 0 && flushed.status.intent === null ? flushed : null;
  });
  const { acknowledged, givenUp, ...calls } = sent;
  console.log(
    `kill: seed ${SEED} ${JSON.stringify({ ...seen, ...calls, acknowledged: acknowledged.length, givenUp: givenUp.length })}`,
  );

  expect(status.last_error, JSON.stringify(status.last_error)).toBeNull();
  const bucket = oracleBucket(remoteBucket(((_, init) => address.send('/', init)) as typeof fetch, '', SECRET));
  const prefix = `${WAREHOUSE}/kill/t`;
  await assertValidTable(bucket, prefix, { bucketName: BUCKET_NAME, hintRequired: true });
  const counts = new Map<string, number>();
  for (const row of await rows(bucket, prefix)) {
    const name = `${row['device']} ${(row['time'] as bigint) / 1000n}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  expect([...counts].filter(([, count]) => count > 1).slice(0, 10), 'more than once').toEqual([]);
  expect(acknowledged.filter((name) => !counts.has(name)).slice(0, 10), 'lost').toEqual([]);
  const given = new Set([...acknowledged, ...givenUp]);
  expect([...counts.keys()].filter((name) => !given.has(name)).slice(0, 10), 'never sent').toEqual([]);
  // And it was worth something.
  expect(seen.kills).toBeGreaterThanOrEqual(KILLS_MIN);
  expect({ ...seen, ...calls }, JSON.stringify(WANTED)).toSatisfy(isContent);
});

const SECRET = VARS[SECRET_VARIABLE] ?? '';

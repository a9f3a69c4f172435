import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TableClient } from '../e2e/support/client.ts';
import { BUCKET_NAME, type RunningService, startService, WAREHOUSE } from '../e2e/support/service.ts';
import { CODE_GENERATION_PATH, PLAN_VARIABLE, type SlowPlan, VERSION_KEY } from '../e2e/support/slow-bucket.ts';
import { readTable } from '../oracle/reader.ts';
import { rows } from '../oracle/rows.ts';
import { assertValidTable } from '../oracle/validator.ts';

/**
 * Two deployments of the service on one bucket: two isolates, each with objects of its own, that know of each other by
 * nothing but the table. The local bucket serves requests in the order they come, so each side's conditional write waits a
 * random time, long beside the rest of a commit: either side may be first, and the other has then confirmed its base.
 */
const SEED = Number(process.env['RACE_SEED'] ?? 7);
const LOST_RACES_MIN = 5;
const ROUNDS_MAX = 30;
/** Commits of one side in a round, one row each: the pointer is written once a second, between rounds. */
const COMMITS_A_ROUND = 4;

const planOf = (seed: number): string =>
  JSON.stringify({
    seed,
    rules: [
      { operation: 'put', key: VERSION_KEY, side: 'before', chance: 1, ms: [20, 300] },
      { operation: 'head', key: VERSION_KEY, side: 'before', chance: 0.2, ms: [0, 40] },
    ],
  } satisfies SlowPlan);

let service: RunningService;

beforeAll(async () => {
  const entry = 'test/e2e/support/slow-worker.ts';
  service = await startService(
    { name: 'one', entry, vars: { [PLAN_VARIABLE]: planOf(SEED) } },
    { name: 'two', entry, vars: { [PLAN_VARIABLE]: planOf(SEED + 1) } },
  );
});

afterAll(() => service?.stop());

/** One side: its own device, and what its object counted. */
class Side {
  readonly device: string;
  readonly table: TableClient;
  readonly acknowledged: string[] = [];
  lostRaces = 0;
  movedBases = 0;

  constructor(name: string) {
    this.device = name;
    this.table = service.table('race', 't', name);
  }

  /** Posts rows that no other has, each of which becomes a commit, and waits for them. */
  async commit(): Promise<void> {
    for (let commit = 0; commit < COMMITS_A_ROUND; commit++) {
      const v = this.acknowledged.length;
      const time = Date.UTC(2026, 0, 1) + v * 1000;
      await this.table.post([{ time, device: this.device, v }], { batchId: `${this.device}-${v}` });
      this.acknowledged.push(`${this.device} ${time}`);
    }
    await this.flush();
  }

  async flush(): Promise<void> {
    const { status } = await this.table.flush();
    this.lostRaces = status.incarnation.marks['lost-race'] ?? 0;
    this.movedBases = status.incarnation.marks['base-moved'] ?? 0;
  }
}

test('race: two isolates commit to one table at once, each loses at least five races, every row is there once', {
  timeout: 120_000,
}, async () => {
  const sides = [new Side('one'), new Side('two')];
  expect(await (await service.send(CODE_GENERATION_PATH)).text(), 'code generation').toBe('EvalError');
  await sides[0].table.create({
    schema: {
      type: 'struct',
      fields: [
        { name: 'time', type: 'timestamptz', required: true },
        { name: 'device', type: 'string' },
        { name: 'v', type: 'long' },
      ],
    },
    time_column: 'time',
    series_key: ['device'],
    chunk: 'day',
    properties: { 'sluice.flush-rows': '1' },
  });
  let round = 0;
  while (round < ROUNDS_MAX && sides.some((side) => side.lostRaces < LOST_RACES_MIN)) {
    round++;
    await Promise.all(sides.map((side) => side.commit()));
  }
  // What a side could not commit in a round is still its to commit.
  for (const side of sides) await side.flush();

  const counts = sides.map((side) => `${side.device}: lost races ${side.lostRaces}, moved bases ${side.movedBases}`);
  console.log(`race: seed ${SEED}; rounds ${round}; ${counts.join('; ')}`);
  for (const side of sides) {
    expect(side.lostRaces, side.device).toBeGreaterThanOrEqual(LOST_RACES_MIN);
    const { status } = await side.table.describe();
    expect(status.buffer.rows, side.device).toBe(0);
    expect(status.incarnation.found, `${side.device} ran in one piece`).toEqual({
      open_intent: false,
      buffered_batches: 0,
    });
  }
  const prefix = `${WAREHOUSE}/race/t`;
  const found = await rows(service.bucket, prefix);
  const spelled = found.map((row) => `${row['device']} ${(row['time'] as bigint) / 1000n}`);
  expect(spelled.sort()).toEqual(sides.flatMap((side) => side.acknowledged).sort());
  await assertValidTable(service.bucket, prefix, { bucketName: BUCKET_NAME });
  const table = await readTable(service.bucket, prefix, { bucketName: BUCKET_NAME });
  // One chain from the first version on: each commit is one version, none is missing, none was written over.
  expect(table.versions).toEqual(Array.from({ length: table.version }, (_, index) => index + 1));
  expect(table.version).toBeGreaterThan(2 * LOST_RACES_MIN);
});

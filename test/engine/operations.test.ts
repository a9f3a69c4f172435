import { beforeEach, describe, expect, test } from 'vitest';
import { prepareDelete } from '../../src/core/commit/decide-delete.ts';
import type { FileFilter } from '../../src/core/commit/file-filter.ts';
import { reportOf } from '../../src/core/commit/report.ts';
import { newIdentity } from '../../src/engine/identity.ts';
import {
  acknowledge,
  DAY,
  expectValid,
  HOUR,
  newScenario,
  type Scenario,
  spelled,
  tableRows,
} from '../sim/scenario.ts';
import type { SeriesRow, Service } from '../sim/service.ts';

let scenario: Scenario;

beforeEach(async () => {
  scenario = await newScenario();
});

const on = (day: number, v: number, device = 'a'): SeriesRow => ({
  device,
  time: DAY + BigInt(day) * 24n * HOUR + BigInt(v) * 1_000_000n,
  v: BigInt(v),
});

async function remove(filter: FileFilter, service: Service = scenario.service) {
  const metadata = service.table.base?.metadata;
  if (metadata === undefined) throw new Error('not loaded');
  const operation = prepareDelete(newIdentity(scenario.world, metadata), filter, metadata);
  const result = await scenario.world.clock.until(service.table.commit(operation, () => undefined));
  const report = result.outcome === 'committed' ? reportOf(result.base.metadata, operation.commitId) : null;
  return { result, report, operation };
}

const day = (label: string): FileFilter => ({ kind: 'partitions', partitions: [{ time_day: label }] });

describe('delete', () => {
  test('delete: by a partition label, its files go and nothing else', async () => {
    for (let i = 0; i < 4; i++) {
      await acknowledge(scenario, [on(0, i), on(1, 10 + i)]);
      await scenario.service.drain();
    }
    const { report } = await remove(day('2026-01-01'));
    expect(report).toMatchObject({ operation: 'delete', removed: { files: 4, rows: 4n }, changedPartitions: 1 });
    expect(await tableRows(scenario.world)).toEqual([0, 1, 2, 3].map((i) => spelled(on(1, 10 + i))).sort());
    await expectValid(scenario.world, false);
  });
});

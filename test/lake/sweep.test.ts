import { describe, expect, test } from 'vitest';
import { SWEEP_TABLES_MAX } from '../../src/core/base/limits.ts';
import { sweep } from '../../src/lake/sweep.ts';

const lake = (count: number) => ({
  names: async () => Array.from({ length: count }, (_, i) => ({ namespace: 'ns', table: `t${i}` })),
});

describe('sweep over the lake', () => {
  test('sweep: one table that does not answer hides no other', async () => {
    const woken: string[] = [];
    const report = await sweep(
      lake(20),
      async (namespace, table) => {
        if (table === 't7') throw new Error('overloaded');
        woken.push(`${namespace}/${table}`);
      },
      12_345,
    );
    expect(report).toEqual({ tables: 20, woken: 20, failed: [{ table: 'ns/t7', reason: 'overloaded' }] });
    expect(woken).toHaveLength(19);
  });

  test('sweep: of more tables than it may call, each is called by one draw or another', async () => {
    const count = 2 * SWEEP_TABLES_MAX + 1;
    const woken = new Map<string, number>();
    for (const draw of [0, 1, 2]) {
      const report = await sweep(lake(count), async (_, table) => woken.set(table, draw), draw);
      expect(report.tables).toBe(count);
      expect(report.woken).toBeLessThanOrEqual(SWEEP_TABLES_MAX);
    }
    expect(woken.size).toBe(count);
  });
});

import { beforeEach, describe, expect, test } from 'vitest';
import { readEpochs } from '../../../src/core/batch/epochs.ts';
import { prepareOverwrite } from '../../../src/core/commit/decide-overwrite.ts';
import type { FileFilter } from '../../../src/core/commit/file-filter.ts';
import { reportOf } from '../../../src/core/commit/report.ts';
import { currentSchema } from '../../../src/core/iceberg/metadata.ts';
import { codecs } from '../../../src/engine/codecs.ts';
import { PLACE, type SeriesRow } from '../../sim/service.ts';
import { PureTable, row, spelled } from './pure-table.ts';

let table: PureTable;

beforeEach(() => {
  table = new PureTable();
});

const day = (label: string): FileFilter => ({ kind: 'partitions', partitions: [{ time_day: label }] });
function overwrite(filter: FileFilter, rows: SeriesRow[]) {
  const identity = table.identity();
  return prepareOverwrite({
    identity,
    filter,
    frames: [table.frame(rows)],
    metadata: table.metadata,
    place: PLACE,
    ...codecs,
  });
}

describe('overwrite', () => {
  test('S3 S8: the rows take the place of what the filter holds, in one snapshot', async () => {
    table.append(row(0, 1), row(1, 1));
    table.append(row(0, 2));
    const before = readEpochs(table.metadata);
    const operation = overwrite(day('2026-01-01'), [row(0, 8), row(0, 9)]);
    table.run(operation);
    expect(await table.rows()).toEqual([row(0, 8), row(0, 9), row(1, 1)].map(spelled).sort());
    await table.valid();
    expect(readEpochs(table.metadata)).toEqual(before);
    expect(reportOf(table.metadata, operation.commitId)).toMatchObject({
      operation: 'overwrite',
      added: { files: 1, rows: 2n },
      removed: { files: 2, rows: 2n },
      changedPartitions: 1,
    });
    expect(table.snapshot.summary).toMatchObject({ 'total-records': '3', 'total-data-files': '2' });
    const output = table.live().find(({ status }) => status === 1);
    expect(output).toMatchObject({ sequenceNumber: 3n, fileSequenceNumber: 3n });
  });

  test('with nothing in the way it is an append', async () => {
    table.run(overwrite(day('2026-01-01'), [row(0, 1)]));
    expect(table.snapshot.summary.operation).toBe('append');
    expect(await table.rows()).toEqual([spelled(row(0, 1))]);
    await table.valid();
  });

  test('all: whatever is there goes', async () => {
    for (let i = 0; i < 4; i++) table.append(row(i, 1));
    table.run(overwrite({ kind: 'all' }, [row(9, 1)]));
    expect(await table.rows()).toEqual([spelled(row(9, 1))]);
    expect(table.snapshot.summary).toMatchObject({ 'changed-partition-count': '5' });
    await table.valid();
  });

  test('chosen anew: what was appended meanwhile goes too', async () => {
    table.append(row(0, 1));
    const operation = overwrite(day('2026-01-01'), [row(0, 9)]);
    table.decide(operation);
    table.append(row(0, 2));
    table.run(operation);
    expect(await table.rows()).toEqual([spelled(row(0, 9))]);
  });

  test('rows outside the filter are refused', () => {
    expect(() => overwrite(day('2026-01-01'), [row(0, 1), row(1, 1)])).toThrow(
      expect.objectContaining({ type: 'outside-filter', detail: { partition: 'data/time_day=2026-01-02' } }),
    );
    const start = BigInt(Date.UTC(2026, 0, 1)) * 1000n;
    const range: FileFilter = { kind: 'time-range', from: start, to: start + 5_000_000n };
    expect(() => overwrite(range, [row(0, 1), row(0, 7)])).toThrow(expect.objectContaining({ type: 'outside-filter' }));
    expect(() => overwrite(range, [])).toThrow(expect.objectContaining({ type: 'no-rows' }));
  });

  test('a file that the range only overlaps would keep rows of it: refused', () => {
    table.append(row(0, 1), row(0, 7));
    const start = BigInt(Date.UTC(2026, 0, 1)) * 1000n;
    const operation = overwrite({ kind: 'time-range', from: start, to: start + 5_000_000n }, [row(0, 2)]);
    expect(table.run(operation)).toMatchObject({ kind: 'refused', type: 'partly-covered' });
  });

  test('a schema that moved means: prepare again', () => {
    const operation = overwrite(day('2026-01-01'), [row(0, 1)]);
    const schema = currentSchema(table.metadata);
    const field = { id: table.metadata['last-column-id'] + 1, name: 'w', required: false, type: 'long' };
    table.update(
      { action: 'add-schema', schema: { ...schema, fields: [...schema.fields, field] } },
      { action: 'set-current-schema', 'schema-id': -1 },
    );
    expect(table.run(operation)).toMatchObject({ kind: 'again' });
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SluiceError } from '../../../src/core/base/errors.ts';
import { BATCH_PARTITIONS_MAX } from '../../../src/core/base/limits.ts';
import type { Columns } from '../../../src/core/columns/columns.ts';
import { partitionRows } from '../../../src/core/columns/partition.ts';
import { valueAt } from '../../../src/core/columns/value.ts';
import { applyTransform } from '../../../src/core/iceberg/transform.ts';
import type { PartitionSpec, PrimitiveType, Value } from '../../../src/core/iceberg/types.ts';
import { columnsOf, everyKind, schemaOf } from './rows.ts';

function specOf(...fields: [sourceId: number, transform: string][]): PartitionSpec {
  return {
    'spec-id': 0,
    fields: fields.map(([id, transform], i) => ({
      'source-id': id,
      'field-id': 1000 + i,
      name: `p${i}`,
      transform,
    })),
  };
}

/** Tuple of one row, value by value. */
function tupleOf(columns: Columns, spec: PartitionSpec, row: number): Value[] {
  return spec.fields.map((field) => {
    const place = columns.schema.fields.findIndex(({ id }) => id === field['source-id']);
    const type = columns.schema.fields[place].type as PrimitiveType;
    return applyTransform(field.transform, type, valueAt(columns.columns[place], type, row));
  });
}

const DAY = 86_400_000_000n;
const timed = schemaOf([
  ['time', 'timestamptz'],
  ['site', 'string'],
  ['n', 'int'],
]);

describe('partition', () => {
  test('partition: each row has the tuple of its own values, tuples are distinct (E7, T6)', () => {
    const transforms = fc.constantFrom<[number, string]>(
      [1, 'identity'],
      [2, 'bucket[3]'],
      [3, 'identity'],
      [3, 'truncate[10]'],
      [4, 'identity'],
      [5, 'identity'],
      [6, 'identity'],
      [7, 'identity'],
      [8, 'identity'],
      [8, 'truncate[1]'],
      [8, 'void'],
      [9, 'identity'],
    );
    fc.assert(
      fc.property(
        fc.array(everyKind.row, { maxLength: 25 }),
        fc.array(transforms, { maxLength: 3 }),
        fc.nat(6),
        (rows, fields, limit) => {
          // -2^63 truncated would be below int64, which is refused.
          const held = rows.map((row) =>
            row.with(2, row[2] === null || (row[2] as bigint) < -(2n ** 62n) ? null : row[2]),
          );
          const columns = columnsOf(everyKind.schema, held, limit);
          const spec = specOf(...fields);
          const { tuples, ordinals } = partitionRows(columns, spec);
          held.forEach((_, row) => {
            expect(tuples[ordinals[row]]).toEqual(tupleOf(columns, spec, row));
          });
          for (let a = 0; a < tuples.length; a++) {
            for (let b = 0; b < a; b++) expect(tuples[a]).not.toEqual(tuples[b]);
          }
          // In order of first rows.
          const first = tuples.map((_, ordinal) => ordinals.indexOf(ordinal));
          expect(first).toEqual([...first].sort((a, b) => a - b));
          expect(first).not.toContain(-1);
        },
      ),
      { numRuns: 300 },
    );
  });

  test('partition: rows of interleaved partitions are told apart (B096)', () => {
    const columns = columnsOf(
      timed,
      ['a', 'b', 'a', 'b', null, 'a'].map((site, i) => [BigInt(i), site, i]),
    );
    expect(partitionRows(columns, specOf([2, 'identity']))).toEqual({
      tuples: [['a'], ['b'], [null]],
      ordinals: Int32Array.of(0, 1, 0, 1, 2, 0),
    });
  });

  test('partition: rows on both sides of an hour are two partitions, whatever the bounds of both say (B097)', () => {
    const at = (hour: number, minute: number) => [BigInt(hour * 60 + minute) * 60_000_000n, 's', 0];
    const { tuples, ordinals } = partitionRows(columnsOf(timed, [at(10, 59), at(11, 1)]), specOf([1, 'hour']));
    expect(tuples).toEqual([[10], [11]]);
    expect([...ordinals]).toEqual([0, 1]);
  });

  test('partition: days before 1970 are negative, by UTC (B043, B048)', () => {
    const columns = columnsOf(
      timed,
      [-618_105_600_000_000n, -1n, 1_710_113_400_000_000n].map((time) => [time, 's', 0]),
    );
    expect(partitionRows(columns, specOf([1, 'day'])).tuples).toEqual([[-7154], [-1], [19_792]]);
  });

  test('partition: column names with dots and emoji matter to nobody here (B091)', () => {
    const columns = columnsOf(
      schemaOf([
        ['price.€', 'int'],
        ['😎', 'string'],
      ]),
      [
        [1, 'x'],
        [2, 'x'],
      ],
    );
    expect(partitionRows(columns, specOf([1, 'identity'], [2, 'identity'])).tuples).toEqual([
      [1, 'x'],
      [2, 'x'],
    ]);
  });

  test('partition: a void field whose column is gone is null', () => {
    const columns = columnsOf(timed, [
      [1n, 'a', 1],
      [2n, 'b', 1],
    ]);
    const { tuples, ordinals } = partitionRows(columns, specOf([99, 'void'], [2, 'identity']));
    expect(tuples).toEqual([
      [null, 'a'],
      [null, 'b'],
    ]);
    expect([...ordinals]).toEqual([0, 1]);
    expect(() => partitionRows(columns, specOf([99, 'identity']))).toThrow('has no column: 99');
  });

  test('partition: without partition fields there is one partition, without rows none', () => {
    expect(partitionRows(columnsOf(timed, [[1n, 'a', 1]]), specOf())).toEqual({
      tuples: [[]],
      ordinals: Int32Array.of(0),
    });
    expect(partitionRows(columnsOf(timed, []), specOf([1, 'day'])).tuples).toEqual([]);
  });

  test('partition: -0 and 0 are two partitions, NaN of any bits is one (T9)', () => {
    const columns = columnsOf(schemaOf([['d', 'double']]), [[0], [-0], [Number.NaN], [Number.NaN]]);
    const column = columns.columns[0] as { values: Float64Array };
    new BigUint64Array(column.values.buffer)[3] = 0xfff8000000000001n;
    expect([...partitionRows(columns, specOf([1, 'identity'])).ordinals]).toEqual([0, 1, 2, 2]);
  });

  test('partition: a dictionary that holds a text twice does not make two partitions', () => {
    const columns = columnsOf(schemaOf([['s', 'string']]), [['a'], ['b']]);
    columns.columns[0] = {
      kind: 'dictionary',
      codes: Int32Array.of(0, 1),
      dictionary: { bytes: new TextEncoder().encode('aa'), offsets: Int32Array.of(0, 1, 2) },
      validity: null,
    };
    expect([...partitionRows(columns, specOf([1, 'identity'])).ordinals]).toEqual([0, 0]);
  });

  test('partition: late rows over many days are fine up to the limit and refused beyond, with advice (B094, B102)', () => {
    const days = (count: number) =>
      columnsOf(
        timed,
        Array.from({ length: count }, (_, i) => [BigInt(i) * DAY, `s${i}`, i]),
      );
    expect(partitionRows(days(200), specOf([1, 'day'])).tuples.length).toBe(200);
    expect(partitionRows(days(BATCH_PARTITIONS_MAX), specOf([1, 'day'])).tuples.length).toBe(BATCH_PARTITIONS_MAX);
    for (const spec of [specOf([1, 'day']), specOf([2, 'identity']), specOf([3, 'identity'], [1, 'hour'])]) {
      try {
        partitionRows(days(BATCH_PARTITIONS_MAX + 1), spec);
        throw new Error('not refused');
      } catch (error) {
        expect(error).toBeInstanceOf(SluiceError);
        expect(error).toMatchObject({
          kind: 'invalid',
          type: 'too-many-partitions',
          detail: { limit: BATCH_PARTITIONS_MAX },
        });
        expect((error as Error).message).toContain('coarsen the partitioning or split the batch');
      }
    }
  });

  test('partition: the limit counts null, and pairs of values', () => {
    const rows = [
      [0n, 'a', 0],
      [0n, 'b', 0],
      [0n, null, 0],
    ];
    expect(partitionRows(columnsOf(timed, rows), specOf([2, 'identity']), 3).tuples.length).toBe(3);
    expect(() => partitionRows(columnsOf(timed, rows), specOf([2, 'identity']), 2)).toThrow('too many');
    const pairs = [
      [0n, 'a', 0],
      [0n, 'b', 1],
      [0n, 'a', 1],
      [0n, 'b', 0],
    ];
    expect(partitionRows(columnsOf(timed, pairs), specOf([2, 'identity'], [3, 'identity']), 4).tuples.length).toBe(4);
    expect(() => partitionRows(columnsOf(timed, pairs), specOf([2, 'identity'], [3, 'identity']), 3)).toThrow(
      'too many',
    );
  });

  test('partition: a field without a column is refused', () => {
    expect(() => partitionRows(columnsOf(timed, [[1n, 'a', 1]]), specOf([9, 'identity']))).toThrow('no column: 9');
  });
});

import type { Column, Columns } from '../../../src/core/columns/columns.ts';
import type { Schema, Type } from '../../../src/core/iceberg/types.ts';
import { columnOf } from '../parquet/values.ts';

const DAY = 20_454;

/** Values of each primitive type, with a null; the first column is a time. */
const FLAT: [string, unknown[]][] = [
  ['timestamptz', [1_767_225_600_000_000n, 1_767_225_600_000_001n, 1_767_225_600_000_002n]],
  ['boolean', [true, null, false]],
  ['int', [-2_147_483_648, 7, null]],
  ['long', [null, 9_223_372_036_854_775_807n, -1n]],
  ['float', [1.5, Number.NaN, -0]],
  ['double', [Number.NEGATIVE_INFINITY, null, 0.1]],
  ['date', [DAY, null, -1]],
  ['time', [0n, 86_399_999_999n, null]],
  ['timestamp', [null, 1n, -1n]],
  ['string', ['grün', '', null]],
];

function tableOf(columns: readonly { type: Type; column: Column }[], rows: number): Columns {
  const schema: Schema = {
    type: 'struct',
    'schema-id': 3,
    fields: columns.map(({ type }, i) => ({ id: 10 + i, name: `c${i}`, required: false, type })),
  };
  return { schema, rows, columns: columns.map(({ column }) => column) };
}

export function flatSample(): Columns {
  return tableOf(
    FLAT.map(([type, values]) => ({ type, column: columnOf(type, values as never) })),
    3,
  );
}

export function nestedSample(): Columns {
  const values = [
    { tags: ['a', null], at: 1_767_225_600_000_000n, by: [['k', 1n]] },
    null,
    { tags: [], at: null, by: [] },
  ];
  const type: Type = {
    type: 'struct',
    fields: [
      {
        id: 100,
        name: 'tags',
        required: false,
        type: { type: 'list', 'element-id': 101, element: 'string', 'element-required': false },
      },
      { id: 102, name: 'at', required: false, type: 'timestamptz' },
      {
        id: 103,
        name: 'by',
        required: false,
        type: { type: 'map', 'key-id': 104, key: 'string', 'value-id': 105, value: 'long', 'value-required': false },
      },
    ],
  };
  const [time] = FLAT[0][1] as bigint[];
  return tableOf(
    [
      { type: 'timestamptz', column: columnOf('timestamptz', [time, time, time] as never) },
      { type, column: { kind: 'nested', values, validity: Uint8Array.of(1, 0, 1) } },
    ],
    3,
  );
}

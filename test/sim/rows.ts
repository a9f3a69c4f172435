import { hex } from '../../src/core/base/bytes.ts';
import type { NewFrame, Producer } from '../../src/core/batch/frame.ts';
import { ColumnsBuilder } from '../../src/core/columns/builder.ts';
import { encodeFrameBody } from '../../src/core/columns/frame.ts';
import { partitionRows } from '../../src/core/columns/partition.ts';
import { currentSchema, defaultSpec } from '../../src/core/iceberg/metadata.ts';
import type { TableMetadata } from '../../src/core/iceberg/types.ts';
import { codecs } from '../../src/engine/codecs.ts';

/**
 * Rows of a simulation. All of a row follows from one number, which no other row has: so a row that is there tells whose it
 * is, and whether it is what was sent.
 */
export interface SimRow {
  device: string;
  /** Microseconds since 1970. */
  time: bigint;
  v: number;
}

const DAY_MICROS = BigInt(Date.UTC(2026, 0, 1)) * 1000n;

/** Numbers from here on are of rows that the foreign writer made. */
export const FOREIGN_FROM = 1_000_000;

/** The one branch that takes rows in a simulation. */
export const BRANCH = 'side';

/** Half an hour a row: a run has a handful of partitions. */
export function rowOf(v: number): SimRow {
  return { device: `d${v % 3}`, time: DAY_MICROS + BigInt(v % FOREIGN_FROM) * 1_800_000_000n, v };
}

/** Rows as a batch for a table of `SERIES`. */
export function frameOf(
  metadata: TableMetadata,
  numbers: readonly number[],
  named: { batchId?: string | null; producer?: Producer | null } = {},
): NewFrame {
  const schema = currentSchema(metadata);
  const builder = new ColumnsBuilder(schema);
  for (const number of numbers) {
    const row = rowOf(number);
    for (const field of builder.fields) {
      if (field.field.name === 'time' && field.kind === 'int64') field.pushBigint(row.time);
      if (field.field.name === 'device' && field.kind === 'text') field.pushString(row.device);
      if (field.field.name === 'v' && field.kind === 'int64') field.pushBigint(BigInt(row.v));
    }
    builder.endRow();
  }
  const columns = builder.finish();
  const body = encodeFrameBody(columns);
  return {
    digest: hex(codecs.digest([body])),
    batchId: named.batchId ?? null,
    producer: named.producer ?? null,
    schemaId: schema['schema-id'],
    rows: columns.rows,
    partitions: partitionRows(columns, defaultSpec(metadata)).tuples.length,
    body,
  };
}

import { hex } from '../src/core/base/bytes.ts';
import type { NewFrame } from '../src/core/batch/frame.ts';
import { ColumnsBuilder } from '../src/core/columns/builder.ts';
import { encodeFrameBody } from '../src/core/columns/frame.ts';
import { partitionRows } from '../src/core/columns/partition.ts';
import { currentSchema, defaultSpec } from '../src/core/iceberg/metadata.ts';
import type { TableMetadata } from '../src/core/iceberg/types.ts';
import type { TableDefinition } from '../src/core/table/definition.ts';
import { codecs } from '../src/engine/codecs.ts';
import type { SeededRandom } from '../test/sim/service.ts';

/** A table of the day and what comes in for it. */
export interface DayTable {
  name: string;
  about: string;
  definition: TableDefinition;
  /** Series of which each batch has one row. */
  series: number;
  /** One batch in so many brings late rows too. */
  lateEvery: number;
  /** Late rows of such a batch, and how far back they reach. */
  late: { rows: number; spanMs: number };
}

const HOUR_MS = 3_600_000;
/** Shorter than the time from one append to the next: each append is a commit, which is the most that can be asked. */
const PROPERTIES = { 'sluice.flush-interval': '9s' };
const TIME = { name: 'time', type: 'timestamptz', required: true } as const;

/** A few devices; a day is one partition, and what is late goes into those of the week before. */
export const STEADY: DayTable = {
  name: 'steady',
  about: '50 series, a partition a day; one batch in ten brings rows of the seven days before',
  definition: {
    schema: {
      type: 'struct',
      fields: [TIME, { name: 'device', type: 'string' }, { name: 'reading', type: 'double' }],
    },
    timeColumn: 'time',
    seriesKey: ['device'],
    chunk: 'day',
    dedup: null,
    properties: PROPERTIES,
  },
  series: 50,
  lateEvery: 10,
  late: { rows: 5, spanMs: 7 * 24 * HOUR_MS },
};

const TAGS = Array.from({ length: 40 }, (_, i) => `tag_${String(i).padStart(2, '0')}`);

/** Series told apart by forty columns; an hour is one partition, kept for six, and what is late goes into those before. */
export const WIDE: DayTable = {
  name: 'wide',
  about:
    '20 series by 40 columns, a partition an hour, kept for six; one batch in ten brings rows of the five hours before',
  definition: {
    schema: {
      type: 'struct',
      fields: [TIME, ...TAGS.map((name) => ({ name, type: 'string' }) as const), { name: 'reading', type: 'double' }],
    },
    timeColumn: 'time',
    seriesKey: TAGS,
    chunk: 'hour',
    dedup: null,
    properties: { ...PROPERTIES, 'timelake.retention': '6h' },
  },
  series: 20,
  lateEvery: 10,
  late: { rows: 5, spanMs: 5 * HOUR_MS },
};

/** Batch `number` of a table: a row of each series now, and perhaps late ones. */
export function dayBatch(
  table: DayTable,
  metadata: TableMetadata,
  at: { number: number; nowMs: number },
  random: SeededRandom,
): NewFrame {
  const builder = new ColumnsBuilder(currentSchema(metadata));
  const keys = new Set(table.definition.seriesKey);
  const push = (series: number, timeMs: number): void => {
    for (const field of builder.fields) {
      const { name } = field.field;
      if (field.kind === 'int64' && name === 'time') field.pushNumber(Math.floor(timeMs) * 1000);
      else if (field.kind === 'text' && keys.has(name)) field.pushString(`${name}-${series}`);
      else if (field.kind === 'float64') field.push(series + random.next() / 2 ** 32);
    }
    builder.endRow();
  };
  for (let series = 0; series < table.series; series++) push(series, at.nowMs + series);
  if (at.number % table.lateEvery === 0) {
    for (let row = 0; row < table.late.rows; row++) {
      push(random.next() % table.series, at.nowMs - (random.next() / 2 ** 32) * table.late.spanMs);
    }
  }
  const columns = builder.finish();
  const body = encodeFrameBody(columns);
  return {
    digest: hex(codecs.digest([body])),
    batchId: null,
    producer: null,
    schemaId: builder.schema['schema-id'],
    rows: columns.rows,
    partitions: partitionRows(columns, defaultSpec(metadata)).tuples.length,
    body,
  };
}

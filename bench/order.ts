/**
 * Question: what does it cost to bring shuffled rows into the order of files, and to carry them through the ledger?
 *
 * `node bench/order.ts [rows] [repeats]` prints the first, the least and the median time of each step and a digest of
 * what came out, so that two builds can be compared. Rows are those of a sensor table: ten columns, 1,000 devices, one day, some nulls.
 */
import { hex } from '../src/core/base/bytes.ts';
import { xxhash32 } from '../src/core/base/xxhash32.ts';
import { ColumnsBuilder, type FieldBuilder } from '../src/core/columns/builder.ts';
import type { Columns } from '../src/core/columns/columns.ts';
import { concat } from '../src/core/columns/concat.ts';
import { decodeFrameBody, encodeFrameBody } from '../src/core/columns/frame.ts';
import { gather, slice } from '../src/core/columns/gather.ts';
import { sortKeysOf, sortRows } from '../src/core/columns/order.ts';
import { partitionRows } from '../src/core/columns/partition.ts';
import { type PrepareOptions, planFiles } from '../src/core/columns/prepare-files.ts';
import { byteSizeOf } from '../src/core/columns/row-bytes.ts';
import type { Schema, SortField } from '../src/core/iceberg/types.ts';

const SCHEMA: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [
    ['time', 'timestamptz'],
    ['device_id', 'string'],
    ['site', 'string'],
    ['temperature', 'double'],
    ['humidity', 'double'],
    ['pressure', 'double'],
    ['voltage', 'double'],
    ['counter', 'long'],
    ['status', 'string'],
    ['_ingest_ts', 'timestamptz'],
  ].map(([name, type], i) => ({ id: i + 1, name, required: false, type })),
};

function sortField(id: number): SortField {
  return { transform: 'identity', 'source-id': id, direction: 'asc', 'null-order': 'nulls-first' };
}

export const OPTIONS: PrepareOptions = {
  spec: {
    'spec-id': 0,
    fields: [{ 'source-id': 1, 'field-id': 1000, name: 'time_day', transform: 'day' }],
  },
  sortOrder: { 'order-id': 1, fields: [sortField(2), sortField(1)] },
  dedup: { seriesIds: [2], timeId: 1, ingestTimeId: 10 },
  targetRows: 1_000_000,
  targetBytes: 2 ** 30,
};

/** Shuffled rows; the same ones for the same number. One in a hundred repeats a key. */
export function sensorRows(rows: number): Columns {
  let state = 12345;
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    return (state >>> 0) / 2 ** 32;
  };
  const builder = new ColumnsBuilder(SCHEMA);
  const [time, device, site, temperature, humidity, pressure, voltage, counter, status, ingest] = builder.fields;
  const micros = (field: FieldBuilder, value: number) => field.kind === 'int64' && field.pushNumber(value);
  const text = (field: FieldBuilder, value: string) => field.kind === 'text' && field.pushString(value);
  const double = (field: FieldBuilder, value: number) => field.kind === 'float64' && field.push(value);
  let repeated = 0;
  for (let row = 0; row < rows; row++) {
    const number: number = random() < 0.01 ? repeated : Math.floor(random() * 2 ** 31);
    repeated = number;
    micros(time, 1_764_374_400_000_000 + (number % 43_200_000) * 2000);
    text(device, `device-${String(number % 1000).padStart(4, '0')}`);
    text(site, `site-${number % 20}`);
    if (random() < 0.95) double(temperature, Math.round(random() * 4000) / 100);
    if (random() < 0.95) double(humidity, Math.round(random() * 1000) / 10);
    if (random() < 0.95) double(pressure, 900 + random() * 200);
    if (random() < 0.95) double(voltage, random() * 3.3);
    if (random() < 0.95) micros(counter, row);
    if (random() < 0.3) text(status, random() < 0.9 ? 'ok' : 'degraded');
    micros(ingest, 1_764_460_800_000_000);
    builder.endRow();
  }
  return builder.finish();
}

export interface Timing {
  step: string;
  /** Before the engine has compiled anything. */
  firstMs: number;
  leastMs: number;
  medianMs: number;
}

/** Runs every step `repeats` times. The digest is of the sorted, unique rows as a frame. */
export function benchOrder(
  rows: number,
  repeats: number,
): { timings: Timing[]; digest: string; bytes: Record<string, number> } {
  const columns = sensorRows(rows);
  const timings: Timing[] = [];
  const timed = <T>(step: string, run: () => T): T => {
    const times: number[] = [];
    let start = performance.now();
    let result = run();
    const firstMs = performance.now() - start;
    for (let i = 0; i < repeats; i++) {
      start = performance.now();
      result = run();
      times.push(performance.now() - start);
    }
    times.sort((a, b) => a - b);
    timings.push({ step, firstMs, leastMs: times[0], medianMs: times[times.length >> 1] });
    return result;
  };

  const frame = timed('frame: encode', () => encodeFrameBody(columns));
  timed('frame: decode', () => decodeFrameBody(frame, SCHEMA));
  const parts = Array.from({ length: 10 }, (_, i) =>
    slice(columns, Math.floor((i * rows) / 10), Math.floor(((i + 1) * rows) / 10)),
  );
  timed('concat of 10 parts', () => concat(parts, SCHEMA));
  const tiny = Array.from({ length: Math.min(rows, 1000) }, (_, i) => encodeFrameBody(slice(columns, i, i + 1)));
  timed(`frames of one row: decode and concat ${tiny.length}`, () =>
    concat(
      tiny.map((one) => decodeFrameBody(one, SCHEMA)),
      SCHEMA,
    ),
  );
  timed('partition', () => partitionRows(columns, OPTIONS.spec));
  const order = timed('sort', () => sortRows(rows, sortKeysOf(columns, OPTIONS.sortOrder)));
  const sorted = timed('gather', () => gather(columns, order));
  timed('sort of sorted rows', () => sortRows(rows, sortKeysOf(sorted, OPTIONS.sortOrder)));
  const plan = timed('partition, sort, dedup, split', () => planFiles(columns, OPTIONS));
  const files = timed('the same and gather', () =>
    planFiles(columns, OPTIONS).files.map(({ rowIndexes }) => gather(columns, rowIndexes)),
  );
  const whole = encodeFrameBody(concat(files, SCHEMA));
  const digest = hex(new Uint8Array(Uint32Array.of(xxhash32(whole)).buffer));
  const bytes = {
    columns: byteSizeOf(columns),
    frame: frame.length,
    frameOfOneRow: tiny[0].length,
    duplicates: plan.duplicates,
  };
  return { timings, digest, bytes };
}

if (import.meta.main) {
  const rows = Number(process.argv[2] ?? 100_000);
  const { timings, digest, bytes } = benchOrder(rows, Number(process.argv[3] ?? 50));
  console.log(`${rows} rows, ${JSON.stringify(bytes)}, digest ${digest}`);
  const shown = (ms: number) => `${ms.toFixed(1).padStart(7)} ms`;
  for (const { step, firstMs, leastMs, medianMs } of timings) {
    console.log(`${step.padEnd(44)} first ${shown(firstMs)}  least ${shown(leastMs)}  median ${shown(medianMs)}`);
  }
}

/**
 * How fast is a Parquet file encoded and decoded, against the library, in the same process?
 *
 *   npm run bench -- encode [--json] [--rows n] [--runs n]
 *
 * Prints milliseconds, the ratio to hyparquet-writer and hyparquet on the same rows, bytes a row, and a digest of what
 * was read back, which depends on the rows alone.
 */
import { createHash } from 'node:crypto';
import { parquetReadObjects } from 'hyparquet';
import { parquetWriteBuffer } from 'hyparquet-writer';
import type { Columns } from '../src/core/columns/columns.ts';
import type { Schema } from '../src/core/iceberg/types.ts';
import { parseFooter, readWindow } from '../src/core/parquet/reader.ts';
import { type ParquetOptions, writeParquet } from '../src/core/parquet/writer.ts';
import { compressZstd, decompressZstd } from '../src/platform/zlib.ts';

const DEVICES = 1000;
const SITES = 20;

const schema: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [
    { id: 1, name: 'time', required: true, type: 'timestamptz' },
    { id: 2, name: 'device_id', required: true, type: 'string' },
    { id: 3, name: 'site', required: false, type: 'string' },
    { id: 4, name: 'temperature', required: false, type: 'double' },
    { id: 5, name: 'humidity', required: false, type: 'double' },
    { id: 6, name: 'pressure', required: false, type: 'double' },
    { id: 7, name: 'voltage', required: false, type: 'double' },
    { id: 8, name: 'counter', required: false, type: 'long' },
    { id: 9, name: 'status', required: false, type: 'string' },
    { id: 10, name: '_ingest_ts', required: true, type: 'timestamptz' },
  ],
};

/** Rows of sensors, sorted by device and time; two doubles are rounded, two are not; 70 % of `status` is null. */
export function sensorRows(rows: number): Columns {
  let state = 42;
  const random = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const text = (entries: string[]) => {
    const bytes = new TextEncoder().encode(entries.join(''));
    const offsets = new Int32Array(entries.length + 1);
    entries.forEach((entry, i) => {
      offsets[i + 1] = offsets[i] + entry.length;
    });
    return { bytes, offsets };
  };
  const number = (length: number, i: number) => String(i).padStart(length, '0');
  const devices = text(Array.from({ length: DEVICES }, (_, i) => `device-${number(4, i)}`));
  const sites = text(Array.from({ length: SITES }, (_, i) => `site-${number(2, i)}`));
  const states = text(['ok', 'low-battery', 'maintenance', 'overheated']);
  const time = new BigInt64Array(rows);
  const device = new Int32Array(rows);
  const site = new Int32Array(rows);
  const temperature = new Float64Array(rows);
  const humidity = new Float64Array(rows);
  const pressure = new Float64Array(rows);
  const voltage = new Float64Array(rows);
  const counter = new BigInt64Array(rows);
  const status = new Int32Array(rows).fill(-1);
  const hasStatus = new Uint8Array(rows);
  const hasPressure = new Uint8Array(rows);
  const ingested = new BigInt64Array(rows).fill(1_764_400_000_000_000n);
  const perDevice = Math.max(1, Math.ceil(rows / DEVICES));
  for (let row = 0; row < rows; row++) {
    const id = Math.floor(row / perDevice) % DEVICES;
    const step = row % perDevice;
    time[row] = 1_764_300_000_000_000n + BigInt(step * 10_000_000 + Math.floor(random() * 500_000));
    device[row] = id;
    site[row] = id % SITES;
    temperature[row] = Math.round((18 + 4 * Math.sin(step / 50) + random()) * 100) / 100;
    humidity[row] = Math.round((50 + 10 * random()) * 10) / 10;
    pressure[row] = random() < 0.05 ? 0 : 1000 + 20 * random();
    hasPressure[row] = pressure[row] === 0 ? 0 : 1;
    voltage[row] = 3.3 + 0.01 * random();
    counter[row] = BigInt(id * 100_000 + step * 3 + Math.floor(random() * 3));
    if (random() < 0.3) {
      status[row] = Math.floor(random() * 4);
      hasStatus[row] = 1;
    }
  }
  return {
    schema,
    rows,
    columns: [
      { kind: 'int64', values: time, validity: null },
      { kind: 'dictionary', codes: device, dictionary: devices, validity: null },
      { kind: 'dictionary', codes: site, dictionary: sites, validity: null },
      { kind: 'float64', values: temperature, validity: null },
      { kind: 'float64', values: humidity, validity: null },
      { kind: 'float64', values: pressure, validity: hasPressure },
      { kind: 'float64', values: voltage, validity: null },
      { kind: 'int64', values: counter, validity: null },
      { kind: 'dictionary', codes: status, dictionary: states, validity: hasStatus },
      { kind: 'int64', values: ingested, validity: null },
    ],
  };
}

/** The same rows in the library's form, which is not part of its time. */
function libraryColumns(columns: Columns) {
  return columns.columns.map((column, i) => {
    const { name, required } = schema.fields[i];
    const strings =
      column.kind === 'dictionary'
        ? Array.from({ length: column.dictionary.offsets.length - 1 }, (_, entry) => {
            const { bytes, offsets } = column.dictionary;
            return new TextDecoder().decode(bytes.subarray(offsets[entry], offsets[entry + 1]));
          })
        : [];
    const data: unknown[] = [];
    for (let row = 0; row < columns.rows; row++) {
      const valid = column.validity === null || column.validity[row] !== 0;
      if (!valid) data.push(null);
      else if (column.kind === 'dictionary') data.push(strings[column.codes[row]]);
      else if (column.kind === 'int64' || column.kind === 'float64') data.push(column.values[row]);
    }
    const type = column.kind === 'dictionary' ? 'STRING' : column.kind === 'int64' ? 'INT64' : 'DOUBLE';
    return { name, data, type: type as 'STRING', nullable: !required, columnIndex: true };
  });
}

function median(times: number[]): number {
  return times.sort((a, b) => a - b)[times.length >> 1];
}

async function time(runs: number, work: () => unknown): Promise<number> {
  const times: number[] = [];
  for (let run = 0; run < runs; run++) {
    const start = performance.now();
    await work();
    times.push(performance.now() - start);
  }
  return median(times);
}

function decodeAll(file: Uint8Array): Columns[] {
  const footer = parseFooter(file, file.length);
  const pieces = [{ offset: 0, bytes: file }];
  return footer.rowGroups.map((group, i) => readWindow(footer, i, schema, 0, group.rows, pieces, decompressZstd));
}

/** Of the values alone: the same whatever the row groups and encodings. */
function digestOf(groups: Columns[]): string {
  const hash = createHash('sha256');
  for (let c = 0; c < schema.fields.length; c++) {
    for (const { columns, rows } of groups) hash.update(columns[c].validity ?? new Uint8Array(rows).fill(1));
    for (const { columns } of groups) {
      const column = columns[c];
      if (column.kind === 'int64' || column.kind === 'float64') {
        const { buffer, byteOffset, byteLength } = column.values;
        hash.update(new Uint8Array(buffer, byteOffset, byteLength));
      } else if (column.kind === 'dictionary') {
        const { bytes, offsets } = column.dictionary;
        for (const code of column.codes) {
          hash.update(code < 0 ? '-' : bytes.subarray(offsets[code], offsets[code + 1]));
        }
      }
    }
  }
  return hash.digest('hex').slice(0, 16);
}

/** One measured step. */
export interface EncodeStep {
  step: string;
  medianMs: number;
  /** How many times the library's time it would be. */
  ratio: number | null;
  bytesPerRow: number | null;
  /** Of the values read back. */
  digest: string | null;
}

/** Runs the benchmark; `runs` measurements of each, of which the median counts. */
export async function benchEncode(rows: number, runs: number): Promise<EncodeStep[]> {
  const columns = sensorRows(rows);
  const base: ParquetOptions = { rowGroupRows: 65_536, encodings: 'auto', sortingColumns: [], keyValues: [] };
  const library = libraryColumns(columns);
  const writeLibrary = () => {
    return parquetWriteBuffer({
      columnData: library,
      codec: 'ZSTD',
      compressors: { ZSTD: compressZstd },
      pageSize: 32_768,
    });
  };
  const libraryBytes = writeLibrary().byteLength;
  const libraryMs = await time(Math.max(1, runs >> 1), writeLibrary);
  const steps: EncodeStep[] = [
    {
      step: 'encode: hyparquet-writer',
      medianMs: libraryMs,
      ratio: null,
      bytesPerRow: libraryBytes / rows,
      digest: null,
    },
  ];
  for (const [name, options] of [
    ['auto, row groups of 65,536', base],
    ['auto, row groups of 8,192', { ...base, rowGroupRows: 8192 }],
    ['compatible, 65,536', { ...base, encodings: 'compatible' as const }],
  ] as const) {
    const write = () => writeParquet(columns, options, compressZstd);
    write();
    const medianMs = await time(runs, write);
    const { bytes: file } = write();
    steps.push({
      step: `encode: ${name}`,
      medianMs,
      ratio: libraryMs / medianMs,
      bytesPerRow: file.length / rows,
      digest: null,
    });
    const decodeMs = await time(runs, () => decodeAll(file));
    const buffer = file.buffer.slice(file.byteOffset, file.byteOffset + file.length) as ArrayBuffer;
    const byLibrary = await time(1, () =>
      parquetReadObjects({ file: buffer, compressors: { ZSTD: decompressZstd as never } }),
    );
    steps.push({
      step: `decode: ${name}`,
      medianMs: decodeMs,
      ratio: byLibrary / decodeMs,
      bytesPerRow: null,
      digest: digestOf(decodeAll(file)),
    });
  }
  return steps;
}

/** The steps as lines of text. */
export function encodeText(steps: readonly EncodeStep[]): string {
  return steps
    .map(({ step, medianMs, ratio, bytesPerRow, digest }) => {
      const parts = [
        bytesPerRow === null ? '' : `${bytesPerRow.toFixed(1)} B/row`,
        ratio === null ? '' : `${ratio.toFixed(1)} times the library's speed`,
        digest === null ? '' : `digest ${digest}`,
      ];
      return `${step.padEnd(36)} ${medianMs.toFixed(1).padStart(8)} ms  ${parts.filter((part) => part !== '').join(', ')}`;
    })
    .join('\n');
}

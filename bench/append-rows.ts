/**
 * The table and the rows that the append benchmark sends: sensors of 1,000 devices at 20 sites over one day, shuffled; two
 * doubles rounded and two of full precision, five in a hundred numbers null, seven in ten `status` null.
 */
import type { TableDefinition } from '../src/core/table/definition.ts';

const DEVICES = 1000;
const SITES = 20;
const DAY_MS = 86_400_000;
export const START_MS = Date.UTC(2026, 10, 28);

const FIELDS = [
  { name: 'time', type: 'timestamptz', required: true },
  { name: 'device_id', type: 'string', required: true },
  { name: 'site', type: 'string' },
  { name: 'temperature', type: 'double' },
  { name: 'humidity', type: 'double' },
  { name: 'pressure', type: 'double' },
  { name: 'voltage', type: 'double' },
  { name: 'counter', type: 'long' },
  { name: 'status', type: 'string' },
];

export const SENSORS: TableDefinition = {
  schema: { type: 'struct', fields: FIELDS },
  timeColumn: 'time',
  seriesKey: ['device_id'],
  chunk: 'day',
  dedup: true,
  properties: {},
};

/** The same as a request to the service has it. */
export const SENSORS_BODY = JSON.stringify({
  schema: SENSORS.schema,
  time_column: SENSORS.timeColumn,
  series_key: SENSORS.seriesKey,
  chunk: SENSORS.chunk,
  dedup: SENSORS.dedup,
  // What is measured is the append.
  properties: { 'timelake.auto-maintain': 'false' },
});

/** One row as it is sent; `_ingest_ts` is the service's to fill. */
export interface SensorRow {
  time: string;
  device_id: string;
  site: string;
  temperature: number | null;
  humidity: number | null;
  pressure: number | null;
  voltage: number | null;
  counter: number | null;
  status: string | null;
}

const STATES = ['ok', 'low-battery', 'maintenance', 'overheated'];

export interface SensorSpan {
  startMs?: number;
  spanMs?: number;
  seed?: number;
}

/** NDJSON of the rows, the same bytes for the same arguments. */
export function sensorBody(rows: number, span: SensorSpan = {}): Uint8Array {
  return ndjson(sensorRows(rows, span));
}

export function ndjson(rows: readonly object[]): Uint8Array {
  return new TextEncoder().encode(`${rows.map((row) => JSON.stringify(row)).join('\n')}\n`);
}

/** Rows spread over a day or the stretch given. No two share device and time. */
export function sensorRows(rows: number, { startMs = START_MS, spanMs = DAY_MS, seed = 42 }: SensorSpan = {}) {
  const random = seeded(seed);
  const perDevice = Math.ceil(rows / DEVICES);
  const stepMs = Math.floor(spanMs / perDevice);
  const order = shuffled(perDevice * DEVICES, random).subarray(0, rows);
  const number = (value: number): number | null => (random() < 0.05 ? null : value);
  const made: SensorRow[] = [];
  for (const place of order) {
    const device = place % DEVICES;
    const step = Math.floor(place / DEVICES);
    made.push({
      time: new Date(startMs + step * stepMs + Math.floor(random() * 500)).toISOString(),
      device_id: `dev-${String(device).padStart(4, '0')}`,
      site: `site-${String(device % SITES).padStart(2, '0')}`,
      temperature: number(Math.round((18 + 4 * Math.sin(step / 50) + random()) * 100) / 100),
      humidity: number(Math.round((50 + 10 * random()) * 10) / 10),
      pressure: number(1000 + 20 * random()),
      voltage: number(3.3 + 0.01 * random()),
      counter: number(device * 100_000 + step * 3 + Math.floor(random() * 3)),
      status: random() < 0.7 ? null : STATES[Math.floor(random() * STATES.length)],
    });
  }
  return made;
}

export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function shuffled(length: number, random: () => number): Uint32Array {
  const out = Uint32Array.from({ length }, (_, i) => i);
  for (let i = length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    const held = out[i];
    out[i] = out[j];
    out[j] = held;
  }
  return out;
}

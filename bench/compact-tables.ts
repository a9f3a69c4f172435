/** Tables whose files the compaction benchmark merges, and the batches that make the files: each is one commit. */
import { ndjson, SENSORS_BODY, type SensorRow, START_MS, seeded, sensorBody, sensorRows } from './append-rows.ts';
import type { Runtime } from './support/runtime.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
export const TABLE = '/v1/tables/bench/sensors';

export type CaseName = 'day' | 'duplicates' | 'small' | 'cold' | 'large';

/** One table before it is merged. */
export interface Case {
  name: CaseName;
  what: string;
  definition: string;
  batches: (() => Uint8Array)[];
  /** Rows of the whole table when of each key the one of the latest file counts. */
  rowsLeft: number;
  /** Every partition is merged, or what would be merged by itself. */
  full: boolean;
  reason: 'full' | 'tier' | 'cold';
  slices: number;
  /** Files that the slices make, at the size that is measured by default. */
  outputs: { least: number; most: number };
}

const MIB = 1024 * 1024;

/** In the files with duplicates, rows in twenty that repeat a key of the file before. */
const REPEATED = 1 / 20;

/** `rows` of a file of an hour; what else there is goes with it. */
export function casesOf(files: number, rows: number): Case[] {
  const hour = (n: number) => ({ startMs: START_MS + n * HOUR_MS, spanMs: HOUR_MS, seed: 42 + n });
  const repeated = Math.floor(rows * REPEATED);
  const one = { least: 1, most: 1 };
  return [
    {
      name: 'day',
      what: `${files} files, an hour each`,
      definition: definition(8 * MIB),
      batches: numbered(files, (n) => () => sensorBody(rows, hour(n))),
      rowsLeft: files * rows,
      full: true,
      reason: 'full',
      slices: 1,
      outputs: { least: 2, most: 4 },
    },
    {
      name: 'duplicates',
      what: 'the same, one row in twenty with a key of the file before',
      definition: definition(8 * MIB),
      batches: numbered(files, (n) => () => {
        const own = sensorRows(rows, hour(n));
        if (n === 0) return ndjson(own);
        const before = sensorRows(rows, hour(n - 1)).slice(-repeated);
        return ndjson([...before.map(again), ...own.slice(repeated)]);
      }),
      rowsLeft: files * rows - (files - 1) * repeated,
      full: true,
      reason: 'full',
      slices: 1,
      outputs: { least: 2, most: 4 },
    },
    {
      name: 'small',
      what: 'eight small files, a full tier',
      definition: definition(null),
      batches: numbered(8, (n) => () => sensorBody(Math.ceil(rows / 50), hour(n))),
      rowsLeft: 8 * Math.ceil(rows / 50),
      full: false,
      reason: 'tier',
      slices: 1,
      outputs: one,
    },
    {
      name: 'cold',
      what: 'a cold partition: a file, and one of late rows',
      definition: definition(null),
      batches: [
        () => sensorBody(rows, hour(0)),
        () => sensorBody(Math.ceil(rows / 10), hour(1)),
        () => sensorBody(100, { startMs: START_MS + 2 * DAY_MS, spanMs: HOUR_MS }),
      ],
      rowsLeft: rows + Math.ceil(rows / 10) + 100,
      full: false,
      reason: 'cold',
      slices: 1,
      outputs: one,
    },
    {
      name: 'large',
      what: 'files of more bytes than one slice merges',
      definition: definition(64 * MIB, 'noise'),
      batches: numbered(15, (n) => () => {
        const random = seeded(n);
        return ndjson(sensorRows(2 * rows, hour(n)).map((row) => ({ ...row, noise: noise(random) })));
      }),
      rowsLeft: 15 * 2 * rows,
      full: true,
      reason: 'full',
      slices: 2,
      outputs: { least: 2, most: 3 },
    },
  ];
}

/** The sensors, merged only when it is asked for; with a text column more, when it is named. */
function definition(targetBytes: number | null, text?: string): string {
  const parsed = JSON.parse(SENSORS_BODY) as {
    schema: { fields: object[] };
    properties: Record<string, string>;
  };
  if (targetBytes !== null) parsed.properties['timelake.target-file-size-bytes'] = String(targetBytes);
  if (text !== undefined) parsed.schema.fields.push({ name: text, type: 'string' });
  return JSON.stringify(parsed);
}

function numbered<T>(count: number, make: (n: number) => T): T[] {
  return Array.from({ length: count }, (_, n) => make(n));
}

/** A later reading under the same key. */
function again(row: SensorRow): SensorRow {
  return { ...row, counter: (row.counter ?? 0) + 1_000_000, status: 'corrected' };
}

/** Text that does not get smaller than half of it. */
function noise(random: () => number): string {
  let text = '';
  while (text.length < 64) text += Math.floor(random() * 2 ** 32).toString(16);
  return text;
}

/** Makes the table and its files. Returns the data files, in the order of their commits. */
export async function fill({ url, bucket }: Runtime, { definition, batches }: Case): Promise<Uint8Array[]> {
  const headers = { 'content-type': 'application/json' };
  const created = await fetch(url + TABLE, { method: 'PUT', headers, body: definition });
  if (created.status !== 201) throw new Error(`table was not created: ${created.status} ${await created.text()}`);
  const files = new Map<string, Uint8Array>();
  for (const body of batches) {
    await post(url, body(), 201, { prefer: 'wait=60' });
    for (const [key, { bytes }] of bucket.objects) if (key.includes('/data/')) files.set(key, bytes);
  }
  if (files.size !== batches.length) throw new Error(`${batches.length} files were to be made, not ${files.size}`);
  return [...files.values()];
}

export async function post(url: string, body: Uint8Array, status: number, headers: Record<string, string> = {}) {
  const response = await fetch(`${url}${TABLE}/rows`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson', ...headers },
    body: body as Uint8Array<ArrayBuffer>,
  });
  const text = await response.text();
  if (response.status !== status) throw new Error(`rows were not taken: ${response.status} ${text}`);
}

export interface Merged {
  reason: string;
  files: number;
  bytes: number;
  made: { files: number; rows: string; bytes: number; duplicates: number };
}

export async function merge(url: string, full: boolean): Promise<Merged[]> {
  const response = await fetch(`${url}${TABLE}/maintain`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ compact: true, full }),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`not merged: ${response.status} ${text}`);
  return (JSON.parse(text) as { slices: Merged[] }).slices;
}

import { invalid, SluiceError } from '../../core/base/errors.ts';
import { INFER_BYTES_MAX, INFER_ROWS_MAX } from '../../core/base/limits.ts';
import { foreignReader } from '../../core/columns/foreign.ts';
import { typeOf } from '../../core/columns/foreign-proposal.ts';
import type { EpochUnit } from '../../core/columns/times.ts';
import type { Schema, Type } from '../../core/iceberg/types.ts';
import { readWindows } from '../body.ts';
import { columnBodyOf, readWhole } from '../column-body.ts';
import type { RowSink } from '../formats/format.ts';
import { type PointTable, pointReader } from '../formats/line-protocol.ts';
import { formatOf, isColumnar, readerOf } from '../rows.ts';

/** One column of a sample. */
export interface SampleColumn {
  name: string;
  /** One a row, null where it has none. */
  values: unknown[];
  /** The type that the format says; null: it is to be told by the values. */
  type: Type | null;
  /** A tag of points: it names the series. */
  isTag: boolean;
}

export interface Sample {
  format: string;
  rows: number;
  /** The body was read to its end. */
  isWhole: boolean;
  columns: SampleColumn[];
  /** Lines that are no rows, and what else was left out. */
  notes: string[];
}

export interface SampleRequest {
  body: ReadableStream<Uint8Array> | null;
  contentType: string | null;
  contentEncoding: string | null;
  delimiter: string | null;
  /** Of points. */
  precision: EpochUnit;
  /** Of points: the measurement to look at; null: the first. */
  measurement: string | null;
}

/** Ends the reading of a sample that is large enough. */
const FULL = Symbol('sample is full');

/** Lines that are no rows and are told. */
const FAULTS_TOLD_MAX = 5;

/**
 * Reads the beginning of a body in any of the formats, or line protocol as `text/plain`: at most `INFER_ROWS_MAX` rows, and
 * of text `INFER_BYTES_MAX` bytes. A sample may end in the middle of a row, and may hold rows that are none.
 *
 * Throws `invalid`: what the readers of the formats throw, `empty-body` for a sample without rows.
 */
export async function readSample(request: SampleRequest): Promise<Sample> {
  const [mediaType] = (request.contentType ?? '').split(';').map((part) => part.trim().toLowerCase());
  const sample = mediaType === 'text/plain' ? await readPointSample(request) : await readRowSample(request);
  if (sample.rows === 0 || sample.columns.length === 0) {
    const [first] = sample.notes;
    throw invalid('empty-body', `sample has no rows${first === undefined ? '' : `: ${first}`}`);
  }
  return sample;
}

const NO_COLUMNS: Schema = { type: 'struct', 'schema-id': 0, fields: [] };

function readRowSample(request: SampleRequest): Promise<Sample> {
  const format = formatOf(request.contentType);
  if (isColumnar(format)) return readColumnSample(format, request);
  const rows = new Rows();
  const reader = readerOf(format, rows, { schema: NO_COLUMNS, delimiter: request.delimiter, evolves: true });
  return readText(format, request, rows, (window, last) => reader.take(window, last));
}

async function readPointSample(request: SampleRequest): Promise<Sample> {
  const rows = new Rows();
  const tags = new Set<string>();
  const tables = new Map<string, PointTable>();
  const others = new Set<string>();
  const { precision } = request;
  const malformed = (line: number, message: string) => rows.fault(line, 'malformed-line', message);
  const reader = pointReader({ precision, nowMicros: 0, tables, malformed });
  const table = (sink: RowSink): PointTable => ({
    timeColumn: 'time',
    exact: false,
    typed: true,
    untimed: false,
    tags,
    sink,
  });
  const nothing: RowSink = { row: () => undefined, fault: () => undefined };
  let measurement = request.measurement;
  const sample = await readText('points', request, rows, (window, last) => {
    for (let at = 0; ; ) {
      at += reader.take(window.subarray(at), last);
      const { wanted } = reader;
      if (wanted === null) return at;
      measurement ??= wanted;
      if (wanted === measurement) tables.set(wanted, table(rows));
      else {
        others.add(wanted);
        tables.set(wanted, { ...table(nothing), tags: undefined });
      }
    }
  });
  for (const column of sample.columns) {
    if (column.name === 'time') column.type = 'timestamptz';
    else if (tags.has(column.name)) Object.assign(column, { type: 'string', isTag: true });
  }
  if (others.size > 0) {
    const names = [...others].slice(0, FAULTS_TOLD_MAX).join(', ');
    sample.notes.push(`looked at points of ${measurement} alone; of other measurements there are ${names}`);
  }
  return sample;
}

async function readText(
  format: string,
  { body, contentEncoding }: SampleRequest,
  rows: Rows,
  take: (window: Uint8Array, last: boolean) => number,
): Promise<Sample> {
  const notes: string[] = [];
  let bytes = 0;
  let isWhole = true;
  try {
    await readWindows(body, { contentEncoding }, (window, last) => {
      const isTooLong = bytes + window.length > INFER_BYTES_MAX;
      const taken = take(isTooLong ? window.subarray(0, INFER_BYTES_MAX - bytes) : window, last && !isTooLong);
      if (isTooLong) throw FULL;
      bytes += taken;
      return taken;
    });
  } catch (error) {
    if (error !== FULL && !(error instanceof SluiceError && CUT.has(error.type) && rows.list.length > 0)) throw error;
    isWhole = false;
    if (error !== FULL) notes.push(`sample ends early: ${(error as Error).message}`);
  }
  const { list, faults, faultCount } = rows;
  if (faultCount > 0) notes.push(`${faultCount} lines are no rows: ${faults.join('; ')}`);
  return { format, rows: list.length, isWhole, columns: columnsOf(list), notes };
}

/** What a body ends in that was cut. */
const CUT: ReadonlySet<string> = new Set(['truncated-body', 'body-too-large', 'line-too-long']);

class Rows implements RowSink {
  readonly list: Record<string, unknown>[] = [];
  readonly faults: string[] = [];
  faultCount = 0;

  row(row: unknown, line: number): void {
    if (typeof row !== 'object' || row === null || Array.isArray(row)) {
      this.fault(line, 'not-an-object', 'row is no object');
      return;
    }
    this.list.push(row as Record<string, unknown>);
    if (this.list.length === INFER_ROWS_MAX) throw FULL;
  }

  fault(line: number, _type: string, message: string): void {
    this.faultCount++;
    if (this.faults.length < FAULTS_TOLD_MAX) this.faults.push(`line ${line}: ${message}`);
  }
}

/** By name, in the order in which names are met. */
function columnsOf(rows: readonly Record<string, unknown>[]): SampleColumn[] {
  const columns = new Map<string, SampleColumn>();
  rows.forEach((row, i) => {
    for (const name of Object.keys(row)) {
      let column = columns.get(name);
      if (column === undefined) {
        column = { name, values: new Array(rows.length).fill(null), type: null, isTag: false };
        columns.set(name, column);
      }
      column.values[i] = row[name] ?? null;
    }
  });
  return [...columns.values()];
}

async function readColumnSample(
  format: Parameters<typeof columnBodyOf>[0],
  { body, contentEncoding }: SampleRequest,
): Promise<Sample> {
  const { whole } = await readWhole(body, { contentEncoding });
  const { fields, rows, batches } = columnBodyOf(format, whole);
  const notes: string[] = [];
  const ids = { next: 1 };
  const columns = fields.map(({ name, type }): SampleColumn => {
    const made = typeOf(type, ids);
    if (made === null) notes.push(`column ${name} is left out: no column of a table is made of its type`);
    return { name, values: [], type: made, isTag: false };
  });
  let looked = 0;
  for (const batch of batches()) {
    const most = Math.min(batch.rows, INFER_ROWS_MAX - looked);
    columns.forEach(({ type, values }, i) => {
      // Only what may be of the series or the time is looked at.
      if (typeof type !== 'string') return;
      const read = foreignReader(batch.columns[i]);
      for (let row = 0; row < most; row++) values.push(read(row) ?? null);
    });
    looked += most;
    if (looked === INFER_ROWS_MAX) break;
  }
  const made = columns.filter(({ type }) => type !== null);
  return { format, rows: looked, isWhole: looked === rows, columns: made, notes };
}

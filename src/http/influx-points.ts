import { type Detail, invalid, SluiceError } from '../core/base/errors.ts';
import { FLUSH_ROWS_MAX, POINT_TABLES_MAX, ROW_ERRORS_REPORTED_MAX } from '../core/base/limits.ts';
import { hasDecimals } from '../core/columns/align.ts';
import { shorten } from '../core/columns/fault.ts';
import type { EpochUnit } from '../core/columns/times.ts';
import { checkName } from '../core/iceberg/locations.ts';
import { proposedSchema } from '../core/iceberg/proposal.ts';
import type { IngestView } from '../object/views.ts';
import { readWindows } from './body.ts';
import type { RowSink } from './formats/format.ts';
import { type PointTable, pointReader } from './formats/line-protocol.ts';
import {
  type Collected,
  type RowBudget,
  type RowCollector,
  type RowError,
  rowBudget,
  rowCollector,
} from './row-collector.ts';

export interface PointsRequest {
  body: ReadableStream<Uint8Array> | null;
  contentEncoding: string | null;
  precision: EpochUnit;
  /** `refuse`: a bad point refuses those of its table. `skip`: bad points are left out and reported. */
  onError: 'refuse' | 'skip';
  nowMs: number;
  /** The table of a measurement. Throws what refuses its points (`invalid`) or the request (`forbidden`, other kinds). */
  viewOf(table: string): Promise<IngestView>;
}

/** What became of the points of one measurement. */
export interface TablePoints {
  measurement: string;
  points: number;
  /** Columns for a table, or why none of the points is taken. */
  read: { view: IngestView; collected: Collected } | SluiceError;
  /** True when a point came without a time: sent again, it would be another point. */
  untimed: boolean;
}

export interface PointsRead {
  /** In the order in which they were met. */
  tables: TablePoints[];
  /** Lines that are no line protocol, with `skip`; the first `ROW_ERRORS_REPORTED_MAX`. */
  malformed: RowError[];
  malformedCount: number;
  /** SHA-256 of the inflated body. */
  digest: Uint8Array;
}

/**
 * Reads line protocol into columns of the tables that its measurements name, window by window. Nothing is written.
 *
 * Throws `invalid`: what `readWindows` and `pointReader` throw, `too-many-rows`, `too-many-tables`, and, with `refuse`,
 * `malformed-line` at the first line that is no line protocol; and `forbidden` and what `viewOf` throws of other kinds.
 */
export async function readPoints(request: PointsRequest): Promise<PointsRead> {
  const { onError, precision, viewOf } = request;
  const budget = rowBudget(FLUSH_ROWS_MAX);
  const tables = new Map<string, OpenTable>();
  const malformed: RowError[] = [];
  let malformedCount = 0;
  const reader = pointReader({
    precision,
    nowMicros: request.nowMs * 1000,
    tables,
    malformed(line, message, text) {
      if (onError === 'refuse') throw invalid('malformed-line', `${message}, at line ${line}: ${text}`, { line, text });
      malformedCount++;
      if (malformed.length === ROW_ERRORS_REPORTED_MAX) return;
      malformed.push({ line, type: 'malformed-line', field: null, message, value: text });
    },
  });

  async function open(measurement: string): Promise<OpenTable> {
    if (tables.size === POINT_TABLES_MAX) {
      const most = { tablesMax: POINT_TABLES_MAX };
      throw invalid('too-many-tables', `points are of more than ${POINT_TABLES_MAX} measurements: split them`, most);
    }
    try {
      const view = await viewOf(checkName(measurement, 'table'));
      const timeColumn = timeColumnOf(view);
      return new OpenTable(timeColumn, view, collectorFor(view, timeColumn, budget, onError));
    } catch (error) {
      if (!(error instanceof SluiceError) || error.kind !== 'invalid' || error.type === 'forbidden') throw error;
      return new OpenTable('', null, error);
    }
  }

  const facts = await readWindows(request.body, { contentEncoding: request.contentEncoding }, async (window, last) => {
    for (let at = 0; ; ) {
      at += reader.take(window.subarray(at), last);
      const { wanted } = reader;
      if (wanted === null) return at;
      tables.set(wanted, await open(wanted));
    }
  });
  const read = [...tables].map(([measurement, table]) => table.finish(measurement));
  return { tables: read, malformed, malformedCount, digest: facts.digest };
}

/** A measurement's table while its points are read. Once it refuses them, they are only counted. */
class OpenTable implements PointTable {
  readonly timeColumn: string;
  readonly exact: boolean;
  readonly typed: boolean;
  readonly sink: RowSink;
  untimed = false;
  private readonly view: IngestView | null;
  private collector: RowCollector | SluiceError;
  private points = 0;

  constructor(timeColumn: string, view: IngestView | null, collector: RowCollector | SluiceError) {
    this.timeColumn = timeColumn;
    this.exact = view !== null && hasDecimals(proposedSchema(view.schema, view.proposal).fields);
    this.typed = view?.settings.schemaEvolution === 'additive';
    this.view = view;
    this.collector = collector;
    this.sink = {
      row: (row, line) => this.give((collector) => collector.row(row, line)),
      fault: (line, type, message, text, field) =>
        this.give((collector) => collector.fault(line, type, message, text, field)),
    };
  }

  finish(measurement: string): TablePoints {
    const { points, untimed, view } = this;
    let read: TablePoints['read'] | null = null;
    this.attempt((collector) => {
      read = { view: view as IngestView, collected: collector.finish() };
    });
    return { measurement, points, untimed, read: read ?? (this.collector as SluiceError) };
  }

  private give(call: (collector: RowCollector) => void): void {
    this.points++;
    this.attempt(call);
  }

  private attempt(call: (collector: RowCollector) => void): void {
    if (this.collector instanceof SluiceError) return;
    try {
      call(this.collector);
    } catch (error) {
      // Too many bad points are a matter of the table; too many points are one of the request.
      if (!(error instanceof SluiceError) || error.type !== 'invalid-rows') throw error;
      this.collector = error;
    }
  }
}

function collectorFor(
  view: IngestView,
  timeColumn: string,
  budget: RowBudget,
  onError: 'refuse' | 'skip',
): RowCollector {
  const { settings } = view;
  return rowCollector(proposedSchema(view.schema, view.proposal), budget, {
    onError,
    epochUnit: settings.epochUnit,
    epochUnits: new Map([...settings.epochUnits, [timeColumn, 'us']]),
    evolve: settings.schemaEvolution === 'additive' ? 'typed' : undefined,
    filledField: settings.ingestTimeColumn,
    // Tags are text, whatever their column is.
    textual: true,
  });
}

/** Where the time of a point goes: the time column of the table; in a table without one, a timestamp named `time`. */
function timeColumnOf({ schema, settings }: IngestView): string {
  if (settings.timeColumn !== null) return settings.timeColumn;
  const time = schema.fields.find(({ name }) => name === 'time');
  if (time?.type === 'timestamptz' || time?.type === 'timestamp') return time.name;
  throw invalid('no-time-column', 'table has neither a time column nor a timestamp named time');
}

/** What the answer tells of a table of which points were not taken. */
export interface Refusal {
  measurement: string;
  /** Points that are not in the table. */
  dropped: number;
  type: string;
  message: string;
  errors: Detail;
}

/** Why points of a measurement were refused; null when all are taken. */
export function refusalOf({ measurement, points, read }: TablePoints): Refusal | null {
  const about = { measurement: shorten(measurement) };
  if (read instanceof SluiceError) {
    const { type, message, detail } = read;
    return { ...about, dropped: points, type, message, errors: detail['errors'] ?? [] };
  }
  const { errors, errorCount } = read.collected;
  if (errorCount === 0) return null;
  const message = `${errorCount} points were left out, first at line ${errors[0].line}: ${errors[0].message}`;
  return {
    ...about,
    dropped: errorCount,
    type: 'invalid-rows',
    message,
    errors: errors.map((error): { [key: string]: Detail } => ({ ...error })),
  };
}

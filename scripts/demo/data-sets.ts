import { join } from 'node:path';

/**
 * What the demonstration sends: real data out of the npm package `vega-datasets`, read by DuckDB where it lies. Both
 * sources hold local times without a zone, hence `timestamp` and not `timestamptz`.
 */

export interface DataSet {
  namespace: string;
  table: string;
  /** One line for people. */
  about: string;
  /** Query of the source, in the order in which rows are sent. Its columns are those of the table. */
  source: string;
  /** Query of the rows that must be in the table afterwards. */
  expected: string;
  definition: {
    schema: { type: 'struct'; fields: { name: string; type: string; required?: boolean }[] };
    time_column: string;
    series_key?: string[];
    chunk: 'day' | 'month';
    properties: Record<string, string>;
  };
  /** Rows of one request. */
  batchRows: number;
  /** Requests at once. One: rows arrive in the order of the source. */
  inFlight: number;
  /** All rows go into one flush, which is asked for once they are sent. */
  oneFlush: boolean;
  /** Columns that identify a row, where older rows of the same key are dropped; empty: every row stays. */
  key: string[];
}

const FOLDER = join(import.meta.dirname, '..', '..', 'node_modules', 'vega-datasets', 'data');
const WEATHER = quoted(join(FOLDER, 'weather.csv'));
const FLIGHTS = `read_parquet(${quoted(join(FOLDER, 'flights-3m.parquet'))}, file_row_number = true)`;

/** A text as SQL has it. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

const weather =
  'SELECT location, date::TIMESTAMP AS date, precipitation, temp_max, temp_min, wind, weather ' +
  `FROM read_csv(${WEATHER}, header = true, columns = {'location': 'VARCHAR', 'date': 'DATE', 'precipitation': ` +
  "'DOUBLE', 'temp_max': 'DOUBLE', 'temp_min': 'DOUBLE', 'wind': 'DOUBLE', 'weather': 'VARCHAR'})";

function flights(until: string, rest = ''): string {
  return `SELECT date, delay, distance, origin, destination FROM ${FLIGHTS} WHERE date < '${until}' ${rest}`;
}

const FLIGHT_FIELDS = [
  { name: 'date', type: 'timestamp', required: true },
  { name: 'delay', type: 'long' },
  { name: 'distance', type: 'long' },
  { name: 'origin', type: 'string' },
  { name: 'destination', type: 'string' },
];

/** Six days are 97,154 rows: as many as one flush takes, whole days. */
const SIX_DAYS = '2001-01-07';

export const DATA_SETS: readonly DataSet[] = [
  {
    namespace: 'demo',
    table: 'weather',
    about: 'four years of weather in two cities; series key location, month chunks',
    source: weather,
    expected: weather,
    definition: {
      schema: {
        type: 'struct',
        fields: [
          { name: 'location', type: 'string' },
          { name: 'date', type: 'timestamp', required: true },
          { name: 'precipitation', type: 'double' },
          { name: 'temp_max', type: 'double' },
          { name: 'temp_min', type: 'double' },
          { name: 'wind', type: 'double' },
          { name: 'weather', type: 'string' },
        ],
      },
      time_column: 'date',
      series_key: ['location'],
      chunk: 'month',
      properties: { 'sluice.flush-interval': '2s' },
    },
    batchRows: 1_000,
    inFlight: 3,
    oneFlush: false,
    key: ['location', 'date'],
  },
  {
    namespace: 'demo',
    table: 'flights',
    about: 'all flights of January 2001; rows repeat, so no series key: every row stays; day chunks',
    source: flights('2001-02-01'),
    expected: flights('2001-02-01'),
    definition: {
      schema: { type: 'struct', fields: FLIGHT_FIELDS },
      time_column: 'date',
      chunk: 'day',
      properties: { 'sluice.flush-interval': '2s' },
    },
    batchRows: 20_000,
    inFlight: 4,
    oneFlush: false,
    key: [],
  },
  {
    namespace: 'demo',
    table: 'departures',
    about: 'six days of them with series key origin: of each airport and minute, the row that came last',
    source: flights(SIX_DAYS),
    expected: flights(
      SIX_DAYS,
      'QUALIFY row_number() OVER (PARTITION BY origin, date ORDER BY file_row_number DESC) = 1',
    ),
    definition: {
      schema: { type: 'struct', fields: FLIGHT_FIELDS },
      time_column: 'date',
      series_key: ['origin'],
      chunk: 'day',
      // Long enough that nothing is flushed before it is asked for.
      properties: { 'sluice.flush-interval': '1h' },
    },
    batchRows: 20_000,
    inFlight: 1,
    oneFlush: true,
    key: ['origin', 'date'],
  },
];

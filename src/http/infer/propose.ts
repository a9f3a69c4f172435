import type { EpochUnit } from '../../core/columns/times.ts';
import { parseTimestamp } from '../../core/columns/times.ts';
import type { Type } from '../../core/iceberg/types.ts';
import { INGEST_TIME_COLUMN, layOut } from '../../core/table/definition.ts';
import { epochUnitKey } from '../../core/table/properties.ts';
import { proposedType, type ValueRule } from './column-type.ts';
import type { Sample, SampleColumn } from './sample.ts';

/** A definition as `PUT /v1/tables/{ns}/{table}` takes it, and why it is so. */
export interface Proposed {
  definition: {
    schema: { type: 'struct'; fields: { name: string; type: Type; required: boolean }[] };
    time_column: string | null;
    series_key: string[];
    chunk: 'day' | 'month' | null;
    dedup: boolean | null;
    properties: Record<string, string>;
  };
  /** One line a choice: what it is about, and the reason. */
  reasons: { choice: string; because: string }[];
}

interface Column extends SampleColumn {
  type: Type;
  unit: EpochUnit | null;
}

/**
 * Proposes a definition for a table that takes rows like those of the sample. It can be put as it is.
 *
 * @throws invalid `bad-column-name`, `bad-definition` when no table can have such columns
 */
export function propose(sample: Sample): Proposed {
  const reasons: Proposed['reasons'] = [];
  const columns = sample.columns.map((column) => typed(column, sample.format, reasons));
  const time = timeOf(columns, reasons);
  const series = time === null ? { key: [], dedup: null } : seriesOf(columns, time, sample.rows, reasons);
  const fields = columns.map(({ name, type }) => ({ name, type: withoutIds(type), required: name === time?.name }));
  const properties: Record<string, string> = {};
  for (const { name, unit } of columns) if (unit !== null) properties[epochUnitKey(name)] = unit;
  const definition: Proposed['definition'] = {
    schema: { type: 'struct', fields },
    time_column: time?.name ?? null,
    series_key: series.key,
    chunk: time === null ? null : chunkOf(time, reasons),
    dedup: series.dedup,
    properties,
  };
  layOut({
    schema: definition.schema,
    timeColumn: definition.time_column,
    seriesKey: definition.series_key,
    chunk: definition.chunk,
    dedup: definition.dedup,
    properties,
  });
  return { definition, reasons };
}

const RULES: Readonly<Record<string, ValueRule>> = { csv: 'text', tsv: 'text', points: 'typed' };

function typed(column: SampleColumn, format: string, reasons: Proposed['reasons']): Column {
  const { name, values } = column;
  const choice = `type of ${name}`;
  if (column.type !== null) {
    reasons.push({ choice, because: column.isTag ? 'a tag is text' : 'the type that it comes as' });
    return { ...column, type: column.type, unit: null };
  }
  const { type, unit, because } = proposedType(name, values, RULES[format] ?? 'json');
  reasons.push({ choice, because });
  return { ...column, type, unit };
}

/** Names of time columns, the likeliest first. */
const TIME_NAMES = ['time', '_time', 'timestamp', 'ts', 'datetime', 'date_time', 'event_time', 'observed_at'];

function timeOf(columns: readonly Column[], reasons: Proposed['reasons']): Column | null {
  const choice = 'time_column';
  const isTime = ({ type, name }: Column) =>
    (type === 'timestamp' || type === 'timestamptz') && name !== INGEST_TIME_COLUMN;
  const times = columns.filter(isTime);
  const whole = times.filter(({ values }) => values.length > 0 && !values.includes(null));
  if (whole.length === 0) {
    const because = times.length === 0 ? 'no column is a time' : 'no time is in every row of the sample';
    reasons.push({ choice, because });
    return null;
  }
  const rank = ({ name }: Column) =>
    (TIME_NAMES.indexOf(name.toLowerCase()) + TIME_NAMES.length + 1) % (TIME_NAMES.length + 1);
  const [time] = [...whole].sort((a, b) => rank(a) - rank(b));
  const others = whole.filter((column) => column !== time).map(({ name }) => name);
  const rest = others.length === 0 ? '' : `; so are ${others.join(', ')}`;
  reasons.push({ choice, because: `${time.name} is a time in every row of the sample${rest}` });
  return time;
}

/** Names of columns that tell whose a row is. */
const SERIES_NAME =
  /(^|_)(id|key|name|code|device|sensor|host|station|site|symbol|ticker|machine|meter|region|origin|carrier)$/i;
/** Columns of one series key; a key of more is no key of a person's making. */
const SERIES_COLUMNS_MAX = 4;

function seriesOf(
  columns: readonly Column[],
  time: Column,
  rows: number,
  reasons: Proposed['reasons'],
): { key: string[]; dedup: boolean | null } {
  const choice = 'series_key';
  const tags = columns.filter(({ isTag }) => isTag);
  const candidates = (tags.length > 0 ? tags : columns.filter((column) => mayName(column, rows)))
    .map((column) => ({ column, distinct: new Set(column.values.map(String)).size }))
    .sort(
      (a, b) =>
        Number(SERIES_NAME.test(b.column.name)) - Number(SERIES_NAME.test(a.column.name)) || b.distinct - a.distinct,
    )
    .map(({ column }) => column);
  const key: Column[] = [];
  for (const column of candidates) {
    if (tags.length === 0 && (isUnique([...key, time], rows) || key.length === SERIES_COLUMNS_MAX)) break;
    key.push(column);
  }
  const names = key.map(({ name }) => name);
  if (names.length === 0) {
    reasons.push({ choice, because: isUnique([time], rows) ? 'each time is of one row' : 'no column names a series' });
    return { key: [], dedup: null };
  }
  if (!isUnique([...key, time], rows)) {
    const because = `no columns tell all rows of one time apart: rows are kept as they come`;
    reasons.push({ choice, because: tags.length > 0 ? 'the tags' : 'the columns that come nearest to a key' });
    reasons.push({ choice: 'dedup', because });
    return { key: names, dedup: false };
  }
  reasons.push({
    choice,
    because: `${tags.length > 0 ? 'the tags; ' : ''}with the time they tell all rows of the sample apart`,
  });
  return { key: names, dedup: true };
}

/** Text, or whole numbers with the name of a key, in every row, and fewer of them than rows. */
function mayName({ name, type, values }: Column, rows: number): boolean {
  const isText = type === 'string' || (SERIES_NAME.test(name) && (type === 'int' || type === 'long'));
  if (!isText || values.length < rows || values.includes(null) || values.includes('')) return false;
  return rows < 4 || new Set(values.map(String)).size <= rows / 2;
}

function isUnique(columns: readonly Column[], rows: number): boolean {
  const seen = new Set<string>();
  for (let row = 0; row < rows; row++) seen.add(JSON.stringify(columns.map(({ values }) => String(values[row]))));
  return seen.size === rows;
}

/** Days of the sample beyond which a partition is a month: a batch has at most a thousand partitions. */
const DAYS_MAX = 200;

function chunkOf(time: Column, reasons: Proposed['reasons']): 'day' | 'month' {
  const days = new Set(time.values.map((value) => dayOf(value, time.unit)));
  const chunk = days.size > DAYS_MAX ? 'month' : 'day';
  reasons.push({ choice: 'chunk', because: `the sample has times of ${days.size} days` });
  return chunk;
}

function dayOf(value: unknown, unit: EpochUnit | null): number {
  const micros = unit === null && typeof value === 'string' ? Number(parseTimestamp(value)) : Number(value);
  const scale = { s: 1, ms: 1e3, us: 1e6, ns: 1e9 }[unit ?? 'us'];
  return Math.floor(micros / scale / 86_400);
}

/** A type without field ids, which a definition leaves out everywhere or nowhere. */
function withoutIds(type: Type): Type {
  if (typeof type === 'string') return type;
  const drop = (name: string, value: unknown) => (name === 'id' || name.endsWith('-id') ? undefined : value);
  return JSON.parse(JSON.stringify(type, drop)) as Type;
}

import { invalid } from '../base/errors.ts';
import { own } from '../base/shape.ts';
import { currentSchema } from '../iceberg/metadata.ts';
import { assignFreshIds, checkNewColumnNames, fieldByName, parseSchema, sameSchema } from '../iceberg/schema.ts';
import type { NestedField, PartitionSpec, Schema, SortOrder, TableMetadata } from '../iceberg/types.ts';
import {
  type Chunk,
  checkEpochUnits,
  checkProperties,
  SLUICE_FORMAT_VERSION,
  TIMELAKE_FORMAT_VERSION,
  tableSettings,
} from './properties.ts';

/** What a client asks for when it creates a table. */
export interface TableDefinition {
  /** Iceberg REST schema JSON. Field ids may be left out (all of them); `required` is false when left out. */
  schema: unknown;
  /** Timestamp column that makes it a time-series table; null: no partition, no sort order, no dedup. */
  timeColumn: string | null;
  /** Columns that identify a series, in sort order. */
  seriesKey: string[];
  /** Size of a partition; `day` when left out. */
  chunk: Chunk | null;
  /** Drop older rows of the same (series, time); default: there is a series key. */
  dedup: boolean | null;
  properties: Record<string, unknown>;
}

/** The parts of a new table's metadata that follow from its definition alone. */
export interface TableLayout {
  schema: Schema;
  spec: PartitionSpec;
  sortOrder: SortOrder;
  properties: Record<string, string>;
}

/** Column that each time-series table gets, filled with the time its rows were taken (contract, section 1.5). */
export const INGEST_TIME_COLUMN = '_ingest_ts';

/** Written explicitly, so that a commit every few seconds never meets defaults made for hourly batches. */
const EXPIRY: Record<string, string> = {
  'timelake.snapshot-retention': '1h',
  'timelake.min-snapshots': '5',
  'timelake.max-snapshots': '400',
  'write.metadata.previous-versions-max': '100',
};

/** What every table of ours says about its files. */
const FORMAT: Record<string, string> = {
  'write.format.default': 'parquet',
  'write.parquet.compression-codec': 'zstd',
};

/**
 * Properties that a table lacks, or has of an older format: what a table made today would have besides its own. A newer
 * patch of the engine's format stays as it is; so does every value that somebody set.
 */
export function upgradedProperties(properties: Readonly<Record<string, string>>): Record<string, string> {
  const wanted = { ...FORMAT, ...EXPIRY, 'sluice.format-version': SLUICE_FORMAT_VERSION };
  const missing = Object.entries(wanted).filter(([key]) => own(properties, key) === undefined);
  const older = isOlderFormat(own(properties, 'timelake.format-version') ?? '0.1.0');
  return Object.fromEntries([...(older ? [['timelake.format-version', TIMELAKE_FORMAT_VERSION]] : []), ...missing]);
}

/** A plain number N is 0.N.0 (contract, section 1.4). */
function isOlderFormat(version: string): boolean {
  const parts = version.split('.').map(Number);
  const [major, minor] = parts.length === 1 ? [0, parts[0]] : parts;
  const [, ours] = TIMELAKE_FORMAT_VERSION.split('.').map(Number);
  return major === 0 && minor < ours;
}

/**
 * Checks a definition and lays the table out as the engine would (docs/timelake-contract.md, section 1).
 *
 * @throws invalid `malformed`, `bad-schema`, `bad-column-name`, `bad-definition`, `bad-property`
 */
export function layOut(definition: TableDefinition): TableLayout {
  const given = parseSchema(withIds(definition.schema));
  if (given.fields.length === 0) throw invalid('bad-schema', 'schema has no fields');
  const { timeColumn, seriesKey } = definition;
  const wrong = (message: string) => invalid('bad-definition', message);
  if (timeColumn === null) {
    if (seriesKey.length > 0) throw wrong('series_key needs a time_column');
    if (definition.chunk !== null) throw wrong('chunk needs a time_column');
    if (definition.dedup === true) throw wrong('dedup needs a time_column');
  }
  const fields = given.fields.map((field) => {
    if (field.name !== timeColumn) return field;
    if (field.type !== 'timestamp' && field.type !== 'timestamptz') {
      throw wrong(`time_column is not a timestamp: ${timeColumn}`);
    }
    return { ...field, required: true };
  });
  if (timeColumn !== null) {
    if (fieldByName(given, timeColumn) === null) throw wrong(`time_column is not in the schema: ${timeColumn}`);
    const own = fields.find((field) => field.name === INGEST_TIME_COLUMN);
    if (own === undefined) {
      const id = Math.max(0, ...fields.map((field) => field.id)) + 1_000_000; // provisional: ids are made anew below
      fields.push({ id, name: INGEST_TIME_COLUMN, required: true, type: 'timestamptz' });
    } else if (own.type !== 'timestamptz') {
      throw wrong(`${INGEST_TIME_COLUMN} holds the time of ingestion and must be timestamptz`);
    }
  }
  const { schema } = assignFreshIds({ ...given, 'schema-id': 0, fields });
  checkNewColumnNames(schema);
  checkSeriesKey(schema, timeColumn, seriesKey);

  const chunk = timeColumn === null ? null : (definition.chunk ?? 'day');
  const dedup = definition.dedup ?? seriesKey.length > 0;
  const properties: Record<string, string> = {
    'timelake.format-version': TIMELAKE_FORMAT_VERSION,
    ...FORMAT,
    ...EXPIRY,
    ...checkProperties(definition.properties),
    'sluice.format-version': SLUICE_FORMAT_VERSION,
  };
  checkEpochUnits(properties, schema);
  if (timeColumn === null || chunk === null) {
    return { schema, spec: { 'spec-id': 0, fields: [] }, sortOrder: { 'order-id': 0, fields: [] }, properties };
  }
  properties['timelake.time-column'] = timeColumn;
  properties['timelake.chunk-interval'] = chunk;
  properties['timelake.dedup'] = String(dedup);
  properties['timelake.ingest-time-column'] = INGEST_TIME_COLUMN;
  if (seriesKey.length > 0) properties['timelake.series-key'] = seriesKey.join(',');
  const partitionName = `${timeColumn}_${chunk}`;
  if (schema.fields.some((field) => field.name.toLowerCase() === partitionName.toLowerCase())) {
    throw wrong(`column has the name of the partition field: ${partitionName}`);
  }
  const sourceOf = (name: string) => fieldByName(schema, name)?.id ?? 0;
  return {
    schema,
    spec: {
      'spec-id': 0,
      fields: [{ 'source-id': sourceOf(timeColumn), 'field-id': 1000, name: partitionName, transform: chunk }],
    },
    sortOrder: {
      'order-id': 1,
      fields: [...seriesKey, timeColumn].map((name) => ({
        transform: 'identity',
        'source-id': sourceOf(name),
        direction: 'asc',
        'null-order': 'nulls-first',
      })),
    },
    properties,
  };
}

function checkSeriesKey(schema: Schema, timeColumn: string | null, seriesKey: readonly string[]): void {
  const seen = new Set<string>();
  for (const name of seriesKey) {
    const field = fieldByName(schema, name);
    const why =
      field === null
        ? 'is not in the schema'
        : typeof field.type !== 'string'
          ? 'is not of a primitive type'
          : name === timeColumn || name === INGEST_TIME_COLUMN
            ? 'is a time of the row'
            : name.includes(',')
              ? 'has a comma in its name'
              : seen.has(name)
                ? 'is named twice'
                : null;
    if (why !== null) throw invalid('bad-definition', `series_key column ${why}: ${name}`, { field: name });
    seen.add(name);
  }
}

/**
 * In what `metadata` is not what `layout` would have made, in words: columns, partitions, order and contract properties; none
 * when it is. Properties beyond those given do not count, nor do values changed later: creation is asked for again, not
 * compared with a history.
 */
export function layoutDifferences(metadata: TableMetadata, layout: TableLayout): string[] {
  const mine = tableSettings(layout.properties);
  const theirs = tableSettings(metadata.properties);
  const settings: [string, string, string][] = [
    ['time_column', shownSetting(theirs.timeColumn), shownSetting(mine.timeColumn)],
    ['series_key', shownSetting(theirs.seriesKey.join()), shownSetting(mine.seriesKey.join())],
    ['chunk', shownSetting(theirs.chunk), shownSetting(mine.chunk)],
    ['dedup', String(theirs.dedup), String(mine.dedup)],
  ];
  return [
    ...columnDifferences(currentSchema(metadata), layout.schema),
    ...settings.flatMap(([name, has, asked]) => (has === asked ? [] : [`${name} is ${has}, not ${asked}`])),
  ];
}

function shownSetting(value: string | null): string {
  return value === null || value === '' ? 'none' : value;
}

function columnDifferences(current: Schema, asked: Schema): string[] {
  if (sameSchema(current, asked, { ignoreFieldIds: true })) return [];
  const told: string[] = [];
  const rest = new Map(current.fields.map((field) => [field.name, field]));
  for (const field of asked.fields) {
    const has = rest.get(field.name);
    rest.delete(field.name);
    if (has === undefined) told.push(`column ${field.name} is not in the table`);
    else if (!sameField(has, field)) {
      const [is, wanted] = [shownField(has), shownField(field)];
      const differs = is === wanted ? 'is of other parts, or has another doc' : `is ${is}, not ${wanted}`;
      told.push(`column ${field.name} ${differs}`);
    }
  }
  for (const name of rest.keys()) told.push(`table has a column ${name} besides`);
  return told.length > 0 ? told : ['columns stand in another order, or others of them identify a row'];
}

function sameField(a: NestedField, b: NestedField): boolean {
  const alone = (field: NestedField): Schema => ({ type: 'struct', 'schema-id': 0, fields: [field] });
  return sameSchema(alone(a), alone(b), { ignoreFieldIds: true });
}

function shownField({ type, required }: NestedField): string {
  return `${required ? 'a required' : 'an optional'} ${typeof type === 'string' ? type : type.type}`;
}

/** Fills in ids (1, 2, ... in order) where no field has one, and `required: false` where it is left out. */
export function withIds(json: unknown): unknown {
  let last = 0;
  let found = false;
  const walk = (node: unknown): unknown => {
    if (typeof node !== 'object' || node === null || Array.isArray(node)) return node;
    const type = node as Record<string, unknown>;
    const idOf = (key: string): unknown => {
      if (type[key] === undefined) return ++last;
      found = true;
      return type[key];
    };
    if (type['type'] === 'list') {
      return { 'element-required': false, ...type, 'element-id': idOf('element-id'), element: walk(type['element']) };
    }
    if (type['type'] === 'map') {
      const ids = { 'key-id': idOf('key-id'), 'value-id': idOf('value-id') };
      return { 'value-required': false, ...type, ...ids, key: walk(type['key']), value: walk(type['value']) };
    }
    if (!Array.isArray(type['fields'])) return node;
    return {
      type: 'struct',
      ...type,
      fields: type['fields'].map((field) => {
        if (typeof field !== 'object' || field === null || Array.isArray(field)) return field;
        const entry = field as Record<string, unknown>;
        if (entry['id'] !== undefined) found = true;
        return { required: false, ...entry, id: entry['id'] ?? ++last, type: walk(entry['type']) };
      }),
    };
  };
  const filled = walk(json);
  // Some with and some without: which ids were meant is not ours to guess, so the parser says what is missing.
  return found ? json : filled;
}

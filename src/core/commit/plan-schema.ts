import { invalid, rejected } from '../base/errors.ts';
import { SCHEMA_CHANGES_MAX } from '../base/limits.ts';
import { arrayAt, describe, objectAt, own, stringAt } from '../base/shape.ts';
import { currentSchema, defaultSortOrder, defaultSpec } from '../iceberg/metadata.ts';
import { parseSchema, parseType, sameSchema } from '../iceberg/schema.ts';
import { changedSchema, fieldAt, type SchemaChange } from '../iceberg/schema-change.ts';
import type { Schema, TableMetadata } from '../iceberg/types.ts';
import type { MetadataUpdate } from '../iceberg/updates.ts';
import { withIds } from '../table/definition.ts';
import { epochUnitKey, tableSettings } from '../table/properties.ts';
import type { Plan } from './plan.ts';

/**
 * Changes the table's columns. Files and buffered rows of earlier schemas stay as they are and are read through the new
 * one. `expected` is the schema id the change was made for; null: any, since columns are named.
 *
 * @throws invalid `bad-evolution`, `bad-column-name`; rejected `column-in-use`
 */
export function changeSchema(changes: readonly SchemaChange[], expected: number | null): Plan {
  return (metadata) => {
    for (const change of changes) checkUnused(metadata, change);
    const before = currentSchema(metadata);
    const schema = changedSchema(before, changes, metadata['last-column-id']);
    if (schema.fields.length === 0) throw invalid('bad-evolution', 'schema has no columns left');
    if (sameSchema(before, schema)) return { updates: [] };
    return {
      requirements:
        expected === null ? [] : [{ type: 'assert-current-schema-id' as const, 'current-schema-id': expected }],
      updates: [
        { action: 'add-schema', schema },
        { action: 'set-current-schema', 'schema-id': -1 },
        ...unitsAfter(metadata, changes),
      ],
      columns: true,
    };
  };
}

/** The unit of a column's numbers goes with its name. */
function unitsAfter({ properties }: TableMetadata, changes: readonly SchemaChange[]): MetadataUpdate[] {
  const updates: MetadataUpdate[] = [];
  const units = new Map<string, string>();
  for (const change of changes) {
    if (change.kind !== 'rename' && change.kind !== 'drop') continue;
    const key = epochUnitKey(change.column);
    const unit = units.get(key) ?? own(properties, key);
    if (unit === undefined) continue;
    updates.push({ action: 'remove-properties', removals: [key] });
    if (change.kind === 'drop') continue;
    units.set(epochUnitKey(change.to), unit);
    updates.push({ action: 'set-properties', updates: { [epochUnitKey(change.to)]: unit } });
  }
  return updates;
}

/** Columns that the table is built on keep name and place: files, properties and producers refer to them by name. */
function checkUnused(metadata: TableMetadata, change: SchemaChange): void {
  if (change.kind === 'add' || change.kind === 'promote') return;
  const { column } = change;
  const { timeColumn, ingestTimeColumn, seriesKey } = tableSettings(metadata.properties);
  const isNamed = column === timeColumn || column === ingestTimeColumn;
  const inUse = (what: string) => rejected('column-in-use', `column is ${what}: ${column}`, { field: column });
  if (isNamed) throw inUse('a time of the row');
  if (change.kind === 'optional') return;
  if (seriesKey.includes(column)) throw inUse('in the series key');
  if (change.kind === 'rename') return;
  const { id } = fieldAt(currentSchema(metadata), column).field;
  const sources = [...defaultSpec(metadata).fields, ...defaultSortOrder(metadata).fields];
  if (sources.some((field) => field['source-id'] === id)) throw inUse('partitioned or sorted by');
}

/** What an engine will not take well, one line a change. */
export function schemaWarnings(changes: readonly SchemaChange[]): string[] {
  return changes.map(warningOf).filter((warning) => warning !== null);
}

function warningOf(change: SchemaChange): string | null {
  switch (change.kind) {
    case 'add':
      return change.parent === null ? null : `${change.parent}.${change.field.name}: ${UNSAFE}`;
    case 'rename':
      return `${change.column}: the Timelake engine finds columns by name; older files read as null for ${change.to} and cannot be compacted`;
    case 'drop':
      return `${change.column}: the Timelake engine cannot compact files that still hold a dropped column`;
    case 'promote':
    case 'optional':
      return `${change.column}: ${UNSAFE}`;
  }
}

const UNSAFE = 'the only change known to be safe with the Timelake engine is a new column at top level';

/**
 * Checks the changes of a request: `add` with name, type and perhaps parent and doc, `rename` with `to`, `drop`,
 * `promote` with type, `optional`; each in a member of that name that holds the column.
 *
 * @throws invalid `malformed`, `unknown-type`, `bad-schema`, `bad-evolution`
 */
export function parseSchemaChanges(json: unknown, path = 'changes'): SchemaChange[] {
  const changes = arrayAt(json, path, SCHEMA_CHANGES_MAX).map((item, i) => parseChange(item, `${path}[${i}]`));
  if (changes.length === 0) throw invalid('malformed', `${path} is empty`, { path });
  return changes;
}

const MEMBERS: Readonly<Record<SchemaChange['kind'], readonly string[]>> = {
  add: ['add', 'type', 'parent', 'doc', 'required'],
  rename: ['rename', 'to'],
  drop: ['drop'],
  promote: ['promote', 'type'],
  optional: ['optional'],
};

function parseChange(json: unknown, path: string): SchemaChange {
  const object = objectAt(json, path);
  const kinds = (Object.keys(MEMBERS) as SchemaChange['kind'][]).filter((kind) => own(object, kind) !== undefined);
  const [kind] = kinds;
  if (kinds.length !== 1) {
    throw invalid('malformed', `${path} has one of ${Object.keys(MEMBERS).join(', ')}`, { path });
  }
  const extra = Object.keys(object).find((key) => !MEMBERS[kind].includes(key));
  if (extra !== undefined) throw invalid('malformed', `${path} has an unknown member: ${describe(extra)}`, { path });
  const column = stringAt(object[kind], `${path}.${kind}`);
  switch (kind) {
    case 'add': {
      // older files and rows that are buffered have no value for it (M24)
      if (object['required'] === true)
        throw invalid('bad-evolution', `new column is optional: ${column}`, { field: column });
      const parent = object['parent'];
      return {
        kind,
        parent: parent === undefined || parent === null ? null : stringAt(parent, `${path}.parent`),
        field: newField(column, object, path),
      };
    }
    case 'rename':
      return { kind, column, to: stringAt(object['to'], `${path}.to`) };
    case 'promote': {
      const type = parseType(stringAt(object['type'], `${path}.type`), `${path}.type`);
      return { kind, column, type: type as string };
    }
    case 'drop':
    case 'optional':
      return { kind, column };
  }
}

function newField(name: string, object: Record<string, unknown>, path: string) {
  const doc = object['doc'] === undefined ? {} : { doc: stringAt(object['doc'], `${path}.doc`) };
  const field = { name, type: object['type'], required: false, ...doc };
  const schema: Schema = parseSchema(withIds({ type: 'struct', fields: [field] }), path);
  return schema.fields[0];
}

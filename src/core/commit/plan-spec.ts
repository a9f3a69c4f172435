import { invalid, rejected } from '../base/errors.ts';
import { SPEC_CHANGES_MAX, SPEC_FIELDS_MAX, SPECS_MAX } from '../base/limits.ts';
import { arrayAt, describe, objectAt, own, stringAt } from '../base/shape.ts';
import { currentSchema, defaultSpec } from '../iceberg/metadata.ts';
import { fieldByName } from '../iceberg/schema.ts';
import { parseTransform, resultType } from '../iceberg/transform.ts';
import type { Schema, Transform } from '../iceberg/types.ts';
import type { UnboundSpec } from '../iceberg/updates.ts';
import { tableSettings } from '../table/properties.ts';
import type { Plan } from './plan.ts';

/** A change of how new rows are partitioned. */
export type SpecChange =
  /** A field over a top-level column; `name` null: as engines name it. */
  | { kind: 'add'; column: string; transform: Transform; name: string | null }
  /** By the name of the partition field. */
  | { kind: 'remove'; name: string };

/**
 * Makes another spec the default: new rows are written by it, files of earlier specs stay as they are and are read by
 * theirs. `expected` is the spec id the change was made for; null: any, since fields are named.
 *
 * @throws invalid `bad-spec`, `bad-transform`, `unknown-partition-field`; rejected `spec-fixed`, `too-many-specs`
 */
export function changeSpec(changes: readonly SpecChange[], expected: number | null): Plan {
  return (metadata) => {
    const { timeColumn } = tableSettings(metadata.properties);
    if (timeColumn !== null) {
      // Chunks, retention and compaction of the engine go by this one field (contract, sections 1.6 and 10).
      const message = `time-series table is partitioned by its chunks, which engines go by: ${timeColumn}`;
      throw rejected('spec-fixed', message, { field: timeColumn });
    }
    const before = defaultSpec(metadata);
    let fields: UnboundSpec['fields'] = before.fields;
    for (const change of changes) fields = applied(fields, change, currentSchema(metadata));
    if (fields.length > SPEC_FIELDS_MAX) {
      throw invalid('bad-spec', `spec has ${fields.length} fields, most is ${SPEC_FIELDS_MAX}`);
    }
    const isSame =
      fields.length === before.fields.length &&
      fields.every(
        (field, i) =>
          field['source-id'] === before.fields[i]['source-id'] &&
          field.transform === before.fields[i].transform &&
          field.name === before.fields[i].name,
      );
    if (isSame) return { updates: [] };
    if (metadata['partition-specs'].length >= SPECS_MAX) {
      throw rejected('too-many-specs', `table has had as many partition specs as it may: ${SPECS_MAX}`);
    }
    return {
      requirements: expected === null ? [] : [{ type: 'assert-default-spec-id' as const, 'default-spec-id': expected }],
      updates: [
        { action: 'add-spec', spec: { fields } },
        { action: 'set-default-spec', 'spec-id': -1 },
      ],
    };
  };
}

function applied(fields: UnboundSpec['fields'], change: SpecChange, schema: Schema): UnboundSpec['fields'] {
  if (change.kind === 'remove') {
    const rest = fields.filter((field) => field.name !== change.name);
    if (rest.length < fields.length) return rest;
    throw invalid('unknown-partition-field', `partition field is not in the spec: ${describe(change.name)}`);
  }
  const { column, transform } = change;
  const source = fieldByName(schema, column);
  // Columns inside of others have no values of their own to partition rows by here.
  if (source === null) {
    throw invalid('unknown-partition-field', `column is not at the top level of the schema: ${describe(column)}`);
  }
  if (transform === 'void') throw invalid('bad-transform', `void partitions nothing: ${column}`, { field: column });
  resultType(transform, source.type);
  return [...fields, { 'source-id': source.id, name: change.name ?? nameOf(column, transform), transform }];
}

/** As the reference writer names fields. */
function nameOf(column: string, transform: Transform): string {
  const parsed = parseTransform(transform);
  switch (parsed.name) {
    case 'identity':
      return column;
    case 'bucket':
      return `${column}_bucket_${parsed.buckets}`;
    case 'truncate':
      return `${column}_trunc_${parsed.width}`;
    default:
      return `${column}_${parsed.name}`;
  }
}

/** What an engine may not take well. */
export const SPEC_WARNING =
  'the Timelake engine is only known to read tables without a time column that have no partitions; DuckDB and PyIceberg read them';

/**
 * Checks the changes of a request: `add` with a column and perhaps transform (identity when left out) and name, or
 * `remove` with the name of a field.
 *
 * @throws invalid `malformed`, `unknown-transform`
 */
export function parseSpecChanges(json: unknown, path = 'changes'): SpecChange[] {
  const changes = arrayAt(json, path, SPEC_CHANGES_MAX).map((item, i) => parseChange(item, `${path}[${i}]`));
  if (changes.length === 0) throw invalid('malformed', `${path} is empty`, { path });
  return changes;
}

const MEMBERS: Readonly<Record<SpecChange['kind'], readonly string[]>> = {
  add: ['add', 'transform', 'name'],
  remove: ['remove'],
};

function parseChange(json: unknown, path: string): SpecChange {
  const object = objectAt(json, path);
  const kinds = (Object.keys(MEMBERS) as SpecChange['kind'][]).filter((kind) => own(object, kind) !== undefined);
  const [kind] = kinds;
  if (kinds.length !== 1) throw invalid('malformed', `${path} has one of ${Object.keys(MEMBERS).join(', ')}`, { path });
  const extra = Object.keys(object).find((key) => !MEMBERS[kind].includes(key));
  if (extra !== undefined) throw invalid('malformed', `${path} has an unknown member: ${describe(extra)}`, { path });
  const subject = stringAt(object[kind], `${path}.${kind}`);
  if (kind === 'remove') return { kind, name: subject };
  const { transform, name } = object;
  const told = transform === undefined ? 'identity' : stringAt(transform, `${path}.transform`);
  parseTransform(told);
  return { kind, column: subject, transform: told, name: name === undefined ? null : stringAt(name, `${path}.name`) };
}

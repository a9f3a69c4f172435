import { invalid, rejected } from '../base/errors.ts';
import { SCHEMA_FIELDS_MAX } from '../base/limits.ts';
import { canPromote, checkNewColumnNames, fieldByName, fieldsById, highestFieldId, sameSchema } from './schema.ts';
import { changedSchema, type SchemaChange, shiftedField } from './schema-change.ts';
import type { NestedField, Schema, Type } from './types.ts';

/**
 * What a batch asks of its table's schema, so that its rows keep all their values: new columns at top level, and wider types
 * of columns that are there. It travels with the batch, and the commit that has the batch's rows changes the schema.
 */
export interface Proposal {
  /** Optional columns, matched by name when they are committed. Their ids, from `PROPOSED_ID_MIN`, hold within the batch alone. */
  added: NestedField[];
  /** Matched by field id. */
  widened: { id: number; type: string }[];
}

/** Ids from here on stand for columns that the table does not have yet. No table gives out that many. */
export const PROPOSED_ID_MIN = 2_000_000_000;

/** The first id for a further column that the table does not have. */
export function nextProposedId(schema: Schema): number {
  return Math.max(PROPOSED_ID_MIN, highestFieldId(schema) + 1);
}

/** The schema that the columns of a batch are of: the table's, as the batch would have it. */
export function proposedSchema(schema: Schema, proposal: Proposal | undefined): Schema {
  if (proposal === undefined) return schema;
  const { added, widened } = proposal;
  const types = new Map(widened.map(({ id, type }) => [id, type]));
  const fields = schema.fields.map((field) => ({ ...field, type: types.get(field.id) ?? field.type }));
  return { ...schema, fields: [...fields, ...added] };
}

/** What the schema of a batch asks of the table's, whose columns are its first ones; null: nothing. */
export function proposalOf(schema: Schema, proposed: Schema): Proposal | null {
  if (proposed === schema) return null;
  const added = proposed.fields.slice(schema.fields.length);
  const widened = proposed.fields.flatMap(({ id, type }, i) =>
    typeof type === 'string' && i < schema.fields.length && type !== schema.fields[i].type ? [{ id, type }] : [],
  );
  return added.length === 0 && widened.length === 0 ? null : { added, widened };
}

/**
 * What leads from the table's schema to the one it will have, whose further columns have ids above `lastColumnId`; null:
 * they are the same.
 */
export function proposalBetween(schema: Schema, next: Schema, lastColumnId: number): Proposal | null {
  const shift = PROPOSED_ID_MIN - lastColumnId;
  const shifted = next.fields.map((field) => (field.id > lastColumnId ? shiftedField(field, shift) : field));
  return proposalOf(schema, { ...next, fields: shifted });
}

/**
 * The table's schema with what a batch asks for. What the table has by now, from another batch or another writer, is not
 * added again: of a column of the same name the wider type counts. A column that was dropped meanwhile stays dropped.
 *
 * @throws rejected `incompatible-type` when neither type is a promotion of the other; invalid `bad-column-name`, `bad-schema`
 */
export function schemaAfter(schema: Schema, proposal: Proposal, lastColumnId: number): Schema {
  const changes: SchemaChange[] = [];
  const widen = (field: NestedField, type: Type) => {
    const wider = widerOf(field, type);
    if (wider !== field.type) changes.push({ kind: 'promote', column: field.name, type: wider as string });
  };
  for (const { id, type } of proposal.widened) {
    const field = schema.fields.find((one) => one.id === id);
    if (field !== undefined) widen(field, type);
  }
  for (const field of proposal.added) {
    const known = fieldByName(schema, field.name);
    if (known === null) changes.push({ kind: 'add', parent: null, field });
    else widen(known, field.type);
  }
  if (changes.length === 0) return schema;
  const next = changedSchema(schema, changes, lastColumnId);
  checkNewColumnNames(next, schema);
  if (fieldsById(next).size > SCHEMA_FIELDS_MAX) {
    throw invalid('bad-schema', `schema has more than ${SCHEMA_FIELDS_MAX} fields with those of the batch`);
  }
  return next;
}

/** Of two types of one column the one that takes the values of both. */
function widerOf(field: NestedField, type: Type): Type {
  const { type: known } = field;
  if (typeof known === 'string' && typeof type === 'string') {
    if (canPromote(type, known)) return known;
    if (canPromote(known, type)) return type;
  } else if (sameShape(known, type)) return known;
  const [was, is] = [type, known].map((one) => (typeof one === 'string' ? one : one.type));
  throw rejected('incompatible-type', `column ${field.name} of type ${is} cannot take values of type ${was}`, {
    field: field.name,
    from: was,
    to: is,
  });
}

function sameShape(a: Type, b: Type): boolean {
  const schemaOf = (type: Type): Schema => ({
    type: 'struct',
    'schema-id': 0,
    fields: [{ id: 0, name: 'value', required: false, type }],
  });
  return sameSchema(schemaOf(a), schemaOf(b), { ignoreFieldIds: true });
}

/** The schema of a batch with the ids that its columns have in the table by now. Types are those of the batch. */
export function identifiedSchema(proposed: Schema, table: Schema): Schema {
  const fields = proposed.fields.map((field) => {
    const known = field.id < PROPOSED_ID_MIN ? null : fieldByName(table, field.name);
    if (known === null) return field;
    return { ...field, id: known.id, type: typeof field.type === 'string' ? field.type : known.type };
  });
  return { ...proposed, fields };
}

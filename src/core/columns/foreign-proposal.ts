import { SluiceError } from '../base/errors.ts';
import { NEW_COLUMNS_MAX } from '../base/limits.ts';
import { primitive } from '../iceberg/primitive.ts';
import { nextProposedId } from '../iceberg/proposal.ts';
import { checkNewColumnNames } from '../iceberg/schema.ts';
import type { NestedField, Schema, Type } from '../iceberg/types.ts';
import type { ForeignField, ForeignType } from './foreign.ts';

/**
 * The table's schema with what a body of columns brings. Such a body says its types, so nothing depends on its values: a
 * column that the table lacks is added with the type it comes as, a column of the table that comes as a wider type takes that
 * (integers of more than 32 bits in an int, doubles in a float, decimals of the same scale and more digits). What no
 * column can be made of, or under no name that a table lets in, is left for the aligner to refuse.
 *
 * | comes as                                    | a new column is                                     |
 * |---------------------------------------------|-----------------------------------------------------|
 * | integers of up to 32 bits, unsigned of 16   | int                                                 |
 * | other integers                              | long                                                |
 * | floats of 16 and 32 bits, of 64             | float, double                                       |
 * | decimals of up to 38 digits, scale from 0   | the same decimal                                    |
 * | timestamps with a zone, without             | timestamptz, timestamp                              |
 * | bytes, of one length                        | binary, fixed                                       |
 * | booleans, texts, uuids, dates, times        | the like                                            |
 * | lists, structs, maps                        | the like, of what is in them                        |
 * | nulls alone                                 | none: it is left out                                |
 */
export function foreignSchema(foreign: readonly ForeignField[], schema: Schema): Schema {
  const ids = { next: nextProposedId(schema) };
  const fields = schema.fields.map((field) => {
    const given = foreign.find(({ name }) => name === field.name);
    const wider = given === undefined ? null : widerType(field.type, given.type);
    return wider === null ? field : { ...field, type: wider };
  });
  const known = new Set(schema.fields.map(({ name }) => name.toLowerCase()));
  let added = 0;
  for (const { name, type } of foreign) {
    if (known.has(name.toLowerCase()) || added === NEW_COLUMNS_MAX) continue;
    const id = ids.next++;
    const made = typeOf(type, ids);
    if (made === null) continue;
    const field = { id, name, required: false, type: made };
    if (!isAllowed(field)) continue;
    known.add(name.toLowerCase());
    fields.push(field);
    added++;
  }
  const same = fields.length === schema.fields.length && fields.every((field, i) => field === schema.fields[i]);
  return same ? schema : { ...schema, fields };
}

function isAllowed(field: NestedField): boolean {
  try {
    checkNewColumnNames({ type: 'struct', 'schema-id': 0, fields: [field] });
    return true;
  } catch (error) {
    if (error instanceof SluiceError) return false;
    throw error;
  }
}

/** The type a column of the table must take to hold all values of a foreign one; null: it does, or can never. */
function widerType(type: Type, foreign: ForeignType): string | null {
  if (typeof type !== 'string') return null;
  const shape = primitive(type);
  const { kind } = foreign;
  if (shape.name === 'int' && kind === 'integer') return intTypeOf(foreign) === 'long' ? 'long' : null;
  if (shape.name === 'float' && kind === 'float') return foreign.bits === 64 ? 'double' : null;
  if (shape.name === 'decimal' && kind === 'decimal' && foreign.scale === shape.scale) {
    const { precision, scale } = foreign;
    return precision > shape.precision && precision <= DECIMAL_PRECISION_MAX ? `decimal(${precision}, ${scale})` : null;
  }
  return null;
}

/** Iceberg's. */
const DECIMAL_PRECISION_MAX = 38;

function intTypeOf({ bits, signed }: { bits: number; signed: boolean }): 'int' | 'long' {
  return bits < 32 || (bits === 32 && signed) ? 'int' : 'long';
}

/** The type of a column made of a foreign one; null: there is none. */
export function typeOf(type: ForeignType, ids: { next: number }): Type | null {
  switch (type.kind) {
    case 'boolean':
    case 'uuid':
    case 'date':
    case 'time':
      return type.kind;
    case 'text':
      return 'string';
    case 'integer':
      return intTypeOf(type);
    case 'float':
      return type.bits === 64 ? 'double' : 'float';
    case 'decimal': {
      const { precision, scale } = type;
      const fits = precision <= DECIMAL_PRECISION_MAX && scale >= 0 && scale <= precision;
      return fits ? `decimal(${precision}, ${scale})` : null;
    }
    case 'bytes':
      return type.length === null || type.length === 0 ? 'binary' : `fixed[${type.length}]`;
    case 'timestamp':
      return type.local === true ? 'timestamp' : 'timestamptz';
    case 'list': {
      const id = ids.next++;
      const element = typeOf(type.element.type, ids);
      return element === null ? null : { type: 'list', 'element-id': id, element, 'element-required': false };
    }
    case 'map': {
      const [keyId, valueId] = [ids.next++, ids.next++];
      const key = typeOf(type.key.type, ids);
      const value = typeOf(type.value.type, ids);
      if (key === null || value === null) return null;
      return { type: 'map', 'key-id': keyId, key, 'value-id': valueId, value, 'value-required': false };
    }
    case 'struct': {
      const fields: NestedField[] = [];
      for (const field of type.fields) {
        const id = ids.next++;
        const made = typeOf(field.type, ids);
        if (made === null) return null;
        fields.push({ id, name: field.name, required: false, type: made });
      }
      return fields.length === 0 ? null : { type: 'struct', fields };
    }
    case 'null':
    case 'other':
      return null;
  }
}

import { invalid } from '../base/errors.ts';
import { primitive } from '../iceberg/primitive.ts';
import { fitsPrecision } from '../iceberg/single-value.ts';
import type { ListType, MapType, StructType, Type } from '../iceberg/types.ts';

/**
 * Turns one value of a nested column into the form that the nested encoder takes, and checks it on the way, since a
 * JavaScript value cannot promise what a typed column does: nulls where a value is required (B028), wrong types,
 * numbers out of range (P16). Structs get no prototype, so that a field called `constructor` is the field.
 */
export type Normalise = (value: unknown, row: number) => unknown;

/** The normaliser of a type; `path` names the field in errors: invalid `null-in-required-column`, `wrong-type`. */
export function normaliserOf(type: Type, path: string): Normalise {
  if (typeof type === 'string') return primitiveNormaliser(type, path);
  switch (type.type) {
    case 'list':
      return listNormaliser(type, path);
    case 'map':
      return mapNormaliser(type, path);
    case 'struct':
      return structNormaliser(type, path);
  }
}

/** As `normaliserOf`, with null and undefined allowed unless `required`. */
export function nullableNormaliser(type: Type, required: boolean, path: string): Normalise {
  const normalise = normaliserOf(type, path);
  return (value, row) => {
    if (value !== null && value !== undefined) return normalise(value, row);
    if (!required) return null;
    throw invalid('null-in-required-column', `column ${path}: null in a required field at row ${row}`, {
      column: path,
      row,
    });
  };
}

function wrong(path: string, row: number, expected: string): Error {
  return invalid('wrong-type', `column ${path}: value at row ${row} is not ${expected}`, { column: path, row });
}

function listNormaliser(type: ListType, path: string): Normalise {
  const element = nullableNormaliser(type.element, type['element-required'], `${path}.element`);
  return (value, row) => {
    if (!Array.isArray(value)) throw wrong(path, row, 'a list');
    return value.map((item) => element(item, row));
  };
}

function mapNormaliser(type: MapType, path: string): Normalise {
  const key = nullableNormaliser(type.key, true, `${path}.key`);
  const held = nullableNormaliser(type.value, type['value-required'], `${path}.value`);
  return (value, row) => {
    return entriesOf(value, path, row).map(([k, v]) => ({ key: key(k, row), value: held(v, row) }));
  };
}

/** A Map, a list of pairs or of `{key, value}`, or a plain object. */
function entriesOf(value: unknown, path: string, row: number): [unknown, unknown][] {
  if (value instanceof Map) return [...value];
  if (typeof value !== 'object' || value === null) throw wrong(path, row, 'a map');
  if (!Array.isArray(value)) return Object.entries(value);
  return value.map((pair) => {
    if (Array.isArray(pair) && pair.length === 2) return [pair[0], pair[1]];
    if (typeof pair === 'object' && pair !== null && Object.hasOwn(pair, 'key')) return [pair.key, pair.value];
    throw wrong(path, row, 'a map');
  });
}

function structNormaliser(type: StructType, path: string): Normalise {
  const fields = type.fields.map(({ name, required, type: held }) => {
    return { name, normalise: nullableNormaliser(held, required, `${path}.${name}`) };
  });
  return (value, row) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(path, row, 'a struct');
    const out: Record<string, unknown> = Object.create(null);
    for (const { name, normalise } of fields) {
      out[name] = normalise(Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : null, row);
    }
    return out;
  };
}

function primitiveNormaliser(type: string, path: string): Normalise {
  const checked =
    (holds: (value: unknown) => boolean): Normalise =>
    (value, row) => {
      if (!holds(value)) throw wrong(path, row, type);
      return value;
    };
  const parts = primitive(type);
  switch (parts.name) {
    case 'boolean':
      return checked((value) => typeof value === 'boolean');
    case 'int':
    case 'date':
      return checked((value) => typeof value === 'number' && (value | 0) === value);
    case 'long':
    case 'time':
    case 'timestamp':
    case 'timestamptz':
      return checked((value) => typeof value === 'bigint' && BigInt.asIntN(64, value) === value);
    case 'float':
      return (value, row) => {
        if (typeof value !== 'number') throw wrong(path, row, type);
        // The value as stored, so that bounds are those of the stored one (B17).
        return Math.fround(value);
      };
    case 'double':
      return checked((value) => typeof value === 'number');
    case 'decimal':
      return checked((value) => typeof value === 'bigint' && fitsPrecision(value, parts.precision));
    case 'string':
      return checked((value) => typeof value === 'string' && !LONE_SURROGATE.test(value));
    case 'binary':
      return checked((value) => value instanceof Uint8Array);
    case 'uuid':
      return checked((value) => value instanceof Uint8Array && value.length === 16);
    case 'fixed':
      return checked((value) => value instanceof Uint8Array && value.length === parts.length);
  }
}

/** A surrogate that is not half of a pair has no UTF-8 form (P9, B084). */
const LONE_SURROGATE = /\p{Surrogate}/u;

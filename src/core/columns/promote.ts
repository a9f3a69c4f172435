import { rejected } from '../base/errors.ts';
import { primitive } from '../iceberg/primitive.ts';
import type { NestedField, PrimitiveType, Type } from '../iceberg/types.ts';
import { type Column, int32Pairs } from './columns.ts';
import { storageOf } from './storage.ts';

/**
 * A column written under an older type of its field, as a column of the present one (spec: schema evolution, M23):
 * int → long, float → double, decimal(P, S) → decimal(P', S) with P' > P; in nested values the same, and fields are
 * matched by id, so that renamed ones keep their values and new ones are null.
 *
 * Throws `rejected` `incompatible-type` for any other pair.
 */
export function promoteColumn(column: Column, field: NestedField, from: Type): Column {
  if (typeof from !== 'string' || typeof field.type !== 'string') {
    if (column.kind !== 'nested' || typeof from === 'string' || typeof field.type === 'string') {
      throw incompatible(field, from);
    }
    const promote = nestedPromotion(field, from, field.type);
    if (promote === null) return column;
    return { ...column, values: column.values.map((value) => (value === null ? null : promote(value))) };
  }
  if (!isPromotion(from, field.type)) throw incompatible(field, from);
  const storage = storageOf(field.type);
  const { validity } = column;
  switch (column.kind) {
    case 'int32':
      if (storage.kind === 'int64') return { kind: 'int64', values: widened(column.values), validity };
      if (storage.kind === 'fixed') return { ...bigEndian(widened(column.values), storage.width), validity };
      return column;
    case 'int64':
      if (storage.kind === 'fixed') return { ...bigEndian(column.values, storage.width), validity };
      return column;
    case 'float32':
      if (storage.kind === 'float64') return { kind: 'float64', values: Float64Array.from(column.values), validity };
      return column;
    case 'fixed':
      if (storage.kind === 'fixed' && storage.width !== column.width) {
        return { ...signExtended(column.values, column.width, storage.width), validity };
      }
      return column;
    default:
      return column;
  }
}

/** True when values of `from` are, perhaps after widening, values of `to`. */
function isPromotion(from: PrimitiveType, to: PrimitiveType): boolean {
  if (from === to) return true;
  const a = primitive(from);
  const b = primitive(to);
  if (a.name === 'decimal') return b.name === 'decimal' && b.scale === a.scale && b.precision >= a.precision;
  if (a.name === 'fixed') return b.name === 'fixed' && b.length === a.length;
  return a.name === b.name || (a.name === 'int' && b.name === 'long') || (a.name === 'float' && b.name === 'double');
}

function incompatible(field: NestedField, from: Type): Error {
  const [was, is] = [from, field.type].map((type) => (typeof type === 'string' ? type : type.type));
  return rejected('incompatible-type', `column ${field.name} of type ${is} cannot take values of type ${was}`, {
    field: field.name,
    from: was,
    to: is,
  });
}

function widened(values: Int32Array): BigInt64Array {
  const out = new BigInt64Array(values.length);
  const pairs = int32Pairs(out);
  for (let i = 0; i < values.length; i++) {
    pairs[2 * i] = values[i];
    pairs[2 * i + 1] = values[i] >> 31;
  }
  return out;
}

/** Unscaled decimals as big-endian two's complement of more than eight bytes. */
function bigEndian(values: BigInt64Array, width: number): { kind: 'fixed'; width: number; values: Uint8Array } {
  const narrow = new Uint8Array(values.length * 8);
  const view = new DataView(narrow.buffer);
  const pairs = int32Pairs(values);
  for (let i = 0; i < values.length; i++) {
    view.setInt32(8 * i, pairs[2 * i + 1]);
    view.setInt32(8 * i + 4, pairs[2 * i]);
  }
  return signExtended(narrow, 8, width);
}

function signExtended(
  values: Uint8Array,
  from: number,
  to: number,
): { kind: 'fixed'; width: number; values: Uint8Array } {
  const rows = values.length / from;
  const out = new Uint8Array(rows * to);
  for (let i = 0; i < rows; i++) {
    if (values[i * from] >= 0x80) out.fill(0xff, i * to, (i + 1) * to - from);
    for (let j = 0; j < from; j++) out[(i + 1) * to - from + j] = values[i * from + j];
  }
  return { kind: 'fixed', width: to, values: out };
}

type Promotion = (value: unknown) => unknown;

/**
 * What to do with a non-null value inside a nested column; null: nothing. Structs are objects keyed by field name,
 * lists are arrays, maps are Map objects, plain objects, or lists of pairs or of `{key, value}`.
 */
function nestedPromotion(field: NestedField, from: Type, to: Type): Promotion | null {
  if (typeof from === 'string' || typeof to === 'string') {
    if (typeof from !== 'string' || typeof to !== 'string' || !isPromotion(from, to)) throw incompatible(field, from);
    return from === 'int' && to === 'long' ? (value) => (typeof value === 'number' ? BigInt(value) : value) : null;
  }
  if (from.type === 'list' && to.type === 'list') {
    const element = nestedPromotion(field, from.element, to.element);
    return element === null
      ? null
      : (value) => (value as unknown[]).map((held) => (held === null ? null : element(held)));
  }
  if (from.type === 'map' && to.type === 'map') {
    const key = nestedPromotion(field, from.key, to.key);
    const held = nestedPromotion(field, from.value, to.value);
    return key === null && held === null ? null : (value) => promotedMap(value, key, held);
  }
  if (from.type === 'struct' && to.type === 'struct') return structPromotion(field, from.fields, to.fields);
  throw incompatible(field, from);
}

function structPromotion(field: NestedField, from: NestedField[], to: NestedField[]): Promotion | null {
  const steps = to.map((target) => {
    const source = from.find((candidate) => candidate.id === target.id);
    const promote = source === undefined ? null : nestedPromotion(field, source.type, target.type);
    return { to: target.name, from: source?.name ?? null, promote };
  });
  const unchanged =
    from.length === to.length &&
    steps.every((step, i) => step.from === from[i].name && step.from === step.to && !step.promote);
  if (unchanged) return null;
  return (value) => {
    const entries = steps.map(({ from: name, to: target, promote }) => {
      const own = name !== null && Object.hasOwn(value as object, name);
      const held = own ? (value as Record<string, unknown>)[name] : null;
      return [target, held === null || held === undefined || promote === null ? (held ?? null) : promote(held)];
    });
    // fromEntries defines own properties, also one called __proto__; assignment would not.
    return Object.fromEntries(entries);
  };
}

function promotedMap(value: unknown, key: Promotion | null, held: Promotion | null): unknown {
  const one = (promote: Promotion | null, part: unknown) =>
    part === null || part === undefined || promote === null ? part : promote(part);
  if (value instanceof Map) return new Map(Array.from(value, ([k, v]) => [one(key, k), one(held, v)]));
  if (!Array.isArray(value)) {
    return Object.fromEntries(Object.entries(value as object).map(([k, v]) => [k, one(held, v)]));
  }
  return value.map((pair) =>
    Array.isArray(pair)
      ? [one(key, pair[0]), one(held, pair[1])]
      : { key: one(key, pair.key), value: one(held, pair.value) },
  );
}

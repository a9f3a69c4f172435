import { unreachable } from '../base/assert.ts';
import type { NestedField } from '../iceberg/types.ts';
import type { ColumnsBuilder, FieldBuilder } from './builder.ts';
import {
  type Cast,
  type CastOptions,
  castInt,
  castLong,
  castString,
  isObject,
  nestedCast,
  primitiveCast,
  unknownNames,
} from './casts.ts';
import { faultOf, Misfit, preview, type RowFault } from './fault.ts';
import type { RowProposal } from './row-proposal.ts';
import { storageOf } from './storage.ts';
import type { EpochUnit } from './times.ts';

export interface AlignOptions extends CastOptions {
  /**
   * A column that the flush fills where it is null: missing and null are fine there, also when it is required, and stay
   * null here. That is the ingest time, `_ingest_ts`.
   */
  filledField: string | null;
  /** What a number counts in single columns, before `epochUnit`. */
  epochUnits?: ReadonlyMap<string, EpochUnit>;
  /** Takes what the schema has no place for; absent: it is refused. */
  proposal?: RowProposal;
}

/** Adds one row to the builder, or leaves the builder as it was and says why. Never throws for what is in the row. */
export type AlignRow = (row: unknown) => RowFault | null;

/** Puts one value, neither null nor undefined, into its column. */
type Setter = (value: unknown) => Misfit | null;

/** A column that rows may name. */
export interface Place {
  field: NestedField;
  name: string;
  required: boolean;
  builder: FieldBuilder;
  set: Setter;
  /** Of a timestamp with or without zone. */
  isTime: boolean;
}

/** The columns of the builder's schema, in its order. What differs from row to row is decided once here. */
export function placesOf(builder: ColumnsBuilder, options: AlignOptions): Place[] {
  return builder.schema.fields.map((field, i) => ({
    field,
    name: field.name,
    required: field.required && field.name !== options.filledField,
    builder: builder.fields[i],
    set: setterOf(field, builder.fields[i], {
      ...options,
      epochUnit: options.epochUnits?.get(field.name) ?? options.epochUnit,
    }),
    isTime: field.type === 'timestamp' || field.type === 'timestamptz',
  }));
}

/**
 * Rows as JSON gives them → the columns of the builder's schema, by exact name; a row costs one call a field. A missing
 * optional column is null.
 */
export function rowAligner(
  builder: ColumnsBuilder,
  options: AlignOptions,
  columns: readonly Place[] = placesOf(builder, options),
): AlignRow {
  const { proposal } = options;
  const places = new Map(columns.map((place) => [place.name, place]));
  const required = columns.filter((place) => place.required).map((place) => place.name);

  const unknown = unknownNames('column', [...places.keys()]);

  function refuse(name: string, misfit: Misfit): RowFault {
    builder.rollbackRow();
    proposal?.rollbackRow();
    return faultOf(name, misfit);
  }

  return (row) => {
    if (!isObject(row)) {
      const value = preview(row);
      return { type: 'not-an-object', field: null, message: `row must be a JSON object: ${value}`, value };
    }
    // By the names of the row: a row of few names costs little, however many columns there are.
    for (const name in row) {
      const place = places.get(name);
      const value = row[name];
      if (place === undefined) {
        if (proposal === undefined) return refuse(name, unknown(name));
        const misfit = value === null || value === undefined ? null : proposal.take(name, value, builder.rows);
        if (misfit !== null) return refuse(name, misfit);
        continue;
      }
      if (value === null || value === undefined) {
        if (place.required) return refuse(name, new Misfit('null-in-required', 'is required and null'));
        continue;
      }
      let misfit = place.set(value);
      if (misfit !== null && proposal !== undefined) misfit = proposal.widen(place.field, value, misfit, builder.rows);
      if (misfit !== null) return refuse(name, misfit);
    }
    for (const name of required) {
      if (!Object.hasOwn(row, name)) return refuse(name, new Misfit('missing-required', 'is required and missing'));
    }
    builder.endRow();
    proposal?.endRow();
    return null;
  };
}

/**
 * True when a decimal is somewhere in the schema: then digits matter behind the point too, and a parser must keep those
 * that a double does not hold.
 */
export function hasDecimals(fields: readonly NestedField[]): boolean {
  return JSON.stringify(fields.map((field) => field.type)).includes('"decimal(');
}

/** Memory of one row in typed columns, without the bytes of texts: what a row of nulls takes when the columns are made. */
export function slotBytesOf(fields: readonly NestedField[]): number {
  let bytes = 0;
  for (const { type } of fields) {
    const storage = storageOf(type);
    bytes += 1 + (storage.kind === 'fixed' ? storage.width : SLOT_BYTES[storage.kind]);
  }
  return bytes;
}

const SLOT_BYTES = { boolean: 1, int32: 4, int64: 8, float32: 4, float64: 8, text: 4, nested: 8 };

function setterOf(field: NestedField, builder: FieldBuilder, options: AlignOptions): Setter {
  switch (builder.kind) {
    case 'nested': {
      const cast = nestedCast(field.type, options);
      return (value) => {
        const nested = cast(value);
        if (nested instanceof Misfit) return nested;
        builder.push(nested);
        return null;
      };
    }
    case 'boolean': {
      const cast = primitiveCast(field.type as string, options) as Cast<boolean>;
      return (value) => {
        const boolean = cast(value);
        if (boolean instanceof Misfit) return boolean;
        builder.push(boolean);
        return null;
      };
    }
    case 'int32': {
      const cast =
        field.type === 'int' ? castInt : (primitiveCast(field.type as string, options) as Cast<number | bigint>);
      return (value) => {
        const number = cast(value);
        if (number instanceof Misfit) return number;
        builder.push(Number(number));
        return null;
      };
    }
    case 'int64': {
      const cast =
        field.type === 'long' ? castLong : (primitiveCast(field.type as string, options) as Cast<number | bigint>);
      return (value) => {
        const number = cast(value);
        if (typeof number === 'number') builder.pushNumber(number);
        else if (typeof number === 'bigint') builder.pushBigint(number);
        else return number;
        return null;
      };
    }
    case 'float32':
    case 'float64': {
      const cast = primitiveCast(field.type as string, options) as Cast<number>;
      const isDouble = builder.kind === 'float64';
      return (value) => {
        if (isDouble && typeof value === 'number' && Number.isFinite(value)) {
          builder.push(value);
          return null;
        }
        const number = cast(value);
        if (typeof number !== 'number') return number;
        builder.push(number);
        return null;
      };
    }
    case 'fixed':
      return fixedSetter(field, builder, options);
    case 'text': {
      if (field.type === 'string') {
        return (value) => {
          // What was checked once is not checked again.
          if (typeof value === 'string' && builder.pushKnown(value)) return null;
          const text = castString(value);
          if (typeof text !== 'string') return text;
          builder.pushString(text);
          return null;
        };
      }
      const cast = primitiveCast(field.type as string, options) as Cast<Uint8Array>;
      return (value) => {
        const bytes = cast(value);
        if (bytes instanceof Misfit) return bytes;
        builder.pushBytes(bytes);
        return null;
      };
    }
    default:
      return unreachable(builder);
  }
}

/** uuid, fixed, and decimals of more than 18 digits, which are big-endian in the least width. */
function fixedSetter(field: NestedField, builder: FieldBuilder & { kind: 'fixed' }, options: AlignOptions): Setter {
  const cast = primitiveCast(field.type as string, options) as Cast<Uint8Array | number | bigint>;
  const { width } = builder;
  return (value) => {
    const fixed = cast(value);
    if (fixed instanceof Misfit) return fixed;
    builder.push(fixed instanceof Uint8Array ? fixed : bigEndian(BigInt(fixed), width));
    return null;
  };
}

function bigEndian(value: bigint, width: number): Uint8Array {
  const out = new Uint8Array(width);
  let rest = value;
  for (let i = width - 1; i >= 0; i--) {
    out[i] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  return out;
}

import { corrupt } from '../base/errors.ts';
import { type ByteSource, type Decode, listDecoder, mapDecoder, skipperOf } from './decode.ts';
import { type AvroArray, type AvroRecord, type AvroType, minimumBytes } from './schema.ts';

/**
 * What a reader wants, independent of how a writer declared it.
 *
 * `int`: number within int32 (from int or long). `long`: bigint (from int or long). `double`: number (from float or
 * double). `fixed`: bytes of exactly that size (from fixed or bytes). `decimal`: unscaled bigint (from fixed or bytes,
 * big-endian two's complement). `map`: Map from an array of key-value records.
 */
export type Target =
  | { kind: 'boolean' | 'int' | 'long' | 'double' | 'string' | 'bytes' | 'decimal' }
  | { kind: 'fixed'; size: number }
  | { kind: 'list'; element: Target }
  | { kind: 'map'; keyId: number; key: Target; valueId: number; value: Target }
  | RecordTarget;

export interface RecordTarget {
  kind: 'record';
  fields: TargetField[];
  /** Builds the result from the values of `fields`, in their order. The array is used again: do not keep it. */
  make(values: unknown[]): unknown;
}

export interface TargetField {
  /** Iceberg field id, by which the writer's field is found. */
  id: number;
  name: string;
  target: Target;
  /** Taken where the writer has no such field or wrote null. Left out: the field is required. */
  missing?: unknown;
  /** The writer must have the field even though its values may be null: absence would not mean null. */
  declared?: true;
}

/**
 * A decoder from the writer's schema to the target, fields found by id and the others skipped (spec: "Column
 * projection"). Throws corrupt `avro-corrupt` when a required field is missing or a type cannot be read as wanted.
 */
export function resolve(writer: AvroType, target: Target): Decode {
  const decode = compile(writer, target);
  if (decode === null) throw corrupt('avro-corrupt', `avro schema has ${writer.kind} in place of ${target.kind}`);
  return decode;
}

/** Null: the two do not go together. */
function compile(writer: AvroType, target: Target): Decode | null {
  if (writer.kind === 'union') {
    let readable = false;
    const branches = writer.branches.map((branch): Decode => {
      if (branch.kind === 'null') return () => null;
      const decode = compile(branch, target);
      if (decode !== null) readable = true;
      return decode ?? ((source) => unreadable(source, branch, target));
    });
    return readable ? (source) => source.branch(branches)(source) : null;
  }
  switch (target.kind) {
    case 'boolean':
      return writer.kind === 'boolean' ? (source) => source.boolean() : null;
    case 'int':
      if (writer.kind === 'int') return (source) => source.int();
      return writer.kind === 'long' ? narrowed : null;
    case 'long':
      return writer.kind === 'long' || writer.kind === 'int' ? (source) => source.long() : null;
    case 'double':
      if (writer.kind === 'float') return (source) => source.float();
      return writer.kind === 'double' ? (source) => source.double() : null;
    case 'string':
      return writer.kind === 'string' ? (source) => source.text() : null;
    case 'bytes':
      return bytesDecoder(writer);
    case 'decimal': {
      const bytes = bytesDecoder(writer);
      return bytes && ((source) => unscaled(source, bytes(source)));
    }
    case 'fixed': {
      if (writer.kind === 'fixed' && writer.size !== target.size) return null;
      const bytes = bytesDecoder(writer);
      return bytes && ((source) => sized(source, bytes(source), target.size));
    }
    case 'list': {
      if (writer.kind !== 'array') return null;
      const element = compile(writer.items, target.element);
      return element && listDecoder(required(element, 'list element'), minimumBytes(writer.items));
    }
    case 'map':
      return writer.kind === 'array' ? mapOfEntries(writer, target) : null;
    case 'record':
      return writer.kind === 'record' ? recordDecoder(writer, target) : null;
  }
}

function unreadable(source: ByteSource, branch: AvroType, target: Target): never {
  throw source.fail(`has ${branch.kind} in place of ${target.kind}`);
}

function narrowed(source: ByteSource): number {
  const value = source.long();
  if (value !== BigInt.asIntN(32, value)) throw source.fail(`has ${value} in place of an int`);
  return Number(value);
}

function bytesDecoder(writer: AvroType): ((source: ByteSource) => Uint8Array) | null {
  if (writer.kind === 'bytes') return (source) => source.blob();
  return writer.kind === 'fixed' ? (source) => source.raw(writer.size) : null;
}

function sized(source: ByteSource, bytes: Uint8Array, size: number): Uint8Array {
  if (bytes.length !== size) throw source.fail(`has ${bytes.length} bytes in place of ${size}`);
  return bytes;
}

/** The largest decimal, precision 38, takes 16 bytes; longer ones are refused before they become a huge bigint. */
const DECIMAL_BYTES_MAX = 16;

function unscaled(source: ByteSource, bytes: Uint8Array): bigint {
  if (bytes.length === 0 || bytes.length > DECIMAL_BYTES_MAX)
    throw source.fail(`has a decimal of ${bytes.length} bytes`);
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  return BigInt.asIntN(8 * bytes.length, value);
}

function required(decode: Decode, name: string): Decode {
  return (source) => {
    const value = decode(source);
    if (value === null) throw source.fail(`has null in required ${name}`);
    return value;
  };
}

function orElse(decode: Decode, missing: unknown): Decode {
  return missing === null ? decode : (source) => decode(source) ?? missing;
}

/** Entries are found by the ids of key and value, or else by those names, which Avro's map convention fixes. */
function mapOfEntries(writer: AvroArray, target: Target & { kind: 'map' }): Decode | null {
  const entry = writer.items;
  if (entry.kind !== 'record' || entry.fields.length !== 2) return null;
  const [first, second] = entry.fields;
  if (
    !(first.id === target.keyId && second.id === target.valueId) &&
    !(first.name === 'key' && second.name === 'value')
  ) {
    return null;
  }
  const key = compile(first.type, target.key);
  const value = compile(second.type, target.value);
  return key && value && mapDecoder(required(key, 'map key'), required(value, 'map value'), entry.minimumBytes);
}

function recordDecoder(writer: AvroRecord, target: RecordTarget): Decode {
  const values: unknown[] = target.fields.map((field) => field.missing);
  const found = new Set<number>();
  const steps: Decode[] = [];
  /** Where a step's value goes; -1 for a field that is skipped. */
  const slots: number[] = [];
  for (const field of writer.fields) {
    const slot = field.id === null ? -1 : target.fields.findIndex((wanted) => wanted.id === field.id);
    if (slot < 0) {
      const skip = skipperOf(field.type);
      if (skip !== null) {
        steps.push(skip);
        slots.push(-1);
      }
      continue;
    }
    if (found.has(slot)) throw corrupt('avro-corrupt', `avro record ${writer.name} repeats field-id ${field.id}`);
    found.add(slot);
    const wanted = target.fields[slot];
    const decode = compile(field.type, wanted.target) ?? (field.type.kind === 'null' ? () => null : null);
    if (decode === null) {
      throw corrupt(
        'avro-corrupt',
        `avro record ${writer.name} cannot be read: field ${field.name} (${wanted.id}) is no ${wanted.target.kind}`,
      );
    }
    const named = `field ${wanted.name} (${wanted.id})`;
    steps.push(wanted.missing === undefined ? required(decode, named) : orElse(decode, wanted.missing));
    slots.push(slot);
  }
  target.fields.forEach((field, slot) => {
    if (found.has(slot) || (field.missing !== undefined && !field.declared)) return;
    throw corrupt('avro-corrupt', `avro record ${writer.name} has no required field ${field.name} (${field.id})`);
  });
  return (source) => {
    source.enterRecord(writer);
    for (let i = 0; i < steps.length; i++) {
      const value = steps[i](source);
      if (slots[i] >= 0) values[slots[i]] = value;
    }
    source.leaveRecord();
    return target.make(values);
  };
}

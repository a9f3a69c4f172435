import { textOf } from '../base/bytes.ts';
import { FOREIGN_DEPTH_MAX } from '../base/limits.ts';
import type { ForeignType } from '../columns/foreign.ts';
import { broken } from './decoding.ts';
import { BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64, INT96 } from './layout.ts';
import { binaryAt, booleanAt, numberAt, structAt, type ThriftStruct } from './thrift.ts';

/** A schema of any writer as a tree: a column, a group of columns, or one of both in a list. */
export interface ParquetNode {
  name: string;
  /** Absent in files whose writer knew no field ids. */
  id: number | null;
  /** Position among the elements of the schema. */
  place: number;
  repetition: 'required' | 'optional' | 'repeated';
  children: ParquetNode[];
  /** Position among the leaves; null for a group. */
  leaf: number | null;
  physical: number;
  /** Of FIXED_LEN_BYTE_ARRAY. */
  length: number;
  /** What the node means, but for being repeated. */
  type: ForeignType;
  /** Of a list: what holds the elements, and what an element is in it. Of a map: what holds keys and values. */
  repeated: ParquetNode | null;
  /** The node of an element; `repeated` itself where no level lies between. */
  element: ParquetNode | null;
}

const REPETITIONS = ['required', 'optional', 'repeated'] as const;

/** The top-level columns of a schema as it stands in a footer (LogicalTypes.md). Throws corrupt `parquet-corrupt`. */
export function nodesOf(elements: readonly ThriftStruct[]): ParquetNode[] {
  const reader = { elements, at: 1, leaves: 0 };
  const count = numberAt(elements[0], 5) ?? 0;
  return Array.from({ length: Math.min(count, elements.length) }, () => nodeAt(reader, 0));
}

function nodeAt(reader: { elements: readonly ThriftStruct[]; at: number; leaves: number }, depth: number): ParquetNode {
  if (depth > FOREIGN_DEPTH_MAX) throw broken(`schema is nested deeper than ${FOREIGN_DEPTH_MAX}`);
  const place = reader.at++;
  const element = reader.elements[place];
  if (element === undefined) throw broken('schema has fewer elements than its groups name');
  const name = nameOf(element);
  const repetition = REPETITIONS[numberAt(element, 3) ?? 0] ?? 'required';
  const count = Math.min(numberAt(element, 5) ?? 0, reader.elements.length);
  const physical = numberAt(element, 1) ?? -1;
  const length = numberAt(element, 2) ?? 0;
  const base = { name, id: numberAt(element, 9), place, repetition, physical, length, repeated: null, element: null };
  if (count === 0) return { ...base, children: [], leaf: reader.leaves++, type: leafType(element, physical, length) };
  const children = Array.from({ length: count }, () => nodeAt(reader, depth + 1));
  return { ...base, children, leaf: null, ...groupType(element, name, children) };
}

function nameOf(element: ThriftStruct): string {
  try {
    return textOf(binaryAt(element, 4) ?? new Uint8Array(0));
  } catch {
    throw broken('name of a column is not UTF-8');
  }
}

const CONVERTED_MAP = 1;
const CONVERTED_MAP_KEY_VALUE = 2;
const CONVERTED_LIST = 3;

function groupType(
  element: ThriftStruct,
  name: string,
  children: ParquetNode[],
): Pick<ParquetNode, 'type' | 'repeated' | 'element'> {
  const logical = structAt(element, 10);
  const converted = numberAt(element, 6);
  const [only] = children;
  if (children.length === 1 && only.repetition === 'repeated') {
    if (logical?.has(3) || converted === CONVERTED_LIST) {
      const held = elementOf(only, name);
      return { type: { kind: 'list', element: { name: held.name, type: held.type } }, repeated: only, element: held };
    }
    if (logical?.has(2) || converted === CONVERTED_MAP || converted === CONVERTED_MAP_KEY_VALUE) {
      const [key, value] = only.children;
      if (only.children.length !== 2) return { type: other('map without values'), repeated: null, element: null };
      const type: ForeignType = { kind: 'map', key: typed(key), value: typed(value) };
      return { type, repeated: only, element: only };
    }
  }
  return { type: { kind: 'struct', fields: children.map(typed) }, repeated: null, element: null };
}

/** What the elements of a list are, by the rules for lists of three levels and of two (LogicalTypes.md, "Lists"). */
function elementOf(repeated: ParquetNode, list: string): ParquetNode {
  const [only] = repeated.children;
  const isElement = repeated.children.length !== 1 || repeated.name === 'array' || repeated.name === `${list}_tuple`;
  return isElement || only.repetition === 'repeated' ? repeated : only;
}

/** The node as a field: a repeated one that no list or map explains is a list by itself. */
export function typed(node: ParquetNode): { name: string; type: ForeignType } {
  const { name, type } = node;
  return { name, type: node.repetition === 'repeated' ? { kind: 'list', element: { name, type } } : type };
}

function other(name: string): ForeignType {
  return { kind: 'other', name };
}

function leafType(element: ThriftStruct, physical: number, length: number): ForeignType {
  const type = annotated(element, physical, length);
  return isStoredSo(type, physical, length) ? type : other(`${type.kind} in an unknown form`);
}

/** True when values of the type are stored in this way at all; the annotations of a file are only claims. */
function isStoredSo(type: ForeignType, physical: number, length: number): boolean {
  switch (type.kind) {
    case 'boolean':
      return physical === BOOLEAN;
    case 'integer':
      return physical === (type.bits === 64 ? INT64 : INT32);
    case 'float':
      return type.bits === 16
        ? physical === FIXED_LEN_BYTE_ARRAY && length === 2
        : physical === (type.bits === 32 ? FLOAT : DOUBLE);
    case 'text':
      return physical === BYTE_ARRAY;
    case 'bytes':
      return type.length === null ? physical === BYTE_ARRAY : physical === FIXED_LEN_BYTE_ARRAY && length > 0;
    case 'uuid':
      return physical === FIXED_LEN_BYTE_ARRAY && length === 16;
    case 'date':
      return physical === INT32;
    case 'time':
      return physical === (type.unit === 'ms' ? INT32 : INT64);
    case 'timestamp':
      return physical === INT64 || (physical === INT96 && type.unit === 'ns');
    case 'decimal':
      if (physical === FIXED_LEN_BYTE_ARRAY) return length > 0;
      return physical === INT32 || physical === INT64 || physical === BYTE_ARRAY;
    default:
      return true;
  }
}

function annotated(element: ThriftStruct, physical: number, length: number): ForeignType {
  const logical = structAt(element, 10);
  if (logical !== null && logical.size > 0) {
    const type = logicalType(logical);
    if (type !== null) return type;
  }
  return convertedType(element) ?? plainType(physical, length);
}

function logicalType(logical: ThriftStruct): ForeignType | null {
  const [id] = logical.keys();
  const body = structAt(logical, id);
  if (body === null) return null;
  switch (id) {
    // Enumerations and JSON are text.
    case 1:
    case 4:
    case 12:
      return { kind: 'text' };
    case 5:
      return decimal(numberAt(body, 2) ?? 0, numberAt(body, 1) ?? 0);
    case 6:
      return { kind: 'date', unit: 'd' };
    case 7:
    case 8: {
      const unit = structAt(body, 2);
      const name = unit?.has(1) ? 'ms' : unit?.has(2) ? 'us' : unit?.has(3) ? 'ns' : null;
      if (name === null) return other('time in an unknown unit');
      if (id === 7) return { kind: 'time', unit: name };
      return { kind: 'timestamp', unit: name, ...(booleanAt(body, 1) === false ? { local: true } : {}) };
    }
    case 10: {
      const bits = numberAt(body, 1);
      if (bits !== 8 && bits !== 16 && bits !== 32 && bits !== 64) return other(`integer of ${bits} bits`);
      return { kind: 'integer', bits, signed: booleanAt(body, 2) === true };
    }
    case 11:
      return { kind: 'null' };
    case 13:
      return { kind: 'bytes', length: null };
    case 14:
      return { kind: 'uuid' };
    case 15:
      return { kind: 'float', bits: 16 };
    default:
      return other(`logical type ${id}`);
  }
}

const INTEGER_BITS = [8, 16, 32, 64] as const;

function convertedType(element: ThriftStruct): ForeignType | null {
  const converted = numberAt(element, 6);
  switch (converted) {
    case null:
      return null;
    case 0:
    case 4:
    case 19:
      return { kind: 'text' };
    case 5:
      return decimal(numberAt(element, 8) ?? 0, numberAt(element, 7) ?? 0);
    case 6:
      return { kind: 'date', unit: 'd' };
    case 7:
    case 8:
      return { kind: 'time', unit: converted === 7 ? 'ms' : 'us' };
    case 9:
    case 10:
      return { kind: 'timestamp', unit: converted === 9 ? 'ms' : 'us' };
    case 20:
      return { kind: 'bytes', length: null };
    case 21:
      return other('interval');
    default:
      if (converted >= 11 && converted <= 14)
        return { kind: 'integer', bits: INTEGER_BITS[converted - 11], signed: false };
      if (converted >= 15 && converted <= 18)
        return { kind: 'integer', bits: INTEGER_BITS[converted - 15], signed: true };
      return null;
  }
}

function decimal(precision: number, scale: number): ForeignType {
  return precision >= 1 && precision <= 76 && scale >= 0 && scale <= precision
    ? { kind: 'decimal', precision, scale }
    : other(`decimal(${precision}, ${scale})`);
}

function plainType(physical: number, length: number): ForeignType {
  switch (physical) {
    case BOOLEAN:
      return { kind: 'boolean' };
    case INT32:
    case INT64:
      return { kind: 'integer', bits: physical === INT32 ? 32 : 64, signed: true };
    case INT96:
      return { kind: 'timestamp', unit: 'ns' };
    case FLOAT:
    case DOUBLE:
      return { kind: 'float', bits: physical === FLOAT ? 32 : 64 };
    case BYTE_ARRAY:
      return { kind: 'bytes', length: null };
    case FIXED_LEN_BYTE_ARRAY:
      return { kind: 'bytes', length };
    default:
      return other(`physical type ${physical}`);
  }
}

import { primitive } from '../iceberg/primitive.ts';
import type { NestedField, PrimitiveType, Schema, Type } from '../iceberg/types.ts';
import type { Slot, Table } from './flatbuffer-write.ts';

/** Kinds of the union `Type` (Arrow, Schema.fbs). */
const INT = 2;
const FLOATING_POINT = 3;
const BINARY = 4;
const UTF8 = 5;
const BOOL = 6;
const DECIMAL = 7;
const DATE = 8;
const TIME = 9;
const TIMESTAMP = 10;
const LIST = 12;
const STRUCT = 13;
const FIXED_SIZE_BINARY = 15;
const MAP = 17;

/** Units of the enum `TimeUnit`, `DateUnit` and `Precision`. */
const MICROSECOND = 2;
const DAY = 0;
const SINGLE = 1;
const DOUBLE = 2;

const flag = (value: boolean): Slot => ({ bytes: 1, value: value ? 1 : 0 });
const short = (value: number): Slot => ({ bytes: 2, value });
const int = (value: number): Slot => ({ bytes: 4, value });

/** The table `Schema` of an Iceberg schema. */
export function schemaTable({ fields }: Schema): Table {
  return [null, { tables: fields.map(fieldTable) }];
}

function fieldTable({ name, required, type }: Pick<NestedField, 'name' | 'required' | 'type'>): Table {
  const { kind, table, children } = typeOf(type);
  return [
    { text: name },
    flag(!required),
    { bytes: 1, value: kind },
    { table },
    null,
    // Readers ask for the list even where there are no children.
    { tables: children },
  ];
}

interface ArrowType {
  kind: number;
  table: Table;
  children: Table[];
}

function typeOf(type: Type): ArrowType {
  if (typeof type === 'string') return { ...primitiveOf(type), children: [] };
  return { kind: KINDS[type.type], table: [], children: innerFields(type).map(fieldTable) };
}

const KINDS = { list: LIST, map: MAP, struct: STRUCT } as const;

/** Fields inside of a nested type, as Arrow has them: the entries of a map are a struct. */
export function innerFields(type: Exclude<Type, string>): NestedField[] {
  switch (type.type) {
    case 'list':
      return [{ id: type['element-id'], name: 'element', required: type['element-required'], type: type.element }];
    case 'map': {
      const key = { id: type['key-id'], name: 'key', required: true, type: type.key };
      const value = { id: type['value-id'], name: 'value', required: type['value-required'], type: type.value };
      return [{ id: 0, name: 'entries', required: true, type: { type: 'struct', fields: [key, value] } }];
    }
    case 'struct':
      return type.fields;
  }
}

function primitiveOf(type: PrimitiveType): Omit<ArrowType, 'children'> {
  const shape = primitive(type);
  switch (shape.name) {
    case 'boolean':
      return { kind: BOOL, table: [] };
    case 'int':
      return { kind: INT, table: [int(32), flag(true)] };
    case 'long':
      return { kind: INT, table: [int(64), flag(true)] };
    case 'float':
      return { kind: FLOATING_POINT, table: [short(SINGLE)] };
    case 'double':
      return { kind: FLOATING_POINT, table: [short(DOUBLE)] };
    case 'decimal':
      return { kind: DECIMAL, table: [int(shape.precision), int(shape.scale), int(128)] };
    case 'date':
      return { kind: DATE, table: [short(DAY)] };
    case 'time':
      return { kind: TIME, table: [short(MICROSECOND), int(64)] };
    case 'timestamp':
      return { kind: TIMESTAMP, table: [short(MICROSECOND)] };
    case 'timestamptz':
      return { kind: TIMESTAMP, table: [short(MICROSECOND), { text: 'UTC' }] };
    case 'string':
      return { kind: UTF8, table: [] };
    case 'binary':
      return { kind: BINARY, table: [] };
    case 'uuid':
      return { kind: FIXED_SIZE_BINARY, table: [int(16)] };
    case 'fixed':
      return { kind: FIXED_SIZE_BINARY, table: [int(shape.length)] };
  }
}

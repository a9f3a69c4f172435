import { ARROW_FIELDS_MAX, FOREIGN_DEPTH_MAX } from '../base/limits.ts';
import type { ForeignField, ForeignType } from '../columns/foreign.ts';
import type { EpochUnit } from '../columns/times.ts';
import { type FlatTable, malformed } from './flatbuffer.ts';

/** How the buffers of a column are laid out (Arrow columnar format, "Physical Memory Layout"). */
export type ArrowLayout =
  | { kind: 'none' }
  /** One bit a value. */
  | { kind: 'bits' }
  | { kind: 'integers'; bits: 8 | 16 | 32 | 64; signed: boolean }
  | { kind: 'floats'; bits: 16 | 32 | 64 }
  /** `width` bytes a value. */
  | { kind: 'fixed'; width: number }
  | { kind: 'strings' | 'views'; large: boolean }
  | { kind: 'list'; large: boolean }
  | { kind: 'fixed-list'; size: number }
  | { kind: 'struct' }
  /** Nobody reads it. */
  | { kind: 'other' };

/** A column of an Arrow schema, or a part of one. */
export interface ArrowField {
  name: string;
  type: ForeignType;
  layout: ArrowLayout;
  children: ArrowField[];
  /** Of a dictionary-encoded column: type, layout and children are those of the entries. */
  dictionary: { id: bigint; bits: 8 | 16 | 32 | 64; signed: boolean } | null;
}

/** Reads the table `Schema` of Schema.fbs. Throws `invalid` `malformed-body`. */
export function readSchema(schema: FlatTable): ArrowField[] {
  if (schema.int16(0) !== 0) throw malformed('values are big-endian, and only little-endian ones are read');
  const count = { fields: 0 };
  return childrenOf(schema, 1, count, 0);
}

function childrenOf(table: FlatTable, id: number, count: { fields: number }, depth: number): ArrowField[] {
  if (depth > FOREIGN_DEPTH_MAX) throw malformed(`types are nested deeper than ${FOREIGN_DEPTH_MAX}`);
  const vector = table.vector(id, 4);
  const out: ArrowField[] = [];
  for (let i = 0; i < vector.length; i++) {
    if (++count.fields > ARROW_FIELDS_MAX) throw malformed(`schema has more than ${ARROW_FIELDS_MAX} fields`);
    out.push(fieldOf(table.tableOf(vector, i), count, depth));
  }
  return out;
}

function fieldOf(field: FlatTable, count: { fields: number }, depth: number): ArrowField {
  const name = field.text(0);
  const children = childrenOf(field, 5, count, depth + 1);
  const encoding = field.table(4);
  const own = typeOf(field, children, name);
  if (encoding === null) return { name, children, dictionary: null, ...own };
  const index = encoding.table(1);
  const key = index === null ? { bits: 32 as const, signed: true } : integerOf(index, name);
  return { name, children, dictionary: { id: encoding.int64(0), ...key }, ...own };
}

const TIME_UNITS: readonly EpochUnit[] = ['s', 'ms', 'us', 'ns'];

/** The union `Type` of Schema.fbs, by its number, and the layout that goes with it. */
function typeOf(field: FlatTable, children: ArrowField[], name: string): { type: ForeignType; layout: ArrowLayout } {
  const kind = field.uint8(2);
  const table = field.table(3);
  if (table === null) throw malformed(`field ${name} has no type`);
  const other = (what: string) => ({
    type: { kind: 'other' as const, name: what },
    layout: { kind: 'other' as const },
  });
  switch (kind) {
    case 1:
      return { type: { kind: 'null' }, layout: { kind: 'none' } };
    case 2: {
      const integer = integerOf(table, name);
      return { type: { kind: 'integer', ...integer }, layout: { kind: 'integers', ...integer } };
    }
    case 3: {
      const bits = ([16, 32, 64] as const)[table.int16(0)];
      if (bits === undefined) throw malformed(`field ${name} has a float of unknown precision`);
      return { type: { kind: 'float', bits }, layout: { kind: 'floats', bits } };
    }
    case 4:
    case 19:
      return { type: { kind: 'bytes', length: null }, layout: { kind: 'strings', large: kind === 19 } };
    case 5:
    case 20:
      return { type: { kind: 'text' }, layout: { kind: 'strings', large: kind === 20 } };
    case 23:
      return { type: { kind: 'bytes', length: null }, layout: { kind: 'views', large: false } };
    case 24:
      return { type: { kind: 'text' }, layout: { kind: 'views', large: false } };
    case 6:
      return { type: { kind: 'boolean' }, layout: { kind: 'bits' } };
    case 7: {
      const [precision, scale, bits] = [table.int32(0), table.int32(1), table.int32(2, 128)];
      if (!(precision >= 1 && precision <= 76 && Math.abs(scale) <= 76) || ![32, 64, 128, 256].includes(bits)) {
        throw malformed(`field ${name} has a decimal(${precision}, ${scale}) of ${bits} bits`);
      }
      return { type: { kind: 'decimal', precision, scale }, layout: { kind: 'fixed', width: bits / 8 } };
    }
    case 8: {
      const inMs = table.int16(0, 1) === 1;
      return { type: { kind: 'date', unit: inMs ? 'ms' : 'd' }, layout: signed(inMs ? 64 : 32) };
    }
    case 9: {
      const unit = unitOf(table.int16(0, 1), name);
      const bits = table.int32(1, 32);
      if (bits !== (unit === 's' || unit === 'ms' ? 32 : 64))
        throw malformed(`field ${name} has a time of ${bits} bits`);
      return { type: { kind: 'time', unit }, layout: signed(bits as 32 | 64) };
    }
    case 10:
      return {
        type: {
          kind: 'timestamp',
          unit: unitOf(table.int16(0), name),
          ...(table.text(1) === '' ? { local: true } : {}),
        },
        layout: signed(64),
      };
    case 11:
      return other('interval');
    case 12:
    case 21: {
      const element = onlyChild(children, name);
      return { type: { kind: 'list', element }, layout: { kind: 'list', large: kind === 21 } };
    }
    case 13:
      return { type: { kind: 'struct', fields: children }, layout: { kind: 'struct' } };
    case 15: {
      const width = table.int32(0);
      if (width < 0) throw malformed(`field ${name} has ${width} bytes a value`);
      return { type: { kind: 'bytes', length: width }, layout: { kind: 'fixed', width } };
    }
    case 16: {
      const size = table.int32(0);
      if (size < 0) throw malformed(`field ${name} has lists of ${size} elements`);
      return { type: { kind: 'list', element: onlyChild(children, name) }, layout: { kind: 'fixed-list', size } };
    }
    case 17: {
      const { children: entries, layout } = onlyChild(children, name);
      if (layout.kind !== 'struct' || entries.length !== 2)
        throw malformed(`field ${name} is a map without key and value`);
      const [key, value] = entries;
      return { type: { kind: 'map', key, value }, layout: { kind: 'list', large: false } };
    }
    default:
      return other(OTHERS[kind] ?? `type number ${kind}`);
  }
}

const OTHERS: Readonly<Record<number, string>> = {
  14: 'union',
  18: 'duration',
  22: 'run-end encoded',
  25: 'list view',
  26: 'list view',
};

function signed(bits: 32 | 64): ArrowLayout {
  return { kind: 'integers', bits, signed: true };
}

function integerOf(table: FlatTable, name: string): { bits: 8 | 16 | 32 | 64; signed: boolean } {
  const bits = table.int32(0);
  if (bits !== 8 && bits !== 16 && bits !== 32 && bits !== 64)
    throw malformed(`field ${name} has integers of ${bits} bits`);
  return { bits, signed: table.uint8(1) !== 0 };
}

function unitOf(number: number, name: string): EpochUnit {
  const unit = TIME_UNITS[number];
  if (unit === undefined) throw malformed(`field ${name} has an unknown unit of time`);
  return unit;
}

function onlyChild(children: ArrowField[], name: string): ArrowField {
  if (children.length !== 1) throw malformed(`field ${name} is a list of ${children.length} types`);
  return children[0];
}

/** The fields as casts see them. */
export function foreignFields(fields: readonly ArrowField[]): ForeignField[] {
  return fields.map(({ name, type }) => ({ name, type }));
}

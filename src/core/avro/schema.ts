import { corrupt, type SluiceError } from '../base/errors.ts';
import { AVRO_DEPTH_MAX, AVRO_SCHEMA_TYPES_MAX } from '../base/limits.ts';
import { describe } from '../base/shape.ts';

/** Avro 1.12, "Schema Declaration". Named references are resolved: a recursive schema is a cycle of objects. */
export type AvroType = AvroPrimitive | AvroFixed | AvroEnum | AvroRecord | AvroArray | AvroMap | AvroUnion;

const PRIMITIVES = ['null', 'boolean', 'int', 'long', 'float', 'double', 'bytes', 'string'] as const;
export type PrimitiveKind = (typeof PRIMITIVES)[number];

export interface AvroPrimitive {
  kind: PrimitiveKind;
}

export interface AvroFixed {
  kind: 'fixed';
  name: string;
  size: number;
}

export interface AvroEnum {
  kind: 'enum';
  name: string;
  symbols: string[];
}

export interface AvroField {
  name: string;
  /** Iceberg's `field-id`; null where the writer gave none. */
  id: number | null;
  type: AvroType;
}

export interface AvroRecord {
  kind: 'record';
  name: string;
  fields: AvroField[];
  /** Fewest bytes of a value, see `minimumBytes`. A record within itself counts nothing. */
  minimumBytes: number;
}

export interface AvroArray {
  kind: 'array';
  items: AvroType;
}

export interface AvroMap {
  kind: 'map';
  values: AvroType;
}

export interface AvroUnion {
  kind: 'union';
  branches: AvroType[];
}

function malformed(problem: string): SluiceError {
  return corrupt('avro-corrupt', `avro schema ${problem}`);
}

/**
 * Reads a schema from its parsed JSON. Names may hold any character, since writers differ in how they sanitise column
 * names; logical types, docs, defaults and aliases are ignored. Throws corrupt `avro-corrupt` when it is no Avro
 * schema or exceeds AVRO_DEPTH_MAX or AVRO_SCHEMA_TYPES_MAX.
 */
export function parseSchema(json: unknown): AvroType {
  return new Parser().type(json, '', 0);
}

class Parser {
  private readonly named = new Map<string, AvroType>();
  private types = 0;

  type(json: unknown, namespace: string, depth: number): AvroType {
    if (depth > AVRO_DEPTH_MAX) throw malformed(`is nested deeper than ${AVRO_DEPTH_MAX}`);
    if (++this.types > AVRO_SCHEMA_TYPES_MAX) throw malformed(`has more types than ${AVRO_SCHEMA_TYPES_MAX}`);
    if (typeof json === 'string') return this.reference(json, namespace);
    if (Array.isArray(json)) return this.union(json, namespace, depth);
    const object = objectOf(json);
    const type = object['type'];
    if (typeof type !== 'string') return this.type(type, namespace, depth + 1);
    switch (type) {
      case 'record':
      case 'error':
        return this.record(object, namespace, depth);
      case 'enum': {
        const symbols = object['symbols'];
        if (!Array.isArray(symbols) || !symbols.every((symbol) => typeof symbol === 'string')) {
          throw malformed('has an enum without symbols');
        }
        const { name } = this.nameOf(object, namespace);
        return this.define({ kind: 'enum', name, symbols });
      }
      case 'fixed': {
        const size = object['size'];
        if (!Number.isSafeInteger(size) || (size as number) < 0)
          throw malformed(`has a fixed of size ${describe(size)}`);
        const { name } = this.nameOf(object, namespace);
        return this.define({ kind: 'fixed', name, size: size as number });
      }
      case 'array':
        return { kind: 'array', items: this.type(object['items'], namespace, depth + 1) };
      case 'map':
        return { kind: 'map', values: this.type(object['values'], namespace, depth + 1) };
      default:
        return this.reference(type, namespace);
    }
  }

  private union(branches: unknown[], namespace: string, depth: number): AvroUnion {
    if (branches.length === 0) throw malformed('has an empty union');
    const types = branches.map((branch) => this.type(branch, namespace, depth + 1));
    if (types.some((type) => type.kind === 'union')) throw malformed('has a union directly in a union');
    const labels = types.map((type) => ('name' in type ? type.name : type.kind));
    if (new Set(labels).size < labels.length) throw malformed(`has a union that repeats a type: ${labels.join(', ')}`);
    return { kind: 'union', branches: types };
  }

  private record(object: Record<string, unknown>, namespace: string, depth: number): AvroRecord {
    const fields = object['fields'];
    if (!Array.isArray(fields)) throw malformed('has a record without fields');
    const { name, space } = this.nameOf(object, namespace);
    const record: AvroRecord = { kind: 'record', name, fields: [], minimumBytes: 0 };
    // Before its fields: they may refer to it.
    this.define(record);
    const names = new Set<string>();
    for (const json of fields) {
      const field = objectOf(json);
      const fieldName = field['name'];
      const id = field['field-id'];
      if (typeof fieldName !== 'string') throw malformed(`record ${name} has a field without name`);
      if (names.has(fieldName)) throw malformed(`record ${name} repeats field ${fieldName}`);
      names.add(fieldName);
      if (id !== undefined && !Number.isInteger(id)) throw malformed(`field ${fieldName} has field-id ${describe(id)}`);
      const type = this.type(field['type'], space, depth + 1);
      record.fields.push({ name: fieldName, id: (id as number | undefined) ?? null, type });
    }
    record.minimumBytes = record.fields.reduce((sum, field) => sum + minimumBytes(field.type), 0);
    return record;
  }

  private reference(name: string, namespace: string): AvroType {
    if ((PRIMITIVES as readonly string[]).includes(name)) return { kind: name as PrimitiveKind };
    const type = this.named.get(fullName(name, namespace)) ?? this.named.get(name);
    if (type === undefined) throw malformed(`refers to unknown type ${describe(name)}`);
    return type;
  }

  private nameOf(object: Record<string, unknown>, outer: string): { name: string; space: string } {
    const name = object['name'];
    if (typeof name !== 'string' || name === '') throw malformed(`has a ${String(object['type'])} without name`);
    const namespace = object['namespace'];
    const full = fullName(name, typeof namespace === 'string' ? namespace : outer);
    const dot = full.lastIndexOf('.');
    return { name: full, space: dot < 0 ? '' : full.slice(0, dot) };
  }

  private define<T extends AvroFixed | AvroEnum | AvroRecord>(type: T): T {
    if (this.named.has(type.name)) throw malformed(`defines ${type.name} twice`);
    this.named.set(type.name, type);
    return type;
  }
}

function fullName(name: string, namespace: string): string {
  return name.includes('.') || namespace === '' ? name : `${namespace}.${name}`;
}

function objectOf(json: unknown): Record<string, unknown> {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw malformed(`has ${describe(json)} in place of an object`);
  }
  return json as Record<string, unknown>;
}

/**
 * Fewest bytes a value of the type takes. 0 means that every value takes none (null, an empty record): arrays and
 * unions take at least one.
 */
export function minimumBytes(type: AvroType): number {
  switch (type.kind) {
    case 'null':
      return 0;
    case 'float':
      return 4;
    case 'double':
      return 8;
    case 'fixed':
      return type.size;
    case 'record':
      return type.minimumBytes;
    case 'union':
      return 1 + Math.min(...type.branches.map(minimumBytes));
    default:
      return 1;
  }
}

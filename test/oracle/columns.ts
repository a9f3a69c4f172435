import type { NestedField, Type, Value } from '../../src/core/iceberg/types.ts';
import type { ParquetNode } from './parquet.ts';
import { type Primitive, parsePrimitive, signedBigEndian } from './values.ts';

/** A value of any Iceberg type: a struct is a map by field id, a list an array, a map an array of pairs. */
export type Tree = Value | Tree[] | StructTree | MapTree;
export type StructTree = Map<number, Tree>;
export interface MapTree {
  pairs: [Tree, Tree][];
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** A physical Parquet value as the Iceberg value of its type. Throws when the physical type cannot hold the type. */
export function fromPhysical(type: Primitive, node: ParquetNode, raw: unknown): Value {
  if (raw === null || raw === undefined) return null;
  const physical = node.physical;
  switch (type.name) {
    case 'boolean':
      if (typeof raw === 'boolean') return raw;
      break;
    case 'int':
    case 'date':
      if (physical === 'INT32') return raw as number;
      break;
    case 'long':
    case 'time':
    case 'timestamp':
    case 'timestamptz':
      if (physical === 'INT64') return raw as bigint;
      if (physical === 'INT32' && type.name === 'long') return BigInt(raw as number);
      break;
    case 'float':
    case 'double':
      if (physical === 'FLOAT' || physical === 'DOUBLE') return raw as number;
      break;
    case 'string':
      if (raw instanceof Uint8Array) return decoder.decode(raw);
      break;
    case 'uuid':
    case 'fixed':
    case 'binary':
      if (raw instanceof Uint8Array) return Uint8Array.from(raw);
      break;
    case 'decimal':
      if (raw instanceof Uint8Array) return signedBigEndian(raw);
      if (physical === 'INT32' || physical === 'INT64') return BigInt(raw as number | bigint);
      break;
  }
  throw new Error(`${physical} cannot hold ${type.name}`);
}

export function primitiveOf(type: Type): Primitive {
  const primitive = typeof type === 'string' ? parsePrimitive(type) : null;
  if (primitive === null) throw new Error(`not a primitive type of version 2: ${JSON.stringify(type)}`);
  return primitive;
}

/** The child node with a field id. */
export function childById(node: ParquetNode, id: number): ParquetNode | undefined {
  return node.children.find((child) => child.fieldId === id);
}

/** A bare record's member as a value of an Iceberg type, matched by field id. */
export function assemble(type: Type, node: ParquetNode, raw: unknown): Tree {
  if (raw === null || raw === undefined) return null;
  if (typeof type === 'string') return fromPhysical(primitiveOf(type), node, raw);
  if (type.type === 'struct') return assembleStruct(type.fields, node, raw as Record<string, unknown>);
  const repeated = node.children[0];
  const entries = (raw as Record<string, unknown>)[repeated?.name] as Record<string, unknown>[] | undefined;
  if (!Array.isArray(entries)) throw new Error(`${node.path.join('.')} is no three-level ${type.type}`);
  if (type.type === 'list') {
    const element = childById(repeated, type['element-id']) ?? repeated.children[0];
    return entries.map((entry) => assemble(type.element, element, entry[element.name]));
  }
  const key = childById(repeated, type['key-id']) ?? repeated.children[0];
  const value = childById(repeated, type['value-id']) ?? repeated.children[1];
  return {
    pairs: entries.map((entry) => [
      assemble(type.key, key, entry[key.name]),
      assemble(type.value, value, entry[value.name]),
    ]),
  };
}

export function assembleStruct(
  fields: readonly NestedField[],
  node: ParquetNode,
  record: Record<string, unknown>,
): StructTree {
  return new Map(
    fields.map((field) => {
      const child = childById(node, field.id);
      return [field.id, child === undefined ? null : assemble(field.type, child, record[child.name])];
    }),
  );
}

/** A leaf of a schema: its field id, type, and the steps from a row to its values. */
export interface Leaf {
  id: number;
  type: Primitive;
  /** True when a list or map lies above it: such leaves carry no metrics. */
  repeated: boolean;
  required: boolean;
  name: string;
  /** Appends the leaf's values of one row, null where Parquet stores a level without a value. */
  collect(row: StructTree, into: Value[]): void;
}

/** All leaves of a list of fields, in the order of the schema. */
export function leavesOf(fields: readonly NestedField[]): Leaf[] {
  const leaves: Leaf[] = [];
  type Walk = (row: StructTree, visit: (tree: Tree) => void) => void;
  const add = (type: Type, id: number, name: string, required: boolean, repeated: boolean, walk: Walk): void => {
    if (typeof type === 'string') {
      const primitive = parsePrimitive(type);
      if (primitive !== null)
        leaves.push({
          id,
          type: primitive,
          repeated,
          required,
          name,
          collect: (row, into) => walk(row, (tree) => into.push(tree as Value)),
        });
    } else if (type.type === 'struct') {
      for (const field of type.fields)
        add(field.type, field.id, `${name}.${field.name}`, required && field.required, repeated, (row, visit) =>
          walk(row, (tree) => visit(tree === null ? null : ((tree as StructTree).get(field.id) ?? null))),
        );
    } else if (type.type === 'list') {
      add(type.element, type['element-id'], `${name}.element`, false, true, (row, visit) =>
        walk(row, (tree) => {
          const list = (tree ?? []) as Tree[];
          if (list.length === 0) visit(null);
          for (const element of list) visit(element);
        }),
      );
    } else {
      for (const side of [0, 1] as const)
        add(
          side === 0 ? type.key : type.value,
          side === 0 ? type['key-id'] : type['value-id'],
          `${name}.${side === 0 ? 'key' : 'value'}`,
          false,
          true,
          (row, visit) =>
            walk(row, (tree) => {
              const pairs = tree === null ? [] : (tree as MapTree).pairs;
              if (pairs.length === 0) visit(null);
              for (const pair of pairs) visit(pair[side]);
            }),
        );
    }
  };
  for (const field of fields)
    add(field.type, field.id, field.name, field.required, false, (row, visit) => visit(row.get(field.id) ?? null));
  return leaves;
}

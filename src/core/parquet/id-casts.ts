import { type Cast, mapOf } from '../columns/casts.ts';
import { Misfit } from '../columns/fault.ts';
import { type ForeignCast, foreignCast } from '../columns/foreign-casts.ts';
import type { ListType, MapType, StructType, Type } from '../iceberg/types.ts';
import type { ParquetNode } from './foreign-schema.ts';

/** Plain integers are no instants here, and text is only text. */
const OPTIONS = { epochUnit: 'us', textual: false } as const;

/**
 * The cast of a column of a table's own file. Fields are found by id on every level, whatever they are called in the file (spec:
 * column projection): those that the table has no more are left out, those that the file does not have are null. Takes what
 * `foreignReader` gives, but null.
 */
export function castById(node: ParquetNode, to: Type): ForeignCast {
  if (node.repetition === 'repeated') return { problem: 'is repeated and no list' };
  return elementCast(node, to);
}

function elementCast(node: ParquetNode, to: Type): ForeignCast {
  const { type, repeated, element, children } = node;
  if (typeof to === 'string') {
    if (type.kind === 'text' && to !== 'string') return { problem: `is stored as text, not as ${to}` };
    const made = foreignCast(type, to, OPTIONS);
    return 'cast' in made && (type.kind === 'bytes' || type.kind === 'uuid') ? { cast: copied(made.cast) } : made;
  }
  if (to.type === 'struct' && type.kind === 'struct') return structCast(children, to);
  if (to.type === 'list' && type.kind === 'list' && element !== null) return listCast(element, to);
  if (to.type === 'map' && type.kind === 'map' && repeated !== null) return mapCast(repeated.children, to);
  return { problem: `is stored as ${type.kind}, not as ${to.type}` };
}

/** Bytes are views of a page, which would be held for each of them. */
function copied(cast: Cast<unknown>): Cast<unknown> {
  return (value) => {
    const bytes = cast(value);
    return bytes instanceof Uint8Array ? new Uint8Array(bytes) : bytes;
  };
}

function structCast(children: readonly ParquetNode[], to: StructType): ForeignCast {
  const steps: { name: string; place: number; cast: Cast<unknown> }[] = [];
  for (const { id, name, type, required } of to.fields) {
    const place = children.findIndex((child) => child.id === id);
    if (place === -1) {
      if (required) return { problem: `has no field ${name}, which is required` };
      steps.push({ name, place, cast: () => null });
      continue;
    }
    const made = castById(children[place], type);
    if ('problem' in made) return { problem: `has a field ${name} that ${made.problem}` };
    steps.push({ name, place, cast: nullable(made.cast, required) });
  }
  return {
    cast: (value) => {
      const given = value as unknown[];
      const out: Record<string, unknown> = Object.create(null);
      for (const { name, place, cast } of steps) {
        const result = place === -1 ? null : cast(given[place]);
        if (result instanceof Misfit) return result.at(`.${name}`);
        out[name] = result;
      }
      return out;
    },
  };
}

function listCast(node: ParquetNode, to: ListType): ForeignCast {
  const made = elementCast(node, to.element);
  if ('problem' in made) return { problem: `has an element that ${made.problem}` };
  const cast = nullable(made.cast, to['element-required']);
  return {
    cast: (value) => {
      const out: unknown[] = [];
      for (const held of value as unknown[]) {
        const result = cast(held);
        if (result instanceof Misfit) return result.at(`[${out.length}]`);
        out.push(result);
      }
      return out;
    },
  };
}

function mapCast([keys, values]: readonly ParquetNode[], to: MapType): ForeignCast {
  const key = castById(keys, to.key);
  if ('problem' in key) return { problem: `has a key that ${key.problem}` };
  const held = castById(values, to.value);
  if ('problem' in held) return { problem: `has a value that ${held.problem}` };
  const castKey = nullable(key.cast, true);
  const castValue = nullable(held.cast, to['value-required']);
  return { cast: (value) => mapOf(value as [unknown, unknown][], castKey, castValue) };
}

function nullable(cast: Cast<unknown>, required: boolean): Cast<unknown> {
  return (value) => {
    if (value !== null) return cast(value);
    return required ? new Misfit('null-in-required', 'is required and null') : null;
  };
}

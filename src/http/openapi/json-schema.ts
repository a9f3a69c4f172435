import type * as v from 'valibot';
import { assert } from '../../core/base/assert.ts';

/** JSON Schema (2020-12), as OpenAPI 3.1 has it. */
export type JsonSchema = { [keyword: string]: unknown };

/** Schemas by name; what has a title is put there once and referred to. */
export type Components = Record<string, JsonSchema>;

type Any = v.GenericSchema;
/** What is read of a schema or an action of a pipe: valibot keeps all of it as plain members. */
type Parts = Record<string, unknown> & { type: string };

/**
 * What a schema of valibot takes, as JSON Schema. Checks that JSON Schema has no word for (`check`, `transform`) are
 * passed over: the document may allow what the service then refuses, never the other way round. A kind of schema that
 * is not known here is an error, so that none is described wrongly.
 */
export function jsonSchemaOf(schema: Any, components: Components): JsonSchema {
  const { pipe } = schema as unknown as { pipe?: readonly Parts[] };
  if (pipe === undefined) return bareSchema(schema as unknown as Parts, components);
  const [root, ...actions] = pipe;
  const json: JsonSchema = { ...bareSchema(root, components) };
  for (const action of actions) Object.assign(json, keywordsOf(action));
  const { title } = json;
  if (typeof title !== 'string') return json;
  const known = components[title];
  assert(known === undefined || JSON.stringify(known) === JSON.stringify(json), `one schema is called ${title}`);
  components[title] = json;
  return { $ref: `#/components/schemas/${title}` };
}

function bareSchema(schema: Parts, components: Components): JsonSchema {
  const inner = (member: string) => jsonSchemaOf(schema[member] as Any, components);
  const options = () => (schema['options'] as Any[]).map((option) => jsonSchemaOf(option, components));
  switch (schema.type) {
    case 'unknown':
    case 'any':
      return {};
    case 'string':
    case 'number':
    case 'boolean':
    case 'null':
      return { type: schema.type };
    case 'literal':
      return { const: schema['literal'] };
    case 'picklist':
      return { enum: schema['options'] };
    case 'array':
      return { type: 'array', items: inner('item') };
    case 'record':
      return { type: 'object', additionalProperties: inner('value') };
    case 'object':
    case 'loose_object':
    case 'strict_object':
      return objectSchema(schema, components);
    case 'optional': {
      const fallback = schema['default'];
      return { ...inner('wrapped'), ...(fallback === undefined ? {} : { default: fallback }) };
    }
    case 'nullable':
      return nullableSchema(inner('wrapped'));
    case 'union':
      return { anyOf: options() };
    default:
      throw new TypeError(`schema of valibot has no form in JSON Schema here: ${schema.type}`);
  }
}

function objectSchema(schema: Parts, components: Components): JsonSchema {
  const entries = Object.entries(schema['entries'] as Record<string, Any>);
  const required = entries.filter(([, entry]) => entry.type !== 'optional').map(([name]) => name);
  return {
    type: 'object',
    properties: Object.fromEntries(entries.map(([name, entry]) => [name, jsonSchemaOf(entry, components)])),
    ...(required.length === 0 ? {} : { required }),
    ...(schema.type === 'strict_object' ? { additionalProperties: false } : {}),
  };
}

function nullableSchema(json: JsonSchema): JsonSchema {
  const { type, enum: values } = json;
  if (typeof type === 'string') return { ...json, type: [type, 'null'] };
  if (Array.isArray(values)) return { ...json, enum: [...values, null] };
  return { anyOf: [json, { type: 'null' }] };
}

function keywordsOf(action: Parts): JsonSchema {
  const { requirement } = action;
  switch (action.type) {
    case 'regex':
      return { pattern: (requirement as RegExp).source };
    case 'non_empty':
      return { minLength: 1 };
    case 'min_value':
      return { minimum: requirement };
    case 'max_value':
      return { maximum: requirement };
    case 'integer':
    case 'safe_integer':
      return { type: 'integer' };
    case 'title':
      return { title: action['title'] };
    case 'description':
      return { description: action['description'] };
    case 'check':
    case 'transform':
      return {};
    default:
      throw new TypeError(`action of valibot has no form in JSON Schema here: ${action.type}`);
  }
}

import type { JsonSchema } from '../../../src/http/openapi/json-schema.ts';

/**
 * A check of values against the part of JSON Schema (2020-12) that the document uses, written against the standard and
 * not against the code that makes schemas. A keyword that it does not know is an error: nothing is passed over.
 */
export function faultsOf(value: unknown, schema: JsonSchema, document: JsonSchema, path = '$'): string[] {
  const faults: string[] = [];
  const say = (what: string) => faults.push(`${path} ${what}: ${JSON.stringify(value)?.slice(0, 200)}`);
  const inner = (sub: unknown, at = path, of: unknown = value) => faultsOf(of, sub as JsonSchema, document, at);
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  for (const [keyword, given] of Object.entries(schema)) {
    switch (keyword) {
      case '$ref':
        faults.push(...inner(resolve(document, given as string)));
        break;
      case 'type': {
        const types = Array.isArray(given) ? given : [given];
        if (!types.some((type) => isOfType(value, type as string))) say(`is not of type ${types}`);
        break;
      }
      case 'enum':
        if (!(given as unknown[]).includes(value)) say(`is none of ${JSON.stringify(given)}`);
        break;
      case 'const':
        if (value !== given) say(`is not ${JSON.stringify(given)}`);
        break;
      case 'properties':
        for (const [name, sub] of Object.entries(given as JsonSchema)) {
          if (isObject && Object.hasOwn(value, name)) {
            faults.push(...inner(sub, `${path}.${name}`, (value as JsonSchema)[name]));
          }
        }
        break;
      case 'required':
        for (const name of given as string[]) if (isObject && !Object.hasOwn(value, name)) say(`lacks ${name}`);
        break;
      case 'additionalProperties':
        for (const [name, member] of Object.entries(isObject ? value : {})) {
          if (Object.hasOwn((schema['properties'] ?? {}) as object, name)) continue;
          if (given === false) say(`has ${name} besides`);
          else faults.push(...inner(given, `${path}.${name}`, member));
        }
        break;
      case 'items':
        for (const [index, item] of (Array.isArray(value) ? value : []).entries()) {
          faults.push(...inner(given, `${path}[${index}]`, item));
        }
        break;
      case 'allOf':
        for (const sub of given as JsonSchema[]) faults.push(...inner(sub));
        break;
      case 'anyOf':
      case 'oneOf': {
        const fits = (given as JsonSchema[]).filter((sub) => inner(sub).length === 0).length;
        if (fits === 0 || (keyword === 'oneOf' && fits > 1)) say(`fits ${fits} of ${keyword}`);
        break;
      }
      case 'pattern':
        if (typeof value === 'string' && !new RegExp(given as string, 'u').test(value)) say(`does not match ${given}`);
        break;
      case 'minimum':
        if (typeof value === 'number' && value < (given as number)) say(`is below ${given}`);
        break;
      case 'maximum':
        if (typeof value === 'number' && value > (given as number)) say(`is above ${given}`);
        break;
      case 'minLength':
        if (typeof value === 'string' && [...value].length < (given as number)) say(`is shorter than ${given}`);
        break;
      case 'maxLength':
        if (typeof value === 'string' && [...value].length > (given as number)) say(`is longer than ${given}`);
        break;
      case 'title':
      case 'description':
      case 'default':
        break;
      default:
        throw new Error(`keyword is not known: ${keyword} at ${path}`);
    }
  }
  return faults;
}

function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value);
    case 'integer':
      return Number.isInteger(value);
    case 'string':
    case 'number':
    case 'boolean':
      return typeof value === type;
    default:
      throw new Error(`type is not known: ${type}`);
  }
}

/** What a reference within the document stands for. */
export function resolve(document: JsonSchema, reference: string): JsonSchema {
  const [head, ...parts] = reference.split('/');
  let at: unknown = document;
  for (const part of parts) at = (at as JsonSchema | undefined)?.[part.replaceAll('~1', '/').replaceAll('~0', '~')];
  if (head !== '#' || typeof at !== 'object' || at === null) throw new Error(`reference leads nowhere: ${reference}`);
  return at as JsonSchema;
}

interface MediaObject {
  schema?: JsonSchema;
}

/**
 * What an answer of the service has that the document does not tell, or tells otherwise. `template` is the path with its
 * parameters in braces.
 */
export function answerFaults(
  document: JsonSchema,
  template: string,
  answer: { method: string; status: number; contentType: string | null; body: unknown },
): string[] {
  const paths = document['paths'] as Record<string, Record<string, { responses: Record<string, JsonSchema> }>>;
  const name = `${answer.method} ${template} ${answer.status}`;
  const response = paths[template]?.[answer.method.toLowerCase()]?.responses[answer.status];
  if (response === undefined) return [`${name} is not described: ${JSON.stringify(answer.body)?.slice(0, 300)}`];
  const content = response['content'] as Record<string, MediaObject> | undefined;
  if (content === undefined) return answer.body === null ? [] : [`${name} has a body`];
  const media = content[(answer.contentType ?? '').split(';')[0]];
  if (media === undefined) return [`${name} has another media type: ${answer.contentType}`];
  return media.schema === undefined ? [] : faultsOf(answer.body, media.schema, document, name);
}

import type * as v from 'valibot';
import { CODINGS } from '../../platform/inflate.ts';
import type { JsonSchema } from './json-schema.ts';

/** What the description tells of one route; its path and its scope are read off the route itself. */
export interface Operation {
  /** Name of the operation for generated clients. */
  id: string;
  tag: 'tables' | 'rows' | 'producers' | 'changes' | 'history' | 'service';
  summary: string;
  description?: string;
  /** Parameters besides those in the path. */
  parameters?: readonly Parameter[];
  /** Every other parameter names a column. */
  columns?: true;
  body?: Body;
  /** Answers that are no problems, by status; null: without a body. */
  answers: Readonly<Record<number, Answer>>;
  /** Is about a table by its name alone: no object and no store is asked. */
  unasked?: true;
  /** Slugs of problems that are its own, by status. Those of its kind of route come besides. */
  problems?: Readonly<Record<number, readonly string[]>>;
}

export interface Answer {
  description: string;
  /** A schema of JSON; a media type; null when there is no body. */
  content: v.GenericSchema | string | null;
  /** Media types that it may be asked for in as well. */
  also?: readonly string[];
}

export type Body =
  | { kind: 'json'; schema: v.GenericSchema; required: boolean }
  /** Rows in one of the formats; `types` when not in all of them. */
  | { kind: 'rows'; types?: readonly string[] }
  | { kind: 'points' };

export interface Parameter {
  name: string;
  in: 'query' | 'header';
  description: string;
  required?: boolean;
  schema: JsonSchema;
}

/** A route's path, as descriptions have it. */
export function describedPath(pattern: string): string {
  return pattern.replace(/:([a-z]+)/g, '{$1}');
}

const text: JsonSchema = { type: 'string' };

export function query(name: string, description: string, schema: JsonSchema = text): Parameter {
  return { name, in: 'query', description, schema };
}

function header(name: string, description: string, schema: JsonSchema = text): Parameter {
  return { name, in: 'header', description, schema };
}

export const whole: JsonSchema = { type: 'integer', minimum: 1 };

/**
 * Parameters that are named by columns, as OpenAPI has them: with `explode`, each member of the object is a parameter of its
 * own, and the name of the whole stands nowhere.
 */
export const COLUMN_PARAMETERS = {
  name: 'where',
  in: 'query',
  description:
    'columns and values that they have: device=a; where.limit=3 for a column named like another parameter; given more than once, any of the values',
  style: 'form',
  explode: true,
  schema: { type: 'object', additionalProperties: { type: 'string' } },
  example: { device: 'a', 'where.limit': '3' },
};

/** Parameters of every body of rows. */
export const ROW_PARAMETERS: readonly Parameter[] = [
  query('on_error', 'refuse: one bad row refuses all; skip: bad rows are left out and told', {
    enum: ['refuse', 'skip'],
    default: 'refuse',
  }),
  query('delimiter', 'of CSV: comma, semicolon, tab or pipe, or the character'),
];

export const DELIMITER = ROW_PARAMETERS[1];

export const CONTENT_ENCODING = header('Content-Encoding', 'compression of the body', {
  enum: [...CODINGS, 'identity'],
});
export const IDEMPOTENCY_KEY = header(
  'Idempotency-Key',
  'name of the batch: sent again under it, the same body is taken once, another one refused',
);
export const PREFER = header('Prefer', 'wait=N: answer once the batch is committed, or after N seconds');

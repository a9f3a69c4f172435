import type { Scope } from '../../core/access/grant.ts';
import { NAME_LENGTH_MAX } from '../../core/base/limits.ts';
import { PROBLEM_URN } from '../problem.ts';
import { PROBLEM_TYPES } from '../problem-types.ts';
import { ROW_MEDIA_TYPES } from '../rows.ts';
import { ADMIN_OPERATIONS } from './admin-operations.ts';
import { type Components, type JsonSchema, jsonSchemaOf } from './json-schema.ts';
import { type Answer, type Body, COLUMN_PARAMETERS, describedPath, type Operation } from './operation.ts';
import { TABLE_OPERATIONS } from './table-operations.ts';
import { Problem } from './views.ts';

/** What the description tells of each route, by method and path. */
export const OPERATIONS: Readonly<Record<string, Operation>> = { ...TABLE_OPERATIONS, ...ADMIN_OPERATIONS };

/** A route as it is registered. `handler` declares its scope, or there is none. */
export interface Route {
  method: string;
  path: string;
  handler: unknown;
}

/** A registered route: `GET /v1/tables/{namespace}/{table}`, and the scope that it asks for. */
export interface Registered {
  name: string;
  method: string;
  path: string;
  scope: Scope | null;
}

/** The routes of an app, each once; those that only refuse another method left out. */
export function registered(routes: readonly Route[]): Registered[] {
  const found = new Map<string, Registered>();
  for (const { method, path: pattern, handler } of routes) {
    if (method === 'ALL') continue;
    const path = describedPath(pattern);
    const name = `${method} ${path}`;
    const scope = (handler as { scope?: Scope }).scope ?? found.get(name)?.scope ?? null;
    found.set(name, { name, method, path, scope });
  }
  return [...found.values()];
}

const TEXT: JsonSchema = { type: 'string' };
const NAME: JsonSchema = { type: 'string', pattern: '^[A-Za-z0-9_][A-Za-z0-9_-]*$', maxLength: NAME_LENGTH_MAX };
const PATH_PARAMETERS: Readonly<Record<string, { description: string; schema: JsonSchema }>> = {
  namespace: { description: 'namespace of the table', schema: NAME },
  table: { description: 'name of the table', schema: NAME },
  id: { description: 'receipt of a batch', schema: TEXT },
  app: { description: 'name of a producer', schema: TEXT },
  ref: { description: 'name of a branch or tag', schema: TEXT },
};

const SCOPE_WORDS: Readonly<Record<Scope, string>> = {
  read: 'Needs the scope `read`.',
  append: 'Needs the scope `append`.',
  admin: 'Needs the scope `admin`.',
};

/** The OpenAPI 3.1 document of the routes. A route that no operation describes is left out; a test finds it. */
export function documentOf(routes: readonly Route[]): JsonSchema {
  const schemas: Components = {};
  const paths: Record<string, Record<string, JsonSchema>> = {};
  for (const route of registered(routes)) {
    const operation = OPERATIONS[route.name];
    if (operation === undefined) continue;
    paths[route.path] ??= {};
    paths[route.path][route.method.toLowerCase()] = operationObject(route, operation, schemas);
  }
  schemas['Problem'] = problemSchema(schemas);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sluice',
      version: '1',
      summary: 'Rows in over HTTP, Apache Iceberg tables out on an object store, each acknowledged batch once',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ token: [] }],
    tags: TAGS.map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas,
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'The scheme `Token` of InfluxDB is taken for the same.' },
      },
    },
  };
}

const TAGS: readonly [name: Operation['tag'], description: string][] = [
  ['tables', 'Tables of the lake'],
  ['rows', 'Rows in, and what became of them'],
  ['producers', 'Producers that count their batches'],
  ['changes', 'Changes of a table that are not rows'],
  ['history', 'Snapshots, branches and tags'],
  ['service', 'The service itself'],
];

function operationObject(route: Registered, operation: Operation, schemas: Components): JsonSchema {
  const { id, tag, summary, description, parameters = [], body, answers } = operation;
  const names = [...route.path.matchAll(/\{([a-z]+)\}/g)].map(([, name]) => name);
  const inPath = names.map((name) => ({ name, in: 'path', required: true, ...PATH_PARAMETERS[name] }));
  const all = [...inPath, ...parameters, ...(operation.columns === true ? [COLUMN_PARAMETERS] : [])];
  const told = [description, route.scope === null ? undefined : SCOPE_WORDS[route.scope]];
  const words = told.filter((part) => part !== undefined);
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(words.length === 0 ? {} : { description: words.join(' ') }),
    ...(route.scope === null ? { security: [] } : { 'x-scope': route.scope }),
    ...(all.length === 0 ? {} : { parameters: all }),
    ...(body === undefined ? {} : { requestBody: bodyObject(body, schemas) }),
    responses: {
      ...Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, answerObject(answer, schemas)])),
      ...problemResponses(route, operation),
    },
  };
}

function bodyObject(body: Body, schemas: Components): JsonSchema {
  switch (body.kind) {
    case 'json':
      return {
        required: body.required,
        content: { 'application/json': { schema: jsonSchemaOf(body.schema, schemas) } },
      };
    case 'rows': {
      const row = { type: 'object' };
      const rows = { anyOf: [{ type: 'array', items: row }, row] };
      const types = body.types ?? ROW_MEDIA_TYPES;
      const contents = types.map((type) => [type, type === 'application/json' ? { schema: rows } : {}]);
      return { required: true, content: Object.fromEntries(contents) };
    }
    case 'points':
      return { required: true, content: { 'text/plain': { schema: TEXT } } };
  }
}

function answerObject({ description, content, also = [] }: Answer, schemas: Components): JsonSchema {
  if (content === null) return { description };
  if (typeof content === 'string') return { description, content: { [content]: {} } };
  const others = Object.fromEntries(also.map((type) => [type, {}]));
  return { description, content: { 'application/json': { schema: jsonSchemaOf(content, schemas) }, ...others } };
}

/** Problems of a kind of route. */
const GUARDED = { 401: ['unauthorized'], 403: ['forbidden'], 500: ['internal', 'bad-settings'] };
const NAMED = { 400: ['bad-name', 'malformed'] };
const OF_TABLE = {
  404: ['unknown-table', 'not-attached'],
  503: ['object-unavailable', 'store-unavailable', 'table-unreadable'],
};
const JSON_BODY = {
  400: ['malformed-json', 'malformed', 'malformed-utf8', 'body-interrupted'],
  413: ['body-too-large'],
  415: ['unsupported-encoding'],
};

/** Every slug of a route, by status. */
export function problemsOf({ path, scope }: Registered, operation: Operation): Map<number, Set<string>> {
  const found = new Map<number, Set<string>>();
  const isOfTable = path.includes('{table}');
  const sets = [
    ...(scope === null ? [] : [GUARDED]),
    ...(isOfTable ? [NAMED] : []),
    ...(isOfTable && operation.unasked !== true ? [OF_TABLE] : []),
    ...(operation.body?.kind === 'json' ? [JSON_BODY] : []),
    operation.problems ?? {},
  ];
  for (const [status, slugs] of sets.flatMap((set) => Object.entries(set) as [string, readonly string[]][])) {
    const known = found.get(Number(status)) ?? new Set();
    for (const slug of slugs) known.add(slug);
    found.set(Number(status), known);
  }
  return found;
}

function problemResponses(route: Registered, operation: Operation): JsonSchema {
  const media = route.path.startsWith('/api/') ? 'application/json' : 'application/problem+json';
  const content = { [media]: { schema: { $ref: '#/components/schemas/Problem' } } };
  const retry = { 'Retry-After': { description: 'seconds', schema: { type: 'integer' } } };
  const responses = [...problemsOf(route, operation)].map(([status, slugs]) => [
    status,
    { description: [...slugs].join(', '), ...(status === 429 || status === 503 ? { headers: retry } : {}), content },
  ]);
  return Object.fromEntries(responses);
}

/** A problem (RFC 9457): every type by its name, with the line that people read. */
function problemSchema(schemas: Components): JsonSchema {
  const types = Object.entries(PROBLEM_TYPES).map(([slug, { title }]) => ({
    const: PROBLEM_URN + slug,
    description: title,
  }));
  return {
    allOf: [
      jsonSchemaOf(Problem, schemas),
      { type: 'object', properties: { type: { oneOf: types } }, required: ['type'] },
    ],
    description: 'Types are stable names; each has members of its own.',
  };
}

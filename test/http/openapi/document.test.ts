import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import * as bodies from '../../../src/http/admin-bodies.ts';
import { createApp } from '../../../src/http/app.ts';
import { Attachment, Definition } from '../../../src/http/definition.ts';
import { documentOf, OPERATIONS, problemsOf, registered } from '../../../src/http/openapi/document.ts';
import { type JsonSchema, jsonSchemaOf } from '../../../src/http/openapi/json-schema.ts';
import { PROBLEM_TYPES } from '../../../src/http/problem-types.ts';
import { faultsOf, resolve } from './validate.ts';

const app = createApp(() => {
  throw new Error('not asked');
});
const routes = registered(app.routes);
const document = documentOf(app.routes);

interface OperationObject {
  operationId: string;
  tags: string[];
  security?: unknown[];
  'x-scope'?: string;
  parameters?: { name: string; in: string; required?: boolean; description: string; schema: JsonSchema }[];
  requestBody?: { content: Record<string, { schema?: JsonSchema }> };
  responses: Record<string, { description: string; content?: Record<string, { schema?: JsonSchema }> }>;
}

const paths = document['paths'] as Record<string, Record<string, OperationObject>>;
const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation, name: `${method} ${path}` })),
);

describe('openapi: routes', () => {
  it('every registered route is described, and nothing else is', () => {
    expect(routes.length).toBeGreaterThan(20);
    expect(Object.keys(OPERATIONS).sort()).toEqual(routes.map(({ name }) => name).sort());
    expect(operations).toHaveLength(routes.length);
  });

  it('each tells the scope that the route asks for, and the open ones ask for none', () => {
    for (const { path, method, scope } of routes) {
      const { security, 'x-scope': told } = paths[path][method.toLowerCase()];
      expect([told ?? null, security], path).toEqual([scope, scope === null ? [] : undefined]);
    }
    const open = routes.filter(({ scope }) => scope === null).map(({ path }) => path);
    expect(open).toEqual(['/health', '/ping', '/openapi.json']);
  });

  it('the reference in the README has them all', () => {
    const readme = readFileSync(join(import.meta.dirname, '../../../README.md'), 'utf8').replace(/\{[a-z]+\}/g, '{}');
    const cells = readme.split('\n').flatMap((line) => (line.startsWith('|') ? [line.split('|')[1]] : []));
    const missing = routes.filter(({ method, path }) => {
      const short = path.replace(/\{[a-z]+\}/g, '{}').replace('/v1/tables/{}/{}/', '…/');
      return !cells.some((cell) => cell.includes(method) && cell.split(/[\s`?,]+/).includes(short));
    });
    expect(missing.map(({ name }) => name)).toEqual([]);
  });

  it('it is served without a token, and is the document', async () => {
    const response = await app.request('/openapi.json');
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json']);
    expect(await response.json()).toEqual(JSON.parse(JSON.stringify(document)));
  });
});

/** The OpenAPI specification 3.1.0, section by section, for what the document uses. */
describe('openapi: the form of the document', () => {
  it('the root has what it must', () => {
    expect(Object.keys(document).sort()).toEqual(
      ['components', 'info', 'openapi', 'paths', 'security', 'servers', 'tags'].sort(),
    );
    expect(document['openapi']).toBe('3.1.0');
    expect(document['info']).toMatchObject({ title: expect.any(String), version: expect.any(String) });
    expect(Object.keys(document['components'] as object).sort()).toEqual(['schemas', 'securitySchemes']);
  });

  it('operations have unique ids, known tags, answers, and exactly the parameters of their path', () => {
    const tags = (document['tags'] as { name: string }[]).map(({ name }) => name);
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { path, method, operation, name } of operations) {
      expect(path, name).toMatch(/^\/([\w.-]+|\{[a-z]+\})(\/([\w.-]+|\{[a-z]+\}))*$/);
      expect(['get', 'put', 'post', 'delete', 'patch'], name).toContain(method);
      expect(operation.operationId, name).toMatch(/^[a-z][A-Za-z]+$/);
      for (const tag of operation.tags) expect(tags, name).toContain(tag);
      const { parameters = [] } = operation;
      const inPath = parameters.filter((parameter) => parameter.in === 'path');
      expect(inPath.map(({ name: own }) => `{${own}}`).join(), name).toBe((path.match(/\{[a-z]+\}/g) ?? []).join());
      for (const parameter of inPath) expect(parameter, name).toMatchObject({ required: true });
      const keys = parameters.map((parameter) => `${parameter.in} ${parameter.name}`);
      expect(new Set(keys).size, name).toBe(keys.length);
      for (const parameter of parameters) {
        expect(['path', 'query', 'header']).toContain(parameter.in);
        expect(parameter.description, `${name} ${parameter.name}`).toMatch(/./);
        // Headers of these names are ignored as parameters (section 4.8.12.2).
        if (parameter.in === 'header') expect(parameter.name).not.toMatch(/^(accept|content-type|authorization)$/i);
      }
      const statuses = Object.keys(operation.responses);
      expect(
        statuses.some((status) => /^2\d\d$/.test(status)),
        name,
      ).toBe(true);
      for (const status of statuses) {
        expect(status, name).toMatch(/^[2345]\d\d$/);
        expect(operation.responses[status].description, `${name} ${status}`).not.toBe('');
      }
      if (method === 'get') expect(operation.requestBody, name).toBeUndefined();
    }
  });

  it('parameters that are named by columns are members of one object, each on its own', () => {
    for (const { name, operation } of operations) {
      const isNamed = ['get /v1/tables/{namespace}/{table}/rows', 'get /v1/tables/{namespace}/{table}/latest'].includes(
        name,
      );
      const where = { name: 'where', in: 'query', style: 'form', explode: true };
      const { parameters = [] } = operation;
      expect(
        parameters.filter((parameter) => parameter.name === 'where'),
        name,
      ).toMatchObject(isNamed ? [where] : []);
    }
  });

  it('every schema is one: known keywords, known types, references that lead somewhere', () => {
    const schemas: [name: string, schema: JsonSchema][] = Object.entries(
      (document['components'] as { schemas: Record<string, JsonSchema> }).schemas,
    );
    for (const { name, operation } of operations) {
      for (const parameter of operation.parameters ?? []) schemas.push([name, parameter.schema]);
      const contents = [operation.requestBody, ...Object.values(operation.responses)].map(
        (part) => part?.content ?? {},
      );
      for (const content of contents) {
        for (const [type, { schema }] of Object.entries(content)) {
          expect(type, name).toMatch(/^[a-z]+\/[a-z.+-]+$/);
          if (schema !== undefined) schemas.push([name, schema]);
        }
      }
    }
    expect(schemas.length).toBeGreaterThan(100);
    for (const [name, schema] of schemas) checkSchema(name, schema);
  });
});

/** Walks a schema whatever values would fit it; `faultsOf` throws at what it does not know. */
function checkSchema(name: string, schema: JsonSchema): void {
  faultsOf(null, schema, document, name);
  if (typeof schema['$ref'] === 'string') resolve(document, schema['$ref']);
  if (typeof schema['pattern'] === 'string') new RegExp(schema['pattern'], 'u');
  const {
    properties = {},
    required = [],
    additionalProperties,
    items,
    anyOf,
    oneOf,
    allOf,
  } = schema as {
    properties?: Record<string, JsonSchema>;
    required?: string[];
    additionalProperties?: JsonSchema | false;
    items?: JsonSchema;
    anyOf?: JsonSchema[];
    oneOf?: JsonSchema[];
    allOf?: JsonSchema[];
  };
  for (const key of required) expect(Object.keys(properties), name).toContain(key);
  const inner = [additionalProperties, items, ...Object.values(properties), ...(anyOf ?? []), ...(oneOf ?? [])];
  for (const sub of [...inner, ...(allOf ?? [])]) {
    if (typeof sub === 'object') checkSchema(name, sub);
  }
}

describe('openapi: problems', () => {
  /** Kinds under which the source raises each slug. */
  const kinds = new Map<string, Set<string>>();
  const src = join(import.meta.dirname, '../../../src');
  for (const file of readdirSync(src, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts')) continue;
    const raised = /\b(invalid|rejected|conflict|unavailable|unknown|corrupt)\(\s*'([a-z0-9-]+)'/g;
    for (const [, kind, slug] of readFileSync(join(src, file), 'utf8').matchAll(raised)) {
      kinds.set(slug, (kinds.get(slug) ?? new Set()).add(kind));
    }
  }
  const STATUS: Record<string, number> = {
    invalid: 400,
    rejected: 422,
    conflict: 409,
    unavailable: 503,
    unknown: 504,
    corrupt: 500,
  };

  it('every type of problem is listed with its line', () => {
    const { allOf } = resolve(document, '#/components/schemas/Problem') as {
      allOf: { properties: { type: { oneOf: { const: string; description: string }[] } } }[];
    };
    expect(allOf[1].properties.type.oneOf).toEqual(
      Object.entries(PROBLEM_TYPES).map(([slug, { title }]) => ({
        const: `urn:sluice:problem:${slug}`,
        description: title,
      })),
    );
  });

  it('each that a route names is a type, under a status that it can have', () => {
    const wrong: string[] = [];
    for (const route of routes) {
      for (const [status, slugs] of problemsOf(route, OPERATIONS[route.name])) {
        for (const slug of slugs) {
          const type = PROBLEM_TYPES[slug];
          if (type === undefined) wrong.push(`${route.name}: ${slug} is no type`);
          const possible =
            type?.status === undefined ? [...(kinds.get(slug) ?? [])].map((kind) => STATUS[kind]) : [type.status];
          // The write of points turns a conflict into what its clients send again.
          if (route.path === '/api/v2/write' && slug === 'table-changed') continue;
          if (!possible.includes(status)) wrong.push(`${route.name}: ${slug} is ${possible}, not ${status}`);
        }
      }
    }
    expect(wrong).toEqual([]);
  });
});

describe('openapi: bodies', () => {
  const cases: [name: string, schema: v.GenericSchema, good: unknown[], bad: unknown[]][] = [
    [
      'definition',
      Definition,
      [{ schema: {} }, { schema: { type: 'struct' }, time_column: null, series_key: ['a'], chunk: 'day', dedup: true }],
      [
        {},
        { schema: 'a' },
        { schema: {}, chunk: 'year' },
        { schema: {}, series_key: [1] },
        { schema: {}, more: 1 },
        null,
      ],
    ],
    [
      'attachment',
      Attachment,
      [{}, { metadata_location: null }, { metadata_location: 'x' }],
      [{ metadata_location: 1 }],
    ],
    ['properties', bodies.Properties, [{}, { set: { a: 'b' }, remove: ['c'] }], [{ set: { a: 1 } }, { remove: 'c' }]],
    ['changes', bodies.SchemaChanges, [{ changes: [{ add: 'a' }], expect_schema_id: 0 }], [{}, { changes: [1] }]],
    [
      'ref',
      bodies.Ref,
      [{}, { type: 'tag', snapshot_id: '1', max_ref_age_ms: 1, min_snapshots_to_keep: null }],
      [{ type: 'branches' }, { snapshot_id: 1 }, { snapshot_id: '-1' }, { max_ref_age_ms: 0 }, { max_ref_age_ms: 1.5 }],
    ],
    ['fast-forward', bodies.FastForward, [{ to: 'a' }], [{}, { to: '' }]],
    ['rollback', bodies.Rollback, [{ snapshot_id: '1' }], [{}, { snapshot_id: 'x' }]],
    ['maintain', bodies.Maintain, [{}, { full: false }, { dry_run: true }], [{ full: 1 }, { all: true }]],
    ['expire', bodies.Expire, [{}, { dry_run: true }], [{ dry_run: 1 }]],
    ['delete', bodies.Delete, [{ filter: { all: true } }], [{}, { filter: 'all' }]],
    ['nothing', bodies.Nothing, [{}], [{ a: 1 }]],
  ];
  for (const [name, schema, good, bad] of cases) {
    it(`${name}: the document takes and refuses what the service does`, () => {
      const json = jsonSchemaOf(schema, {});
      for (const [values, fits] of [
        [good, true],
        [bad, false],
      ] as const) {
        for (const value of values) {
          expect(v.safeParse(schema, value).success, JSON.stringify(value)).toBe(fits);
          expect(faultsOf(value, json, {}).length === 0, JSON.stringify(value)).toBe(fits);
        }
      }
    });
  }

  it('what has no form in JSON Schema is an error, not a wrong description', () => {
    expect(() => jsonSchemaOf(v.date(), {})).toThrow(/date/);
    expect(() => jsonSchemaOf(v.pipe(v.string(), v.email()), {})).toThrow(/email/);
    const twice = v.pipe(v.string(), v.title('T'));
    const components = {};
    expect(jsonSchemaOf(twice, components)).toEqual({ $ref: '#/components/schemas/T' });
    expect(() => jsonSchemaOf(v.pipe(v.number(), v.title('T')), components)).toThrow(/called T/);
  });
});

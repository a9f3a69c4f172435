import { describe, expect, test } from 'vitest';
import type { SluiceError } from '../../../src/core/base/errors.ts';
import {
  identifiedSchema,
  PROPOSED_ID_MIN,
  type Proposal,
  proposalOf,
  proposedSchema,
  schemaAfter,
} from '../../../src/core/iceberg/proposal.ts';
import type { Schema, Type } from '../../../src/core/iceberg/types.ts';
import { field, SCHEMA } from './fixtures.ts';

/** `name: type` of new columns, and `id: type` of wider ones. */
function ask(added: Record<string, Type>, widened: Record<number, string> = {}): Proposal {
  return {
    added: Object.entries(added).map(([name, type], i) => field(PROPOSED_ID_MIN + i, name, type)),
    widened: Object.entries(widened).map(([id, type]) => ({ id: Number(id), type })),
  };
}

function problemOf(schema: Schema, proposal: Proposal): SluiceError {
  try {
    schemaAfter(schema, proposal, 3);
  } catch (error) {
    return error as SluiceError;
  }
  throw new Error('nothing was thrown');
}

describe('proposal', () => {
  test('a batch and its table agree on what the batch asks for', () => {
    const proposal = ask({ color: 'string' }, { 3: 'long' });
    const proposed = proposedSchema(SCHEMA, proposal);
    expect(proposed.fields.map(({ name, type }) => [name, type])).toEqual([
      ['time', 'timestamptz'],
      ['device', 'string'],
      ['v', 'long'],
      ['color', 'string'],
    ]);
    expect(proposalOf(SCHEMA, proposed)).toEqual(proposal);
    expect(proposalOf(SCHEMA, SCHEMA)).toBeNull();
    expect(proposalOf(SCHEMA, { ...SCHEMA })).toBeNull();
  });

  test('B035: new columns get ids above the highest ever given, those inside of them too', () => {
    const tags: Type = { type: 'list', 'element-id': PROPOSED_ID_MIN + 9, element: 'long', 'element-required': false };
    const after = schemaAfter(SCHEMA, ask({ color: 'string', tags }), 7);
    expect(after.fields.slice(3)).toEqual([
      field(8, 'color', 'string'),
      field(9, 'tags', { type: 'list', 'element-id': 10, element: 'long', 'element-required': false }),
    ]);
  });

  test('what the table has by now is not added again; the wider type counts', () => {
    const by = { ...SCHEMA, fields: [...SCHEMA.fields, field(4, 'n', 'int'), field(5, 'f', 'double')] };
    expect(schemaAfter(by, ask({ f: 'float' }), 5)).toBe(by);
    expect(schemaAfter(by, ask({ n: 'long' }), 5).fields[3]).toEqual(field(4, 'n', 'long'));
    expect(schemaAfter(SCHEMA, ask({}, { 3: 'long', 99: 'long' }), 3).fields[2].type).toBe('long');
    const decimal = { ...SCHEMA, fields: [field(1, 'd', 'decimal(12, 2)')] };
    expect(schemaAfter(decimal, ask({}, { 1: 'decimal(10, 2)' }), 1)).toBe(decimal);
  });

  test('contradicting types are refused by name', () => {
    expect(problemOf(SCHEMA, ask({ device: 'long' }))).toMatchObject({
      kind: 'rejected',
      type: 'incompatible-type',
      detail: { field: 'device', from: 'long', to: 'string' },
    });
    const tags: Type = { type: 'list', 'element-id': PROPOSED_ID_MIN + 9, element: 'long', 'element-required': false };
    expect(problemOf(SCHEMA, ask({ device: tags }))).toMatchObject({ type: 'incompatible-type' });
  });

  test('B087, B204: names that no table lets in are refused', () => {
    for (const name of ['Device', '_file', 'a\u0001', '']) {
      expect(problemOf(SCHEMA, ask({ [name]: 'string' }))).toMatchObject({ type: 'bad-column-name' });
    }
    expect(problemOf(SCHEMA, ask({ id: 'string', ID: 'string' }))).toMatchObject({ type: 'bad-column-name' });
  });

  test('the columns of a batch get the ids they have by now, and keep their types', () => {
    const proposed = proposedSchema(SCHEMA, ask({ n: 'int' }));
    const table = { ...SCHEMA, fields: [...SCHEMA.fields, field(17, 'n', 'long')] };
    expect(identifiedSchema(proposed, table).fields[3]).toEqual(field(17, 'n', 'int'));
  });
});

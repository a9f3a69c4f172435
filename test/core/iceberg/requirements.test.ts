import { describe, expect, it } from 'vitest';
import { checkRequirements, deriveRequirements, type Requirement } from '../../../src/core/iceberg/requirements.ts';
import { append, commit, field, SCHEMA, snapshotOf, timeTable, UUID } from './fixtures.ts';

describe('checkRequirements', () => {
  const table = append(timeTable(), 7n);
  const met: Requirement[] = [
    { type: 'assert-table-uuid', uuid: UUID.toUpperCase() },
    { type: 'assert-ref-snapshot-id', ref: 'main', 'snapshot-id': 7n },
    { type: 'assert-ref-snapshot-id', ref: 'other', 'snapshot-id': null },
    { type: 'assert-ref-snapshot-id', ref: 'constructor', 'snapshot-id': null },
    { type: 'assert-last-assigned-field-id', 'last-assigned-field-id': 3 },
    { type: 'assert-current-schema-id', 'current-schema-id': 0 },
    { type: 'assert-last-assigned-partition-id', 'last-assigned-partition-id': 1000 },
    { type: 'assert-default-spec-id', 'default-spec-id': 0 },
    { type: 'assert-default-sort-order-id', 'default-sort-order-id': 1 },
  ];
  const broken: Requirement[] = [
    { type: 'assert-create' },
    { type: 'assert-table-uuid', uuid: UUID.replace('f', 'e') },
    { type: 'assert-ref-snapshot-id', ref: 'main', 'snapshot-id': 8n },
    { type: 'assert-ref-snapshot-id', ref: 'main', 'snapshot-id': null },
    { type: 'assert-ref-snapshot-id', ref: 'other', 'snapshot-id': 7n },
    { type: 'assert-last-assigned-field-id', 'last-assigned-field-id': 2 },
    { type: 'assert-current-schema-id', 'current-schema-id': 1 },
    { type: 'assert-last-assigned-partition-id', 'last-assigned-partition-id': 999 },
    { type: 'assert-default-spec-id', 'default-spec-id': 1 },
    { type: 'assert-default-sort-order-id', 'default-sort-order-id': 0 },
  ];

  it('passes what holds', () => {
    expect(checkRequirements(table, met)).toEqual([]);
    expect(checkRequirements(null, [{ type: 'assert-create' }])).toEqual([]);
  });

  it('names every one that does not hold', () => {
    expect(checkRequirements(table, broken).map((failure) => failure.requirement)).toEqual(broken);
    expect(checkRequirements(table, [broken[2]])[0].message).toBe('ref main has changed: expected 8, found 7');
  });

  it('a table that does not exist meets nothing else', () => {
    expect(checkRequirements(null, met)).toHaveLength(met.length);
  });

  it('R2, B175: a table that never had a snapshot has no main', () => {
    const none: Requirement = { type: 'assert-ref-snapshot-id', ref: 'main', 'snapshot-id': null };
    expect(checkRequirements(timeTable(), [none])).toEqual([]);
  });
});

describe('deriveRequirements', () => {
  const base = append(append(timeTable(), 7n), 8n, 'audit');

  it('a creation requires that nothing is there', () => {
    expect(deriveRequirements(null, [])).toEqual([{ type: 'assert-create' }]);
  });

  it('an append requires the table, and the ref where it was', () => {
    const snapshot = snapshotOf(base, 9n);
    expect(
      deriveRequirements(base, [
        { action: 'add-snapshot', snapshot },
        { action: 'set-snapshot-ref', 'ref-name': 'main', type: 'branch', 'snapshot-id': 9n },
        { action: 'set-snapshot-ref', 'ref-name': 'new', type: 'tag', 'snapshot-id': 9n },
      ]),
    ).toEqual([
      { type: 'assert-table-uuid', uuid: UUID },
      { type: 'assert-ref-snapshot-id', ref: 'main', 'snapshot-id': 7n },
      { type: 'assert-ref-snapshot-id', ref: 'new', 'snapshot-id': null },
    ]);
  });

  it('changes of schema, spec and order require the ids they build on', () => {
    const types = deriveRequirements(base, [
      { action: 'add-schema', schema: { ...SCHEMA, fields: [...SCHEMA.fields, field(4, 'x', 'int')] } },
      { action: 'set-current-schema', 'schema-id': -1 },
      { action: 'add-spec', spec: { fields: [] } },
      { action: 'set-default-spec', 'spec-id': -1 },
      { action: 'set-default-sort-order', 'sort-order-id': 0 },
      { action: 'set-properties', updates: {} },
    ]).map((requirement) => requirement.type);
    expect(types).toEqual([
      'assert-table-uuid',
      'assert-last-assigned-field-id',
      'assert-current-schema-id',
      'assert-last-assigned-partition-id',
      'assert-default-spec-id',
      'assert-default-sort-order-id',
    ]);
  });

  it('removal of specs and schemas requires that no branch moved', () => {
    const derived = deriveRequirements(base, [
      { action: 'remove-partition-specs', 'spec-ids': [3] },
      { action: 'remove-schemas', 'schema-ids': [3] },
    ]);
    expect(derived).toEqual([
      { type: 'assert-table-uuid', uuid: UUID },
      { type: 'assert-default-spec-id', 'default-spec-id': 0 },
      { type: 'assert-ref-snapshot-id', ref: 'main', 'snapshot-id': 7n },
      { type: 'assert-ref-snapshot-id', ref: 'audit', 'snapshot-id': 8n },
      { type: 'assert-current-schema-id', 'current-schema-id': 0 },
    ]);
  });

  it('hold on the base they were derived from, and fail once it moved', () => {
    const derived = deriveRequirements(base, [
      { action: 'set-snapshot-ref', 'ref-name': 'main', type: 'branch', 'snapshot-id': 7n },
    ]);
    expect(checkRequirements(base, derived)).toEqual([]);
    expect(checkRequirements(commit(base), derived)).toEqual([]);
    expect(checkRequirements(append(base, 9n), derived)).toHaveLength(1);
  });
});

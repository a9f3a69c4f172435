import { describe, expect, it } from 'vitest';
import { parseJson } from '../../../src/core/base/int64-json.ts';
import { parseRequirements, parseUpdates } from '../../../src/core/iceberg/updates-json.ts';

describe('parseUpdates', () => {
  it('J2: keeps 64-bit ids exact', () => {
    const text =
      '[{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":8736452839475610001},' +
      '{"action":"remove-snapshots","snapshot-ids":[9007199254740993,7]}]';
    expect(parseUpdates(parseJson(text))).toEqual([
      { action: 'set-snapshot-ref', 'ref-name': 'main', type: 'branch', 'snapshot-id': 8736452839475610001n },
      { action: 'remove-snapshots', 'snapshot-ids': [9007199254740993n, 7n] },
    ]);
  });

  it('reads every action of the protocol', () => {
    const schema = { type: 'struct', 'schema-id': 0, fields: [{ id: 1, name: 'a', required: false, type: 'int' }] };
    const statistics = { 'snapshot-id': 1, 'statistics-path': 's3://b/x.puffin', 'file-size-in-bytes': 3 };
    const snapshot = {
      'snapshot-id': 1,
      'parent-snapshot-id': -1,
      'sequence-number': 1,
      'timestamp-ms': 5,
      'manifest-list': 's3://b/l.avro',
      summary: { operation: 'append' },
    };
    const all = [
      { action: 'assign-uuid', uuid: 'f79c3e09-677c-4bbd-a479-3f349cb785e7' },
      { action: 'upgrade-format-version', 'format-version': 2 },
      { action: 'add-schema', schema, 'last-column-id': 1 },
      { action: 'set-current-schema', 'schema-id': -1 },
      { action: 'add-spec', spec: { fields: [{ 'source-id': 1, name: 'a_b', transform: 'bucket[4]' }] } },
      { action: 'set-default-spec', 'spec-id': -1 },
      { action: 'add-sort-order', 'sort-order': { 'order-id': 0, fields: [] } },
      { action: 'set-default-sort-order', 'sort-order-id': -1 },
      { action: 'add-snapshot', snapshot },
      { action: 'remove-snapshot-ref', 'ref-name': 'old' },
      { action: 'set-location', location: 's3://b/t' },
      { action: 'set-properties', updates: { a: 'b' } },
      { action: 'remove-properties', removals: ['a'] },
      { action: 'set-statistics', 'snapshot-id': 1, statistics },
      { action: 'remove-statistics', 'snapshot-id': 1 },
      { action: 'set-partition-statistics', 'partition-statistics': statistics },
      { action: 'remove-partition-statistics', 'snapshot-id': 1 },
      { action: 'remove-schemas', 'schema-ids': [1] },
      { action: 'remove-partition-specs', 'spec-ids': [1] },
    ];
    const parsed = parseUpdates(all);
    expect(parsed.map((update) => update.action)).toEqual(all.map((update) => update.action));
    expect(parsed[8]).not.toHaveProperty('snapshot.parent-snapshot-id');
    expect(parsed[4]).toEqual({
      action: 'add-spec',
      spec: { fields: [{ 'source-id': 1, name: 'a_b', transform: 'bucket[4]' }] },
    });
  });

  it('names the place of what is malformed, and refuses what it does not know', () => {
    const bad: [unknown, string][] = [
      [{}, 'malformed'],
      [[{ action: 'set-current-schema', 'schema-id': -2 }], 'malformed'],
      [[{ action: 'set-properties', updates: { a: null } }], 'malformed'],
      [[{ action: 'add-snapshot', snapshot: { 'snapshot-id': 1.5 } }], 'malformed'],
      [[{ action: 'add-view-version' }], 'unsupported-update'],
      [[{ action: 'add-encryption-key' }], 'unsupported-update'],
      [Array.from({ length: 1001 }, () => ({ action: 'assign-uuid', uuid: 'x' })), 'malformed'],
    ];
    for (const [json, type] of bad) expect(() => parseUpdates(json)).toThrow(expect.objectContaining({ type }));
  });
});

describe('parseRequirements', () => {
  it('R2, B175: a ref that must not exist is null or -1, and never a key left out', () => {
    const assert = (id: unknown) => [{ type: 'assert-ref-snapshot-id', ref: 'main', 'snapshot-id': id }];
    expect(parseRequirements(assert(null))).toEqual(assert(null));
    expect(parseRequirements(assert(-1))).toEqual(assert(null));
    expect(parseRequirements(assert(7))).toEqual(assert(7n));
    expect(() => parseRequirements([{ type: 'assert-ref-snapshot-id', ref: 'main' }])).toThrow(
      expect.objectContaining({ type: 'malformed' }),
    );
  });

  it('reads every assertion of the protocol', () => {
    const all = [
      { type: 'assert-create' },
      { type: 'assert-table-uuid', uuid: 'x' },
      { type: 'assert-last-assigned-field-id', 'last-assigned-field-id': 3 },
      { type: 'assert-current-schema-id', 'current-schema-id': 0 },
      { type: 'assert-last-assigned-partition-id', 'last-assigned-partition-id': 999 },
      { type: 'assert-default-spec-id', 'default-spec-id': 0 },
      { type: 'assert-default-sort-order-id', 'default-sort-order-id': 1 },
    ];
    expect(parseRequirements(all)).toEqual(all);
    expect(() => parseRequirements([{ type: 'assert-view-uuid' }])).toThrow(
      expect.objectContaining({ type: 'unsupported-requirement' }),
    );
  });
});

import { describe, expect, it } from 'vitest';
import { defaultSpec, parseMetadata, serializeMetadata } from '../../../src/core/iceberg/metadata.ts';
import { currentSnapshot } from '../../../src/core/iceberg/snapshot.ts';
import type { Schema, TableMetadata } from '../../../src/core/iceberg/types.ts';
import {
  applyUpdates,
  commitTime,
  type MetadataUpdate,
  metadataFromUpdates,
} from '../../../src/core/iceberg/updates.ts';
import { append, commit, field, LOCATION, SCHEMA, snapshotOf, timeTable, UUID } from './fixtures.ts';

const refuses = (metadata: TableMetadata, type: string, ...updates: MetadataUpdate[]) =>
  expect(() => commit(metadata, ...updates), type).toThrow(expect.objectContaining({ type }));
const branch = (name: string, id: bigint): MetadataUpdate => ({
  action: 'set-snapshot-ref',
  'ref-name': name,
  type: 'branch',
  'snapshot-id': id,
});
const tag = (name: string, id: bigint): MetadataUpdate => ({
  action: 'set-snapshot-ref',
  'ref-name': name,
  type: 'tag',
  'snapshot-id': id,
});
const remove = (...ids: bigint[]): MetadataUpdate => ({ action: 'remove-snapshots', 'snapshot-ids': ids });

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(freeze);
  }
  return value;
}

describe('applyUpdates: an append', () => {
  it('adds the snapshot, moves main, logs both, and changes nothing that was given', () => {
    const base = freeze(timeTable());
    const next = append(base, 7n);
    expect(next['current-snapshot-id']).toBe(7n);
    expect(next.refs).toEqual({ main: { 'snapshot-id': 7n, type: 'branch' } });
    expect(next['last-sequence-number']).toBe(1n);
    expect(next['last-updated-ms']).toBe(1010);
    expect(next['snapshot-log']).toEqual([{ 'timestamp-ms': 1010, 'snapshot-id': 7n }]);
    expect(next['metadata-log']).toEqual([
      { 'timestamp-ms': 1000, 'metadata-file': `${LOCATION}/metadata/v1000.metadata.json` },
    ]);
    expect(base.snapshots).toEqual([]);
    expect(next.schemas).toBe(base.schemas);
    expect(parseMetadata(serializeMetadata(next))).toEqual(next);
  });

  it('S7: takes the next sequence number and no other', () => {
    const base = append(timeTable(), 7n);
    const stale = snapshotOf(base, 8n, { 'sequence-number': 1n });
    refuses(base, 'stale-sequence-number', { action: 'add-snapshot', snapshot: stale });
    const far = snapshotOf(base, 8n, { 'sequence-number': 3n });
    refuses(base, 'bad-update', { action: 'add-snapshot', snapshot: far });
  });

  it('S9: a rollback and a commit to a branch leave the last sequence number', () => {
    let table = append(append(timeTable(), 7n), 8n);
    table = commit(table, branch('main', 7n));
    expect(table['last-sequence-number']).toBe(2n);
    expect(table['current-snapshot-id']).toBe(7n);
    table = append(table, 9n, 'audit');
    expect(table['last-sequence-number']).toBe(3n);
    expect(table['current-snapshot-id']).toBe(7n);
    expect(table['snapshot-log'].map((entry) => entry['snapshot-id'])).toEqual([7n, 8n, 7n]);
  });

  it('J3: refuses a snapshot id that is in use', () => {
    const base = append(timeTable(), 7n);
    refuses(base, 'snapshot-exists', { action: 'add-snapshot', snapshot: snapshotOf(base, 7n) });
  });

  it('S2: fills in the schema id that DuckDB needs', () => {
    const { 'schema-id': _, ...bare } = snapshotOf(timeTable(), 7n);
    expect(commit(timeTable(), { action: 'add-snapshot', snapshot: bare }).snapshots[0]['schema-id']).toBe(0);
  });

  it('S6, B147: brings the time of a client with a wrong clock between the parent and the commit', () => {
    const base = append(timeTable(), 7n);
    const early = snapshotOf(base, 8n, { 'timestamp-ms': 5 });
    const late = snapshotOf(base, 8n, { 'timestamp-ms': 9_999_999 });
    expect(commit(base, { action: 'add-snapshot', snapshot: early }).snapshots[1]['timestamp-ms']).toBe(1010);
    expect(commit(base, { action: 'add-snapshot', snapshot: late }).snapshots[1]['timestamp-ms']).toBe(1020);
  });

  it('leaves snapshots that were current only inside the commit out of the log', () => {
    const base = timeTable();
    const first = snapshotOf(base, 7n);
    const second = snapshotOf(base, 8n, { 'sequence-number': 2n, 'parent-snapshot-id': 7n });
    const next = commit(
      base,
      { action: 'add-snapshot', snapshot: first },
      branch('main', 7n),
      { action: 'add-snapshot', snapshot: second },
      branch('main', 8n),
    );
    expect(next['snapshot-log'].map((entry) => entry['snapshot-id'])).toEqual([8n]);
  });
});

describe('applyUpdates: clocks and logs', () => {
  it('M5, B147: time goes on although the clock went back', () => {
    const base = append(timeTable(), 7n);
    const next = applyUpdates(base, [], { nowMs: 5, previousMetadataLocation: 'x' });
    expect(next['last-updated-ms']).toBe(base['last-updated-ms'] + 1);
  });

  it('is later than logs of a writer whose clock ran ahead', () => {
    const base = { ...timeTable(), 'snapshot-log': [{ 'timestamp-ms': 31_000, 'snapshot-id': 1n }] };
    expect(commitTime(base, 2000)).toBe(31_000);
  });

  it('B149, M15: keeps as many previous files as the property says', () => {
    let table = timeTable({ 'write.metadata.previous-versions-max': '3' });
    for (let i = 0; i < 9; i++) table = commit(table);
    expect(table['metadata-log'].map((entry) => entry['timestamp-ms'])).toEqual([1060, 1070, 1080]);
  });

  it('B177: a mistyped length of the log, from whatever writer, means the default', () => {
    let table: TableMetadata = { ...timeTable(), properties: { 'write.metadata.previous-versions-max': 'many' } };
    for (let i = 0; i < 103; i++) table = commit(table);
    expect(table['metadata-log']).toHaveLength(100);
  });

  it('the log never names the file that is written, and a first version has none', () => {
    const next = applyUpdates(timeTable(), [], { nowMs: 2000, previousMetadataLocation: null });
    expect(next['metadata-log']).toEqual([]);
  });
});

describe('applyUpdates: expiry', () => {
  const three = append(append(append(timeTable(), 1n), 2n), 3n);

  it('M14, X6: drops the log up to the newest expired entry, and statistics with the snapshot', () => {
    const file = (id: bigint) => ({ 'snapshot-id': id, 'statistics-path': 's3://x' });
    const base = commit(
      three,
      { action: 'set-statistics', statistics: file(2n) },
      { action: 'set-partition-statistics', 'partition-statistics': file(2n) },
      { action: 'set-statistics', statistics: file(3n) },
    );
    const next = commit(base, remove(2n));
    expect(next['snapshot-log'].map((entry) => entry['snapshot-id'])).toEqual([3n]);
    expect(next.snapshots.map((snapshot) => snapshot['snapshot-id'])).toEqual([1n, 3n]);
    expect(next.statistics).toEqual([file(3n)]);
    expect(next['partition-statistics']).toEqual([]);
    expect(parseMetadata(serializeMetadata(next))).toEqual(next);
  });

  it('X2, X5, B140: refuses to expire what a ref points to, also one set meanwhile', () => {
    refuses(three, 'snapshot-referenced', remove(3n));
    const tagged = commit(three, tag('q3', 1n));
    refuses(tagged, 'snapshot-referenced', remove(1n));
    expect(commit(tagged, remove(1n), { action: 'remove-snapshot-ref', 'ref-name': 'q3' }).snapshots).toHaveLength(2);
  });

  it('passes over snapshots that are gone already', () => {
    expect(commit(three, remove(99n)).snapshots).toHaveLength(3);
  });

  it('refuses a ref to a snapshot that has expired', () => {
    refuses(commit(three, remove(1n)), 'unknown-snapshot', tag('late', 1n));
  });

  it('M12: without main there is no current snapshot and no log', () => {
    const next = commit(three, { action: 'remove-snapshot-ref', 'ref-name': 'main' });
    expect(currentSnapshot(next)).toBe(null);
    expect(next['snapshot-log']).toEqual([]);
    expect(serializeMetadata(next)).not.toContain('current-snapshot-id');
  });
});

describe('applyUpdates: schemas', () => {
  const schema = (...fields: Schema['fields']): Schema => ({ type: 'struct', 'schema-id': 0, fields });
  const add = (next: Schema): MetadataUpdate[] => [
    { action: 'add-schema', schema: next },
    { action: 'set-current-schema', 'schema-id': -1 },
  ];
  const base = append(timeTable(), 1n);

  it('adds a column under the next schema id', () => {
    const next = commit(base, ...add(schema(...SCHEMA.fields, field(4, 'color', 'string'))));
    expect(next['current-schema-id']).toBe(1);
    expect(next['last-column-id']).toBe(4);
  });

  it('B035, M6: dropping the highest column frees its id for nobody', () => {
    const dropped = commit(base, ...add(schema(...SCHEMA.fields.slice(0, 2))));
    expect(dropped['last-column-id']).toBe(3);
    refuses(dropped, 'bad-evolution', ...add(schema(...SCHEMA.fields.slice(0, 2), field(3, 'w', 'string'))));
    expect(
      commit(dropped, ...add(schema(...SCHEMA.fields.slice(0, 2), field(4, 'w', 'string'))))['last-column-id'],
    ).toBe(4);
  });

  it('a schema that is there already keeps its id', () => {
    const other = commit(base, ...add(schema(...SCHEMA.fields, field(4, 'color', 'string'))));
    const back = commit(other, ...add(SCHEMA));
    expect(back['current-schema-id']).toBe(0);
    expect(back.schemas).toHaveLength(2);
  });

  it('M23: widens a type and refuses every other change', () => {
    const change = (type: string) => add(schema(...SCHEMA.fields.slice(0, 2), field(3, 'v', type)));
    expect(commit(base, ...change('long'))['current-schema-id']).toBe(1);
    for (const type of ['string', 'double', 'date']) refuses(base, 'bad-evolution', ...change(type));
    const wide = commit(base, ...change('long'));
    refuses(wide, 'bad-evolution', { action: 'set-current-schema', 'schema-id': 0 });
  });

  it('M24: refuses a required column while there are rows', () => {
    const required = add(schema(...SCHEMA.fields, field(4, 'r', 'int', true)));
    refuses(base, 'bad-evolution', ...required);
    expect(commit(timeTable(), ...required)['current-schema-id']).toBe(1);
    refuses(base, 'bad-evolution', ...add(schema(...SCHEMA.fields.slice(0, 2), field(3, 'v', 'int', true))));
  });

  it('M24: goes back to no schema that requires what rows may lack', () => {
    const two = SCHEMA.fields.slice(0, 2);
    const strict = schema(...two, field(3, 'v', 'int', true));
    const required = commit(timeTable(), ...add(strict));
    const back: MetadataUpdate = { action: 'set-current-schema', 'schema-id': 1 };
    for (const fields of [SCHEMA.fields, two]) {
      const looser = append(commit(required, ...add(schema(...fields))), 1n);
      refuses(looser, 'bad-evolution', back);
      refuses(looser, 'bad-evolution', ...add(strict));
    }
    expect(commit(required, ...add(SCHEMA), back)['current-schema-id']).toBe(1);
  });

  it('M23: a dropped column comes back no narrower than files have it', () => {
    const two = SCHEMA.fields.slice(0, 2);
    const wide = append(commit(base, ...add(schema(...two, field(3, 'v', 'long')))), 2n);
    const dropped = commit(wide, ...add(schema(...two)));
    refuses(dropped, 'bad-evolution', { action: 'set-current-schema', 'schema-id': 0 });
    refuses(dropped, 'bad-evolution', ...add(schema(...two, field(3, 'w', 'int'))));
    expect(commit(dropped, { action: 'set-current-schema', 'schema-id': 1 })['current-schema-id']).toBe(1);
  });

  it('M25, B204: holds new columns to the rules of names', () => {
    refuses(base, 'bad-column-name', ...add(schema(...SCHEMA.fields, field(4, 'Device', 'string'))));
    refuses(base, 'bad-column-name', ...add(schema(...SCHEMA.fields, field(4, '_file', 'string'))));
  });

  it('refuses to drop a column that partitions or sorts', () => {
    refuses(base, 'bad-spec', ...add(schema(SCHEMA.fields[1], SCHEMA.fields[2])));
    refuses(base, 'bad-sort-order', ...add(schema(SCHEMA.fields[0], SCHEMA.fields[2])));
  });

  it('removes a schema nobody uses, and only such a one', () => {
    const next = commit(base, ...add(schema(...SCHEMA.fields, field(4, 'color', 'string'))));
    refuses(next, 'bad-update', { action: 'remove-schemas', 'schema-ids': [0] });
    refuses(next, 'bad-metadata', { action: 'remove-schemas', 'schema-ids': [1] });
    const empty = commit(timeTable(), ...add(schema(...SCHEMA.fields, field(4, 'color', 'string'))));
    expect(commit(empty, { action: 'remove-schemas', 'schema-ids': [0] }).schemas).toHaveLength(1);
  });

  it('-1 without anything added is refused', () => {
    refuses(base, 'bad-update', { action: 'set-current-schema', 'schema-id': -1 });
    refuses(base, 'bad-update', { action: 'set-default-spec', 'spec-id': -1 });
    refuses(base, 'bad-update', { action: 'set-default-sort-order', 'sort-order-id': -1 });
    refuses(base, 'bad-update', { action: 'set-current-schema', 'schema-id': 9 });
  });
});

describe('applyUpdates: specs and orders', () => {
  const base = append(timeTable(), 1n);

  it('T8: equal fields keep their id, others get one never used', () => {
    const hourly = commit(
      base,
      { action: 'add-spec', spec: { fields: [{ 'source-id': 1, name: 'time_hour', transform: 'hour' }] } },
      { action: 'set-default-spec', 'spec-id': -1 },
    );
    expect(defaultSpec(hourly)).toEqual({
      'spec-id': 1,
      fields: [{ 'source-id': 1, 'field-id': 1001, name: 'time_hour', transform: 'hour' }],
    });
    expect(hourly['last-partition-id']).toBe(1001);
    const both = commit(
      hourly,
      {
        action: 'add-spec',
        spec: {
          fields: [
            { 'source-id': 1, name: 'd', transform: 'day' },
            { 'source-id': 2, name: 'b', transform: 'bucket[8]' },
          ],
        },
      },
      { action: 'set-default-spec', 'spec-id': -1 },
    );
    expect(defaultSpec(both).fields.map((f) => f['field-id'])).toEqual([1000, 1002]);
    const back = commit(
      both,
      { action: 'add-spec', spec: { fields: [{ 'source-id': 1, name: 'time_day', transform: 'day' }] } },
      { action: 'set-default-spec', 'spec-id': -1 },
    );
    expect(back['default-spec-id']).toBe(0);
    expect(back['partition-specs']).toHaveLength(3);
  });

  it('M9: refuses a field id that means something else already', () => {
    const wish = (id: number): MetadataUpdate => ({
      action: 'add-spec',
      spec: { fields: [{ 'source-id': 2, 'field-id': id, name: 'b', transform: 'bucket[8]' }] },
    });
    refuses(base, 'bad-update', wish(1000));
    expect(commit(base, wish(1005))['last-partition-id']).toBe(1005);
  });

  it('T7, B205: refuses names that collide or are reserved', () => {
    const named = (name: string): MetadataUpdate => ({
      action: 'add-spec',
      spec: { fields: [{ 'source-id': 1, name, transform: 'hour' }] },
    });
    refuses(base, 'bad-spec', named('device'));
    refuses(base, 'bad-spec', named('partition'));
    refuses(base, 'bad-spec', named(''));
  });

  it('adds a sort order once, and keeps 0 for unsorted', () => {
    const order = timeTable()['sort-orders'][0];
    const next = commit(
      base,
      { action: 'add-sort-order', 'sort-order': { 'order-id': 9, fields: order.fields } },
      { action: 'set-default-sort-order', 'sort-order-id': -1 },
    );
    expect(next['default-sort-order-id']).toBe(1);
    const unsorted = commit(
      base,
      { action: 'add-sort-order', 'sort-order': { 'order-id': 0, fields: [] } },
      { action: 'set-default-sort-order', 'sort-order-id': -1 },
    );
    expect(unsorted['default-sort-order-id']).toBe(0);
    expect(unsorted['sort-orders'].map((o) => o['order-id'])).toEqual([1, 0]);
  });

  it('removes a spec, but not the default one', () => {
    refuses(base, 'bad-metadata', { action: 'remove-partition-specs', 'spec-ids': [0] });
  });
});

describe('applyUpdates: identity, place and properties', () => {
  const base = timeTable({ a: '1' });

  it('M2: the uuid never changes', () => {
    expect(commit(base, { action: 'assign-uuid', uuid: UUID.toUpperCase() })['table-uuid']).toBe(UUID);
    refuses(base, 'bad-update', { action: 'assign-uuid', uuid: UUID.replace('f', 'e') });
  });

  it('H11: neither the location nor the metadata path move', () => {
    expect(commit(base, { action: 'set-location', location: `${LOCATION}/` }).location).toBe(LOCATION);
    refuses(base, 'location-fixed', { action: 'set-location', location: 's3://lake/elsewhere' });
    refuses(base, 'bad-property', { action: 'set-properties', updates: { 'write.metadata.path': 's3://x/y' } });
  });

  it('B177: refuses a value that would stop engines, and leaves reserved names out', () => {
    refuses(base, 'bad-property', { action: 'set-properties', updates: { 'commit.retry.num-retries': 'x' } });
    refuses(base, 'unsupported-format-version', { action: 'set-properties', updates: { 'format-version': '3' } });
    refuses(base, 'unsupported-format-version', { action: 'upgrade-format-version', 'format-version': 3 });
    const next = commit(base, { action: 'set-properties', updates: { 'format-version': '2', b: '2' } });
    expect(next.properties).toEqual({ a: '1', b: '2' });
  });

  it('B202: sets and removes properties of any name', () => {
    const updates = JSON.parse('{"__proto__":"x","constructor":"y"}');
    const next = commit(base, { action: 'set-properties', updates });
    expect(Object.keys(next.properties)).toEqual(['a', '__proto__', 'constructor']);
    expect(parseMetadata(serializeMetadata(next))).toEqual(next);
    const less = commit(next, { action: 'remove-properties', removals: ['__proto__', 'a', 'missing'] });
    expect(Object.keys(less.properties)).toEqual(['constructor']);
  });

  it('main is a branch, and a ref keeps its type', () => {
    const table = append(base, 1n);
    refuses(table, 'bad-update', tag('main', 1n));
    refuses(commit(table, tag('t', 1n)), 'bad-update', branch('t', 1n));
    expect(Object.keys(commit(table, tag('__proto__', 1n)).refs)).toEqual(['main', '__proto__']);
  });
});

describe('metadataFromUpdates', () => {
  const creation: MetadataUpdate[] = [
    { action: 'assign-uuid', uuid: UUID },
    { action: 'upgrade-format-version', 'format-version': 2 },
    { action: 'add-schema', schema: SCHEMA },
    { action: 'set-current-schema', 'schema-id': -1 },
    {
      action: 'add-spec',
      spec: { fields: [{ 'source-id': 1, 'field-id': 1000, name: 'time_day', transform: 'day' }] },
    },
    { action: 'set-default-spec', 'spec-id': -1 },
    { action: 'add-sort-order', 'sort-order': { 'order-id': 0, fields: [] } },
    { action: 'set-default-sort-order', 'sort-order-id': -1 },
    { action: 'set-location', location: LOCATION },
    { action: 'set-properties', updates: { owner: 'x' } },
  ];
  const snapshot = snapshotOf(timeTable(), 5n);

  it('makes the table of a staged create, with its first snapshot', () => {
    const made = metadataFromUpdates([...creation, { action: 'add-snapshot', snapshot }, branch('main', 5n)], {
      location: LOCATION,
      nowMs: 2000,
    });
    expect(made).toMatchObject({
      'table-uuid': UUID,
      'current-schema-id': 0,
      'default-spec-id': 0,
      'last-partition-id': 1000,
      'last-column-id': 3,
      'current-snapshot-id': 5n,
      properties: { owner: 'x' },
    });
    expect(parseMetadata(serializeMetadata(made))).toEqual(made);
  });

  it('names what is missing', () => {
    expect(() => metadataFromUpdates(creation.slice(1), { location: LOCATION, nowMs: 1 })).toThrow(/table-uuid/);
    expect(() => metadataFromUpdates(creation.slice(0, 2), { location: LOCATION, nowMs: 1 })).toThrow(
      /current-schema-id/,
    );
    expect(() => metadataFromUpdates(creation, { location: 's3://lake/other', nowMs: 1 })).toThrow(/location/);
  });
});

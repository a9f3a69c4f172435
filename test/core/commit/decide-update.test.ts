import { describe, expect, test } from 'vitest';
import { EPOCHS_MIRROR_KEY, readEpochs, serializeMirror } from '../../../src/core/batch/epochs.ts';
import { CHANGES_KEY, changesAfter, findChange } from '../../../src/core/commit/changes.ts';
import { decideUpdate } from '../../../src/core/commit/decide-update.ts';
import { type IcebergBase, NOTHING_KEPT } from '../../../src/core/commit/iceberg-base.ts';
import type { Plan } from '../../../src/core/commit/plan.ts';
import { clientUpdates } from '../../../src/core/commit/plan-client.ts';
import { setProperties } from '../../../src/core/commit/plan-properties.ts';
import { rollback, setRef } from '../../../src/core/commit/plan-refs.ts';
import { parseSchemaChanges, schemaWarnings } from '../../../src/core/commit/plan-schema.ts';
import type { SinkContext } from '../../../src/core/commit/sink-context.ts';
import { metadataKey } from '../../../src/core/iceberg/locations.ts';
import type { TableMetadata } from '../../../src/core/iceberg/types.ts';
import { IndexMemory } from '../../../src/core/lastvalue/memory.ts';
import { codecs } from '../../../src/engine/codecs.ts';
import { append, commit, LOCATION, snapshotOf, timeTable, UUID } from '../iceberg/fixtures.ts';

const CONTEXT: SinkContext = {
  location: LOCATION,
  ...codecs,
  indexes: new IndexMemory(),
  keyOf: (location) => location,
  versionLocation: (version) => metadataKey(LOCATION, version),
};

function baseOf(metadata: TableMetadata): IcebergBase {
  return { version: 7, etag: 'e', metadata, manifests: [], kept: NOTHING_KEPT };
}

function decide(metadata: TableMetadata, plan: Plan, tableUuid = UUID) {
  const identity = { commitId: '0a'.repeat(16), snapshotId: 5n, timeMs: 1, tableUuid };
  const operation = { kind: 'update' as const, commitId: identity.commitId, uploads: [], identity, plan };
  return decideUpdate(CONTEXT, operation, baseOf(metadata), new Map(), 5_000);
}

/** The metadata that the change makes. */
function changed(metadata: TableMetadata, plan: Plan): TableMetadata {
  const decided = decide(metadata, plan);
  if (decided.kind !== 'proceed') throw new Error(`not a change: ${decided.kind}`);
  return decided.next('e').metadata;
}

describe('changes', () => {
  test('changes: newest first, bounded, each once; found by its id alone', () => {
    let properties: Record<string, string> = {};
    for (let round = 0; round < 20; round++)
      properties = { [CHANGES_KEY]: changesAfter(properties, `id${round % 18}`) };
    const ids = properties[CHANGES_KEY].split(' ');
    expect(ids).toHaveLength(16);
    expect(ids.slice(0, 3)).toEqual(['id1', 'id0', 'id17']);
    const base = baseOf({ ...timeTable(), properties });
    expect(findChange(base, 'id17')).toEqual({ snapshotId: null, version: 7 });
    expect(findChange(base, 'id2')).toBeNull();
    expect(findChange(baseOf(timeTable()), '')).toBeNull();
  });
});

describe('decide-update', () => {
  test('update: requirements are checked before the updates, and the first that fails is named', () => {
    const requirements = [
      { type: 'assert-table-uuid' as const, uuid: UUID },
      { type: 'assert-default-spec-id' as const, 'default-spec-id': 4 },
    ];
    const plan: Plan = () => ({ requirements, updates: [{ action: 'remove-snapshot-ref', 'ref-name': 'main' }] });
    expect(() => decide(timeTable(), plan)).toThrow(
      expect.objectContaining({ kind: 'conflict', detail: { requirement: 'assert-default-spec-id' } }),
    );
  });

  test('update: another table at its place is left alone', () => {
    const plan: Plan = () => ({ updates: [{ action: 'set-properties', updates: { a: 'b' } }] });
    expect(decide(timeTable(), plan, '00000000-0000-4000-8000-000000000000')).toMatchObject({
      kind: 'refused',
      type: 'table-replaced',
    });
  });

  test('update: updates that leave everything as it is write no version', () => {
    const table = append(timeTable({ a: 'b' }), 1n);
    const same: Plan = () => ({
      updates: [
        { action: 'set-properties', updates: { a: 'b' } },
        { action: 'set-snapshot-ref', 'ref-name': 'main', type: 'branch', 'snapshot-id': 1n },
        { action: 'set-default-spec', 'spec-id': 0 },
      ],
    });
    expect(decide(table, same).kind).toBe('nothing');
    expect(decide(table, () => ({ updates: [{ action: 'set-properties', updates: { a: 'c' } }] })).kind).toBe(
      'proceed',
    );
  });

  test('mirror: written anew when main moves, from where progress still is', () => {
    const carrying = (text: string) => ({ summary: { operation: 'append' as const, 'sluice.epochs': text } });
    let table = timeTable();
    for (const [id, epoch] of [
      [1n, '1'],
      [2n, '2'],
    ] as const) {
      table = commit(
        table,
        { action: 'add-snapshot', snapshot: snapshotOf(table, id, carrying(`{"a":"${epoch}"}`)) },
        { action: 'set-snapshot-ref', 'ref-name': 'main', type: 'branch', 'snapshot-id': id },
        { action: 'set-properties', updates: { [EPOCHS_MIRROR_KEY]: serializeMirror(id, id, new Map([['a', id]])) } },
      );
    }
    const back = changed(table, rollback(1n));
    expect(back.properties[EPOCHS_MIRROR_KEY]).toBe('1 1 {"a":"1"}');
    // A foreign commit on top, and both carriers expire: what was rolled back stays so.
    const foreign = append(back, 3n);
    const gone = changed(foreign, () => ({ updates: [{ action: 'remove-snapshots', 'snapshot-ids': [1n, 2n] }] }));
    expect([...readEpochs(gone)]).toEqual([['a', 1n]]);
    // Without a word of ours in the ancestry, a foreign rollback left the mirror of a later state behind.
    const stale = { ...append(back, 3n), properties: { ...back.properties, [EPOCHS_MIRROR_KEY]: '2 2 {"a":"2"}' } };
    const cut = changed(stale, () => ({ updates: [{ action: 'remove-snapshots', 'snapshot-ids': [1n, 2n] }] }));
    expect([...readEpochs(cut)]).toEqual([['a', 1n]]);
    expect(cut.properties[EPOCHS_MIRROR_KEY]).toBe('3 3 {"a":"1"}');
  });

  test('mirror: a branch that moves leaves it alone', () => {
    const table = append(append(timeTable({ [EPOCHS_MIRROR_KEY]: '1 1 {"a":"1"}' }), 1n), 2n);
    const moved = changed(table, setRef({ name: 'dev', type: 'branch', snapshotId: 1n }));
    expect(moved.properties[EPOCHS_MIRROR_KEY]).toBe('1 1 {"a":"1"}');
    expect(moved.refs['dev']).toEqual({ type: 'branch', 'snapshot-id': 1n });
  });
});

describe('plans', () => {
  test('properties: at most so many, but a table with more may lose some', () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`p${index}`, 'x']));
    const table = timeTable(many);
    const plan = setProperties({ set: { q: 'y' }, remove: [] });
    expect(() => plan(table)).toThrow(expect.objectContaining({ type: 'too-many-properties' }));
    expect(setProperties({ set: { q: 'y' }, remove: ['p1'] })(table).updates).toHaveLength(2);
    const more = timeTable({ ...many, p100: 'x', p101: 'x' });
    expect(setProperties({ set: {}, remove: ['p1'] })(more).updates).toHaveLength(1);
  });

  test('ref: limits are set, kept when left out, and taken away by null; tags have an age only', () => {
    const table = append(timeTable(), 1n);
    const branch = changed(
      table,
      setRef({ name: 'd', type: 'branch', snapshotId: null, maxRefAgeMs: 5, minSnapshotsToKeep: 2 }),
    );
    const kept = changed(branch, setRef({ name: 'd', type: null, snapshotId: null, maxRefAgeMs: null }));
    expect(kept.refs['d']).toEqual({ type: 'branch', 'snapshot-id': 1n, 'min-snapshots-to-keep': 2 });
    const tag = setRef({ name: 't', type: 'tag', snapshotId: 1n, minSnapshotsToKeep: 2 });
    expect(() => tag(table)).toThrow('a tag has no min-snapshots-to-keep');
    expect(() => setRef({ name: 'x', type: null, snapshotId: 1n })(table)).toThrow('type of a new ref is missing');
    expect(() => setRef({ name: 'x', type: 'tag', snapshotId: null })(timeTable())).toThrow('no snapshot');
    expect(() => setRef({ name: '.x', type: 'tag', snapshotId: 1n })(table)).toThrow('name of a ref');
  });

  test('client: the service’s own properties are neither forged nor taken away (R7)', () => {
    const set = (key: string) => () => clientUpdates([], [{ action: 'set-properties', updates: { [key]: 'x' } }]);
    for (const key of ['sluice.changes', 'sluice.epochs-main', 'timelake.series-key', 'sluice.unknown']) {
      expect(set(key), key).toThrow('property');
    }
    expect(() => clientUpdates([], [{ action: 'remove-properties', removals: ['sluice.changes'] }])).toThrow('managed');
    const plan = clientUpdates([], [{ action: 'set-properties', updates: { 'commit.retry.num-retries': '3' } }]);
    expect(changed(timeTable(), plan).properties['commit.retry.num-retries']).toBe('3');
  });

  test('schema: requests say one change each, and new columns are optional (M24)', () => {
    const bad = (json: unknown) => expect(() => parseSchemaChanges([json]));
    bad({ add: 'x', type: 'int', required: true }).toThrow('new column is optional');
    bad({ add: 'x', drop: 'y', type: 'int' }).toThrow('has one of');
    bad({ add: 'x', type: 'int', after: 'y' }).toThrow('unknown member');
    bad({ add: 'x', type: 'integer' }).toThrow();
    bad({ promote: 'x', type: { type: 'list' } }).toThrow('a string');
    bad({ rename: 'x' }).toThrow('changes[0].to');
    bad({}).toThrow('has one of');
    const changes = parseSchemaChanges([
      { add: 'a', type: { type: 'list', element: 'string' }, doc: 'words' },
      { rename: 'b', to: 'c' },
      { promote: 'd', type: 'decimal(9,2)' },
    ]);
    expect(changes[0]).toMatchObject({ field: { doc: 'words', type: { type: 'list', 'element-required': false } } });
    expect(changes[2]).toMatchObject({ type: 'decimal(9, 2)' });
    expect(schemaWarnings(changes)).toHaveLength(2);
  });
});

import { beforeEach, describe, expect, test } from 'vitest';
import { utf8 } from '../../src/core/base/bytes.ts';
import { stringifyJson } from '../../src/core/base/int64-json.ts';
import { readEpochs } from '../../src/core/batch/epochs.ts';
import { CHANGES_KEY } from '../../src/core/commit/changes.ts';
import { parseSchemaChanges } from '../../src/core/commit/plan-schema.ts';
import { prepareAppend } from '../../src/core/commit/prepare-append.ts';
import { readManifestList, writeManifestList } from '../../src/core/iceberg/manifest-list.ts';
import { currentSnapshot, MAIN, snapshotOfRef } from '../../src/core/iceberg/snapshot.ts';
import type { TableMetadata } from '../../src/core/iceberg/types.ts';
import { codecs } from '../../src/engine/codecs.ts';
import { newIdentity } from '../../src/engine/identity.ts';
import type { Changed } from '../../src/engine/table-changes.ts';
import { storeBucket } from '../oracle/bucket.ts';
import { rows } from '../oracle/rows.ts';
import {
  acknowledge,
  expectExactlyOnce,
  expectValid,
  newScenario,
  type Scenario,
  spelled,
  tableRows,
  uniqueRow,
} from '../sim/scenario.ts';
import { PLACE, Service } from '../sim/service.ts';
import { SimLedger } from '../sim/sim-ledger.ts';

let scenario: Scenario;

beforeEach(async () => {
  scenario = await newScenario();
});

/** Commits `count` appends of one row each; returns the ids of their snapshots. */
async function commits(count: number): Promise<bigint[]> {
  const ids: bigint[] = [];
  for (let commit = 0; commit < count; commit++) {
    await acknowledge(scenario, [uniqueRow()]);
    await scenario.service.drain();
    ids.push(current().snapshots.at(-1)?.['snapshot-id'] ?? 0n);
  }
  return ids;
}

function current(): TableMetadata {
  const metadata = scenario.service.table.base?.metadata;
  if (metadata === undefined) throw new Error('the table is not loaded');
  return metadata;
}

/** Runs a change; the table is valid afterwards whatever became of it. */
async function run(change: Promise<Changed>): Promise<Changed> {
  try {
    return await scenario.world.clock.until(change);
  } finally {
    await expectValid(scenario.world, false);
  }
}

async function rowsAt(snapshotId: bigint): Promise<string[]> {
  const found = await rows(storeBucket(scenario.world.memory), PLACE.prefix, { snapshotId });
  return found.map((row) => `${row['device']} ${row['time']} ${row['v']}`).sort();
}

/** Writes the next version as another writer would, without a word to the service. */
async function foreignVersion(change: (metadata: TableMetadata) => TableMetadata): Promise<void> {
  const base = await scenario.world.clock.until(scenario.service.table.load());
  if (base === null) throw new Error('no table');
  const next = change({
    ...base.metadata,
    'last-updated-ms': base.metadata['last-updated-ms'] + 1,
    'metadata-log': [
      ...base.metadata['metadata-log'],
      {
        'timestamp-ms': base.metadata['last-updated-ms'],
        'metadata-file': `${PLACE.location}/metadata/v${base.version}.metadata.json`,
      },
    ],
  });
  const key = `${PLACE.prefix}/metadata/v${base.version + 1}.metadata.json`;
  await scenario.world.memory.putIfAbsent(key, utf8(stringifyJson(next)));
}

/** A snapshot of the same files by another writer: it carries nothing of ours but the properties. */
async function foreignSnapshot(summary: Record<string, string>): Promise<bigint> {
  const { memory, clock } = scenario.world;
  const base = await clock.until(scenario.service.table.load());
  const head = base === null ? null : currentSnapshot(base.metadata);
  if (base === null || head === null) throw new Error('no snapshot');
  const listOf = (location: string) => PLACE.prefix + location.slice(PLACE.location.length);
  const list = await memory.get(listOf(head['manifest-list']));
  const id = 4_611_686_018_427_387_905n + BigInt(base.version);
  const location = `${PLACE.location}/metadata/snap-${id}-foreign.avro`;
  const sequenceNumber = base.metadata['last-sequence-number'] + 1n;
  const bytes = writeManifestList({
    snapshotId: id,
    parentSnapshotId: head['snapshot-id'],
    sequenceNumber,
    manifests: readManifestList(list?.bytes ?? new Uint8Array(), codecs.deflate),
    syncMarker: new Uint8Array(16),
    deflate: codecs.deflate,
  });
  await memory.putIfAbsent(listOf(location), bytes);
  const totals = Object.entries(head.summary).filter(([key]) => key.startsWith('total-'));
  await foreignVersion((metadata) => ({
    ...metadata,
    'last-sequence-number': sequenceNumber,
    'current-snapshot-id': id,
    refs: { ...metadata.refs, main: { type: 'branch', 'snapshot-id': id } },
    'snapshot-log': [...metadata['snapshot-log'], { 'timestamp-ms': metadata['last-updated-ms'], 'snapshot-id': id }],
    snapshots: [
      ...metadata.snapshots,
      {
        'snapshot-id': id,
        'parent-snapshot-id': head['snapshot-id'],
        'sequence-number': sequenceNumber,
        'timestamp-ms': metadata['last-updated-ms'],
        'manifest-list': location,
        summary: { ...Object.fromEntries(totals), ...summary, operation: 'replace' },
        'schema-id': metadata['current-schema-id'],
      },
    ],
  }));
  return id;
}

describe('properties', () => {
  test('properties: set in normal form and removed in one version; the same again writes none', async () => {
    const { changes } = scenario.service;
    const first = await run(changes.properties({ 'sluice.flush-interval': '120s', owner: 'ops' }, []));
    expect(first.changed).toBe(true);
    expect(first.base.metadata.properties).toMatchObject({ 'sluice.flush-interval': '2m', owner: 'ops' });
    const again = await run(changes.properties({ 'sluice.flush-interval': '2m' }, ['never-set']));
    expect(again).toMatchObject({ changed: false, base: { version: first.base.version } });
    const gone = await run(changes.properties({}, ['owner', 'SLUICE.flush_interval']));
    expect(gone.base.version).toBe(first.base.version + 1);
    expect(Object.keys(gone.base.metadata.properties)).not.toContain('owner');
    expect(Object.keys(gone.base.metadata.properties)).not.toContain('sluice.flush-interval');
  });

  test('properties: keys that the service or the engine manages are refused, and so are bad values (B177)', () => {
    const { changes } = scenario.service;
    for (const key of [CHANGES_KEY, 'sluice.epochs-main', 'sluice.dropped', 'timelake.time-column']) {
      expect(() => changes.properties({ [key]: 'x' }, [])).toThrow('managed');
      expect(() => changes.properties({}, [key])).toThrow('managed');
    }
    expect(() => changes.properties({ 'timelake.max-snapshots': 'many' }, [])).toThrow('bad value');
    expect(() => changes.properties({ owner: 'a' }, ['owner'])).toThrow('both');
  });

  test('upgrade: missing and older format properties are written, values that somebody set stay', async () => {
    await foreignVersion((metadata) => {
      const { 'timelake.min-snapshots': _, ...rest } = metadata.properties;
      return { ...metadata, properties: { ...rest, 'timelake.format-version': '2', 'timelake.max-snapshots': '7' } };
    });
    const { base, changed } = await run(scenario.service.changes.upgrade());
    expect(changed).toBe(true);
    expect(base.metadata.properties).toMatchObject({
      'timelake.format-version': '0.3.0',
      'timelake.min-snapshots': '5',
      'timelake.max-snapshots': '7',
    });
    expect((await run(scenario.service.changes.upgrade())).changed).toBe(false);
  });
});

describe('schema', () => {
  const changes = (json: unknown) => parseSchemaChanges(json);

  test('schema: a new column; rows buffered under the old schema and rows under the new one are read together', async () => {
    await commits(1);
    await acknowledge(scenario, [uniqueRow()]); // waits in the buffer
    const { base } = await run(scenario.service.changes.schema(changes([{ add: 'note', type: 'string' }]), null));
    expect(base.metadata['current-schema-id']).toBe(1);
    expect(base.metadata.schemas[1].fields.at(-1)).toEqual({ id: 5, name: 'note', required: false, type: 'string' });
    await scenario.service.drain();
    await commits(1);
    await expectExactlyOnce(scenario);
  });

  test('schema: dropped and added again under the same name is another column', async () => {
    await commits(1);
    const drop = await run(scenario.service.changes.schema(changes([{ drop: 'v' }]), 0));
    expect(drop.base.metadata['last-column-id']).toBe(4);
    await run(scenario.service.changes.schema(changes([{ add: 'v', type: 'long' }]), null));
    expect(
      current()
        .schemas.at(-1)
        ?.fields.find((field) => field.name === 'v')?.id,
    ).toBe(5);
    const found = await rows(storeBucket(scenario.world.memory), PLACE.prefix);
    expect(found.map((row) => row['v'])).toEqual([null]);
    await commits(1);
  });

  test('schema: renamed, widened, made optional; an index of the old columns is not named any more', async () => {
    await commits(2);
    await foreignSnapshot({ 'timelake.last-value-index': `${PLACE.location}/metadata/lvi-1-a.parquet` });
    await scenario.world.memory.putIfAbsent(`${PLACE.prefix}/metadata/lvi-1-a.parquet`, new Uint8Array(3));
    await scenario.world.memory.putIfAbsent(`${PLACE.prefix}/metadata/timelake-head`, new Uint8Array(3));
    const before = 3;
    await run(
      scenario.service.changes.schema(
        changes([
          { add: 'n', type: 'int' },
          { rename: 'v', to: 'w' },
        ]),
        null,
      ),
    );
    const made = current().snapshots.at(-1);
    expect(current().snapshots.length).toBe(before + 1);
    expect(made?.summary).toMatchObject({ operation: 'replace', 'total-records': '2' });
    expect(made?.summary['timelake.last-value-index']).toBeUndefined();
    expect(made?.['schema-id']).toBe(current()['current-schema-id']);
    expect(await scenario.world.memory.head(`${PLACE.prefix}/metadata/timelake-head`)).toBeNull();
    await run(scenario.service.changes.schema(changes([{ promote: 'n', type: 'long' }]), null));
    expect(current().snapshots.length).toBe(before + 1);
    const found = await rows(storeBucket(scenario.world.memory), PLACE.prefix);
    expect(found.map((row) => row['w']).every((value) => typeof value === 'bigint')).toBe(true);
    expect(readEpochs(current()).get('sluice/00000000000000aa')).toBe(2n);
  });

  test('schema: columns that the table is built on stay, and an old premise is a conflict that names it', async () => {
    await commits(1);
    const { schema } = scenario.service.changes;
    const asked = (json: unknown, expected: number | null = null) =>
      run(schema.call(scenario.service.changes, changes(json), expected));
    await expect(asked([{ drop: 'time' }])).rejects.toMatchObject({ type: 'column-in-use' });
    await expect(asked([{ rename: 'device', to: 'd' }])).rejects.toMatchObject({ type: 'column-in-use' });
    await expect(asked([{ optional: '_ingest_ts' }])).rejects.toMatchObject({ type: 'column-in-use' });
    await expect(asked([{ drop: 'nowhere' }])).rejects.toMatchObject({ type: 'bad-evolution' });
    await expect(asked([{ add: 'v', type: 'int' }])).rejects.toMatchObject({ type: 'bad-evolution' });
    await expect(asked([{ add: 'x', type: 'int' }], 3)).rejects.toMatchObject({
      kind: 'conflict',
      type: 'requirement-failed',
      detail: { requirement: 'assert-current-schema-id' },
    });
    expect(current()['current-schema-id']).toBe(0);
  });
});

describe('refs and rollback', () => {
  test('ref: made, moved, limited, removed; asking again is no conflict', async () => {
    const [first, second] = await commits(2);
    const { changes } = scenario.service;
    const tag = { name: 'v1', type: 'tag', snapshotId: first, expected: null } as const;
    expect((await run(changes.setRef(tag))).changed).toBe(true);
    expect((await run(changes.setRef(tag))).changed).toBe(false);
    await expect(run(changes.setRef({ ...tag, snapshotId: second }))).rejects.toMatchObject({
      type: 'requirement-failed',
      detail: { requirement: 'assert-ref-snapshot-id' },
    });
    await run(changes.setRef({ name: 'v1', type: null, snapshotId: second, expected: first, maxRefAgeMs: 60_000 }));
    expect(current().refs['v1']).toEqual({ type: 'tag', 'snapshot-id': second, 'max-ref-age-ms': 60_000 });
    await expect(run(changes.setRef({ name: 'v1', type: 'branch', snapshotId: null }))).rejects.toMatchObject({
      type: 'bad-ref',
    });
    await run(changes.dropRef('v1'));
    await expect(run(changes.dropRef('v1'))).rejects.toMatchObject({ type: 'unknown-ref' });
    await expect(run(changes.dropRef(MAIN))).rejects.toMatchObject({ type: 'main-fixed' });
    await expect(run(changes.setRef({ ...tag, name: '17' }))).rejects.toMatchObject({ type: 'bad-ref' });
    await expect(run(changes.setRef({ ...tag, name: MAIN, type: 'branch' }))).rejects.toMatchObject({
      type: 'main-fixed',
    });
    await expect(run(changes.setRef({ ...tag, snapshotId: 1n }))).rejects.toMatchObject({ type: 'unknown-snapshot' });
  });

  test('branch: an append to it leaves main and its progress alone; main then moves forward to it', async () => {
    const [first] = await commits(1);
    const { service, world } = scenario;
    await run(service.changes.setRef({ name: 'audit', type: 'branch', snapshotId: first }));
    const row = uniqueRow();
    for (let commit = 0; commit < 10; commit++) {
      const base = service.table.base;
      if (base === null) throw new Error('not loaded');
      const frame = { ...service.frame([commit === 0 ? row : uniqueRow('b')]), sequence: 100 + commit };
      const operation = prepareAppend({
        intent: {
          ...newIdentity({ clock: world.clock, random: world.random }, base.metadata),
          form: 1,
          operation: 'append',
          ledgerId: '00000000000000aa',
          first: 100 + commit,
          last: 100 + commit,
          rows: 1,
          branch: 'audit',
          retire: [],
        },
        frames: [frame],
        last: 100 + commit,
        leftOut: [],
        metadata: base.metadata,
        place: PLACE,
        ...codecs,
      });
      const result = await world.clock.until(service.table.commit(operation, () => undefined));
      expect(result.outcome).toBe('committed');
      await expectValid(world, false);
    }
    const head = snapshotOfRef(current(), 'audit');
    expect(current()['current-snapshot-id']).toBe(first);
    expect(await tableRows(world)).toEqual([...scenario.acknowledged]);
    expect(await rowsAt(head?.['snapshot-id'] ?? 0n)).toContain(spelled(row));
    expect([...readEpochs(current())]).toEqual([['sluice/00000000000000aa', 1n]]);
    expect([...readEpochs(current(), 'audit')]).toEqual([
      ['sluice/00000000000000aa', 1n],
      ['sluice/00000000000000aa/audit', 109n],
    ]);

    await run(service.changes.fastForward(MAIN, 'audit'));
    expect(current()['current-snapshot-id']).toBe(head?.['snapshot-id']);
    expect(readEpochs(current()).get('sluice/00000000000000aa/audit')).toBe(109n);
    expect((await run(service.changes.fastForward(MAIN, 'audit'))).changed).toBe(false);
    await commits(1);
    await expect(run(service.changes.fastForward(MAIN, 'audit'))).rejects.toMatchObject({ type: 'not-fast-forward' });
    expect((await run(service.changes.fastForward('audit', MAIN))).changed).toBe(true);
  });

  test('rollback: rows and progress go back together, and the next append follows the older snapshot', async () => {
    const ids = await commits(3);
    const sent = [...scenario.acknowledged];
    await run(scenario.service.changes.rollback(ids[0]));
    expect(await tableRows(scenario.world)).toEqual(sent.slice(0, 1));
    expect(readEpochs(current()).get('sluice/00000000000000aa')).toBe(1n);
    expect(current()['last-sequence-number']).toBe(3n);
    scenario.acknowledged = sent.slice(0, 1);
    await commits(1);
    await expectExactlyOnce(scenario);
    await expect(run(scenario.service.changes.rollback(1n))).rejects.toMatchObject({ type: 'unknown-snapshot' });
    await expect(run(scenario.service.changes.rollback(ids[1], ids[2]))).rejects.toMatchObject({
      type: 'requirement-failed',
    });
  });

  test('rollback: to before a change of columns, an engine is not left with the index of the old ones', async () => {
    await commits(1);
    const { service, world } = scenario;
    const [first] = current().snapshots.map((snapshot) => snapshot['snapshot-id']);
    await run(service.changes.schema(parseSchemaChanges([{ add: 'n', type: 'int' }]), null));
    const head = `${PLACE.prefix}/metadata/timelake-head`;
    await world.memory.putIfAbsent(head, new Uint8Array(3));
    await run(service.changes.properties({ a: '1' }, []));
    expect(await world.memory.head(head)).not.toBeNull();
    await run(service.changes.rollback(first));
    expect(await world.memory.head(head)).toBeNull();
  });

  test('rollback: progress that was left behind is not believed again when expiry cuts the carriers off', async () => {
    const ids = await commits(3);
    await run(scenario.service.changes.rollback(ids[0]));
    // Another writer goes on from there, then the carriers expire.
    await foreignSnapshot({});
    await foreignVersion((metadata) => ({
      ...metadata,
      snapshots: metadata.snapshots.filter((snapshot) => !ids.includes(snapshot['snapshot-id'])),
      'snapshot-log': metadata['snapshot-log'].slice(-1),
    }));
    const base = await scenario.world.clock.until(scenario.service.table.load());
    expect(base?.metadata.snapshots).toHaveLength(1);
    expect(readEpochs(current()).get('sluice/00000000000000aa')).toBe(1n);
  });
});

describe('lost answers: each change is made once, and its own repetition is no conflict', () => {
  const given: [string, (service: Service, ids: readonly bigint[]) => Promise<Changed>][] = [
    ['properties', ({ changes }) => changes.properties({ owner: 'ops' }, [])],
    ['upgrade', ({ changes }) => changes.properties({ 'timelake.max-snapshots': '9' }, [])],
    ['schema', ({ changes }) => changes.schema(parseSchemaChanges([{ add: 'note', type: 'string' }]), 0)],
    ['tag', ({ changes }, ids) => changes.setRef({ name: 't', type: 'tag', snapshotId: ids[0], expected: null })],
    ['drop of a ref', ({ changes }) => changes.dropRef('old')],
    ['fast-forward', ({ changes }) => changes.fastForward('old', MAIN)],
    ['rollback', ({ changes }, ids) => changes.rollback(ids[0], ids[1])],
    [
      'update',
      ({ changes }) =>
        changes.update(
          [],
          [
            { action: 'add-spec', spec: { fields: [] } },
            { action: 'set-default-spec', 'spec-id': -1 },
          ],
        ),
    ],
  ];
  for (const [name, change] of given) {
    for (const fault of ['response-lost', 'late', 'request-lost'] as const) {
      for (const other of [false, true]) {
        test(`${name}: ${fault}${other ? ', and another writer commits before it is tried again' : ''}`, async () => {
          const ids = await commits(2);
          const { service, world } = scenario;
          await run(service.changes.setRef({ name: 'old', type: 'branch', snapshotId: ids[0] }));
          const version = service.table.base?.version ?? 0;
          const target = new RegExp(`v${version + 1}\\.metadata\\.json$`);
          const planted = service.store.faults.next('putIfAbsent', target, fault);
          const unreadable = other ? service.store.faults.next('list', null, 'unreadable') : null;
          const changed = change(service, ids);
          await planted.reached;
          if (unreadable !== null) {
            await unreadable.reached;
            await planted.land();
            const second = new Service(world, new SimLedger('00000000000000bb'));
            await world.clock.until(second.changes.properties({ other: 'x' }, []));
          }
          const result = await run(changed);
          await planted.land();
          const base = await world.clock.until(service.table.load());
          expect(result.changed).toBe(true);
          expect(planted.hits).toBe(1);
          expect(base?.version).toBe(version + 1 + (other ? 1 : 0));
          expect(base?.metadata.properties[CHANGES_KEY].split(' ').length).toBe(3 + (other ? 1 : 0));
          expect((await run(change(service, ids).catch(() => result))).base.version).toBe(base?.version);
        });
      }
    }
  }

  test('unknown: once a write may have happened, a store that then fails does not make it "try again as it is"', async () => {
    const { service, world } = scenario;
    const late = service.store.faults.next('putIfAbsent', /v2\.metadata\.json$/, 'late');
    const changed = service.changes.properties({ owner: 'ops' }, []);
    changed.catch(() => undefined);
    await world.clock.idle();
    await late.reached;
    const down = service.store.faults.always('*', null, 'unreadable');
    await expect(world.clock.until(changed)).rejects.toMatchObject({ kind: 'unknown', type: 'commit-unknown' });
    down.clear();
    await late.land();
    const again = await run(service.changes.properties({ owner: 'ops' }, []));
    expect(again).toMatchObject({ changed: false, base: { version: 2 } });
  });

  test('changes: a bounded number of ids is remembered, newest first', async () => {
    const { changes } = scenario.service;
    for (let round = 0; round < 20; round++)
      await scenario.world.clock.until(changes.properties({ round: String(round) }, []));
    expect(current().properties[CHANGES_KEY].split(' ')).toHaveLength(16);
    await expectValid(scenario.world);
  });
});

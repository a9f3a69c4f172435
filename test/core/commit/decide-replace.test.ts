import { beforeEach, describe, expect, test } from 'vitest';
import { prepareDelete } from '../../../src/core/commit/decide-delete.ts';
import { seenOf } from '../../../src/core/commit/iceberg-base.ts';
import { makeManifest } from '../../../src/core/commit/made-manifest.ts';
import type { ReplaceOperation } from '../../../src/core/commit/operation.ts';
import { prepareReplace } from '../../../src/core/commit/prepare-replace.ts';
import { snapshotOf } from '../../../src/core/commit/snapshot-of.ts';
import { currentSchema, defaultSpec } from '../../../src/core/iceberg/metadata.ts';
import { MAIN } from '../../../src/core/iceberg/snapshot.ts';
import { NO_COUNTS } from '../../../src/core/iceberg/summary.ts';
import type { DataFile, ManifestEntry } from '../../../src/core/iceberg/types.ts';
import { codecs } from '../../../src/engine/codecs.ts';
import { PLACE, type SeriesRow } from '../../sim/service.ts';
import { PureTable, row, spelled } from './pure-table.ts';

let table: PureTable;

beforeEach(() => {
  table = new PureTable();
});

/** Live entries of one day, oldest first. */
function entriesOn(label: string): ManifestEntry[] {
  return table
    .live()
    .filter(({ dataFile }) => dataFile.filePath.includes(`time_day=${label}/`))
    .sort((a, b) => Number((a.sequenceNumber ?? 0n) - (b.sequenceNumber ?? 0n)));
}

/** Replaces the files by one with these rows. */
function replace(inputs: ManifestEntry[], rows: SeriesRow[]): ReplaceOperation {
  const identity = table.identity();
  const { outputs, uploads, layout } = table.compacted(rows, identity);
  const { metadata } = table;
  return prepareReplace({
    identity,
    metadata,
    layout,
    runs: [{ inputs, outputs }],
    uploads,
    place: PLACE,
    ...codecs,
  });
}

/** A snapshot of another writer with one delete file. */
function deleteFile(given: Partial<DataFile>, sequenceNumber: bigint | null = null): void {
  const { base, metadata, context } = table;
  if (base === null) throw new Error('no base');
  const identity = table.identity();
  const [{ dataFile }] = table.live();
  const entry: ManifestEntry = {
    status: 1,
    snapshotId: identity.snapshotId,
    sequenceNumber,
    fileSequenceNumber: null,
    dataFile: {
      ...dataFile,
      content: 1,
      filePath: `${PLACE.location}/data/d-${identity.snapshotId}.parquet`,
      ...given,
    },
  };
  const input = { identity, sequenceNumber: metadata['last-sequence-number'] + 1n };
  const made = makeManifest(context, {
    ...input,
    kind: 'added',
    label: 'x',
    schema: currentSchema(metadata),
    spec: defaultSpec(metadata),
    content: 1,
    entries: [entry],
  });
  const decision = snapshotOf(
    context,
    {
      base,
      identity,
      branch: MAIN,
      operation: 'delete',
      schemaId: 0,
      parentRows: table.list(),
      made: [made],
      carried: table.list(),
      counts: NO_COUNTS,
      epochs: 'carry',
      lastValueIndex: null,
    },
    seenOf(context, base, new Map()),
    table.nowMs,
  );
  for (const { key, bytes } of decision.uploads) table.files.set(key, bytes);
  table.base = decision.next('etag');
}

describe('replace: what it leaves', () => {
  test('C1 C4 C5 B131 B134: outputs take the highest number of their inputs, rows and survivors stay', async () => {
    table.append(row(0, 1), row(1, 1));
    table.append(row(0, 2));
    table.append(row(0, 3));
    const other = entriesOn('2026-01-02');
    const inputs = entriesOn('2026-01-01').slice(0, 2);
    table.run(replace(inputs, [row(0, 1), row(0, 2)]));
    const [output] = entriesOn('2026-01-01').filter(({ snapshotId }) => snapshotId === table.snapshot['snapshot-id']);
    expect(output).toMatchObject({ status: 1, sequenceNumber: 2n, fileSequenceNumber: 4n });
    const [added, merged, deleted] = table.list();
    // As written: no file number, and the row says the least of what is inside.
    expect(added).toMatchObject({ sequenceNumber: 4n, minSequenceNumber: 2n, addedFilesCount: 1 });
    expect(table.entriesOf(merged)).toEqual(other.map((entry) => ({ ...entry, status: 0 })));
    expect(table.entriesOf(deleted).map(({ status, sequenceNumber }) => [status, sequenceNumber])).toEqual(
      expect.arrayContaining([
        [2, 1n],
        [2, 2n],
      ]),
    );
    expect(table.snapshot.summary).toMatchObject({
      operation: 'replace',
      'added-data-files': '1',
      'deleted-data-files': '2',
      'added-records': '2',
      'deleted-records': '2',
      'changed-partition-count': '1',
      'total-records': '4',
      'total-data-files': '3',
    });
    await table.valid();
    expect(await table.rows()).toEqual([row(0, 1), row(0, 2), row(0, 3), row(1, 1)].map(spelled).sort());
  });

  test('C10: the last-value index is carried by a replace, and only its direct parent is asked', () => {
    table.append(row(0, 1));
    table.append(row(0, 2));
    const index = `${PLACE.location}/metadata/lvi-1-x.parquet`;
    const withIndex = {
      ...table.snapshot,
      'snapshot-id': 78n,
      'parent-snapshot-id': table.snapshot['snapshot-id'],
      'sequence-number': 3n,
      summary: { ...table.snapshot.summary, 'timelake.last-value-index': index },
    };
    table.update(
      { action: 'add-snapshot', snapshot: withIndex },
      { action: 'set-snapshot-ref', 'ref-name': 'main', type: 'branch', 'snapshot-id': 78n },
    );
    table.run(replace(entriesOn('2026-01-01'), [row(0, 1), row(0, 2)]));
    expect(table.snapshot.summary['timelake.last-value-index']).toBe(index);
    table.run(prepareDelete(table.identity(), { kind: 'all' }, table.metadata));
    expect(table.snapshot.summary['timelake.last-value-index']).toBeUndefined();
  });

  test('what is uploaded once is not uploaded with the attempts', () => {
    table.append(row(0, 1));
    table.append(row(0, 2));
    const operation = replace(entriesOn('2026-01-01'), [row(0, 1), row(0, 2)]);
    const decision = table.decide(operation);
    if (decision.kind !== 'proceed') throw new Error(decision.kind);
    const once = new Set(operation.uploads.map(({ key }) => key));
    expect(once.size).toBe(2);
    expect(decision.uploads.filter(({ key }) => once.has(key))).toEqual([]);
  });
});

describe('replace: premises', () => {
  test('B135: appends in between do not hold it up, nor are they read', async () => {
    table.append(row(0, 1));
    table.append(row(0, 2));
    const operation = replace(entriesOn('2026-01-01'), [row(0, 1), row(0, 2)]);
    for (let i = 3; i < 6; i++) table.append(row(0, i));
    table.cold();
    table.run(operation);
    expect(table.read).toHaveLength(3);
    expect(await table.rows()).toEqual([1, 2, 3, 4, 5].map((i) => spelled(row(0, i))).sort());
    await table.valid();
  });

  test('C2: an input that another commit removed is a conflict', () => {
    table.append(row(0, 1));
    table.append(row(0, 2));
    const inputs = entriesOn('2026-01-01');
    const operation = replace(inputs, [row(0, 1), row(0, 2)]);
    table.run(prepareDelete(table.identity(), { kind: 'paths', paths: [inputs[0].dataFile.filePath] }, table.metadata));
    expect(table.run(operation)).toMatchObject({ kind: 'conflict', type: 'inputs-gone' });
  });

  test('C2: of two replaces of one input the second is a conflict', () => {
    table.append(row(0, 1));
    table.append(row(0, 2));
    const inputs = entriesOn('2026-01-01');
    const [one, two] = [1, 2].map(() => replace(inputs, [row(0, 1), row(0, 2)]));
    expect(table.run(one).kind).toBe('proceed');
    expect(table.run(two)).toMatchObject({ kind: 'conflict', type: 'inputs-gone' });
  });

  test('inputs are found in whichever manifest they are by now', async () => {
    table.append(row(0, 1));
    table.append(row(0, 2));
    const operation = replace(entriesOn('2026-01-01'), [row(0, 1), row(0, 2)]);
    for (let i = 0; i < 9; i++) table.append(row(1 + i, 1));
    expect(table.list().some(({ existingFilesCount }) => existingFilesCount > 1)).toBe(true);
    expect(table.run(operation).kind).toBe('proceed');
    await table.valid();
  });

  test('B130 C3: a delete file that applies to an input is a conflict, one that does not is none', () => {
    table.append(row(0, 1), row(1, 1));
    table.append(row(0, 2));
    const inputs = entriesOn('2026-01-01');
    const operation = replace(inputs, [row(0, 1), row(0, 2)]);
    const before = table.base;
    const outcome = (given: Partial<DataFile>, number: bigint | null = null) => {
      table.base = before;
      deleteFile(given, number);
      return table.decide(operation);
    };
    const { partition } = inputs[0].dataFile;
    const conflicting = { kind: 'conflict', type: 'inputs-have-deletes' };
    expect(outcome({ partition })).toMatchObject(conflicting);
    expect(outcome({ partition, content: 2, equalityIds: [2] })).toMatchObject(conflicting);
    expect(outcome({ partition: entriesOn('2026-01-02')[0].dataFile.partition }).kind).toBe('proceed');
    expect(outcome({ partition, referencedDataFile: 'another' }).kind).toBe('proceed');
    expect(outcome({ partition, referencedDataFile: inputs[1].dataFile.filePath })).toMatchObject(conflicting);
    // An equality delete of the inputs' own time hits only what is older (Q7).
    expect(outcome({ partition, content: 2, equalityIds: [2] }, 1n).kind).toBe('proceed');
    expect(outcome({ partition }, 1n)).toMatchObject(conflicting);
  });

  test('dedup: a live file between the inputs of a run is a conflict, one that is not between is none', () => {
    for (let i = 1; i <= 4; i++) table.append(row(0, i));
    const [a, b, c] = entriesOn('2026-01-01');
    expect(table.decide(replace([a, c], [row(0, 1), row(0, 3)]))).toMatchObject({ type: 'run-not-contiguous' });
    expect(table.decide(replace([b, c], [row(0, 2), row(0, 3)])).kind).toBe('proceed');
  });

  test('dedup: so is one under another partition spec', () => {
    const bySpec = (id: number) => table.update({ action: 'set-default-spec', 'spec-id': id });
    table.append(row(0, 1));
    const [{ 'source-id': source }] = defaultSpec(table.metadata).fields;
    const spec = { fields: [{ 'source-id': source, name: 'time_month', transform: 'month' }] };
    table.update({ action: 'add-spec', spec }, { action: 'set-default-spec', 'spec-id': -1 });
    table.append(row(0, 1));
    bySpec(0);
    for (let i = 2; i <= 4; i++) table.append(row(0, i));
    const [a, b, c] = entriesOn('2026-01-01');
    expect(table.decide(replace([a, b], [row(0, 1), row(0, 2)]))).toMatchObject({ type: 'run-not-contiguous' });
    expect(table.decide(replace([b, c], [row(0, 2), row(0, 3)])).kind).toBe('proceed');
  });

  test('an older schema is fine while the table knows it', async () => {
    table.append(row(0, 1));
    table.append(row(0, 2));
    const operation = replace(entriesOn('2026-01-01'), [row(0, 1), row(0, 2)]);
    const schema = currentSchema(table.metadata);
    const field = { id: table.metadata['last-column-id'] + 1, name: 'w', required: false, type: 'long' };
    table.update(
      { action: 'add-schema', schema: { ...schema, fields: [...schema.fields, field] } },
      { action: 'set-current-schema', 'schema-id': -1 },
    );
    expect(table.run(operation).kind).toBe('proceed');
    expect(table.snapshot['schema-id']).toBe(1);
    await table.valid();
    const unknown = { ...operation, layout: { ...operation.layout, schemaId: 9 } };
    expect(table.decide(unknown)).toMatchObject({ kind: 'conflict', type: 'layout-gone' });
  });
});

describe('replace: what must never be asked for', () => {
  test('runs across partitions, with other rows, or of a file that is its own output', () => {
    table.append(row(0, 1), row(1, 1));
    table.append(row(0, 2));
    const [first, second] = entriesOn('2026-01-01');
    const [other] = entriesOn('2026-01-02');
    expect(() => replace([first, other], [row(0, 1), row(0, 2)])).toThrow(/one partition/);
    expect(() => replace([first, second], [row(0, 1), row(0, 2), row(0, 3)])).toThrow(/keeps its rows/);
    expect(() => replace([first, first], [row(0, 1)])).toThrow(/twice/);
    const { metadata } = table;
    const again = () =>
      prepareReplace({
        identity: table.identity(),
        metadata,
        layout: { schemaId: 0, specId: 0, sortOrderId: 1 },
        runs: [{ inputs: [first], outputs: [first.dataFile] }],
        uploads: [],
        place: PLACE,
        ...codecs,
      });
    expect(again).toThrow(/by itself/);
  });
});

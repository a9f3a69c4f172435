import { expect, test } from 'vitest';
import { writeContainer } from '../../../src/core/avro/container.ts';
import { encoderOf } from '../../../src/core/avro/encode.ts';
import { parseSchema } from '../../../src/core/avro/schema.ts';
import { prepareDelete } from '../../../src/core/commit/decide-delete.ts';
import { prepareRewriteManifests } from '../../../src/core/commit/decide-rewrite-manifests.ts';
import { MANIFEST_FILE_SCHEMA } from '../../../src/core/iceberg/manifest-schema.ts';
import type { ManifestFile } from '../../../src/core/iceberg/types.ts';
import { PureTable, row } from './pure-table.ts';

const COUNTS = /_(files|rows)_count$/;

/** A list whose counts are null, as format version 1 allows. */
function withoutCounts(rows: readonly ManifestFile[]): Uint8Array {
  const json = structuredClone(MANIFEST_FILE_SCHEMA) as { fields: { name: string; type: unknown }[] };
  for (const field of json.fields) if (COUNTS.test(field.name)) field.type = ['null', field.type];
  const encode = encoderOf(parseSchema(json), (_record, { name }) => {
    const key = name.replace(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());
    return (value) => (COUNTS.test(name) ? null : (value as unknown as Record<string, unknown>)[key]);
  });
  const options = { schemaJson: JSON.stringify(json), metadata: {}, syncMarker: new Uint8Array(16), deflate: null };
  return writeContainer(options, encode, rows);
}

/** A table of three manifests, the newest of which holds nothing live, whose list tells no counts. */
function uncounted() {
  const table = new PureTable();
  for (let i = 0; i < 3; i++) table.append(row(i, i));
  table.run(
    prepareDelete(table.identity(), { kind: 'partitions', partitions: [{ time_day: '2026-01-01' }] }, table.metadata),
  );
  const counted = table.list();
  expect(counted.filter((one) => one.addedFilesCount === 1)).toHaveLength(2);
  const key = table.context.keyOf(table.snapshot['manifest-list']);
  const bytes = table.files.get(key) as Uint8Array;
  table.files.set(key, withoutCounts(counted));
  table.cold();
  expect(table.list().map(({ isUncounted }) => isUncounted)).toEqual(counted.map(() => true));
  /** With the list as it was, which the validator wants of version 2. */
  const valid = async () => {
    table.files.set(key, bytes);
    await table.valid();
  };
  return { table, counted, valid };
}

test('ML6 an append to a table whose list has no counts: its rows go on with theirs, empty ones do not', async () => {
  const { table, counted, valid } = uncounted();
  table.append(row(4, 4));
  const live = counted.filter((one) => one.addedFilesCount + one.existingFilesCount > 0);
  expect(table.list().slice(1)).toEqual(live);
  expect(await table.rows()).toHaveLength(3);
  await valid();
});

test('ML6 deletes and rewritten manifests: likewise', async () => {
  const { table, valid } = uncounted();
  table.run(
    prepareDelete(table.identity(), { kind: 'partitions', partitions: [{ time_day: '2026-01-02' }] }, table.metadata),
  );
  expect(await table.rows()).toHaveLength(1);
  await valid();
  const { table: other, valid: otherValid } = uncounted();
  expect(other.run(prepareRewriteManifests(other.identity())).kind).toBe('proceed');
  expect(await other.rows()).toHaveLength(2);
  await otherValid();
});

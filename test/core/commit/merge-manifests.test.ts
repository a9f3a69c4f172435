import { expect, test } from 'vitest';
import { makeManifest } from '../../../src/core/commit/made-manifest.ts';
import { mergeReadable } from '../../../src/core/commit/merge-manifests.ts';
import { currentSchema, schemaById, specById } from '../../../src/core/iceberg/metadata.ts';
import type { Schema, Value } from '../../../src/core/iceberg/types.ts';
import { PureTable, row } from './pure-table.ts';

test('manifests of a spec over a column that was widened between them and then dropped: one, in the wider type', () => {
  const table = new PureTable();
  table.append(row(0, 1));
  const [entry] = table.live();
  const { fields } = currentSchema(table.metadata);
  const id = table.metadata['last-column-id'] + 1;
  const become = (type: string | null) => {
    const added = type === null ? [] : [{ id, name: 'w', required: false, type }];
    const schema: Schema = { type: 'struct', 'schema-id': 0, fields: [...fields, ...added] };
    table.update({ action: 'add-schema', schema }, { action: 'set-current-schema', 'schema-id': -1 });
    return table.metadata['current-schema-id'];
  };
  const narrow = become('int');
  table.update({ action: 'add-spec', spec: { fields: [{ 'source-id': id, name: 'w', transform: 'identity' }] } });
  const wide = become('long');
  become(null);
  const { metadata, context } = table;
  const spec = specById(metadata, 1)!;
  const manifest = (schemaId: number, value: Value) => {
    const identity = table.identity();
    const dataFile = { ...entry.dataFile, filePath: `${entry.dataFile.filePath}-${schemaId}`, partition: [value] };
    const added = {
      ...entry,
      snapshotId: identity.snapshotId,
      sequenceNumber: null,
      fileSequenceNumber: null,
      dataFile,
    };
    const schema = schemaById(metadata, schemaId)!;
    const input = { identity, sequenceNumber: 1n, kind: 'added' as const, label: 'x', schema, spec };
    return makeManifest(context, { ...input, entries: [added] });
  };
  const made = [manifest(narrow, 5), manifest(wide, 2n ** 40n)];
  const bytesOf = ({ manifestPath }: { manifestPath: string }) =>
    made.find((one) => one.row.manifestPath === manifestPath)!.bytes;
  for (const group of [made, made.toReversed()].map((list) => list.map((one) => one.row))) {
    const merged = mergeReadable(context, {
      metadata,
      group,
      bytesOf,
      identity: table.identity(),
      sequenceNumber: 2n,
    })!;
    table.files.set(context.keyOf(merged.made.row.manifestPath), merged.made.bytes);
    const values = table.entriesOf(merged.made.row).map(({ dataFile }) => dataFile.partition[0]);
    expect(values.sort()).toEqual([2n ** 40n, 5n].sort());
  }
});

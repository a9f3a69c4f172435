import { describe } from 'vitest';
import type { JsonObject } from './json.ts';
import { editMetadata, metadataKey, newestVersion, snapshotsOf } from './mutate.ts';
import { deletion, hint, inNewest, set, summary, testPlants } from './plant.ts';

describe('validator: one fault planted in the metadata of a valid table', () => {
  testPlants([
    // metadata.json
    ['format version 1', 'paged', 'M1', set('paged', 'format-version', 1n)],
    ['another table uuid', 'paged', 'I4', set('paged', 'table-uuid', '00000000-0000-4000-8000-000000000000')],
    ['an upper-case uuid', 'paged', 'I4 M2', set('paged', 'table-uuid', '00000000-0000-4000-8000-00000000000A')],
    ['a slash after the location', 'paged', 'I4 L2 M3', set('paged', 'location', 's3://lake/paged/')],
    ['a sequence number too low', 'paged', 'M4 S9', set('paged', 'last-sequence-number', 1n)],
    ['a sequence number too high', 'paged', 'S9', set('paged', 'last-sequence-number', 3n)],
    ['an update time before the logs', 'paged', 'M14 M5', set('paged', 'last-updated-ms', 1n)],
    ['a last column id too low', 'paged', 'M6', set('paged', 'last-column-id', 3n)],
    ['an unknown current schema', 'paged', 'M7', set('paged', 'current-schema-id', 9n)],
    ['an unknown default spec', 'paged', 'M8', set('paged', 'default-spec-id', 9n)],
    ['a last partition id too low', 'paged', 'M9', set('paged', 'last-partition-id', 999n)],
    ['an unknown default sort order', 'paged', 'M10', set('paged', 'default-sort-order-id', 7n)],
    ['a property that is null', 'paged', 'M11', set('paged', 'properties', { a: null })],
    ['a metadata path of its own', 'paged', 'H11', set('paged', 'properties', { 'write.metadata.path': 'x' })],
    ['an unknown current snapshot', 'paged', 'M12 M14 M16', set('paged', 'current-snapshot-id', 5n)],
    ['no snapshots list', 'engine', 'M12 M13 M14 M16 S9', set('engine', 'snapshots', undefined)],
    [
      'main at the older snapshot',
      'paged',
      'M16',
      inNewest('paged', (_, metadata) => {
        (metadata.refs as { main: JsonObject }).main['snapshot-id'] = snapshotsOf(metadata)[0]['snapshot-id'];
      }),
    ],
    ['a tag at no snapshot', 'paged', 'M16', set('paged', 'refs', { t: { type: 'tag', 'snapshot-id': 5n } })],
    [
      'a snapshot log out of order',
      'paged',
      'M14',
      inNewest('paged', (_, metadata) => (metadata['snapshot-log'] as JsonObject[]).reverse()),
    ],
    [
      'a metadata log with another time',
      'paged',
      'M15',
      inNewest('paged', (_, metadata) => {
        (metadata['metadata-log'] as JsonObject[])[1]['timestamp-ms'] = 1n;
      }),
    ],
    [
      'a metadata log that skips its predecessor',
      'paged',
      'I4 M15',
      inNewest('paged', (_, metadata) => (metadata['metadata-log'] as JsonObject[]).pop()),
    ],
    ['a key of version 3', 'paged', 'M18', set('paged', 'next-row-id', 0n)],
    ['statistics of an unknown snapshot', 'paged', 'M17', set('paged', 'statistics', [{ 'snapshot-id': 5n }])],
    [
      'text after the JSON',
      'paged',
      'M19',
      (objects) => {
        const key = metadataKey('paged', newestVersion(objects, 'paged'));
        objects.set(key, Uint8Array.of(...(objects.get(key) as Uint8Array), 0x7b));
      },
    ],
    [
      'two columns that differ by case',
      'types',
      'A1 M20 M25',
      (objects) =>
        editMetadata(objects, 'types', (metadata) => {
          for (const schema of metadata.schemas as { fields: JsonObject[] }[]) schema.fields[2].name = 'FLAG';
        }),
    ],
    [
      'an identifier field that may be null',
      'types',
      'M20 M22',
      (objects) =>
        editMetadata(objects, 'types', (metadata) => {
          (metadata.schemas as JsonObject[])[0]['identifier-field-ids'] = [2n];
        }),
    ],
    [
      'a version file with padding',
      'paged',
      'H2',
      (objects) =>
        objects.set('paged/metadata/v01.metadata.json', objects.get('paged/metadata/v1.metadata.json') as Uint8Array),
    ],
    ['a hint with a newline', 'paged', 'H5', hint('3\n')],
    ['a hint ahead of the versions', 'paged', 'H6', hint('4')],
    [
      'a hole above the hint',
      'paged',
      'H8',
      (objects) => {
        hint('1')(objects);
        objects.delete('paged/metadata/v2.metadata.json');
      },
    ],
    // snapshots
    ['no schema id', 'paged', 'S2', inNewest('paged', (snapshot) => delete snapshot['schema-id'])],
    ['an unknown operation', 'paged', 'S3', summary('paged', 'operation', 'upsert')],
    ['a deletion called append', 'types', 'S3', (objects) => deletion(objects, 'append')],
    ['a compaction called append', 'engine', 'S3', summary('engine', 'operation', 'append')],
    [
      'a parent that is null',
      'types',
      'M20 S4',
      (objects) =>
        editMetadata(objects, 'types', (metadata) => {
          snapshotsOf(metadata)[0]['parent-snapshot-id'] = null;
        }),
    ],
    [
      'a time before the parent',
      'paged',
      'S6',
      inNewest('paged', (snapshot) => {
        snapshot['timestamp-ms'] = 1n;
      }),
    ],
    [
      'a sequence number twice',
      'paged',
      'ML1 Q6 S7',
      inNewest('paged', (snapshot) => {
        snapshot['sequence-number'] = 1n;
      }),
    ],
    ['a summary value that is a number', 'paged', 'J4', summary('paged', 'extra', 5n)],
    [
      'a snapshot id in quotes',
      'paged',
      'E1 J1 M12 M14 M16 Q6 S8',
      inNewest('paged', (snapshot) => {
        snapshot['snapshot-id'] = String(snapshot['snapshot-id']);
      }),
    ],
    [
      'inline manifests',
      'paged',
      'S5',
      inNewest('paged', (snapshot) => {
        snapshot.manifests = [];
      }),
    ],
    ['a wrong total of records', 'paged', 'S8', summary('paged', 'total-records', '721')],
    ['a wrong total of sizes', 'paged', 'S8', summary('paged', 'total-files-size', '1')],
    ['a missing total', 'paged', 'S8', summary('paged', 'total-delete-files', undefined)],
    ['a wrong count of added files', 'paged', 'S8', summary('paged', 'added-data-files', '2')],
    [
      'an older snapshot rewritten',
      'paged',
      'M20',
      (objects) =>
        editMetadata(objects, 'paged', (metadata) => {
          (snapshotsOf(metadata)[0].summary as JsonObject).note = 'new';
        }),
    ],
  ]);
});

import { describe, expect, it } from 'vitest';
import { parseJson, stringifyJson } from '../../../src/core/base/int64-json.ts';
import { METADATA_CHARS_MAX } from '../../../src/core/base/limits.ts';
import {
  currentSchema,
  defaultSortOrder,
  defaultSpec,
  newTableMetadata,
  parseMetadata,
  serializeMetadata,
} from '../../../src/core/iceberg/metadata.ts';
import type { Schema, TableMetadata } from '../../../src/core/iceberg/types.ts';
import { append, commit, field, LOCATION, SCHEMA, timeTable, UUID } from './fixtures.ts';

type Json = Record<string, unknown>;

/** The file of a table with two snapshots of 19-digit ids, as an object to be changed. */
function file(change: (json: Json) => void = () => {}): string {
  const json = parseJson(
    serializeMetadata(append(append(timeTable(), 8736452839475610001n), 3055729675574597004n)),
  ) as Json;
  change(json);
  return stringifyJson(json);
}

const refuses = (change: (json: Json) => void, path: string) =>
  expect(() => parseMetadata(file(change)), path).toThrow(
    expect.objectContaining({ kind: 'corrupt', type: 'bad-metadata', message: expect.stringContaining(path) }),
  );

describe('newTableMetadata', () => {
  it('is an empty table of version 2, as the reference writer starts one', () => {
    const metadata = timeTable({ a: 'b' });
    expect(metadata).toMatchObject({
      'format-version': 2,
      'table-uuid': UUID,
      location: LOCATION,
      'last-sequence-number': 0n,
      'last-column-id': 3,
      'current-schema-id': 0,
      'default-spec-id': 0,
      'last-partition-id': 1000,
      'default-sort-order-id': 1,
      properties: { a: 'b' },
      snapshots: [],
      refs: {},
    });
    expect(defaultSortOrder(metadata).fields.map((f) => f['source-id'])).toEqual([2, 1]);
    expect(parseMetadata(serializeMetadata(metadata))).toEqual(metadata);
  });

  it('M8, M9, M10: an unpartitioned, unsorted table has empty spec and order 0, and 999', () => {
    const metadata = newTableMetadata({
      uuid: UUID,
      location: LOCATION,
      schema: SCHEMA,
      spec: { 'spec-id': 7, fields: [] },
      sortOrder: { 'order-id': 0, fields: [] },
      properties: {},
      nowMs: 1,
    });
    expect(metadata['partition-specs']).toEqual([{ 'spec-id': 0, fields: [] }]);
    expect(metadata['sort-orders']).toEqual([{ 'order-id': 0, fields: [] }]);
    expect(metadata['last-partition-id']).toBe(999);
  });

  it('gives fresh ids, and spec and order follow', () => {
    const schema: Schema = {
      type: 'struct',
      'schema-id': 4,
      'identifier-field-ids': [30],
      fields: [field(20, 'a', { type: 'struct', fields: [field(21, 'x', 'date')] }), field(30, 'b', 'long', true)],
    };
    const metadata = newTableMetadata({
      uuid: UUID,
      location: LOCATION,
      schema,
      spec: { 'spec-id': 3, fields: [{ 'source-id': 21, 'field-id': 1010, name: 'x_month', transform: 'month' }] },
      sortOrder: {
        'order-id': 5,
        fields: [{ 'source-id': 30, transform: 'identity', direction: 'desc', 'null-order': 'nulls-last' }],
      },
      properties: {},
      nowMs: 1,
    });
    expect(currentSchema(metadata)).toMatchObject({ 'schema-id': 0, 'identifier-field-ids': [2] });
    expect(defaultSpec(metadata)).toEqual({
      'spec-id': 0,
      fields: [{ 'source-id': 3, 'field-id': 1000, name: 'x_month', transform: 'month' }],
    });
    expect(defaultSortOrder(metadata)).toMatchObject({ 'order-id': 1, fields: [{ 'source-id': 2 }] });
    expect(metadata['last-column-id']).toBe(3);
  });
});

describe('serializeMetadata', () => {
  it('J1, J2, B189: writes 64-bit ids with every digit and without quotes', () => {
    const text = file();
    expect(text).toContain('"current-snapshot-id":3055729675574597004,');
    expect(text).toContain('"parent-snapshot-id":8736452839475610001,');
    expect(parseMetadata(text)['current-snapshot-id']).toBe(3055729675574597004n);
    expect(serializeMetadata(parseMetadata(text))).toBe(text);
  });

  it('M7, M8, M12, M18, S4: writes no key of version 1 or 3, and none for what is absent', () => {
    const text = serializeMetadata(timeTable());
    const keys = Object.keys(JSON.parse(text));
    for (const key of ['schema', 'partition-spec', 'next-row-id', 'encryption-keys', 'current-snapshot-id']) {
      expect(keys).not.toContain(key);
    }
    expect(keys).toEqual(expect.arrayContaining(['snapshots', 'statistics', 'partition-statistics', 'refs']));
    const first = JSON.parse(serializeMetadata(append(timeTable(), 7n))).snapshots[0];
    expect(Object.keys(first)).not.toContain('parent-snapshot-id');
  });

  it('B189: a fresh table has its lists, its first snapshot has all that version 2 asks for', () => {
    const fresh = JSON.parse(serializeMetadata(timeTable()));
    expect(fresh).toMatchObject({
      'last-sequence-number': 0,
      snapshots: [],
      'snapshot-log': [],
      'metadata-log': [],
      refs: {},
    });
    const [snapshot] = JSON.parse(serializeMetadata(append(timeTable(), 7n))).snapshots;
    expect(snapshot).toMatchObject({
      'snapshot-id': 7,
      'sequence-number': 1,
      'timestamp-ms': expect.any(Number),
      'manifest-list': expect.stringMatching(/^s3:/),
      summary: { operation: 'append' },
      'schema-id': 0,
    });
  });

  it('B150: what is too long for an isolate is neither parsed nor written', () => {
    expect(() => parseMetadata(' '.repeat(30 * 1024 * 1024))).toThrow(
      expect.objectContaining({ type: 'bad-metadata', message: expect.stringContaining('longer than') }),
    );
    const grown = timeTable({ note: 'x'.repeat(METADATA_CHARS_MAX) });
    expect(() => serializeMetadata(grown)).toThrow(expect.objectContaining({ type: 'metadata-too-large' }));
  });

  it('refuses to write what could not be loaded', () => {
    const broken: TableMetadata = { ...append(timeTable(), 7n), 'last-sequence-number': 0n };
    expect(() => serializeMetadata(broken)).toThrow(expect.objectContaining({ kind: 'invalid', type: 'bad-metadata' }));
  });
});

describe('parseMetadata: what other writers do', () => {
  it('B175, M12: -1, null and no current snapshot are the same', () => {
    const empty = parseJson(serializeMetadata(timeTable())) as Json;
    for (const value of [-1, null, undefined]) {
      const metadata = parseMetadata(stringifyJson({ ...empty, 'current-snapshot-id': value }));
      expect('current-snapshot-id' in metadata).toBe(false);
      expect(metadata.refs).toEqual({});
    }
  });

  it('loads an empty table that leaves out every optional list', () => {
    const json = parseJson(serializeMetadata(timeTable())) as Json;
    for (const key of [
      'snapshots',
      'snapshot-log',
      'metadata-log',
      'statistics',
      'partition-statistics',
      'refs',
      'properties',
    ]) {
      delete json[key];
    }
    expect(parseMetadata(stringifyJson(json))).toEqual(timeTable());
  });

  it('M16: makes the main ref that is missing beside a current snapshot', () => {
    const metadata = parseMetadata(file((json) => delete json['refs']));
    expect(metadata.refs).toEqual({ main: { 'snapshot-id': 3055729675574597004n, type: 'branch' } });
  });

  it('B035, M6: raises a last column id that was lowered by a drop', () => {
    expect(parseMetadata(file((json) => (json['last-column-id'] = 2)))['last-column-id']).toBe(3);
    expect(parseMetadata(file((json) => (json['last-partition-id'] = 999)))['last-partition-id']).toBe(1000);
  });

  it('M5: takes a clock that went back by less than a minute', () => {
    const metadata = parseMetadata(file((json) => (json['last-updated-ms'] = 1)));
    expect(metadata['last-updated-ms']).toBe(1);
    // and the next commit is later than everything logged
    expect(commit(metadata)['last-updated-ms']).toBeGreaterThanOrEqual(1020);
  });

  it('numbers partition fields of a table that began in version 1', () => {
    const metadata = parseMetadata(
      file((json) => {
        json['partition-specs'] = [{ 'spec-id': 0, fields: [{ 'source-id': 1, name: 'time_day', transform: 'day' }] }];
      }),
    );
    expect(defaultSpec(metadata).fields[0]['field-id']).toBe(1000);
  });

  it('S4: takes a parent of -1 or null for none, and a summary without operation for an overwrite', () => {
    const metadata = parseMetadata(
      file((json) => {
        const [first, second] = json['snapshots'] as Json[];
        first['parent-snapshot-id'] = -1;
        second['parent-snapshot-id'] = null;
        delete first['summary'];
        delete first['sequence-number'];
      }),
    );
    expect(metadata.snapshots[0]).not.toHaveProperty('parent-snapshot-id');
    expect(metadata.snapshots[1]).not.toHaveProperty('parent-snapshot-id');
    expect(metadata.snapshots[0].summary).toEqual({ operation: 'overwrite' });
    expect(metadata.snapshots[0]['sequence-number']).toBe(0n);
  });

  it('M28: loses top-level keys that the format does not define', () => {
    const text = serializeMetadata(parseMetadata(file((json) => (json['x-private'] = 1))));
    expect(text).not.toContain('x-private');
  });

  it('keeps statistics entries as they are', () => {
    const entry = {
      'snapshot-id': 8736452839475610001n,
      'statistics-path': 's3://b/x',
      'blob-metadata': [{ type: 'a' }],
    };
    const metadata = parseMetadata(file((json) => (json['statistics'] = [entry])));
    expect(metadata.statistics).toEqual([entry]);
  });

  it('an older spec may name a column that is gone', () => {
    const metadata = parseMetadata(
      file((json) => {
        (json['partition-specs'] as Json[]).push({
          'spec-id': 1,
          fields: [{ 'source-id': 99, 'field-id': 1001, name: 'gone', transform: 'bucket[4]' }],
        });
      }),
    );
    expect(metadata['partition-specs']).toHaveLength(2);
  });
});

describe('parseMetadata: what real readers refuse', () => {
  it('M1: another format version, by its name', () => {
    for (const version of [1, 3]) {
      expect(() => parseMetadata(file((json) => (json['format-version'] = version)))).toThrow(
        expect.objectContaining({ kind: 'rejected', type: 'unsupported-format-version' }),
      );
    }
    refuses((json) => (json['format-version'] = '2'), 'format-version');
  });

  it('M2, M3: no uuid, no location', () => {
    refuses((json) => (json['table-uuid'] = 'x'), 'table-uuid');
    refuses((json) => delete json['table-uuid'], 'table-uuid');
    refuses((json) => delete json['location'], 'location');
  });

  it('M4: a snapshot beyond the last sequence number', () => {
    refuses((json) => (json['last-sequence-number'] = 1), 'last-sequence-number');
    refuses((json) => delete json['last-sequence-number'], 'last-sequence-number');
  });

  it('M7, M8, M10: default ids that are not in their lists, ids that occur twice', () => {
    refuses((json) => (json['current-schema-id'] = 5), 'current-schema-id');
    refuses((json) => (json['default-spec-id'] = 5), 'default-spec-id');
    refuses((json) => (json['default-sort-order-id'] = 5), 'default-sort-order-id');
    refuses((json) => (json['schemas'] as Json[]).push({ ...(json['schemas'] as Json[])[0] }), 'schemas');
    refuses((json) => (json['snapshots'] as Json[]).push({ ...(json['snapshots'] as Json[])[0] }), 'snapshots');
    refuses((json) => (json['schemas'] = []), 'current-schema-id');
  });

  it('B176, M11: a property that is null or a number', () => {
    refuses((json) => (json['properties'] = { owner: null }), 'properties.owner');
    refuses((json) => (json['properties'] = { n: 5 }), 'properties.n');
  });

  it('M16: main that is not the current snapshot, or there without one, or a tag; a ref to nowhere', () => {
    const main = (id: bigint, type = 'branch') => ({ main: { 'snapshot-id': id, type } });
    refuses((json) => (json['refs'] = main(8736452839475610001n)), 'refs.main');
    refuses((json) => (json['refs'] = main(3055729675574597004n, 'tag')), 'refs.main');
    refuses((json) => (json['current-snapshot-id'] = -1), 'refs.main');
    refuses((json) => ((json['refs'] as Json)['b'] = { 'snapshot-id': 5, type: 'branch' }), 'refs.b');
    refuses((json) => {
      delete json['refs'];
      json['current-snapshot-id'] = 5;
    }, 'refs.main');
  });

  it('M14, M15, B200: logs that go back by more than a minute', () => {
    const late = { 'timestamp-ms': 200_000, 'snapshot-id': 8736452839475610001n };
    refuses((json) => (json['snapshot-log'] as Json[]).unshift(late), 'snapshot-log');
    refuses((json) => (json['snapshot-log'] as Json[]).push(late), 'last-updated-ms');
    refuses(
      (json) => (json['metadata-log'] as Json[]).push({ 'timestamp-ms': 200_000, 'metadata-file': 'x' }),
      'last-updated-ms',
    );
  });

  it('S1, S3, S5, J4: snapshots without their parts, an unknown operation, numbers in the summary', () => {
    const snapshot = (json: Json) => (json['snapshots'] as Json[])[0];
    refuses((json) => delete snapshot(json)['manifest-list'], 'snapshots[0].manifest-list');
    refuses((json) => delete snapshot(json)['timestamp-ms'], 'snapshots[0].timestamp-ms');
    refuses((json) => (snapshot(json)['snapshot-id'] = 'x'), 'snapshots[0].snapshot-id');
    refuses((json) => (snapshot(json)['snapshot-id'] = 2n ** 63n), 'snapshots[0].snapshot-id');
    refuses((json) => (snapshot(json)['summary'] = { operation: 'merge' }), 'snapshots[0].summary.operation');
    refuses((json) => (snapshot(json)['summary'] = { operation: 'append', n: 1 }), 'snapshots[0].summary.n');
  });

  it('M17: two partition statistics of one snapshot', () => {
    const entry = { 'snapshot-id': 8736452839475610001n, 'statistics-path': 's3://b/x' };
    refuses((json) => (json['partition-statistics'] = [entry, entry]), 'partition-statistics');
  });

  it('a default spec or order over a column that is gone', () => {
    const without = (index: number) => (json: Json) => {
      ((json['schemas'] as Json[])[0]['fields'] as Json[]).splice(index, 1);
    };
    refuses(without(0), 'default-spec-id');
    refuses(without(1), 'default-sort-order-id');
  });

  it('M19: anything but one JSON object', () => {
    for (const text of ['', '[]', '\uFEFF{}', '{"a":1}{"b":2}', 'null', '{']) {
      expect(() => parseMetadata(text)).toThrow(expect.objectContaining({ kind: 'corrupt', type: 'bad-metadata' }));
    }
  });

  it('S12: retention of refs that makes no sense', () => {
    const tag = (more: object) => (json: Json) => {
      (json['refs'] as Json)['t'] = { 'snapshot-id': 8736452839475610001n, type: 'tag', ...more };
    };
    refuses(tag({ 'min-snapshots-to-keep': 3 }), 'refs.t.min-snapshots-to-keep');
    refuses(tag({ 'max-ref-age-ms': 0 }), 'refs.t.max-ref-age-ms');
    expect(parseMetadata(file(tag({ 'max-ref-age-ms': 9223372036854775807n }))).refs['t']).toMatchObject({
      'max-ref-age-ms': Number.MAX_SAFE_INTEGER,
    });
  });
});

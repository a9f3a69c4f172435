import { describe, expect, test } from 'vitest';
import { type FileFilter, fileMatcher, parseFileFilter } from '../../../src/core/commit/file-filter.ts';
import { encodeValue } from '../../../src/core/iceberg/single-value.ts';
import type { DataFile, FieldSummary, ManifestFile, TableMetadata, Value } from '../../../src/core/iceberg/types.ts';
import { PureTable, row } from './pure-table.ts';

const START = BigInt(Date.UTC(2026, 0, 1)) * 1000n;
const DAY = 86_400_000_000n;
const DAY_0 = 20_454;

const table = new PureTable();
table.append(row(0, 1));
const { metadata } = table;
const [sample] = table.live();
const timeId = metadata.schemas[0].fields[0].id;

function file(partition: Value[], bounds: [bigint, bigint] | null = null): DataFile {
  const map = (value: bigint) => new Map([[timeId, encodeValue('timestamptz', value)]]);
  return {
    ...sample.dataFile,
    partition,
    lowerBounds: bounds === null ? null : map(bounds[0]),
    upperBounds: bounds === null ? null : map(bounds[1]),
  };
}

function listed(summary: Partial<FieldSummary> & { days?: [number, number] }): ManifestFile {
  const { days, ...rest } = summary;
  const partitions = [
    {
      containsNull: false,
      containsNan: false,
      lowerBound: days === undefined ? null : encodeValue('date', days[0]),
      upperBound: days === undefined ? null : encodeValue('date', days[1]),
      ...rest,
    },
  ];
  return { ...table.list()[0], partitions };
}

/** The same table without partitions: one spec more, which is the default. */
const unpartitioned: TableMetadata = {
  ...metadata,
  'partition-specs': [...metadata['partition-specs'], { 'spec-id': 1, fields: [] }],
  'default-spec-id': 1,
};

describe('file filter: partitions', () => {
  const filter: FileFilter = {
    kind: 'partitions',
    partitions: [{ time_day: '2026-01-03' }, { time_day: DAY_0 }, { time_day: null }],
  };

  test('match: a label, an ordinal and null each mean one partition', () => {
    const { match } = fileMatcher(filter, metadata);
    expect([DAY_0, DAY_0 + 1, DAY_0 + 2, null].map((day) => match(0, file([day])))).toEqual([
      'inside',
      'outside',
      'inside',
      'inside',
    ]);
  });

  test('prune: a manifest is read only when its summary leaves room', () => {
    const { mayHold } = fileMatcher({ kind: 'partitions', partitions: [{ time_day: DAY_0 + 2 }] }, metadata);
    expect(mayHold(listed({ days: [DAY_0, DAY_0 + 1] }))).toBe(false);
    expect(mayHold(listed({ days: [DAY_0, DAY_0 + 2] }))).toBe(true);
    expect(mayHold(listed({ days: [DAY_0 + 3, DAY_0 + 9] }))).toBe(false);
    expect(mayHold(listed({}))).toBe(true);
    expect(mayHold({ ...listed({}), partitions: null })).toBe(true);
    expect(mayHold(listed({ lowerBound: Uint8Array.of(1), upperBound: Uint8Array.of(1) }))).toBe(true);
  });

  test('prune: null is looked for where a summary says there are nulls', () => {
    const { mayHold } = fileMatcher({ kind: 'partitions', partitions: [{ time_day: null }] }, metadata);
    expect(mayHold(listed({ days: [DAY_0, DAY_0] }))).toBe(false);
    expect(mayHold(listed({ days: [DAY_0, DAY_0], containsNull: true }))).toBe(true);
  });

  test('match: files of a spec without the field are not known to be meant', () => {
    const { match, mayHold } = fileMatcher(filter, unpartitioned);
    expect(match(1, file([]))).toBe('outside');
    expect(mayHold({ ...listed({}), partitionSpecId: 1, partitions: [] })).toBe(false);
  });

  test('refusal: a field that no spec has, and a value that is none', () => {
    const choose = (partition: Record<string, string>) => () =>
      fileMatcher({ kind: 'partitions', partitions: [partition] }, metadata);
    expect(choose({ day: '2026-01-03' })).toThrow(expect.objectContaining({ type: 'unknown-partition-field' }));
    expect(choose({ time_day: '2026-01' })).toThrow(expect.objectContaining({ type: 'bad-partition-value' }));
  });
});

describe('file filter: time range', () => {
  const range = (from: bigint | null, to: bigint | null, of = metadata) =>
    fileMatcher({ kind: 'time-range', from, to }, of);

  test('match: a partition wholly within the range is inside, whatever its bounds say', () => {
    const { match } = range(START, START + 2n * DAY);
    expect([-1, 0, 1, 2].map((day) => match(0, file([DAY_0 + day])))).toEqual([
      'outside',
      'inside',
      'inside',
      'outside',
    ]);
  });

  test('match: at the edge of the range the bounds decide; the end is not in it', () => {
    const { match } = range(START + 10n, START + 100n);
    const at = (lower: bigint, upper: bigint) => match(0, file([DAY_0], [START + lower, START + upper]));
    expect(at(10n, 99n)).toBe('inside');
    expect(at(10n, 100n)).toBe('overlapping');
    expect(at(9n, 50n)).toBe('overlapping');
    expect(at(100n, 200n)).toBe('outside');
    expect(at(0n, 9n)).toBe('outside');
    expect(at(0n, 300n)).toBe('overlapping');
    expect(match(0, file([DAY_0]))).toBe('overlapping');
  });

  test('match: without partitions the bounds alone decide', () => {
    const { match } = range(null, START + DAY, unpartitioned);
    expect(match(1, file([], [START, START + 5n]))).toBe('inside');
    expect(match(1, file([], [START + DAY, START + DAY]))).toBe('outside');
    expect(match(1, file([]))).toBe('overlapping');
  });

  test('match: a file with null times is never covered', () => {
    const fields = metadata.schemas[0].fields.map((field) =>
      field.id === timeId ? { ...field, required: false } : field,
    );
    const optional = { ...unpartitioned, schemas: [{ ...metadata.schemas[0], fields }] };
    const { match } = range(null, START + DAY, optional);
    const withNulls = (nulls: bigint) => ({
      ...file([], [START, START + 5n]),
      recordCount: 9n,
      nullValueCounts: new Map([[timeId, nulls]]),
    });
    expect(match(1, withNulls(0n))).toBe('inside');
    expect(match(1, withNulls(1n))).toBe('overlapping');
    expect(match(1, withNulls(9n))).toBe('outside');
    expect(match(1, { ...withNulls(0n), nullValueCounts: null })).toBe('overlapping');
  });

  test('prune: manifests of other days are not read', () => {
    const { mayHold } = range(START, START + 2n * DAY);
    expect(mayHold(listed({ days: [DAY_0 - 5, DAY_0 - 1] }))).toBe(false);
    expect(mayHold(listed({ days: [DAY_0 + 2, DAY_0 + 9] }))).toBe(false);
    expect(mayHold(listed({ days: [DAY_0 + 1, DAY_0 + 9] }))).toBe(true);
    expect(range(null, START).mayHold(listed({ days: [DAY_0 - 900, DAY_0 - 800] }))).toBe(true);
    expect(range(START, null).mayHold(listed({ days: [DAY_0 - 900, DAY_0 - 800] }))).toBe(false);
  });

  test('refusal: a table without a time column', () => {
    const plain = { ...metadata, properties: {} };
    expect(() => range(START, null, plain)).toThrow(expect.objectContaining({ type: 'no-time-column' }));
  });
});

describe('file filter: JSON', () => {
  test('parse: each kind', () => {
    expect(parseFileFilter({ all: true })).toEqual({ kind: 'all' });
    expect(parseFileFilter({ paths: ['s3://b/x'] })).toEqual({ kind: 'paths', paths: ['s3://b/x'] });
    expect(parseFileFilter({ partitions: [{ time_day: '2026-01-03' }] })).toEqual({
      kind: 'partitions',
      partitions: [{ time_day: '2026-01-03' }],
    });
    expect(parseFileFilter({ time_range: { to: '2026-01-01T00:00:00Z' } })).toEqual({
      kind: 'time-range',
      from: null,
      to: START,
    });
  });

  test.each([
    [{}],
    [null],
    [{ all: false }],
    [{ all: true, paths: [] }],
    [{ paths: [] }],
    [{ paths: [1] }],
    [{ partitions: [{}] }],
    [{ partitions: [{ a: [] }] }],
    [{ time_range: {} }],
    [{ time_range: { from: '2026-01-02T00:00:00Z', to: '2026-01-01T00:00:00Z' } }],
    [{ time_range: { from: 'now' } }],
    [{ time_range: { from: '2026-01-02T00:00:00Z', until: '' } }],
    [{ where: 'v > 3' }],
  ])('parse: refuses %j', (json) => {
    expect(() => parseFileFilter(json)).toThrow(expect.objectContaining({ type: 'malformed' }));
  });
});

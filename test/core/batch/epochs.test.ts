import { describe, expect, test } from 'vitest';
import {
  EPOCHS_MIRROR_KEY,
  ownApp,
  parseEpochs,
  readEpochs,
  serializeEpochs,
  serializeMirror,
} from '../../../src/core/batch/epochs.ts';
import type { Snapshot, TableMetadata } from '../../../src/core/iceberg/types.ts';

function snapshot(id: bigint, parent: bigint | null, epochs: string | null): Snapshot {
  return {
    'snapshot-id': id,
    ...(parent === null ? {} : { 'parent-snapshot-id': parent }),
    'sequence-number': id,
    'timestamp-ms': Number(id),
    'manifest-list': `s3://b/${id}`,
    summary: { operation: 'append', ...(epochs === null ? {} : { 'sluice.epochs': epochs }) },
  };
}

function metadata(
  snapshots: Snapshot[],
  current: bigint | null,
  properties: Record<string, string> = {},
): TableMetadata {
  return {
    snapshots,
    properties,
    ...(current === null ? {} : { 'current-snapshot-id': current }),
  } as unknown as TableMetadata;
}

describe('epochs: as text', () => {
  test('text: sorted, 64-bit epochs whole, read back the same', () => {
    const epochs = new Map([
      ['b', 9007199254740993n],
      ['__proto__', 1n],
      [ownApp('00000000000000aa'), 2n],
    ]);
    const text = serializeEpochs(epochs);
    expect(text).toBe('{"__proto__":"1","b":"9007199254740993","sluice/00000000000000aa":"2"}');
    expect(parseEpochs(text)).toEqual(new Map([...epochs].sort(([a], [b]) => (a < b ? -1 : 1))));
  });

  test('text: beyond its bound it is refused, since every version copies it', () => {
    const many = new Map(Array.from({ length: 300 }, (_, index) => [`application-${index}`, BigInt(index)]));
    expect(() => serializeEpochs(many)).toThrow('progress map is full');
  });

  test('text: damage is corrupt, never an empty map', () => {
    for (const text of ['', '[]', 'null', '{"a":1}', '{"a":"-1"}', '{"a":"x"}', '{']) {
      expect(() => parseEpochs(text), text).toThrow('progress map cannot be read');
    }
  });
});

describe('epochs: where they are read', () => {
  const chain = [snapshot(1n, null, '{"a":"1"}'), snapshot(2n, 1n, '{"a":"2"}'), snapshot(3n, 2n, null)];

  test('ancestry: of the nearest ancestor that carries them; a foreign commit in between does not matter', () => {
    expect(readEpochs(metadata(chain, 3n)).get('a')).toBe(2n);
    expect(readEpochs(metadata(chain, 2n)).get('a')).toBe(2n);
  });

  test('ancestry: a rollback takes progress back with the rows', () => {
    expect(readEpochs(metadata(chain, 1n)).get('a')).toBe(1n);
    expect(readEpochs(metadata(chain, null))).toEqual(new Map());
  });

  test('mirror: consulted only when no ancestor carries the map', () => {
    const properties = { [EPOCHS_MIRROR_KEY]: serializeMirror(2n, 2n, new Map([['a', 2n]])) };
    const cut = [snapshot(3n, 2n, null)];
    expect(readEpochs(metadata(cut, 3n, properties)).get('a')).toBe(2n);
    expect(readEpochs(metadata(chain, 1n, properties)).get('a')).toBe(1n);
  });

  test('mirror: ignored while its snapshot is retained and main was rolled back past it, whatever is on top', () => {
    const mirrored = { [EPOCHS_MIRROR_KEY]: serializeMirror(3n, 3n, new Map([['a', 3n]])) };
    const aside = [snapshot(2n, 1n, null), snapshot(3n, 2n, '{"a":"3"}'), snapshot(4n, 2n, null)];
    expect(readEpochs(metadata(aside, 4n, mirrored)).get('a')).toBeUndefined();
    expect(readEpochs(metadata([snapshot(4n, 3n, null)], 4n, mirrored)).get('a')).toBe(3n);
  });

  test('mirror: believed when its snapshot outlived those after it, and main is cut off from it', () => {
    const properties = { [EPOCHS_MIRROR_KEY]: serializeMirror(2n, 2n, new Map([['a', 2n]])) };
    // An engine goes by timestamps: 3 was made after 2 by a clock that is behind, and expired before it.
    const cut = [snapshot(2n, 1n, '{"a":"2"}'), snapshot(4n, 3n, null), snapshot(5n, 4n, null)];
    expect(readEpochs(metadata(cut, 5n, properties)).get('a')).toBe(2n);
    // The next number after 2 whose parent is another: main never went by 2. Nor did it where it begins later.
    expect(readEpochs(metadata([cut[0], snapshot(3n, 1n, null)], 3n, properties)).get('a')).toBeUndefined();
    expect(readEpochs(metadata([cut[0], snapshot(5n, null, null)], 5n, properties)).get('a')).toBeUndefined();
  });

  test('mirror: ignored when it is of a later state than the current snapshot', () => {
    const properties = { [EPOCHS_MIRROR_KEY]: serializeMirror(9n, 9n, new Map([['a', 9n]])) };
    expect(readEpochs(metadata([snapshot(3n, 2n, null)], 3n, properties))).toEqual(new Map());
    expect(readEpochs(metadata([snapshot(3n, 2n, null)], 3n, { [EPOCHS_MIRROR_KEY]: 'x' }))).toEqual(new Map());
  });
});

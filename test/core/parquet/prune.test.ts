import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { compareValues } from '../../../src/core/iceberg/single-value.ts';
import type { PrimitiveType, Schema, Value } from '../../../src/core/iceberg/types.ts';
import { equalsTest, rangeTest, type ValueTest } from '../../../src/core/iceberg/value-test.ts';
import { pruningRange, type RowRange, rowsToRead } from '../../../src/core/parquet/prune.ts';
import { addIndexes, footerLength, type Piece, parseFooter } from '../../../src/core/parquet/reader.ts';
import { writeParquet } from '../../../src/core/parquet/writer.ts';
import { compressZstd } from '../../../src/platform/zlib.ts';
import { columnsOf, edgesOf, OPTIONS, schemaOf, TYPES } from './values.ts';

// Machines under load are slow; nothing here waits.
vi.setConfig({ testTimeout: 30_000 });

/** Rows of a page in files of this service. */
const PAGE = 4096;

function fileOf(schema: Schema, values: readonly (readonly Value[])[], rowGroupRows = OPTIONS.rowGroupRows) {
  return writeParquet(columnsOf(schema, values), { ...OPTIONS, rowGroupRows }, compressZstd).bytes;
}

/** The ranges of each row group, when only the footer and what `pruningRange` asks for were read. */
function pruned(file: Uint8Array, tests: readonly ValueTest[]): RowRange[][] {
  const footer = parseFooter(file.subarray(file.length - footerLength(file)), file.length);
  const range = pruningRange(footer, tests);
  const piece: Piece | null =
    range === null ? null : { offset: range.offset, bytes: file.slice(range.offset, range.offset + range.length) };
  if (piece !== null) addIndexes(footer, piece);
  return footer.rowGroups.map((_, group) => rowsToRead(footer, group, tests, piece));
}

function countOf(ranges: readonly RowRange[]): number {
  return ranges.reduce((sum, { from, to }) => sum + to - from, 0);
}

/** Types as columns of the table have them, and as older files may hold them. */
const STORED: readonly (readonly [stored: PrimitiveType, type: PrimitiveType])[] = [
  ...TYPES.map((type) => [type, type] as const),
  ['int', 'long'],
  ['float', 'double'],
  ['decimal(5, 2)', 'decimal(18, 2)'],
  ['decimal(18, 2)', 'decimal(38, 2)'],
];

/** A value of the file as one of the table. */
function widened(value: Value, type: PrimitiveType): Value {
  return typeof value === 'number' && type === 'long' ? BigInt(value) : value;
}

function isSame(type: PrimitiveType, a: Value, b: Value): boolean {
  if (a === null || b === null) return a === b;
  return a === b || compareValues(type, a, b) === 0;
}

describe('prune: nothing that is wanted is left out', () => {
  test('values and ranges of every type, with nulls, pages and row groups', () => {
    const column = fc.constantFrom(...STORED).chain(([stored, type]) => {
      const value = fc.option(fc.constantFrom(...edgesOf(stored)), { freq: 4 });
      return fc.record({
        stored: fc.constant(stored),
        type: fc.constant(type),
        runs: fc.array(fc.tuple(value, fc.integer({ min: 1, max: 5000 })), { minLength: 1, maxLength: 6 }),
        wanted: fc.array(value, { minLength: 1, maxLength: 3 }),
        isRange: type === 'float' || type === 'double' ? fc.constant(false) : fc.boolean(),
      });
    });
    let left = 0;
    fc.assert(
      fc.property(
        fc.array(column, { minLength: 1, maxLength: 2 }),
        fc.constantFrom(3000, 10_000, OPTIONS.rowGroupRows),
        (drawn, rowGroupRows) => {
          const rows = Math.max(...drawn.map(({ runs }) => runs.reduce((sum, [, length]) => sum + length, 0)));
          const values = drawn.map(({ runs }) => {
            const flat = runs.flatMap(([held, length]) => new Array<Value>(length).fill(held));
            return Array.from({ length: rows }, (_, row): Value => flat[row] ?? null);
          });
          const file = fileOf(schemaOf(drawn.map(({ stored }) => stored)), values, rowGroupRows);
          const wanted = drawn.map(({ type, wanted: given }) => given.map((value) => widened(value, type)));
          const tests = drawn.map(({ type, isRange }, i) => {
            const [first, last = null] = wanted[i];
            return isRange ? rangeTest(i + 1, type, first, last) : equalsTest(i + 1, type, wanted[i]);
          });
          const meets = drawn.map(({ type, isRange }, i) => {
            const [first, last = null] = wanted[i];
            const verdicts = new Map<Value, boolean>();
            return (stored: Value): boolean => {
              const known = verdicts.get(stored);
              if (known !== undefined) return known;
              const value = widened(stored, type);
              const verdict = isRange
                ? value !== null &&
                  (first === null || compareValues(type, value, first) >= 0) &&
                  (last === null || compareValues(type, value, last) <= 0)
                : wanted[i].some((one) => isSame(type, value, one));
              verdicts.set(stored, verdict);
              return verdict;
            };
          });
          const kept = new Uint8Array(rows);
          pruned(file, tests).forEach((ranges, group) => {
            const start = group * rowGroupRows;
            for (const { from, to } of ranges) kept.fill(1, start + from, start + to);
            left += Math.min(rowGroupRows, rows - start) - countOf(ranges);
          });
          for (let row = 0; row < rows; row++) {
            if (kept[row] === 0 && meets.every((isMet, i) => isMet(values[i][row]))) {
              expect.fail(`row ${row} of ${rows} is wanted and left out`);
            }
          }
        },
      ),
      { numRuns: 60 },
    );
    expect(left).toBeGreaterThan(10_000);
  });
});

describe('prune: what cannot be wanted is left out', () => {
  const rows = 3 * PAGE + 100;
  const ascending = Array.from({ length: rows }, (_, row) => BigInt(row - PAGE) * 1_000_000n);

  test('pages by their bounds, times before 1970 among them', () => {
    const file = fileOf(schemaOf(['timestamptz']), [ascending]);
    const at = (first: bigint | null, last: bigint | null) =>
      pruned(file, [rangeTest(1, 'timestamptz', first, last)])[0];
    expect(at(-5_000_000n, -1n)).toEqual([{ from: 0, to: PAGE }]);
    expect(at(0n, 0n)).toEqual([{ from: PAGE, to: 2 * PAGE }]);
    expect(at(-1n, 0n)).toEqual([{ from: PAGE, to: 2 * PAGE }]);
    expect(at(-1_000_000n, 0n)).toEqual([{ from: 0, to: 2 * PAGE }]);
    expect(at(ascending[rows - 1], null)).toEqual([{ from: 3 * PAGE, to: rows }]);
    expect(at(null, null)).toEqual([{ from: 0, to: rows }]);
    const ends = pruned(file, [equalsTest(1, 'timestamptz', [ascending[0], ascending[rows - 1]])]);
    expect(ends).toEqual([
      [
        { from: 0, to: PAGE },
        { from: 3 * PAGE, to: rows },
      ],
    ]);
    expect(at(ascending[rows - 1] + 1n, null)).toEqual([]);
  });

  test('row groups by the bounds of their chunks, without an index', () => {
    const file = fileOf(schemaOf(['long']), [ascending], PAGE);
    expect(pruned(file, [equalsTest(1, 'long', [0n])]).map(countOf)).toEqual([0, PAGE, 0, 0]);
    const footer = parseFooter(file.subarray(file.length - footerLength(file)), file.length);
    const alone = footer.rowGroups.map((_, group) => rowsToRead(footer, group, [equalsTest(1, 'long', [0n])], null));
    expect(alone.map(countOf)).toEqual([0, PAGE, 0, 0]);
  });

  test('pages in which the rows of two columns never meet', () => {
    const halves = Array.from({ length: rows }, (_, row): Value => (row < 2 * PAGE ? 'a' : 'b'));
    const file = fileOf(schemaOf(['long', 'string']), [ascending, halves]);
    const first = rangeTest(1, 'long', null, ascending[PAGE - 1]);
    expect(pruned(file, [first, equalsTest(2, 'string', ['a'])])).toEqual([[{ from: 0, to: PAGE }]]);
    expect(pruned(file, [first, equalsTest(2, 'string', ['b'])])).toEqual([[]]);
  });

  test('pages of nulls alone, and pages without any', () => {
    const values = Array.from({ length: rows }, (_, row): Value => (row < PAGE ? null : row));
    const file = fileOf(schemaOf(['int']), [values]);
    expect(pruned(file, [equalsTest(1, 'int', [null])])).toEqual([[{ from: 0, to: PAGE }]]);
    expect(pruned(file, [rangeTest(1, 'int', null, null)])).toEqual([[{ from: PAGE, to: rows }]]);
    const required = fileOf(schemaOf(['int'], true), [values.map((value) => value ?? 0)]);
    expect(pruned(required, [equalsTest(1, 'int', [null])])).toEqual([[]]);
  });

  test('text and bytes by bounds that were cut: rounded up below, kept whole where nothing can be rounded', () => {
    const long = (first: number, last: number) => Uint8Array.of(...new Array(19).fill(first), last);
    const values = [long(1, 0), long(0xff, 0), long(0xff, 7)].flatMap((value) => new Array<Value>(PAGE).fill(value));
    const file = fileOf(schemaOf(['binary']), [values]);
    const found = (value: Uint8Array) => pruned(file, [equalsTest(1, 'binary', [value])])[0];
    expect(found(long(0xff, 7))).toEqual([{ from: 2 * PAGE, to: 3 * PAGE }]);
    expect(found(long(0xff, 8))).toEqual([]);
    // Beyond the cut, a value that no page holds cannot be told from one that it does.
    expect(found(long(1, 9))).toEqual([{ from: 0, to: PAGE }]);
    expect(found(long(2, 0))).toEqual([]);
  });

  test('a column that is younger than the file holds nulls', () => {
    const file = fileOf(schemaOf(['long']), [ascending]);
    expect(pruned(file, [equalsTest(9, 'string', ['a'])])).toEqual([[]]);
    expect(pruned(file, [rangeTest(9, 'long', null, null)])).toEqual([[]]);
    expect(pruned(file, [equalsTest(9, 'string', ['a', null])])).toEqual([[{ from: 0, to: rows }]]);
  });
});

describe('prune: what does not tell is read', () => {
  const rows = 2 * PAGE;
  const values = Array.from({ length: rows }, (_, row) => BigInt(row));
  const none = [equalsTest(1, 'long', [-1n])];

  function parsed(file: Uint8Array) {
    const piece = { offset: 0, bytes: file };
    return { footer: parseFooter(file, file.length), piece };
  }

  test('no tests, an index that was not read, bounds that are missing', () => {
    const { footer, piece } = parsed(fileOf(schemaOf(['long']), [values]));
    const last = [equalsTest(1, 'long', [BigInt(rows - 1)])];
    const whole = [{ from: 0, to: rows }];
    expect(rowsToRead(footer, 0, [], piece)).toEqual(whole);
    expect(rowsToRead(footer, 0, last, null)).toEqual(whole);
    expect(rowsToRead(footer, 0, last, piece)).toEqual([{ from: PAGE, to: rows }]);
    footer.rowGroups[0].chunks[0].statistics = null;
    expect(rowsToRead(footer, 0, last, piece)).toEqual([{ from: PAGE, to: rows }]);
    footer.rowGroups[0].chunks[0].columnIndex = null;
    expect(rowsToRead(footer, 0, none, piece)).toEqual(whole);
  });

  test('bounds of another type than the column has, or of no known one', () => {
    const { footer, piece } = parsed(fileOf(schemaOf(['long']), [values]));
    const whole = [{ from: 0, to: rows }];
    expect(rowsToRead(footer, 0, none, piece)).toEqual([]);
    expect(rowsToRead(footer, 0, [equalsTest(1, 'string', ['x'])], piece)).toEqual(whole);
    footer.columns[0].type = null;
    expect(rowsToRead(footer, 0, none, piece)).toEqual(whole);
  });

  test('columns without field ids: none of them is known to be missing', () => {
    const { footer, piece } = parsed(fileOf(schemaOf(['long']), [values]));
    footer.columns[0].id = null;
    expect(rowsToRead(footer, 0, [equalsTest(1, 'long', [5n])], piece)).toEqual([{ from: 0, to: rows }]);
  });

  test('text whose bound was cut inside of a character', () => {
    const text = Array.from({ length: rows }, (): Value => 'é');
    const { footer, piece } = parsed(fileOf(schemaOf(['string']), [text]));
    const [chunk] = footer.rowGroups[0].chunks;
    chunk.statistics = { min: Uint8Array.of(0xc3), max: Uint8Array.of(0xc3), nulls: 0 };
    chunk.columnIndex = null;
    expect(rowsToRead(footer, 0, [equalsTest(1, 'string', ['é'])], piece)).toEqual([{ from: 0, to: rows }]);
  });

  test('an index of other pages than the offset index has', () => {
    const { footer, piece } = parsed(fileOf(schemaOf(['long']), [values]));
    const [chunk] = footer.rowGroups[0].chunks;
    chunk.pages = chunk.pages!.slice(0, 1);
    chunk.statistics = null;
    expect(rowsToRead(footer, 0, none, piece)).toEqual([{ from: 0, to: rows }]);
  });

  test('a row group without rows', () => {
    const { footer, piece } = parsed(fileOf(schemaOf(['long']), [values]));
    footer.rowGroups[0].rows = 0;
    expect(rowsToRead(footer, 0, [], piece)).toEqual([]);
  });
});

import { assert } from '../base/assert.ts';
import { DICTIONARY_ENTRIES_MAX } from '../base/limits.ts';
import type { NestedField, Schema } from '../iceberg/types.ts';
import { type Column, type Columns, int32Pairs } from './columns.ts';
import { type EndedRows, joinSegments, Slots } from './slots.ts';
import { storageOf } from './storage.ts';
import { TextBuilder } from './text-builder.ts';

/**
 * Columns under construction, row by row. A row is what was pushed since the last `endRow`, at most one value a field,
 * in any order. No object is made per row.
 *
 * Values are trusted to fit their type: ranges, precision and required fields are checked where the reason can be
 * given, by the parser. What would be stored wrongly (a rounded integer, a wrong width) fails an assertion.
 */
export class ColumnsBuilder {
  readonly schema: Schema;
  /** In schema order. */
  readonly fields: readonly FieldBuilder[];
  private readonly ended: EndedRows = { count: 0 };

  constructor(schema: Schema, dictionaryEntriesMax: number = DICTIONARY_ENTRIES_MAX) {
    this.schema = schema;
    this.fields = schema.fields.map((field) => fieldBuilder(field, this.ended, dictionaryEntriesMax));
  }

  /** Ended rows. */
  get rows(): number {
    return this.ended.count;
  }

  /** Ends the row. Fields that were not pushed in it are null. */
  endRow(): void {
    this.ended.count++;
  }

  /** Takes back what was pushed since the last `endRow`. */
  rollbackRow(): void {
    for (const field of this.fields) field.takeBack();
  }

  /** Bytes of memory held, with those that nulls not pushed yet will take: wide fixed columns of nulls are not free. */
  get byteSize(): number {
    let size = 0;
    for (const field of this.fields) size += field.byteSize;
    return size;
  }

  /** The ended rows. A row begun and not ended is dropped. The builder is spent. */
  finish(): Columns {
    this.rollbackRow();
    const { rows } = this;
    return { schema: this.schema, rows, columns: this.fields.map((field) => field.finish(rows)) };
  }
}

export type FieldBuilder =
  | BooleanBuilder
  | Int32Builder
  | Int64Builder
  | Float32Builder
  | Float64Builder
  | FixedBuilder
  | TextBuilder
  | NestedBuilder;

function fieldBuilder(field: NestedField, ended: EndedRows, dictionaryEntriesMax: number): FieldBuilder {
  const storage = storageOf(field.type);
  switch (storage.kind) {
    case 'boolean':
      return new BooleanBuilder(field, ended);
    case 'int32':
      return new Int32Builder(field, ended);
    case 'int64':
      return new Int64Builder(field, ended);
    case 'float32':
      return new Float32Builder(field, ended);
    case 'float64':
      return new Float64Builder(field, ended);
    case 'fixed':
      return new FixedBuilder(field, ended, storage.width);
    case 'text':
      return new TextBuilder(field, ended, dictionaryEntriesMax);
    case 'nested':
      return new NestedBuilder(field, ended);
  }
}

type Values = Uint8Array | Int32Array | Float32Array | Float64Array;

/**
 * What the builders of fixed-width values share. Each has its own `push`, which touches only `slots` and `newest`, so
 * that the hot path stays monomorphic.
 */
abstract class FixedWidthBuilder<A extends Values> {
  readonly field: NestedField;
  protected readonly slots: Slots;
  protected segments: A[] = [];
  protected newest: A;
  private readonly elementsPerRow: number;

  constructor(field: NestedField, ended: EndedRows, make: (elements: number) => A, elementsPerRow = 1) {
    this.field = field;
    this.newest = make(0);
    this.elementsPerRow = elementsPerRow;
    this.slots = new Slots(ended, (rows) => {
      this.newest = make(rows * elementsPerRow);
      this.segments.push(this.newest);
    });
  }

  get pushed(): boolean {
    return this.slots.pushed;
  }

  pushNull(): void {
    this.slots.nextNull();
  }

  takeBack(): void {
    const at = this.slots.takeBack();
    if (at >= 0) this.newest.fill(0, at * this.elementsPerRow, (at + 1) * this.elementsPerRow);
  }

  get byteSize(): number {
    let size = this.slots.byteSize + this.slots.lag * this.elementsPerRow * this.newest.BYTES_PER_ELEMENT;
    for (const segment of this.segments) size += segment.byteLength;
    return size;
  }

  /** Fills `out` with the values of all rows; returns their validity. */
  protected finishInto(rows: number, out: A): Uint8Array | null {
    this.slots.skipTo(rows);
    joinSegments(this.segments, out);
    return this.slots.finish();
  }
}

export class BooleanBuilder extends FixedWidthBuilder<Uint8Array> {
  readonly kind = 'boolean';

  constructor(field: NestedField, ended: EndedRows) {
    super(field, ended, (elements) => new Uint8Array(elements));
  }

  push(value: boolean): void {
    const at = this.slots.next();
    this.newest[at] = value ? 1 : 0;
  }

  finish(rows: number): Column {
    const values = new Uint8Array(rows);
    return { kind: 'boolean', values, validity: this.finishInto(rows, values) };
  }
}

export class Int32Builder extends FixedWidthBuilder<Int32Array> {
  readonly kind = 'int32';

  constructor(field: NestedField, ended: EndedRows) {
    super(field, ended, (elements) => new Int32Array(elements));
  }

  push(value: number): void {
    assert((value | 0) === value, 'an int32 is pushed');
    const at = this.slots.next();
    this.newest[at] = value;
  }

  finish(rows: number): Column {
    const values = new Int32Array(rows);
    return { kind: 'int32', values, validity: this.finishInto(rows, values) };
  }
}

/** Segments hold (lo, hi) pairs, little endian. */
export class Int64Builder extends FixedWidthBuilder<Int32Array> {
  readonly kind = 'int64';

  constructor(field: NestedField, ended: EndedRows) {
    super(field, ended, (elements) => new Int32Array(elements), 2);
  }

  /** `value` is a safe integer. */
  pushNumber(value: number): void {
    assert(Number.isSafeInteger(value), 'a safe integer is pushed');
    const at = 2 * this.slots.next();
    this.newest[at] = value;
    this.newest[at + 1] = Math.floor(value / 4294967296);
  }

  pushBigint(value: bigint): void {
    assert(BigInt.asIntN(64, value) === value, 'an int64 is pushed');
    const at = 2 * this.slots.next();
    this.newest[at] = Number(BigInt.asIntN(32, value));
    this.newest[at + 1] = Number(value >> 32n);
  }

  /** Low and high half, each taken modulo 2^32. */
  pushPair(lo: number, hi: number): void {
    const at = 2 * this.slots.next();
    this.newest[at] = lo;
    this.newest[at + 1] = hi;
  }

  finish(rows: number): Column {
    const values = new BigInt64Array(rows);
    return { kind: 'int64', values, validity: this.finishInto(rows, int32Pairs(values)) };
  }
}

export class Float32Builder extends FixedWidthBuilder<Float32Array> {
  readonly kind = 'float32';

  constructor(field: NestedField, ended: EndedRows) {
    super(field, ended, (elements) => new Float32Array(elements));
  }

  push(value: number): void {
    const at = this.slots.next();
    this.newest[at] = value;
  }

  finish(rows: number): Column {
    const values = new Float32Array(rows);
    return { kind: 'float32', values, validity: this.finishInto(rows, values) };
  }
}

export class Float64Builder extends FixedWidthBuilder<Float64Array> {
  readonly kind = 'float64';

  constructor(field: NestedField, ended: EndedRows) {
    super(field, ended, (elements) => new Float64Array(elements));
  }

  push(value: number): void {
    const at = this.slots.next();
    this.newest[at] = value;
  }

  finish(rows: number): Column {
    const values = new Float64Array(rows);
    return { kind: 'float64', values, validity: this.finishInto(rows, values) };
  }
}

export class FixedBuilder extends FixedWidthBuilder<Uint8Array> {
  readonly kind = 'fixed';
  readonly width: number;

  constructor(field: NestedField, ended: EndedRows, width: number) {
    super(field, ended, (elements) => new Uint8Array(elements), width);
    this.width = width;
  }

  /** `bytes` are `width` long: a uuid or a decimal is big-endian. */
  push(bytes: Uint8Array): void {
    assert(bytes.length === this.width, 'bytes of the fixed width are pushed');
    const at = this.slots.next();
    this.newest.set(bytes, at * this.width);
  }

  finish(rows: number): Column {
    const values = new Uint8Array(rows * this.width);
    return { kind: 'fixed', width: this.width, values, validity: this.finishInto(rows, values) };
  }
}

/** Lists, structs and maps: one JavaScript value a row, kept as it is. */
export class NestedBuilder {
  readonly kind = 'nested';
  readonly field: NestedField;
  private readonly slots: Slots;
  private readonly values: unknown[] = [];
  private valueBytes = 0;
  private lastBytes = 0;

  constructor(field: NestedField, ended: EndedRows) {
    this.field = field;
    this.slots = new Slots(ended, () => {});
  }

  get pushed(): boolean {
    return this.slots.pushed;
  }

  pushNull(): void {
    this.slots.nextNull();
    this.lastBytes = 0;
  }

  /** `value` is not null. */
  push(value: unknown): void {
    assert(value !== null && value !== undefined, 'a nested value is not null');
    this.slots.next();
    while (this.values.length < this.slots.count - 1) this.values.push(null);
    this.values.push(value);
    this.lastBytes = nestedBytes(value);
    this.valueBytes += this.lastBytes;
  }

  takeBack(): void {
    if (this.slots.takeBack() < 0) return;
    if (this.values.length > this.slots.count) this.values.pop();
    this.valueBytes -= this.lastBytes;
    this.lastBytes = 0;
  }

  get byteSize(): number {
    return this.slots.byteSize + 8 * this.values.length + this.valueBytes;
  }

  finish(rows: number): Column {
    this.slots.skipTo(rows);
    while (this.values.length < rows) this.values.push(null);
    return { kind: 'nested', values: this.values, validity: this.slots.finish() };
  }
}

/** Memory of a nested value, roughly: 16 bytes an object, list or number, and what texts and bytes take. */
export function nestedBytes(value: unknown): number {
  if (typeof value === 'string') return 16 + value.length;
  if (value instanceof Uint8Array) return 64 + value.length;
  if (typeof value !== 'object' || value === null) return 16;
  let size = 16;
  if (Array.isArray(value)) for (const element of value) size += nestedBytes(element);
  else if (value instanceof Map) for (const [key, held] of value) size += nestedBytes(key) + nestedBytes(held);
  else for (const key in value) size += 16 + nestedBytes((value as Record<string, unknown>)[key]);
  return size;
}

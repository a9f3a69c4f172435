import { assert } from '../base/assert.ts';

/** Rows ended by a builder, shared with all of its fields. */
export interface EndedRows {
  count: number;
}

/** Rows of the first segment of a column: a request of one row must not cost megabytes. */
export const SEGMENT_ROWS_MIN = 64;

/** Rows of the largest segment. Columns grow by segments, never by doubling one array: that would hold it twice. */
export const SEGMENT_ROWS_MAX = 65_536;

interface Segment {
  rows: number;
  /** 1 where a value is; made at the first null and filled with 1, so that pushing a value never touches it. */
  validity: Uint8Array | null;
}

/**
 * The row positions of one column under construction: which segment, which slot, which nulls. The values themselves are
 * with the owner, which adds a zeroed segment of its own whenever this one does. One class for all kinds of columns, so
 * that the engine sees one shape on the hot path.
 *
 * A field that was not pushed in a row simply lags behind `ended`; the gap is filled with nulls at the next push or at
 * the end. So ending a row costs nothing, however wide the schema is.
 */
export class Slots {
  /** Rows pushed, nulls included. */
  count = 0;
  nulls = 0;
  readonly segments: Segment[] = [];
  private readonly ended: EndedRows;
  private readonly addSegment: (rows: number) => void;
  private at = 0;
  private capacity = 0;

  constructor(ended: EndedRows, addSegment: (rows: number) => void) {
    this.ended = ended;
    this.addSegment = addSegment;
  }

  get pushed(): boolean {
    return this.count > this.ended.count;
  }

  /** Opens the slot of the row being built and returns its place in the newest segment. */
  next(): number {
    if (this.count !== this.ended.count) {
      assert(this.count < this.ended.count, 'a field is pushed once a row');
      this.skipTo(this.ended.count);
    }
    if (this.at === this.capacity) this.grow();
    this.count++;
    return this.at++;
  }

  /** As `next`, and the row is null. */
  nextNull(): void {
    const at = this.next();
    this.validityOfNewest().fill(0, at, at + 1);
    this.nulls++;
  }

  /** Fills up with nulls to `count` rows. */
  skipTo(count: number): void {
    // One null, the usual case, without the call that a fill is.
    if (this.count + 1 === count && this.at < this.capacity) {
      this.validityOfNewest()[this.at++] = 0;
      this.count = count;
      this.nulls++;
      return;
    }
    while (this.count < count) {
      if (this.at === this.capacity) this.grow();
      const skipped = Math.min(count - this.count, this.capacity - this.at);
      this.validityOfNewest().fill(0, this.at, this.at + skipped);
      this.at += skipped;
      this.count += skipped;
      this.nulls += skipped;
    }
  }

  /** Takes back the row being built. Returns its place in the newest segment, which the owner zeroes; -1: not pushed. */
  takeBack(): number {
    if (!this.pushed) return -1;
    this.count--;
    this.at--;
    const validity = this.segments[this.segments.length - 1].validity;
    if (validity !== null && validity[this.at] === 0) {
      validity[this.at] = 1;
      this.nulls--;
    }
    return this.at;
  }

  /** Rows that will be filled with nulls, and have no slots yet. */
  get lag(): number {
    return Math.max(0, this.ended.count - this.count);
  }

  get byteSize(): number {
    let size = this.lag;
    for (const segment of this.segments) size += segment.validity === null ? 0 : segment.rows;
    return size;
  }

  /** Validity of all rows, null when there are no nulls. */
  finish(): Uint8Array | null {
    if (this.nulls === 0) return null;
    const out = new Uint8Array(this.count);
    let from = 0;
    for (const { rows, validity } of this.segments) {
      const used = Math.min(rows, this.count - from);
      if (validity === null) out.fill(1, from, from + used);
      else out.set(validity.subarray(0, used), from);
      from += used;
    }
    return out;
  }

  private grow(): void {
    const rows = Math.max(SEGMENT_ROWS_MIN, Math.min(SEGMENT_ROWS_MAX, this.count));
    this.segments.push({ rows, validity: null });
    this.addSegment(rows);
    this.at = 0;
    this.capacity = rows;
  }

  private validityOfNewest(): Uint8Array {
    const newest = this.segments[this.segments.length - 1];
    newest.validity ??= new Uint8Array(newest.rows).fill(1);
    return newest.validity;
  }
}

type TypedArray = Uint8Array | Int32Array | BigInt64Array | Float32Array | Float64Array;

/**
 * One array of `length` elements from segments in order; the last one may be longer than needed. Segments are let go
 * as they are copied.
 */
export function joinSegments<A extends TypedArray>(segments: A[], out: A): A {
  let from = 0;
  for (let i = 0; i < segments.length && from < out.length; i++) {
    const used = Math.min(segments[i].length, out.length - from);
    out.set(segments[i].subarray(0, used) as never, from);
    from += used;
  }
  segments.length = 0;
  return out;
}

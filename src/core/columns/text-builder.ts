import { hex, textOf } from '../base/bytes.ts';
import { invalid } from '../base/errors.ts';
import type { NestedField } from '../iceberg/types.ts';
import { ByteHeap } from './byte-heap.ts';
import type { ByteStrings, Column } from './columns.ts';
import { type EndedRows, joinSegments, Slots } from './slots.ts';

/** Memory of one dictionary entry beside its text: a slot of the map and the string's header. */
const ENTRY_BYTES = 64;

/**
 * A string or binary column under construction. It starts as a dictionary; a value beyond `entriesMax` distinct ones
 * turns it into plain bytes, for good.
 *
 * The keys of the dictionary are the strings themselves, or, in a binary column, one code unit a byte. Segments hold
 * code + 1 while it is a dictionary (so that a zeroed slot is null), afterwards the length in bytes.
 */
export class TextBuilder {
  readonly kind = 'text';
  readonly field: NestedField;
  private readonly slots: Slots;
  private segments: Int32Array[] = [];
  private newest: Int32Array = new Int32Array(0);
  private readonly entriesMax: number;
  private readonly binary: boolean;
  /** Entries in order of their codes; null once the column is plain bytes. */
  private entries: Map<string, number> | null = new Map();
  private entriesLength = 0;
  /** The entry that the row being built has added. */
  private added: string | null = null;
  private readonly heap = new ByteHeap();

  constructor(field: NestedField, ended: EndedRows, entriesMax: number) {
    this.field = field;
    this.entriesMax = entriesMax;
    this.binary = field.type === 'binary';
    this.slots = new Slots(ended, (rows) => {
      this.newest = new Int32Array(rows);
      this.segments.push(this.newest);
    });
  }

  get pushed(): boolean {
    return this.slots.pushed;
  }

  pushNull(): void {
    this.slots.nextNull();
    this.added = null;
  }

  /** Pushes text that this string column holds already. False, and nothing is pushed, when it may not. */
  pushKnown(text: string): boolean {
    const code = this.codeOf(text);
    if (code >= 0) this.pushCode(code);
    return code >= 0;
  }

  /** Code of a text of this string column; -1 when it has none. Once the row of a text has ended, its code stays. */
  codeOf(text: string): number {
    return this.entries === null || this.binary ? -1 : (this.entries.get(text) ?? -1);
  }

  /** Pushes the text of a code. False, and nothing is pushed, when texts have no codes any more. */
  pushCoded(code: number): boolean {
    if (this.entries === null) return false;
    this.pushCode(code);
    return true;
  }

  /**
   * Pushes text; into a binary column, its UTF-8 bytes.
   *
   * Throws `invalid` `lone-surrogate` for text that has no UTF-8 form.
   */
  pushString(text: string): void {
    if (this.binary) {
      this.checkWellFormed(text);
      this.pushBytes(new TextEncoder().encode(text));
      return;
    }
    if (this.entries !== null) {
      const code = this.entries.get(text);
      if (code !== undefined) {
        this.pushCode(code);
        return;
      }
    }
    this.checkWellFormed(text);
    if (this.entries !== null && this.entries.size < this.entriesMax) this.pushEntry(text, this.entries);
    else {
      this.turnToBytes();
      const at = this.slots.next();
      this.newest[at] = this.heap.appendText(text);
    }
  }

  /**
   * Pushes bytes; into a string column, UTF-8.
   *
   * Throws `invalid` `malformed-utf8` when a string column is given bytes that are not.
   */
  pushBytes(bytes: Uint8Array): void {
    const key = this.binary && this.entries === null ? '' : this.keyOf(bytes);
    if (this.entries !== null) {
      const code = this.entries.get(key);
      if (code !== undefined) {
        this.pushCode(code);
        return;
      }
      if (this.entries.size < this.entriesMax) {
        this.pushEntry(key, this.entries);
        return;
      }
    }
    this.turnToBytes();
    const at = this.slots.next();
    this.newest[at] = this.heap.appendBytes(bytes);
  }

  takeBack(): void {
    const at = this.slots.takeBack();
    if (at < 0) return;
    if (this.entries === null) this.heap.takeBack(this.newest[at]);
    else if (this.added !== null) {
      this.entries.delete(this.added);
      this.entriesLength -= this.added.length;
    }
    this.added = null;
    this.newest[at] = 0;
  }

  get byteSize(): number {
    let size = this.slots.byteSize + 4 * this.slots.lag + this.heap.byteSize;
    for (const segment of this.segments) size += segment.byteLength;
    // Twice the length: the map may hold two bytes a unit, or one, and `finish` makes the UTF-8 form beside it.
    if (this.entries !== null) size += this.entries.size * ENTRY_BYTES + 2 * this.entriesLength;
    return size;
  }

  finish(rows: number): Column {
    this.slots.skipTo(rows);
    const validity = this.slots.finish();
    if (this.entries === null) {
      const offsets = joinSegments(this.segments, new Int32Array(rows + 1).subarray(1));
      let end = 0;
      for (let i = 0; i < rows; i++) {
        end += offsets[i];
        offsets[i] = end;
      }
      const values: ByteStrings = { bytes: this.heap.finish(), offsets: new Int32Array(offsets.buffer) };
      return { kind: 'bytes', values, validity };
    }
    const codes = joinSegments(this.segments, new Int32Array(rows));
    for (let i = 0; i < rows; i++) codes[i]--;
    return { kind: 'dictionary', codes, dictionary: this.finishEntries(this.entries), validity };
  }

  private pushCode(code: number): void {
    const at = this.slots.next();
    this.newest[at] = code + 1;
    this.added = null;
  }

  private pushEntry(key: string, entries: Map<string, number>): void {
    const at = this.slots.next();
    entries.set(key, entries.size);
    this.newest[at] = entries.size;
    this.entriesLength += key.length;
    this.added = key;
  }

  private keyOf(bytes: Uint8Array): string {
    if (this.binary) return latin1(bytes);
    try {
      return textOf(bytes);
    } catch (cause) {
      const shown = hex(bytes.subarray(0, 16));
      throw invalid('malformed-utf8', `bytes of column ${this.field.name} are not UTF-8: ${shown}`, {}, cause);
    }
  }

  private checkWellFormed(text: string): void {
    if (!text.isWellFormed()) {
      throw invalid('lone-surrogate', `text of column ${this.field.name} holds a lone surrogate`, {
        field: this.field.name,
      });
    }
  }

  private appendKey(key: string): number {
    return this.binary ? this.heap.appendLatin1(key) : this.heap.appendText(key);
  }

  private finishEntries(entries: Map<string, number>): ByteStrings {
    const offsets = new Int32Array(entries.size + 1);
    let i = 0;
    let end = 0;
    for (const key of entries.keys()) {
      end += this.appendKey(key);
      offsets[++i] = end;
    }
    entries.clear();
    return { bytes: this.heap.finish(), offsets };
  }

  /** Replaces codes by lengths, and writes the text of the rows so far. */
  private turnToBytes(): void {
    if (this.entries === null) return;
    const keys = [...this.entries.keys()];
    this.entries = null;
    this.added = null;
    let left = this.slots.count;
    for (const segment of this.segments) {
      const used = Math.min(left, segment.length);
      for (let i = 0; i < used; i++) {
        if (segment[i] > 0) segment[i] = this.appendKey(keys[segment[i] - 1]);
      }
      left -= used;
    }
  }
}

/** One code unit a byte, so that equal keys are equal bytes. */
function latin1(bytes: Uint8Array): string {
  let out = '';
  for (let from = 0; from < bytes.length; from += 4096) {
    out += String.fromCharCode(...bytes.subarray(from, from + 4096));
  }
  return out;
}

import { utf8 } from '../base/bytes.ts';

/**
 * One field of a FlatBuffers table: a number of so many bytes, or what lies elsewhere. Null: left out, which means the default
 * that the schema of the format names.
 */
export type Slot =
  | { bytes: 1 | 2 | 4 | 8; value: number | bigint }
  | { text: string }
  | { table: Table }
  | { tables: readonly Table[] }
  /** Structs of two 64-bit integers each, one after the other. */
  | { pairs: BigInt64Array }
  | null;

/** Fields of a table, by their numbers. */
export type Table = readonly Slot[];

/**
 * A FlatBuffers buffer with this root. Each part stands behind what refers to it, so that offsets are filled in once the
 * part is there; strings and tables are never shared, which the few parts of Arrow messages do not ask for.
 */
export function flatbuffer(root: Table): Uint8Array {
  const out = new Output();
  const at = out.reserve(4, 4);
  out.uint32(at, out.table(root));
  return out.bytes();
}

class Output {
  #bytes = new Uint8Array(1024);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  bytes(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }

  uint32(at: number, value: number): void {
    this.#view.setUint32(at, value, true);
  }

  /** Zeros from a place that is a multiple of `align`. */
  reserve(length: number, align: number): number {
    const at = Math.ceil(this.#length / align) * align;
    this.#length = at + length;
    if (this.#length > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(this.#length, 2 * this.#bytes.length));
      grown.set(this.#bytes);
      this.#bytes = grown;
      this.#view = new DataView(grown.buffer);
    }
    return at;
  }

  /** Writes a table and all that it refers to; returns where it begins. */
  table(slots: Table): number {
    const { places, length } = layoutOf(slots);
    const index = this.reserve(4 + 2 * slots.length, 2);
    this.#view.setUint16(index, 4 + 2 * slots.length, true);
    this.#view.setUint16(index + 2, length, true);
    places.forEach((place, i) => {
      this.#view.setUint16(index + 4 + 2 * i, place, true);
    });
    const at = this.reserve(length, 8);
    this.#view.setInt32(at, at - index, true);
    slots.forEach((slot, i) => {
      if (slot !== null) this.#slot(slot, at + places[i]);
    });
    return at;
  }

  #slot(slot: NonNullable<Slot>, at: number): void {
    if ('bytes' in slot) this.#number(slot.bytes, slot.value, at);
    else if ('text' in slot) this.uint32(at, this.#text(slot.text) - at);
    else if ('table' in slot) this.uint32(at, this.table(slot.table) - at);
    else if ('tables' in slot) this.uint32(at, this.#tables(slot.tables) - at);
    else this.uint32(at, this.#pairs(slot.pairs) - at);
  }

  #number(bytes: 1 | 2 | 4 | 8, value: number | bigint, at: number): void {
    if (bytes === 8) this.#view.setBigInt64(at, BigInt(value), true);
    else if (bytes === 4) this.#view.setInt32(at, Number(value), true);
    else if (bytes === 2) this.#view.setInt16(at, Number(value), true);
    else this.#view.setInt8(at, Number(value));
  }

  #text(text: string): number {
    const bytes = utf8(text);
    // A zero behind it, which its length does not count.
    const at = this.reserve(4 + bytes.length + 1, 4);
    this.uint32(at, bytes.length);
    this.#bytes.set(bytes, at + 4);
    return at;
  }

  #tables(tables: readonly Table[]): number {
    const at = this.reserve(4 + 4 * tables.length, 4);
    this.uint32(at, tables.length);
    tables.forEach((slots, i) => {
      const place = at + 4 + 4 * i;
      this.uint32(place, this.table(slots) - place);
    });
    return at;
  }

  #pairs(values: BigInt64Array): number {
    // The structs are aligned to their integers, their count stands right before them.
    const data = this.reserve(4 + 8 * values.length + 4, 8) + 8;
    this.uint32(data - 4, values.length / 2);
    for (let i = 0; i < values.length; i++) this.#view.setBigInt64(data + 8 * i, values[i], true);
    return data - 4;
  }
}

/** Places of fields from the beginning of their table, the largest first, so that each is aligned; 0 for those left out. */
function layoutOf(slots: Table): { places: number[]; length: number } {
  const places = new Array<number>(slots.length).fill(0);
  let length = 4;
  for (const size of [8, 4, 2, 1]) {
    slots.forEach((slot, i) => {
      if (slot === null || sizeOf(slot) !== size) return;
      places[i] = Math.ceil(length / size) * size;
      length = places[i] + size;
    });
  }
  return { places, length };
}

function sizeOf(slot: NonNullable<Slot>): number {
  return 'bytes' in slot ? slot.bytes : 4;
}

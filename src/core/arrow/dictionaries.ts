import { FOREIGN_ELEMENTS_MAX } from '../base/limits.ts';
import type { ByteStrings } from '../columns/columns.ts';
import { type ForeignColumn, foreignReader } from '../columns/foreign.ts';
import { malformed } from './flatbuffer.ts';

/**
 * The dictionaries of a stream by id: sent, sent anew, and made longer between batches. What was given out stays as it was:
 * storage is only ever written behind it, and doubles, so that many small additions do not cost a copy each.
 */
export class Dictionaries {
  private readonly byId = new Map<bigint, Entries>();

  get(id: bigint): ForeignColumn | null {
    return this.byId.get(id)?.column ?? null;
  }

  /** A dictionary in the place of the one before. */
  replace(id: bigint, column: ForeignColumn): void {
    this.byId.set(id, { column, grown: null });
  }

  /** More entries behind those that are there. */
  extend(id: bigint, added: ForeignColumn): void {
    const entries = this.byId.get(id);
    if (entries === undefined) throw malformed(`dictionary ${id} is made longer and was never sent`);
    const rows = entries.column.rows + added.rows;
    if (rows > FOREIGN_ELEMENTS_MAX) throw malformed(`dictionary ${id} has ${rows} entries`);
    entries.grown ??= emptyGrown(entries.column);
    append(entries.grown, added);
    entries.column = columnOf(entries.grown, added);
  }
}

interface Entries {
  column: ForeignColumn;
  /** Made by the first addition. */
  grown: Grown | null;
}

interface Grown {
  rows: number;
  validity: Uint8Array;
  /** Of texts and bytes; else `values`. */
  strings: ByteStrings | null;
  values: unknown[];
}

function emptyGrown(column: ForeignColumn): Grown {
  const strings = column.data.form === 'strings' ? { bytes: new Uint8Array(0), offsets: new Int32Array(1) } : null;
  const grown: Grown = { rows: 0, validity: new Uint8Array(0), strings, values: [] };
  append(grown, column);
  return grown;
}

function append(grown: Grown, added: ForeignColumn): void {
  const before = grown.rows;
  const rows = before + added.rows;
  if (rows > grown.validity.length) grown.validity = copied(grown.validity, new Uint8Array(2 * rows));
  if (added.validity === null) grown.validity.fill(1, before, rows);
  else grown.validity.set(added.validity, before);
  if (grown.strings !== null && added.data.form === 'strings') {
    const { strings } = grown;
    const { bytes, offsets } = added.data.strings;
    const end = strings.offsets[before];
    const length = offsets[added.rows] - offsets[0];
    if (end + length > strings.bytes.length) strings.bytes = copied(strings.bytes, new Uint8Array(2 * (end + length)));
    if (rows >= strings.offsets.length) strings.offsets = copied(strings.offsets, new Int32Array(2 * rows + 1));
    strings.bytes.set(bytes.subarray(offsets[0], offsets[added.rows]), end);
    for (let i = 1; i <= added.rows; i++) strings.offsets[before + i] = end + offsets[i] - offsets[0];
  } else {
    const read = foreignReader(added);
    for (let row = 0; row < added.rows; row++) grown.values.push(read(row));
  }
  grown.rows = rows;
}

function columnOf({ rows, validity, strings, values }: Grown, { type }: ForeignColumn): ForeignColumn {
  const known = validity.subarray(0, rows);
  const own = known.includes(0) ? known : null;
  if (strings === null) return { type, rows, validity: own, data: { form: 'values', values } };
  const { bytes, offsets } = strings;
  return {
    type,
    rows,
    validity: own,
    data: { form: 'strings', strings: { bytes, offsets: offsets.subarray(0, rows + 1) } },
  };
}

function copied<A extends Uint8Array | Int32Array>(from: A, to: A): A {
  to.set(from);
  return to;
}

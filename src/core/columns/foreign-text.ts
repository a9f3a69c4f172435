import { invalid, type SluiceError } from '../base/errors.ts';
import { BATCH_COLUMN_BYTES_MAX, DICTIONARY_ENTRIES_MAX } from '../base/limits.ts';
import { ByteInterner } from './byte-interner.ts';
import type { ByteStrings, Column } from './columns.ts';
import { gatherStrings, sliceStrings } from './gather.ts';
import { isUtf8, malformedEntries } from './utf8-check.ts';

/** Told of a row whose text is not UTF-8. */
export type ReportMalformed = (row: number) => void;

/** Distinct values after which a column of mostly distinct ones is no dictionary any more. */
const DISTINCT_TRIED = 4096;

/**
 * Text or bytes of rows as a column: a dictionary while few values are distinct, else the bytes as they lie, without a
 * copy where nothing stands in null rows. `report` null: bytes need not be text.
 */
export function stringsColumn(strings: ByteStrings, given: Uint8Array | null, report: ReportMalformed | null): Column {
  const rows = strings.offsets.length - 1;
  let validity = given;
  if (report !== null) {
    for (const row of malformedEntries(strings)) {
      if (validity !== null && validity[row] === 0) continue;
      if (validity === given) validity = given === null ? new Uint8Array(rows).fill(1) : given.slice();
      if (validity !== null) validity[row] = 0;
      report(row);
    }
  }
  return interned(strings, rows, validity) ?? { kind: 'bytes', values: dense(strings, rows, validity), validity };
}

function interned(strings: ByteStrings, rows: number, validity: Uint8Array | null): Column | null {
  const { bytes, offsets } = strings;
  const interner = new ByteInterner(DICTIONARY_ENTRIES_MAX);
  const codes = new Int32Array(rows);
  for (let row = 0; row < rows; row++) {
    if (validity !== null && validity[row] === 0) {
      codes[row] = -1;
      continue;
    }
    const code = interner.intern(bytes, offsets[row], offsets[row + 1]);
    if (code < 0 || (interner.size > DISTINCT_TRIED && 2 * interner.size > row)) return null;
    codes[row] = code;
  }
  return { kind: 'dictionary', codes, dictionary: interner.finish(), validity };
}

/** The same strings, empty in null rows, offsets counted from zero. */
function dense(strings: ByteStrings, rows: number, validity: Uint8Array | null): ByteStrings {
  const { bytes, offsets } = strings;
  let empty = true;
  if (validity !== null) {
    for (let row = 0; row < rows && empty; row++) empty = validity[row] === 1 || offsets[row] === offsets[row + 1];
  }
  if (empty)
    return offsets[0] === 0 ? { bytes: bytes.subarray(0, offsets[rows]), offsets } : sliceStrings(strings, 0, rows);
  const ends = new Int32Array(rows + 1);
  const out = new Uint8Array(offsets[rows] - offsets[0]);
  let end = 0;
  for (let row = 0; row < rows; row++) {
    if (validity === null || validity[row] === 1) {
      out.set(bytes.subarray(offsets[row], offsets[row + 1]), end);
      end += offsets[row + 1] - offsets[row];
    }
    ends[row + 1] = end;
  }
  return { bytes: out.subarray(0, end), offsets: ends };
}

/**
 * Rows that are entries of a dictionary as a column. Entries of the result are distinct and in use, whatever those of the
 * other dictionary are. Only entries in use are looked at.
 */
export function dictionaryColumn(
  codes: Int32Array,
  entries: ByteStrings,
  given: Uint8Array | null,
  report: ReportMalformed | null,
): Column {
  const { bytes, offsets } = entries;
  const rows = codes.length;
  const interner = new ByteInterner(DICTIONARY_ENTRIES_MAX);
  /** By entry of the other dictionary: own code + 1; 0: not seen; MALFORMED; FULL. */
  const known = new Int32Array(offsets.length - 1);
  const own = new Int32Array(rows);
  let validity = given;
  let full = false;
  for (let row = 0; row < rows; row++) {
    if (validity !== null && validity[row] === 0) {
      own[row] = -1;
      continue;
    }
    const code = codes[row];
    if (known[code] === 0) {
      if (report !== null && !isUtf8(bytes, offsets[code], offsets[code + 1])) known[code] = MALFORMED;
      else {
        const number = interner.intern(bytes, offsets[code], offsets[code + 1]);
        full ||= number < 0;
        known[code] = number < 0 ? FULL : number + 1;
      }
    }
    if (known[code] === MALFORMED) {
      if (validity === given) validity = given === null ? new Uint8Array(rows).fill(1) : given.slice();
      if (validity !== null) validity[row] = 0;
      own[row] = -1;
      report?.(row);
    } else own[row] = known[code] - 1;
  }
  if (!full) return { kind: 'dictionary', codes: own, dictionary: interner.finish(), validity };
  return { kind: 'bytes', values: spelledOut(codes, entries, validity), validity };
}

const MALFORMED = -1;
const FULL = -2;

function spelledOut(codes: Int32Array, entries: ByteStrings, validity: Uint8Array | null): ByteStrings {
  const { bytes, offsets } = entries;
  const rows = codes.length;
  if (validity === null) {
    let total = 0;
    for (let row = 0; row < rows; row++) total += offsets[codes[row] + 1] - offsets[codes[row]];
    checkBytes(total);
    return gatherStrings(entries, codes);
  }
  const ends = new Int32Array(rows + 1);
  let end = 0;
  for (let row = 0; row < rows; row++) {
    if (validity[row] === 1) end += offsets[codes[row] + 1] - offsets[codes[row]];
    checkBytes(end);
    ends[row + 1] = end;
  }
  const out = new Uint8Array(end);
  for (let row = 0; row < rows; row++) {
    if (validity[row] === 1) out.set(bytes.subarray(offsets[codes[row]], offsets[codes[row] + 1]), ends[row]);
  }
  return { bytes: out, offsets: ends };
}

function checkBytes(bytes: number): void {
  if (bytes > BATCH_COLUMN_BYTES_MAX) throw batchTooLarge();
}

/** The refusal of a batch that is small as sent and too large as columns. */
export function batchTooLarge(): SluiceError {
  return invalid('too-large', `batch takes more than ${BATCH_COLUMN_BYTES_MAX} bytes as columns: split it`, {
    bytesMax: BATCH_COLUMN_BYTES_MAX,
  });
}

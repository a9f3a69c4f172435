import { EXIT, Failure } from './failure.ts';
import type { FileFormat } from './formats.ts';
import { ArrayRecords, csvRecords, lineRecords, pointRecords, type Records } from './records.ts';

/** Rows of one batch, as they are sent. */
export interface Piece {
  /** Counted from 0. The same file is cut the same way every time. */
  number: number;
  body: Uint8Array;
  /** Records as far as they can be counted here; 0: they cannot. */
  records: number;
  /** What is added to a line of the body to make it one of the file. */
  lineOffset: number;
}

export interface Bounds {
  rowsMax: number;
  bytesMax: number;
}

/** A body that cannot be cut is sent whole; the service takes no longer one. */
const WHOLE_BYTES_MAX = 32 * 1024 * 1024;

/**
 * Cuts a file into batches at the ends of records, each at most `rowsMax` records and no more than one record beyond `bytesMax`
 * bytes. Throws `Failure` for a file that cannot be cut and is too long, and for a JSON array without its end.
 */
export async function* pieces(
  source: AsyncIterable<Uint8Array>,
  format: FileFormat,
  bounds: Bounds,
): AsyncGenerator<Piece> {
  switch (format.cut) {
    case 'array':
      yield* arrayPieces(source, bounds);
      return;
    case null: {
      const body = await whole(source, format.name);
      yield { number: 0, body, records: 0, lineOffset: 0 };
      return;
    }
    default:
      yield* linePieces(source, format.cut, bounds);
  }
}

const MAKE = { lines: lineRecords, csv: csvRecords, points: pointRecords };

async function* linePieces(
  source: AsyncIterable<Uint8Array>,
  cut: 'lines' | 'csv' | 'points',
  bounds: Bounds,
): AsyncGenerator<Piece> {
  const isCsv = cut === 'csv';
  let header: Uint8Array | null = isCsv ? null : new Uint8Array(0);
  let number = 0;
  let lines = 0;
  for await (const { bytes, records, newlines } of runs(withoutMark(source), MAKE[cut](), bounds, isCsv)) {
    if (header === null) {
      header = bytes;
      lines = newlines;
      continue;
    }
    // The header is in front of each piece and takes its lines there.
    const lineOffset = lines - (isCsv ? countOf(header) : 0);
    lines += newlines;
    yield { number: number++, body: Buffer.concat([header, bytes]), records, lineOffset };
  }
  // A header alone: the service says what is wrong with it, if anything is.
  if (isCsv && number === 0 && header !== null) yield { number: 0, body: header, records: 0, lineOffset: 0 };
}

function countOf(bytes: Uint8Array): number {
  let newlines = 0;
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) newlines++;
  return newlines;
}

const OPEN_LIST = 0x5b;
const LIST = { open: Buffer.from('['), close: Buffer.from(']') };

async function* arrayPieces(source: AsyncIterable<Uint8Array>, bounds: Bounds): AsyncGenerator<Piece> {
  const elements = new ArrayRecords();
  let number = 0;
  let before = 0;
  for await (const { bytes, records, isOpen } of runs(withoutMark(source), elements, bounds, false)) {
    if (elements.place === 'object' || elements.place === 'before') {
      yield { number: number++, body: bytes, records: 1, lineOffset: 0 };
      continue;
    }
    const isBlank = bytes.every((byte) => byte <= 0x20);
    if (elements.place === 'behind' && isOpen) {
      if (isBlank) continue;
      throw new Failure(EXIT.refused, 'file goes on behind its array');
    }
    // The beginning of an element is none: a number that is cut is another number.
    if (isOpen) break;
    const inside = bytes.subarray(number === 0 ? bytes.indexOf(OPEN_LIST) + 1 : 0, -1);
    yield { number: number++, body: Buffer.concat([LIST.open, inside, LIST.close]), records, lineOffset: before };
    before += records;
  }
  if (elements.place === 'array') {
    throw new Failure(EXIT.refused, `file ends inside of its array, behind ${before} elements`);
  }
}

interface Run {
  bytes: Uint8Array;
  records: number;
  newlines: number;
  /** It ends with the file, and in the middle of a record. */
  isOpen: boolean;
}

/** Runs of whole records; the last may end without the end of its record. `first`: the first record is a run of its own. */
async function* runs(
  source: AsyncIterable<Uint8Array>,
  ends: Records,
  { rowsMax, bytesMax }: Bounds,
  first: boolean,
): AsyncGenerator<Run> {
  let held: Uint8Array[] = [];
  let bytes = 0;
  let records = 0;
  let newlines = 0;
  let isFirst = first;
  const isArray = ends instanceof ArrayRecords;

  function close(isOpen: boolean): Run {
    const run = { bytes: Buffer.concat(held), records: records + (isOpen ? 1 : 0), newlines, isOpen };
    held = [];
    bytes = 0;
    records = 0;
    newlines = 0;
    return run;
  }

  for await (const chunk of source) {
    let from = 0;
    for (let at = 0; at < chunk.length; at++) {
      if (chunk[at] === 10) newlines++;
      if (!ends.take(chunk[at])) continue;
      records++;
      const isEnd = isArray && ends.place === 'behind';
      if (!isFirst && !isEnd && records < rowsMax && bytes + at + 1 - from < bytesMax) continue;
      held.push(chunk.subarray(from, at + 1));
      from = at + 1;
      isFirst = false;
      yield close(false);
    }
    held.push(chunk.subarray(from));
    bytes += chunk.length - from;
  }
  const end = held.findLast(({ length }) => length > 0)?.at(-1);
  if (end !== undefined) yield close(isArray || end !== 10);
}

/** The bytes without a byte order mark in front, which the service knows at the beginning of a body alone. */
async function* withoutMark(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let isStart = true;
  for await (const chunk of source) {
    const isMarked = isStart && chunk[0] === 0xef && chunk[1] === 0xbb && chunk[2] === 0xbf;
    isStart = false;
    yield isMarked ? chunk.subarray(3) : chunk;
  }
}

async function whole(source: AsyncIterable<Uint8Array>, format: string): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of source) {
    bytes += chunk.length;
    if (bytes > WHOLE_BYTES_MAX) {
      throw new Failure(EXIT.refused, `${format} files are sent whole, and 32 MiB are the most: split the file`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

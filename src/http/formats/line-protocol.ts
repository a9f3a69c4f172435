import { utf8 } from '../../core/base/bytes.ts';
import { invalid } from '../../core/base/errors.ts';
import { LINE_BYTES_MAX, SCHEMA_FIELDS_MAX } from '../../core/base/limits.ts';
import { shorten } from '../../core/columns/fault.ts';
import type { EpochUnit } from '../../core/columns/times.ts';
import type { RowReader, RowSink } from './format.ts';
import { emptyBody, lineTooLong } from './json-text.ts';
import { plainNumber } from './plain-number.ts';
import { scalarOf, ValueFault } from './point-scalar.ts';
import { microsAt, pointTime } from './point-time.ts';
import { bytesBehind, latin1, newlineFrom, newlinesIn, piece, textOrNull } from './window-text.ts';

const TAB = 0x09;
const NEWLINE = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const HASH = 0x23;
const COMMA = 0x2c;
const EQUALS = 0x3d;
const BACKSLASH = 0x5c;

/** Where the points of one measurement go. */
export interface PointTable {
  /** The column that the time of a point goes to, in microseconds. */
  timeColumn: string;
  /** Keep the digits of floats that a double does not hold: a decimal is among the columns. */
  exact: boolean;
  /** Give integers as a bigint, so that they are told from whole floats: columns may be made of them. */
  typed: boolean;
  /** Gets the names of tags, where somebody is to know them. */
  tags?: Set<string>;
  sink: RowSink;
  /** Set to true by a point that came without a time. */
  untimed: boolean;
}

export interface PointOptions {
  /** What timestamps count. */
  precision: EpochUnit;
  /** The time of points that come without one, microseconds since 1970. */
  nowMicros: number;
  /** Tables by measurement. A measurement without one is `wanted`, and can be added then. */
  tables: ReadonlyMap<string, PointTable>;
  /** A line that is no line protocol. May throw. */
  malformed(line: number, message: string, text: string): void;
}

export interface PointReader extends RowReader {
  /** The measurement that `take` stopped at, since it is not in `tables`; null when it did not stop. */
  readonly wanted: string | null;
}

/**
 * InfluxDB's line protocol: `measurement,tag=value field=value,field="text" timestamp`, one point a line. Blank lines and
 * those that begin with `#` are skipped.
 *
 * - In names, and in values of tags, `\,`, `\ ` and `\=` stand for the character itself; any other backslash is one.
 * - A field is a number (`1`, `1.5e3`: a float; `1i`: 64 bits, `1u`: the same without a sign), `t`, `T`, `true`, `True`,
 *   `TRUE`, or false likewise, or text in quotes, where `\"` and `\\` stand for a quote and a backslash, any other
 *   backslash is one, and a newline is part of the text.
 * - NaN and infinities are no line protocol, but known from clients: a fault of their field, not of the line.
 *
 * A point becomes a row of tags, fields and time, by name. A name that stands twice in a line, as a tag and as a field or as
 * the time column too, is a fault of the row: the values would be of one column.
 */
export function pointReader(options: PointOptions): PointReader {
  return new LineReader(options);
}

/**
 * A measurement and the names that its lines had, in an order that they mostly keep. Lines repeat them, some left out: then
 * a name is compared with the next ones in order and need not be made. None is in it twice.
 */
interface Measurement {
  table: PointTable;
  keys: Key[];
  byRaw: Map<string, Key>;
}

interface Key {
  /** As it stands in the line, with the equals sign. No two spellings are one name. */
  raw: string;
  name: string;
}

/** Names compared before one is looked up. */
const KEYS_COMPARED = 8;

/** Why a line is no line protocol. No error: nobody looks at where it came from, and a body may hold many. */
class Malformed {
  readonly problem: string;
  constructor(problem: string) {
    this.problem = problem;
  }
}

/** A text in quotes goes on behind the window. */
const UNCLOSED = Symbol('unclosed');

class LineReader implements PointReader {
  wanted: string | null = null;
  private readonly options: PointOptions;
  private readonly measurements = new Map<string, Measurement>();
  /** The measurement of the line before, and how it stood there. */
  private last: Measurement | null = null;
  private lastRaw = '';
  /** Lines ended so far. */
  private lines = 0;
  private isEmpty = true;
  private text = '';
  private at = 0;
  /** Where in the measurement's names the next one of the line is expected. */
  private place = 0;
  /** The line has a name out of order: it may stand in it twice. */
  private isOutOfOrder = false;
  private fault: ValueFault | null = null;

  constructor(options: PointOptions) {
    this.options = options;
  }

  take(bytes: Uint8Array, last: boolean): number {
    this.wanted = null;
    const end = last ? bytes.length : bytes.lastIndexOf(NEWLINE) + 1;
    const window = bytes.subarray(0, end);
    const text = textOrNull(window);
    let left: number;
    if (text === null) left = end - this.takeRaw(window, last);
    else {
      this.takeLines(text, last);
      left = bytesBehind(text, this.at, end);
    }
    this.text = '';
    if (this.wanted !== null) return end - left;
    if (bytes.length - end + left > LINE_BYTES_MAX) throw lineTooLong('line', this.lines + 1);
    if (last && this.isEmpty) throw emptyBody();
    return end - left;
  }

  private takeLines(text: string, last: boolean): void {
    this.text = text;
    this.at = 0;
    while (this.at < text.length) {
      const start = this.at;
      if (this.takeLine(last)) {
        // Nothing is measured that is surely short enough.
        if (3 * (this.at - start) <= LINE_BYTES_MAX) continue;
        if (utf8(text.slice(start, this.at)).length > LINE_BYTES_MAX) throw lineTooLong('line', this.lines);
        continue;
      }
      this.at = start;
      return;
    }
  }

  /** Takes lines of which some are not UTF-8, one by one. Returns how many bytes are taken. */
  private takeRaw(bytes: Uint8Array, last: boolean): number {
    const text = latin1(bytes);
    let at = 0;
    while (at < text.length) {
      const end = endOfLine(text, at);
      if (end < 0 && !last) return at;
      const to = end < 0 ? text.length : end;
      const line = textOrNull(bytes.subarray(at, to));
      if (line === null) {
        const first = this.lines + 1;
        this.lines += Math.max(1, newlinesIn(text, at, to));
        this.isEmpty = false;
        this.options.malformed(first, 'line is not UTF-8', '');
      } else {
        this.takeLines(line, true);
        if (this.wanted !== null) return at;
      }
      at = to;
    }
    return at;
  }

  /** Takes the line at `at`. False when it is not whole, or its table is wanted first. */
  private takeLine(last: boolean): boolean {
    const { text } = this;
    const start = this.at;
    while (text.charCodeAt(this.at) === SPACE || text.charCodeAt(this.at) === TAB) this.at++;
    if (this.isEnd(this.at) || text.charCodeAt(this.at) === HASH) {
      this.endLine(newlineFrom(text, this.at));
      return true;
    }
    const line = this.lines + 1;
    try {
      const measurement = this.measurementAt();
      if (measurement === null) return false;
      this.takePoint(measurement, line);
    } catch (problem) {
      if (problem === UNCLOSED) {
        if (!last) {
          this.lines = line - 1;
          return false;
        }
        throw invalid('truncated-body', `body ends inside of a text in quotes, in the point of line ${line}`, { line });
      }
      if (!(problem instanceof Malformed)) throw problem;
      this.isEmpty = false;
      this.endLine(newlineFrom(text, this.at));
      this.options.malformed(line, `line ${problem.problem}`, shorten(text.slice(start, this.at).trimEnd()));
    }
    return true;
  }

  /** Goes behind the newline at `at`, or to the end of the body. */
  private endLine(at: number): void {
    this.at = Math.min(at + 1, this.text.length);
    this.lines++;
  }

  /** True when nothing but a line end is at a place. */
  private isEnd(at: number): boolean {
    const { text } = this;
    const code = text.charCodeAt(at);
    return (
      code === NEWLINE ||
      at >= text.length ||
      (code === RETURN && (at + 1 === text.length || text.charCodeAt(at + 1) === NEWLINE))
    );
  }

  private measurementAt(): Measurement | null {
    const { text, last } = this;
    if (last !== null && text.startsWith(this.lastRaw, this.at)) {
      const code = text.charCodeAt(this.at + this.lastRaw.length);
      if (code === COMMA || code === SPACE) {
        this.at += this.lastRaw.length;
        return last;
      }
    }
    const from = this.at;
    const end = this.endOfName(from, false);
    const name = unescaped(text.slice(from, end));
    if (name === '') throw new Malformed('has no measurement');
    let measurement = this.measurements.get(name);
    if (measurement === undefined) {
      const table = this.options.tables.get(name);
      if (table === undefined) {
        this.wanted = name;
        return null;
      }
      measurement = { table, keys: [], byRaw: new Map() };
      this.measurements.set(name, measurement);
    }
    this.at = end;
    this.last = measurement;
    this.lastRaw = piece(text, from, end);
    return measurement;
  }

  /** What is behind the measurement, to the end of the line. */
  private takePoint(measurement: Measurement, line: number): void {
    const { text } = this;
    const { table } = measurement;
    const row: Record<string, unknown> = {};
    let names = 0;
    this.fault = null;
    this.place = 0;
    this.isOutOfOrder = false;
    while (text.charCodeAt(this.at) === COMMA) {
      this.at++;
      const name = this.nameAt(measurement);
      names++;
      table.tags?.add(name);
      put(row, name, this.tagAt(name));
    }
    if (text.charCodeAt(this.at) !== SPACE) throw new Malformed('has no fields');
    this.skipSpaces();
    if (this.isEnd(this.at)) throw new Malformed('has no fields');
    for (;;) {
      const name = this.nameAt(measurement);
      names++;
      put(row, name, this.fieldAt(name, table));
      if (text.charCodeAt(this.at) !== COMMA) break;
      this.at++;
    }
    const micros = this.timeAt(table);
    if (!this.isEnd(this.at)) throw new Malformed('goes on behind its time');
    if (Object.hasOwn(row, table.timeColumn) || (this.isOutOfOrder && Object.keys(row).length !== names)) {
      this.fault ??= new ValueFault('duplicate-key', 'line has two values for one column', null);
    }
    this.isEmpty = false;
    this.endLine(newlineFrom(text, this.at));
    const { fault } = this;
    if (fault === null) {
      row[table.timeColumn] = micros;
      table.sink.row(row, line);
    } else table.sink.fault(line, fault.type, fault.message, fault.text, fault.field ?? undefined);
  }

  /** The name before an equals sign. */
  private nameAt({ keys, byRaw }: Measurement): string {
    const { text, place } = this;
    const until = Math.min(keys.length, place + KEYS_COMPARED);
    for (let i = place; i < until; i++) {
      const { raw, name } = keys[i];
      if (!text.startsWith(raw, this.at)) continue;
      this.at += raw.length;
      this.place = i + 1;
      return name;
    }
    const from = this.at;
    const end = this.endOfName(from, true);
    this.at = end;
    if (text.charCodeAt(end) !== EQUALS) throw new Malformed('has a tag or field without a value');
    if (end === from) throw new Malformed('has a tag or field without a name');
    this.at = end + 1;
    this.isOutOfOrder = true;
    const known = byRaw.get(text.slice(from, end + 1));
    if (known !== undefined) return known.name;
    const raw = piece(text, from, end + 1);
    const key = { raw, name: unescaped(raw.slice(0, -1)) };
    if (keys.length < SCHEMA_FIELDS_MAX) {
      byRaw.set(raw, key);
      keys.splice(place, 0, key);
      this.place = place + 1;
    }
    return key.name;
  }

  private tagAt(name: string): string {
    const { text } = this;
    const from = this.at;
    const end = this.endOfName(from, true);
    this.at = end;
    if (end === from) throw new Malformed(`has no value for tag ${shorten(name)}`);
    if (text.charCodeAt(end) === EQUALS) throw new Malformed(`has a bare equals sign in tag ${shorten(name)}`);
    return unescaped(piece(text, from, end));
  }

  private fieldAt(name: string, { exact, typed }: PointTable): unknown {
    const { text } = this;
    const from = this.at;
    if (text.charCodeAt(from) === QUOTE) return this.textAt(name);
    let end = from;
    for (; end < text.length; end++) {
      const code = text.charCodeAt(end);
      if (code === COMMA || code === SPACE || code === NEWLINE || (code === RETURN && this.isEnd(end))) break;
    }
    this.at = end;
    const number = plainNumber(text, from, end);
    if (!Number.isNaN(number)) return number;
    const value = scalarOf(text.slice(from, end), name, exact);
    if (value === null) throw new Malformed(`has no value for field ${shorten(name)}`);
    if (typed && typeof value === 'number' && isInteger(text.charCodeAt(end - 1))) return BigInt(value);
    if (!(value instanceof ValueFault)) return value;
    this.fault ??= value;
    return null;
  }

  /** Text in quotes. */
  private textAt(name: string): string {
    const { text } = this;
    const { length } = text;
    const from = this.at + 1;
    let end = from;
    let isEscaped = false;
    for (; end < length; end++) {
      const code = text.charCodeAt(end);
      if (code === QUOTE) break;
      if (code === NEWLINE) this.lines++;
      if (code !== BACKSLASH) continue;
      const next = text.charCodeAt(end + 1);
      if (next !== QUOTE && next !== BACKSLASH) continue;
      isEscaped = true;
      end++;
    }
    if (end >= length) throw UNCLOSED;
    this.at = end + 1;
    const code = text.charCodeAt(this.at);
    if (code !== COMMA && code !== SPACE && !this.isEnd(this.at)) {
      throw new Malformed(`has text behind the closing quote of field ${shorten(name)}`);
    }
    const value = piece(text, from, end);
    return isEscaped ? value.replaceAll(/\\(["\\])/g, '$1') : value;
  }

  /** Microseconds of the time at the end of the line; now when there is none. */
  private timeAt(table: PointTable): number | bigint {
    const { text } = this;
    this.skipSpaces();
    if (this.isEnd(this.at)) {
      table.untimed = true;
      return this.options.nowMicros;
    }
    const from = this.at;
    let end = text.charCodeAt(from) === 0x2d ? from + 1 : from;
    while (text.charCodeAt(end) >= 0x30 && text.charCodeAt(end) <= 0x39) end++;
    this.at = end;
    const code = text.charCodeAt(end);
    if ((code !== SPACE && !this.isEnd(end)) || text.charCodeAt(end - 1) === 0x2d || end - from > 20) {
      throw new Malformed('ends with something else than a time in digits');
    }
    this.skipSpaces();
    const micros = microsAt(text, from, end, this.options.precision);
    if (!Number.isNaN(micros)) return micros;
    const digits = text.slice(from, end);
    const time = pointTime(digits, this.options.precision);
    if (time.ok) return time.micros;
    this.fault ??= new ValueFault('out-of-range', `time ${time.problem}: ${digits}`, table.timeColumn, digits);
    return 0;
  }

  private skipSpaces(): void {
    while (this.text.charCodeAt(this.at) === SPACE) this.at++;
  }

  /** Where a name, or the value of a tag, ends: at a comma, space, newline or (`equals`) equals sign that is not escaped. */
  private endOfName(from: number, equals: boolean): number {
    const { text } = this;
    const { length } = text;
    let at = from;
    for (; at < length; at++) {
      const code = text.charCodeAt(at);
      if (code === COMMA || code === SPACE || code === NEWLINE || (code === EQUALS && equals)) return at;
      if (code === BACKSLASH && isEscapable(text.charCodeAt(at + 1))) at++;
    }
    return length;
  }
}

/** The letters that end an integer. */
function isInteger(last: number): boolean {
  return last === 0x69 || last === 0x75;
}

function isEscapable(code: number): boolean {
  return code === COMMA || code === SPACE || code === EQUALS;
}

function unescaped(text: string): string {
  return text.includes('\\') ? text.replaceAll(/\\([, =])/g, '$1') : text;
}

/** Sets a value under any name: `__proto__` would be lost in an assignment. */
function put(row: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') row[name] = value;
  else Object.defineProperty(row, name, { value, enumerable: true, configurable: true, writable: true });
}

/** Behind the newline that ends the line at `from`, whatever is in it; -1 when the text ends before it. */
function endOfLine(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) === SPACE || text.charCodeAt(at) === TAB) at++;
  const isComment = text.charCodeAt(at) === HASH;
  let isInFields = false;
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === NEWLINE) return at + 1;
    if (isComment) continue;
    if (code === SPACE) isInFields = true;
    if (code === BACKSLASH && isEscapable(text.charCodeAt(at + 1))) at++;
    if (code !== QUOTE || !isInFields || text.charCodeAt(at - 1) !== EQUALS) continue;
    for (at++; at < text.length && text.charCodeAt(at) !== QUOTE; at++) {
      if (text.charCodeAt(at) === BACKSLASH) at++;
    }
  }
  return -1;
}

import { utf8 } from '../../core/base/bytes.ts';
import { invalid, type SluiceError } from '../../core/base/errors.ts';
import { LINE_BYTES_MAX, SCHEMA_FIELDS_MAX } from '../../core/base/limits.ts';
import { NUMBER_MARK, type RowFaultType, shorten } from '../../core/columns/fault.ts';
import type { Schema, Type } from '../../core/iceberg/types.ts';
import type { RowReader, RowSink } from './format.ts';
import { emptyBody, lineTooLong, parseText } from './json-text.ts';
import { isJsonNumber, plainNumber } from './plain-number.ts';
import { bytesBehind, latin1, newlineFrom, newlinesIn, piece, textOrNull } from './window-text.ts';

const NEWLINE = 0x0a;
const RETURN = 0x0d;
const QUOTE = 0x22;

/** Names for delimiters that are awkward in an address. */
const DELIMITERS: ReadonlyMap<string, string> = new Map([
  [',', ','],
  ['comma', ','],
  [';', ';'],
  ['semicolon', ';'],
  ['\t', '\t'],
  ['tab', '\t'],
  ['\\t', '\t'],
  ['|', '|'],
  ['pipe', '|'],
]);

/** The delimiter that a request asks for. Throws `invalid` `malformed` for one that is not known. */
export function delimiterOf(given: string): string {
  const delimiter = DELIMITERS.get(given);
  if (delimiter !== undefined) return delimiter;
  throw invalid('malformed', `delimiter is one of comma, semicolon, tab and pipe: ${shorten(given)}`);
}

/** How the text of a column is read, before the casts of its type see it. */
type Kind = 'number' | 'double' | 'boolean' | 'text' | 'nested' | 'other';

function kindOf(type: Type): Kind {
  if (typeof type !== 'string') return 'nested';
  if (type === 'float' || type === 'double') return 'double';
  if (/^(int|long|decimal\(.*|timestamp|timestamptz)$/.test(type)) return 'number';
  if (type === 'boolean') return 'boolean';
  return type === 'string' || type === 'binary' ? 'text' : 'other';
}

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['True', true],
  ['TRUE', true],
  ['false', false],
  ['False', false],
  ['FALSE', false],
]);

interface CsvOptions {
  schema: Schema;
  delimiter: string;
  /** Columns that the schema lacks are no fault. */
  evolves?: boolean;
}

interface Named {
  name: string;
  kind: Kind;
}

/**
 * CSV as RFC 4180 has it: a line of column names, then one line a row, LF or CRLF, values in quotes where they hold the
 * delimiter, a quote (doubled) or a line end. Blank lines are skipped, nothing is trimmed.
 *
 * | value                         | is                                                                                |
 * |-------------------------------|-----------------------------------------------------------------------------------|
 * | nothing                       | null                                                                              |
 * | `""`                          | the empty text in a string or binary column, null in any other                    |
 * | numbers                       | as in JSON, every digit kept; in a timestamp column they count its unit since 1970 |
 * | `true`, `True`, `TRUE`        | true; false likewise                                                              |
 * | lists, structs and maps       | JSON                                                                              |
 * | anything else                 | text, for the cast of the column                                                  |
 *
 * A line with too few or too many values, a quote inside of an unquoted value, text behind a closing quote and a carriage
 * return outside of quotes are refused, each with its line, which is the one the row begins on; reading goes on behind
 * the end of the line. A quote that is never closed ends the reading: what follows it cannot be told.
 */
export function csvReader(sink: RowSink, options: CsvOptions): RowReader {
  return new CsvReader(sink, options);
}

/** Why a line is no row. The first reason counts. */
interface Problem {
  type: RowFaultType;
  message: string;
  text?: string;
  field?: string;
}

class CsvReader implements RowReader {
  private readonly sink: RowSink;
  private readonly comma: number;
  private readonly kinds: ReadonlyMap<string, Kind>;
  private readonly evolves: boolean;
  private columns: Named[] | null = null;
  /** Line of the header while nothing follows it. */
  private aloneOn: number | null = null;
  /** Lines ended so far. */
  private lines = 0;
  private problem: Problem | null = null;
  /** The values of the header. */
  private names: string[] = [];
  private newRow: () => Record<string, unknown> = () => ({});

  constructor(sink: RowSink, { schema, delimiter, evolves = false }: CsvOptions) {
    this.sink = sink;
    this.comma = delimiter.charCodeAt(0);
    this.kinds = new Map(schema.fields.map((field) => [field.name, kindOf(field.type)]));
    this.evolves = evolves;
  }

  take(bytes: Uint8Array, last: boolean): number {
    const end = last ? bytes.length : bytes.lastIndexOf(NEWLINE) + 1;
    const window = bytes.subarray(0, end);
    const whole = textOrNull(window);
    // A character a byte: what CSV is made of is ASCII, and each value is looked at on its own.
    const raw = whole === null ? window : null;
    const text = whole ?? latin1(window);
    const taken = this.takeRecords(text, raw, last);
    const left = raw === null ? bytesBehind(text, taken, end) : end - taken;
    if (bytes.length - end + left > LINE_BYTES_MAX) throw lineTooLong('line', this.lines + 1);
    if (last && this.columns === null) throw emptyBody();
    if (last && this.aloneOn !== null && !this.evolves) this.checkAlone(this.aloneOn);
    return end - left;
  }

  /** Takes the records that are whole; returns where the first begins that is not. */
  private takeRecords(text: string, raw: Uint8Array | null, last: boolean): number {
    let at = 0;
    while (at < text.length) {
      const blank = this.endOfLine(text, at);
      if (blank > at) {
        this.lines++;
        at = blank;
        continue;
      }
      const end = this.takeRecord(text, raw, at, last);
      if (end < 0) return at;
      // Nothing is measured that is surely short enough.
      if (3 * (end - at) > LINE_BYTES_MAX && utf8(text.slice(at, end)).length > LINE_BYTES_MAX) {
        throw lineTooLong('line', this.lines);
      }
      at = end;
    }
    return at;
  }

  /** Takes the record at `from`; returns its end, -1 when it ends behind the text. */
  private takeRecord(text: string, raw: Uint8Array | null, from: number, last: boolean): number {
    const { columns, comma } = this;
    const { length } = text;
    const row = this.newRow();
    const line = this.lines + 1;
    let ends = 0;
    let cells = 0;
    let at = from;
    this.problem = null;
    this.names = [];
    for (;;) {
      let start = at;
      let end: number;
      let isDoubled = false;
      const isQuoted = text.charCodeAt(at) === QUOTE;
      if (isQuoted) {
        start = at + 1;
        end = text.indexOf('"', start);
        while (end >= 0 && text.charCodeAt(end + 1) === QUOTE) {
          isDoubled = true;
          end = text.indexOf('"', end + 2);
        }
        if (end < 0) {
          if (!last) return -1;
          throw unclosed(line + ends);
        }
        ends += newlinesIn(text, start, end);
        at = end + 1;
        if (at < length && text.charCodeAt(at) !== comma && this.endOfLine(text, at) === at) {
          this.blame('malformed-csv', 'has text behind a closing quote', text.slice(at, at + 20));
          at = newlineFrom(text, at);
        }
      } else {
        while (at < length) {
          const code = text.charCodeAt(at);
          if (code === comma || code === NEWLINE) break;
          if (code === QUOTE || code === RETURN) {
            if (this.endOfLine(text, at) > at) break;
            this.blame(
              'malformed-csv',
              code === QUOTE
                ? 'has a quote inside of a value without quotes'
                : 'has a carriage return outside of quotes',
            );
            at = newlineFrom(text, at);
            break;
          }
          at++;
        }
        end = at;
      }
      if (columns === null) this.names.push(this.cellOf(text, raw, start, end, isDoubled));
      else if (cells < columns.length && this.problem === null) {
        const column = columns[cells];
        if (raw === null && !isDoubled) row[column.name] = this.valueOf(column, text, start, end, isQuoted);
        else {
          const cell = this.cellOf(text, raw, start, end, isDoubled);
          row[column.name] = this.valueOf(column, cell, 0, cell.length, isQuoted);
        }
      }
      cells++;
      if (text.charCodeAt(at) === comma) at++;
      else break;
    }
    this.lines += ends + 1;
    this.aloneOn = columns === null ? line : null;
    if (columns === null) this.takeHeader(line);
    else this.giveRow(row, line, cells, columns.length);
    return at === length ? length : this.endOfLine(text, at);
  }

  private giveRow(row: Record<string, unknown>, line: number, cells: number, wanted: number): void {
    if (this.problem === null && cells !== wanted) {
      this.blame('ragged-row', `has ${cells} values, and the header ${wanted}`);
    }
    if (this.problem === null) this.sink.row(row, line);
    else {
      const { type, message, text, field } = this.problem;
      this.sink.fault(line, type, message, text, field);
    }
  }

  private takeHeader(line: number): void {
    if (this.problem !== null) throw badHeader(line, `is no csv: ${this.problem.message}`);
    if (this.names.length > SCHEMA_FIELDS_MAX) throw badHeader(line, `has more than ${SCHEMA_FIELDS_MAX} names`);
    const seen = new Set<string>();
    this.columns = this.names.map((name, i) => {
      if (name === '') throw badHeader(line, `has no name at place ${i + 1}`);
      if (seen.has(name)) throw badHeader(line, `has a name twice: ${shorten(name)}`);
      seen.add(name);
      return { name, kind: this.kinds.get(name) ?? 'text' };
    });
    // A copy of an object with all names costs less than an object that gets them one by one. But `__proto__` would be
    // lost in an object with a prototype, and those without one are slow.
    const nulls: Record<string, unknown> = Object.fromEntries(this.names.map((name) => [name, null]));
    this.newRow = seen.has('__proto__') ? () => Object.create(null) : () => ({ ...nulls });
  }

  /** Refuses a header without rows that is none: a row whose header was forgotten would be lost without a word. */
  private checkAlone(line: number): void {
    const unknown = this.columns?.find(({ name }) => !this.kinds.has(name));
    if (unknown === undefined) return;
    const what = 'names a column that the table does not have, and no row follows';
    throw badHeader(line, `${what}: ${shorten(unknown.name)}`);
  }

  /** The value of a column from `text[from .. to]`, as JSON would have it. */
  private valueOf({ name, kind }: Named, text: string, from: number, to: number, isQuoted: boolean): unknown {
    if (from === to) return isQuoted && kind === 'text' ? '' : null;
    if (kind === 'number' || kind === 'double') {
      const number = plainNumber(text, from, to);
      if (!Number.isNaN(number)) return number;
    }
    const cell = kind === 'text' ? piece(text, from, to) : text.slice(from, to);
    switch (kind) {
      case 'number':
        return isJsonNumber(cell) ? NUMBER_MARK + cell : cell;
      case 'double':
        return isJsonNumber(cell) ? Number(cell) : cell;
      case 'boolean':
        return BOOLEANS.get(cell) ?? cell;
      case 'nested': {
        const parsed = parseText(utf8(cell), 'decimals');
        if (parsed.ok) return parsed.value;
        const field = shorten(name);
        this.problem ??= { ...parsed.fault, message: `${field} ${parsed.fault.message}`, field };
        return null;
      }
      case 'text':
      case 'other':
        return cell;
    }
  }

  /** The text of a value on its own, with its doubled quotes single. */
  private cellOf(text: string, raw: Uint8Array | null, from: number, to: number, isDoubled: boolean): string {
    const cell = raw === null ? text.slice(from, to) : textOrNull(raw.subarray(from, to));
    if (cell === null) {
      this.blame('malformed-utf8', 'is not UTF-8');
      return '';
    }
    return isDoubled ? cell.replaceAll('""', '"') : cell;
  }

  /** Where the line end at `at` ends; `at` itself when there is none. */
  private endOfLine(text: string, at: number): number {
    const code = text.charCodeAt(at);
    if (code === NEWLINE) return at + 1;
    return code === RETURN && text.charCodeAt(at + 1) === NEWLINE ? at + 2 : at;
  }

  private blame(type: RowFaultType, problem: string, text?: string): void {
    this.problem ??= { type, message: `line ${problem}`, ...(text === undefined ? {} : { text: shorten(text) }) };
  }
}

function badHeader(line: number, problem: string): SluiceError {
  return invalid('malformed-body', `header on line ${line} ${problem}`, { line });
}

function unclosed(line: number): SluiceError {
  return invalid('truncated-body', `body ends inside of quotes that open on line ${line}`, { line });
}

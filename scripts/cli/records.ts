/**
 * Where records of a text end, byte by byte, so that a long file can be cut into batches. Only as much of a format is known
 * here as that takes; what is wrong with a record is for the service to say.
 */
export interface Records {
  /** Takes the next byte. True: a record ends with it. */
  take(byte: number): boolean;
}

const NEWLINE = 0x0a;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** A record a line. */
export function lineRecords(): Records {
  return { take: (byte) => byte === NEWLINE };
}

/** A record a line, but for lines inside of quotes. Doubled quotes close and open again. */
export function csvRecords(): Records {
  let inQuotes = false;
  return {
    take(byte) {
      if (byte === QUOTE) inQuotes = !inQuotes;
      return byte === NEWLINE && !inQuotes;
    },
  };
}

/** Line protocol: a record a line, but for lines inside of a text in quotes, which stands behind the equals sign of a field. */
export function pointRecords(): Records {
  let before = NEWLINE;
  let inFields = false;
  let inText = false;
  let isEscaped = false;
  return {
    take(byte) {
      const escaped = isEscaped;
      isEscaped = !escaped && byte === BACKSLASH;
      if (inText) {
        if (byte === QUOTE && !escaped) inText = false;
      } else if (byte === NEWLINE) {
        inFields = false;
        before = byte;
        return true;
      } else if (byte === 0x20 && !escaped) inFields = true;
      else if (byte === QUOTE && inFields && before === 0x3d) inText = true;
      before = byte;
      return false;
    },
  };
}

/** Where one is in a JSON body. */
type Place = 'before' | 'object' | 'array' | 'behind';

/** Elements of a JSON array: each ends with its comma, the last with the bracket of the array. */
export class ArrayRecords implements Records {
  /** `object`: the body is one object, and one record. */
  place: Place = 'before';
  private depth = 0;
  private inText = false;
  private isEscaped = false;

  take(byte: number): boolean {
    if (this.inText) {
      if (this.isEscaped) this.isEscaped = false;
      else if (byte === BACKSLASH) this.isEscaped = true;
      else if (byte === QUOTE) this.inText = false;
      return false;
    }
    if (byte === QUOTE) this.inText = true;
    if (this.place === 'before') {
      if (byte === 0x5b) this.place = 'array';
      else if (byte > 0x20) this.place = 'object';
      return false;
    }
    if (this.place !== 'array') return false;
    if (byte === 0x7b || byte === 0x5b) this.depth++;
    else if (byte === 0x7d || byte === 0x5d) {
      if (this.depth === 0) {
        this.place = 'behind';
        return true;
      }
      this.depth--;
    }
    return byte === 0x2c && this.depth === 0;
  }
}

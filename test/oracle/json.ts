/**
 * JSON without loss: an integer token becomes a bigint, any other number token a number. Duplicate keys, a byte order
 * mark and text after the value are errors, since readers differ in what they make of them.
 */
export type Json = null | boolean | number | bigint | string | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;

/** Parses the UTF-8 text of one JSON value. Throws an Error that names the position. */
export function parseJson(source: Uint8Array | string): Json {
  const text = typeof source === 'string' ? source : decoder.decode(source);
  let at = 0;
  const fail = (what: string): never => {
    throw new Error(`json: ${what} at ${at}`);
  };
  const space = () => {
    for (;;) {
      const code = text.charCodeAt(at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      at++;
    }
  };
  const word = <T extends Json>(token: string, value: T): T => {
    if (!text.startsWith(token, at)) return fail(`expected ${token}`);
    at += token.length;
    return value;
  };
  const string = (): string => {
    const start = at++;
    for (;;) {
      const code = text.charCodeAt(at);
      if (code === 0x22) break;
      if (at >= text.length) fail('unterminated string');
      at += code === 0x5c ? 2 : 1;
    }
    at++;
    return JSON.parse(text.slice(start, at)) as string;
  };
  const value = (): Json => {
    space();
    const first = text[at];
    if (first === '"') return string();
    if (first === 't') return word('true', true);
    if (first === 'f') return word('false', false);
    if (first === 'n') return word('null', null);
    if (first === '[') {
      const items: Json[] = [];
      at++;
      space();
      if (text[at] === ']') at++;
      else
        for (;;) {
          items.push(value());
          space();
          const next = text[at++];
          if (next === ']') break;
          if (next !== ',') fail('expected , or ]');
        }
      return items;
    }
    if (first === '{') {
      const members: JsonObject = {};
      at++;
      space();
      if (text[at] === '}') at++;
      else
        for (;;) {
          space();
          if (text[at] !== '"') fail('expected a key');
          const key = string();
          if (Object.hasOwn(members, key)) fail(`duplicate key ${key}`);
          space();
          if (text[at++] !== ':') fail('expected :');
          members[key] = value();
          space();
          const next = text[at++];
          if (next === '}') break;
          if (next !== ',') fail('expected , or }');
        }
      return members;
    }
    NUMBER.lastIndex = at;
    const match = NUMBER.exec(text);
    if (match === null) return fail('expected a value');
    at += match[0].length;
    return match[1] === undefined && match[2] === undefined ? BigInt(match[0]) : Number(match[0]);
  };
  const result = value();
  space();
  if (at !== text.length) fail('text after the value');
  return result;
}

/** The JSON text of a value; a bigint is printed as its digits. */
export function printJson(value: Json): string {
  if (typeof value === 'bigint') return value.toString();
  if (Array.isArray(value)) return `[${value.map(printJson).join(',')}]`;
  if (value !== null && typeof value === 'object')
    return `{${Object.entries(value)
      .map(([key, member]) => `${JSON.stringify(key)}:${printJson(member)}`)
      .join(',')}}`;
  return JSON.stringify(value);
}

/** The value with the keys of every object in one order: two texts are equal when the values are. */
export function inKeyOrder(value: Json): Json {
  if (Array.isArray(value)) return value.map(inKeyOrder);
  if (!isObject(value)) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, member]) => [name, inKeyOrder(member)]));
}

export function isObject(value: Json | undefined): value is JsonObject {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** The objects in a list of an object; none when it is no list. */
export function objects(raw: JsonObject, key: string): JsonObject[] {
  const list = raw[key];
  return Array.isArray(list) ? list.filter(isObject) : [];
}

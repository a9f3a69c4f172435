import { fromHex, hex } from '../base/bytes.ts';

/**
 * JSON that brings back exactly what went in: null, booleans, numbers (also -0, NaN, infinities), bigints, texts, bytes,
 * lists, plain objects and Map objects. What JSON has no form for is an object with one key that begins with `$`; a
 * plain object with such a key of its own is written as a list of pairs. `undefined` comes back as null.
 */
export function toExactJson(value: unknown): string {
  return JSON.stringify(tagged(value));
}

/** The value behind text that `toExactJson` made. Throws a SyntaxError for other text. */
export function fromExactJson(text: string): unknown {
  return untagged(JSON.parse(text));
}

function tagged(value: unknown): unknown {
  switch (typeof value) {
    case 'bigint':
      return { $int: String(value) };
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0)
        ? value
        : { $float: Object.is(value, -0) ? '-0' : `${value}` };
    case 'undefined':
      return null;
    case 'object':
      break;
    default:
      return value;
  }
  if (value === null) return null;
  if (Array.isArray(value)) return value.map(tagged);
  if (value instanceof Uint8Array) return { $bytes: hex(value) };
  if (value instanceof Map) return { $map: Array.from(value, ([key, held]) => [tagged(key), tagged(held)]) };
  const entries = Object.entries(value).map(([key, held]) => [key, tagged(held)] as [string, unknown]);
  if (entries.some(([key]) => key.startsWith('$'))) return { $object: entries };
  // fromEntries defines own properties, also one called __proto__; assignment would not.
  return Object.fromEntries(entries);
}

function untagged(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(untagged);
  const entries = Object.entries(value);
  if (entries.length !== 1 || !entries[0][0].startsWith('$')) {
    return Object.fromEntries(entries.map(([key, held]) => [key, untagged(held)]));
  }
  const [tag, held] = entries[0];
  switch (tag) {
    case '$int':
      return BigInt(held);
    case '$float':
      return Number(held);
    case '$bytes': {
      const bytes = fromHex(held);
      if (bytes !== null) return bytes;
      break;
    }
    case '$map':
      return new Map(held.map(([key, inner]: [unknown, unknown]) => [untagged(key), untagged(inner)]));
    case '$object':
      return Object.fromEntries(held.map(([key, inner]: [string, unknown]) => [key, untagged(inner)]));
  }
  throw new SyntaxError(`tag of exact JSON is not known: ${tag}`);
}

import { SCHEMA_DEPTH_MAX, SCHEMA_FIELDS_MAX } from '../base/limits.ts';
import type { NestedField, Type } from '../iceberg/types.ts';
import { castLong } from './casts.ts';
import { Misfit, markedNumber } from './fault.ts';

/** What is known of a column's type by the values met so far. `none`: nulls alone, or a list or object without a value. */
export type Guess =
  | { kind: 'none' | 'boolean' | 'long' | 'double' | 'string' }
  | { kind: 'list'; element: Guess }
  | { kind: 'struct'; fields: ReadonlyMap<string, Guess> };

/**
 * How numbers tell their type. `json`: a whole number of 64 bits is a long, any other number a double. `typed`: the format
 * tells integers, which come as a bigint, from floats, which come as a number, however whole.
 */
export type NumberRule = 'json' | 'typed';

export const NO_GUESS: Guess = { kind: 'none' };

/** Lists and structs inside each other in a guess: a list is one more type, and schemas have their own bound. */
const GUESS_DEPTH_MAX = SCHEMA_DEPTH_MAX / 4;

/** The type that one value tells. */
export function guessOf(value: unknown, rule: NumberRule, depth = 0): Guess | Misfit {
  if (value === null || value === undefined) return NO_GUESS;
  switch (typeof value) {
    case 'boolean':
      return { kind: 'boolean' };
    case 'bigint':
      return wholeGuess(value);
    case 'number':
      return { kind: rule === 'json' && Number.isSafeInteger(value) ? 'long' : 'double' };
    case 'string': {
      const digits = markedNumber(value);
      if (digits === null) return { kind: 'string' };
      return rule === 'json' && /^-?\d+$/.test(digits) ? wholeGuess(value) : { kind: 'double' };
    }
    case 'object':
      if (depth === GUESS_DEPTH_MAX) return new Misfit('wrong-type', 'is new and nested too deep', value);
      return Array.isArray(value) ? listGuess(value, rule, depth) : structGuess(value as object, rule, depth);
    default:
      return new Misfit('wrong-type', 'is of no type that a column has', value);
  }
}

function wholeGuess(value: unknown): Guess | Misfit {
  const long = castLong(value);
  return long instanceof Misfit ? long : { kind: 'long' };
}

function listGuess(list: readonly unknown[], rule: NumberRule, depth: number): Guess | Misfit {
  let element: Guess = NO_GUESS;
  for (let i = 0; i < list.length; i++) {
    const one = guessOf(list[i], rule, depth + 1);
    if (one instanceof Misfit) return one.at(`[${i}]`);
    const both = joinedGuess(element, one, rule);
    if (both === null) return mixed(element, one, list[i]).at(`[${i}]`);
    element = both;
  }
  return { kind: 'list', element };
}

function structGuess(object: object, rule: NumberRule, depth: number): Guess | Misfit {
  const fields = new Map<string, Guess>();
  for (const [name, value] of Object.entries(object)) {
    const one = guessOf(value, rule, depth + 1);
    if (one instanceof Misfit) return one.at(`.${name}`);
    fields.set(name, one);
  }
  return { kind: 'struct', fields };
}

/** The type that takes what both take; null: there is none. */
export function joinedGuess(a: Guess, b: Guess, rule: NumberRule): Guess | null {
  if (a.kind === 'none') return b;
  if (b.kind === 'none') return a;
  if (a.kind === 'list' && b.kind === 'list') {
    if (a.element === b.element) return a;
    const element = joinedGuess(a.element, b.element, rule);
    return element === null ? null : { kind: 'list', element };
  }
  if (a.kind === 'struct' && b.kind === 'struct') {
    const fields = new Map(a.fields);
    for (const [name, guess] of b.fields) {
      const both = joinedGuess(fields.get(name) ?? NO_GUESS, guess, rule);
      if (both === null) return null;
      fields.set(name, both);
    }
    return { kind: 'struct', fields };
  }
  if (a.kind === b.kind) return a;
  const isNumber = ({ kind }: Guess) => kind === 'long' || kind === 'double';
  return rule === 'json' && isNumber(a) && isNumber(b) ? { kind: 'double' } : null;
}

/** A value whose type is another than that of the values before it. */
export function mixed(before: Guess, guess: Guess, value: unknown): Misfit {
  return new Misfit('wrong-type', `is a ${guess.kind} here, and a ${before.kind} in rows before`, value);
}

/**
 * The type of a guess, its field ids from `nextId`; null while a part of it is unknown. Fields of structs that no value was
 * met for are left out.
 */
export function typeOfGuess(guess: Guess, ids: { next: number }): Type | null {
  switch (guess.kind) {
    case 'none':
      return null;
    case 'list': {
      const id = ids.next++;
      const element = typeOfGuess(guess.element, ids);
      return element === null ? null : { type: 'list', 'element-id': id, element, 'element-required': false };
    }
    case 'struct': {
      const fields: NestedField[] = [];
      for (const [name, one] of guess.fields) {
        const id = ids.next++;
        const type = typeOfGuess(one, ids);
        if (type !== null) fields.push({ id, name, required: false, type });
        else if (one.kind !== 'none') return null;
      }
      return fields.length === 0 || fields.length > SCHEMA_FIELDS_MAX ? null : { type: 'struct', fields };
    }
    default:
      return guess.kind;
  }
}

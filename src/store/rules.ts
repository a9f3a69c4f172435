import { assert } from '../core/base/assert.ts';
import { utf8 } from '../core/base/bytes.ts';
import { KEY_BYTES_MAX, PART_BYTES_MIN, StoreError } from './store.ts';

/** What every adapter checks before a request leaves, so that all of them refuse the same things. */

/**
 * Throws a `StoreError` with `applied: 'no'` unless the store takes `key` as it is: 1 to 1,024 bytes of UTF-8 without lone
 * surrogates (two such keys would become one).
 */
export function checkKey(operation: string, key: string): void {
  if (key === '') throw refused(operation, key, 'key is empty');
  if (!key.isWellFormed()) throw refused(operation, key, 'key has a lone surrogate');
  // A UTF-16 code unit takes at most 3 bytes, so short keys, nearly all, are not encoded to be measured.
  if (key.length * 3 > KEY_BYTES_MAX && utf8(key).length > KEY_BYTES_MAX) {
    throw refused(operation, key, `key is longer than ${KEY_BYTES_MAX} bytes`);
  }
}

/**
 * `checkKey` for a key about to be created. R2 normalises names to NFC before it stores them, so two keys that differ only
 * in composition name one object there and two elsewhere: such names are not created. They can still be read.
 */
export function checkNewKey(operation: string, key: string): void {
  checkKey(operation, key);
  if (key.normalize('NFC') !== key) throw refused(operation, key, 'key is not in Unicode normal form C');
}

/** Throws unless both are whole, not negative and exact. */
export function checkRange(offset: number, length: number): void {
  assert(Number.isSafeInteger(offset) && offset >= 0, `range offset is a whole number: ${offset}`);
  assert(Number.isSafeInteger(length) && length >= 0, `range length is a whole number: ${length}`);
}

/** Order of keys in a listing: by UTF-8 bytes, which is by code point, not JavaScript's order by UTF-16 code unit. */
export function compareKeys(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

/** Surrogates stand for code points above U+FFFF, so they rank behind U+E000 to U+FFFF. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit;
}

/**
 * The rule for parts of one upload: numbered from 1 in order, all of one size, that at least `partBytesMin`, except the
 * last, which may be shorter. R2 finds out at `complete`, when everything has been sent; here the first wrong part fails.
 */
export class PartSizes {
  readonly #partBytesMin: number;
  readonly #lengths: number[] = [];

  constructor(partBytesMin: number = PART_BYTES_MIN) {
    this.#partBytesMin = partBytesMin;
  }

  get count(): number {
    return this.#lengths.length;
  }

  /** Notes part `number`. A part may be sent again after an error, with the same length. Throws an `AssertionError`. */
  add(number: number, length: number): void {
    const lengths = this.#lengths;
    assert(
      Number.isInteger(number) && number >= 1 && number <= PARTS_MAX,
      `part number is within 1 to 10,000: ${number}`,
    );
    assert(number <= lengths.length + 1, `parts are uploaded in order: ${number} after ${lengths.length}`);
    assert(length > 0, `part is not empty: ${number}`);
    if (number <= lengths.length) {
      assert(lengths[number - 1] === length, `part sent again has its first length: ${number}`);
      return;
    }
    if (lengths.length > 0) {
      const size = lengths[0];
      assert(size >= this.#partBytesMin, `parts but the last have at least ${this.#partBytesMin} bytes: ${size}`);
      assert(lengths[lengths.length - 1] === size, `only the last part is shorter: ${number - 1}`);
      assert(length <= size, `no part is longer than the first: ${number}`);
    }
    lengths.push(length);
  }
}

/** R2 and S3: parts of one upload (platform limit). */
const PARTS_MAX = 10_000;

function refused(operation: string, key: string, reason: string): StoreError {
  return new StoreError(operation, key, 'no', new Error(reason));
}

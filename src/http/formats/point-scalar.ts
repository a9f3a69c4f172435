import { NUMBER_MARK, type RowFaultType, shorten } from '../../core/columns/fault.ts';
import { isJsonNumber, plainNumber } from './plain-number.ts';

/** Why a value that can be read is not taken. */
export class ValueFault {
  readonly type: RowFaultType;
  readonly message: string;
  readonly field: string | null;
  readonly text: string | undefined;

  constructor(type: RowFaultType, message: string, field: string | null, text?: string) {
    this.type = type;
    this.message = message;
    this.field = field;
    this.text = text;
  }
}

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ...['t', 'T', 'true', 'True', 'TRUE'].map((word): [string, boolean] => [word, true]),
  ...['f', 'F', 'false', 'False', 'FALSE'].map((word): [string, boolean] => [word, false]),
]);

const NOT_FINITE = /^[+-]?(?:nan|inf|infinity)$/i;
/** What InfluxDB reads as a float beyond JSON: a plus, zeros in front, a bare point. */
const LOOSE_NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const INT64_MAX = 2n ** 63n - 1n;
const UINT64_MAX = 2n ** 64n - 1n;

/**
 * The value of a field without quotes; null when it is none. `exact`: a float that a double does not hold keeps its digits
 * (`NUMBER_MARK`).
 */
export function scalarOf(
  text: string,
  name: string,
  exact: boolean,
): number | bigint | string | boolean | ValueFault | null {
  // What is not plain is mostly a float of many digits.
  if (isJsonNumber(text)) return exact ? NUMBER_MARK + text : Number(text);
  const unit = text.charCodeAt(text.length - 1);
  if (unit === 0x69 || unit === 0x75) {
    const value = integerOf(text.slice(0, -1), unit === 0x69, name);
    if (value !== null) return value;
  }
  const boolean = BOOLEANS.get(text);
  if (boolean !== undefined) return boolean;
  if (LOOSE_NUMBER.test(text)) return Number(text);
  if (!NOT_FINITE.test(text)) return null;
  const field = shorten(name);
  return new ValueFault('malformed-value', `${field} must be a finite number: ${text}`, field, text);
}

function integerOf(digits: string, isSigned: boolean, name: string): number | bigint | ValueFault | null {
  const number = plainNumber(digits, 0, digits.length);
  if (Number.isInteger(number) && !digits.includes('.') && (isSigned || digits.charCodeAt(0) !== 0x2d)) return number;
  if (!(isSigned ? /^-?\d+$/ : /^\d+$/).test(digits)) return null;
  const field = shorten(name);
  const wrong = `${field} must be an integer of 64 bits ${isSigned ? 'with' : 'without'} a sign`;
  // Twenty digits are the longest there are; conversion of very many is slow.
  const value = digits.length > 1000 ? UINT64_MAX + 1n : BigInt(digits);
  const [least, most] = isSigned ? [-INT64_MAX - 1n, INT64_MAX] : [0n, UINT64_MAX];
  if (value >= least && value <= most) return value;
  return new ValueFault('out-of-range', `${wrong}: ${shorten(digits)}`, field, shorten(digits));
}

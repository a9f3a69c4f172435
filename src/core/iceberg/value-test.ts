import { comparatorOf, compareValues } from './single-value.ts';
import type { PrimitiveType, Value } from './types.ts';

/**
 * What is known of a column's values in a file, a row group or a page. `lower` and `upper` are no value above or below
 * which there is one, null where that is not known; so may be whether there are nulls and values.
 */
export interface KnownValues {
  lower: Value;
  upper: Value;
  hasNull: boolean | null;
  hasValue: boolean | null;
}

/** A condition on a column, asked of what is known of its values: false only when no row can meet it. */
export interface ValueTest {
  fieldId: number;
  type: PrimitiveType;
  mayHold(known: KnownValues): boolean;
}

/** Rows that have one of the values; null stands for rows without one. */
export function equalsTest(fieldId: number, type: PrimitiveType, values: readonly Value[]): ValueTest {
  const isWithin = withinOf(type);
  return {
    fieldId,
    type,
    mayHold: (known) =>
      values.some((value) =>
        value === null ? known.hasNull !== false : isWithin(value, known) && known.hasValue !== false,
      ),
  };
}

/**
 * Rows whose value is from `first` to `last`, both among them; null leaves a side open. Rows without a value are not. Not for
 * floats: their bounds leave NaN out, which lies beyond all of them.
 */
export function rangeTest(fieldId: number, type: PrimitiveType, first: Value, last: Value): ValueTest {
  return {
    fieldId,
    type,
    mayHold: ({ lower, upper, hasValue }) => {
      if (hasValue === false) return false;
      if (first !== null && upper !== null && compareValues(type, upper, first) < 0) return false;
      return last === null || lower === null || compareValues(type, lower, last) <= 0;
    },
  };
}

/** Bounds leave NaN out, and writers differ in the sign that they give to zero. */
function withinOf(type: PrimitiveType): (value: Value, known: KnownValues) => boolean {
  if (type === 'float' || type === 'double') {
    return (value, { lower, upper }) =>
      Number.isNaN(value) ||
      !(
        (lower !== null && (value as number) < (lower as number)) ||
        (upper !== null && (value as number) > (upper as number))
      );
  }
  const compare = comparatorOf(type);
  return (value, { lower, upper }) =>
    !((lower !== null && compare(value, lower) < 0) || (upper !== null && compare(value, upper) > 0));
}

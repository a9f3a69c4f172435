import { comparatorOf, encodeValue } from './single-value.ts';
import type { FieldSummary, PrimitiveType, Value } from './types.ts';

/**
 * One summary per partition field over the tuples of a manifest (ML7-ML11). `types` are the transforms' result types.
 *
 * Bounds are never cut: a reader prunes whole manifests by them. NaN is counted but is no bound; -0 sorts before +0.
 * Without any tuple value both bounds are null, which only `containsNull` or `containsNan` may explain.
 */
export class PartitionSummaries {
  private readonly fields: FieldState[];

  constructor(types: readonly PrimitiveType[]) {
    this.fields = types.map((type) => new FieldState(type));
  }

  add(partition: readonly Value[]): void {
    for (let i = 0; i < this.fields.length; i++) this.fields[i].add(partition[i]);
  }

  summaries(): FieldSummary[] {
    return this.fields.map((field) => field.summary());
  }
}

class FieldState {
  private readonly type: PrimitiveType;
  private readonly compare: (a: Value, b: Value) => number;
  private containsNull = false;
  private containsNan = false;
  private lower: Value = null;
  private upper: Value = null;

  constructor(type: PrimitiveType) {
    this.type = type;
    this.compare = comparatorOf(type);
  }

  add(value: Value): void {
    if (value === null) this.containsNull = true;
    else if (Number.isNaN(value)) this.containsNan = true;
    else if (this.lower === null) {
      this.lower = value;
      this.upper = value;
    } else if (this.compare(value, this.lower) < 0) this.lower = value;
    else if (this.compare(value, this.upper) > 0) this.upper = value;
  }

  summary(): FieldSummary {
    return {
      containsNull: this.containsNull,
      containsNan: this.containsNan,
      lowerBound: this.lower === null ? null : encodeValue(this.type, this.lower),
      upperBound: this.upper === null ? null : encodeValue(this.type, this.upper),
    };
  }
}

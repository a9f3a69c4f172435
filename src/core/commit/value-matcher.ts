import { SluiceError } from '../base/errors.ts';
import type { ColumnFilter } from '../columns/row-filter.ts';
import { boundOf } from '../iceberg/single-value.ts';
import { transformOf } from '../iceberg/transform.ts';
import type { DataFile, TableMetadata, Value } from '../iceberg/types.ts';
import type { KnownValues, ValueTest } from '../iceberg/value-test.ts';
import { type FileMatcher, sameValue, summaryMayHold, tupleTypesOf } from './file-filter.ts';

/**
 * Where rows with wanted values can be, by the partitions that are made of those columns. A file is never inside: its other
 * rows are not told apart.
 */
export function valueMatcher(filters: readonly ColumnFilter[], metadata: TableMetadata): FileMatcher {
  const specs = new Map(
    metadata['partition-specs'].map((spec) => {
      const types = tupleTypesOf(spec, metadata);
      const wanted = spec.fields.flatMap((field, index) => {
        const filter = filters.find(({ fieldId }) => fieldId === field['source-id']);
        const values = filter === undefined || types === null ? null : transformed(filter, field.transform);
        return values === null || types === null ? [] : [{ index, type: types[index], values }];
      });
      return [spec['spec-id'], wanted];
    }),
  );
  return {
    mayHold: (row) =>
      (specs.get(row.partitionSpecId) ?? []).every(({ index, type, values }) =>
        values.some((value) => summaryMayHold(row.partitions?.[index], type, value)),
      ),
    match: (specId, file) =>
      (specs.get(specId) ?? []).every(({ index, type, values }) =>
        values.some((value) => sameValue(type, file.partition[index], value)),
      )
        ? 'overlapping'
        : 'outside',
  };
}

function transformed({ type, values }: ColumnFilter, transform: string): Value[] | null {
  // Both zeros are wanted where one is, and they are two partitions.
  if (type === 'float' || type === 'double') return null;
  try {
    const apply = transformOf(transform, type);
    return values.map((value) => (value === null ? null : apply(value)));
  } catch (error) {
    // A transform of a later version, or a value that no partition can have: nothing is pruned by it.
    if (error instanceof SluiceError) return null;
    throw error;
  }
}

/** What a manifest says of a column of a data file. */
export function valuesOfFile(file: DataFile, { fieldId, type }: ValueTest, isRequired: boolean): KnownValues {
  const nulls = isRequired ? 0n : (file.nullValueCounts?.get(fieldId) ?? null);
  return {
    lower: boundOf(type, file.lowerBounds?.get(fieldId)),
    upper: boundOf(type, file.upperBounds?.get(fieldId)),
    hasNull: nulls === null ? null : nulls > 0n,
    hasValue: nulls === null ? null : nulls < file.recordCount,
  };
}

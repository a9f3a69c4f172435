import { invalid, type SluiceError } from '../base/errors.ts';
import { METADATA_LIST_MAX } from '../base/limits.ts';
import { arrayAt, idAt, malformed, objectAt, stringAt } from '../base/shape.ts';
import { fieldByName, fieldsById } from './schema.ts';
import { comparatorOf } from './single-value.ts';
import { parseTransform, resultType, transformOf } from './transform.ts';
import type { Schema, SortField, SortOrder, Value } from './types.ts';

/** Id 0 is the unsorted order and nothing else (M10). */
export const UNSORTED: SortOrder = { 'order-id': 0, fields: [] };

/** Checks the JSON of a sort order. Throws invalid `malformed`, `unknown-transform` or `bad-sort-order`. */
export function parseSortOrder(json: unknown, path = 'sort-order'): SortOrder {
  const object = objectAt(json, path);
  const fields = arrayAt(object['fields'], `${path}.fields`, METADATA_LIST_MAX).map((item, i): SortField => {
    const at = `${path}.fields[${i}]`;
    const field = objectAt(item, at);
    const transform = stringAt(field['transform'], `${at}.transform`);
    parseTransform(transform);
    const direction = field['direction'];
    if (direction !== 'asc' && direction !== 'desc') throw malformed(`${at}.direction`, 'asc or desc', direction);
    const nulls = field['null-order'];
    if (nulls !== 'nulls-first' && nulls !== 'nulls-last') {
      throw malformed(`${at}.null-order`, 'nulls-first or nulls-last', nulls);
    }
    return { transform, 'source-id': idAt(field['source-id'], `${at}.source-id`), direction, 'null-order': nulls };
  });
  const order = { 'order-id': idAt(object['order-id'], `${path}.order-id`), fields };
  if ((order['order-id'] === 0) !== (fields.length === 0)) {
    throw badOrder(path, `order 0, and only that, has no fields: ${order['order-id']}`);
  }
  return order;
}

/** Checks that rows of a schema can be sorted so: sources exist, have one value a row, and suit their transforms. */
export function checkSortOrder(order: SortOrder, schema: Schema, path = 'sort-order'): void {
  for (const field of order.fields) {
    const source = fieldsById(schema).get(field['source-id']);
    if (source === undefined) throw badOrder(path, `source is not in the schema: ${field['source-id']}`);
    if (source.repeated) throw badOrder(path, `source is inside a list or map: ${source.path}`);
    try {
      resultType(field.transform, source.field.type);
    } catch (cause) {
      throw invalid('bad-sort-order', `${path}: ${(cause as Error).message}`, { path }, cause);
    }
  }
}

/**
 * Order of rows, each given as its source values, one per field of the order. Transforms are applied; nulls go where
 * `null-order` says, whatever the direction.
 */
export function comparator(order: SortOrder, schema: Schema): (a: readonly Value[], b: readonly Value[]) => number {
  checkSortOrder(order, schema);
  const steps = order.fields.map((field) => {
    const source = fieldsById(schema).get(field['source-id'])?.field.type as string;
    return {
      transform: transformOf(field.transform, source),
      compare: comparatorOf(resultType(field.transform, source)),
      sign: field.direction === 'asc' ? 1 : -1,
      nulls: field['null-order'] === 'nulls-first' ? -1 : 1,
    };
  });
  return (a, b) => {
    for (let i = 0; i < steps.length; i++) {
      const { transform, compare, sign, nulls } = steps[i];
      const x = transform(a[i]);
      const y = transform(b[i]);
      if (x === null || y === null) {
        if (x === y) continue;
        return x === null ? nulls : -nulls;
      }
      const difference = sign * compare(x, y);
      if (difference !== 0) return difference;
    }
    return 0;
  };
}

/** The order of our time-series files: series columns in turn, then time, all ascending, nulls first (Iceberg's default). */
export function seriesTimeOrder(schema: Schema, series: readonly string[], time: string, orderId = 1): SortOrder {
  const fields = [...series, time].map((name): SortField => {
    const column = fieldByName(schema, name);
    if (column === null) throw badOrder('sort-order', `column is not in the schema: ${name}`);
    return { transform: 'identity', 'source-id': column.id, direction: 'asc', 'null-order': 'nulls-first' };
  });
  const order = { 'order-id': orderId, fields };
  checkSortOrder(order, schema);
  return order;
}

/** True when both sort alike; `order-id` is not compared. */
export function sameSortOrder(a: SortOrder, b: SortOrder): boolean {
  return (
    a.fields.length === b.fields.length &&
    a.fields.every((x, i) => {
      const y = b.fields[i];
      return (
        x.transform === y.transform &&
        x['source-id'] === y['source-id'] &&
        x.direction === y.direction &&
        x['null-order'] === y['null-order']
      );
    })
  );
}

/** A sort order moved to the schema with fresh ids that `ids` maps to. */
export function rebindSortOrder(order: SortOrder, ids: ReadonlyMap<number, number>): SortOrder {
  return {
    'order-id': order['order-id'],
    fields: order.fields.map((field) => {
      const source = ids.get(field['source-id']);
      if (source === undefined) throw badOrder('sort-order', `source is not in the schema: ${field['source-id']}`);
      return { ...field, 'source-id': source };
    }),
  };
}

function badOrder(path: string, why: string): SluiceError {
  return invalid('bad-sort-order', `${path}: ${why}`, { path });
}

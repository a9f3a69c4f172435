import { invalid, type SluiceError } from '../base/errors.ts';
import { canPromote, checkNewColumnNames, type FieldFacts, fieldsById } from './schema.ts';
import type { Schema, Type } from './types.ts';

/**
 * Checks that a table may go on with a new schema while files of earlier schemas stay (spec: schema evolution).
 *
 * - A field id names one column for ever: an id up to `lastColumnId` must be found in a known schema, in the same place,
 *   with a type that reads as the new one (M21, M23). Fields that are dropped, moved or renamed among siblings are fine.
 * - While there are rows, a new field is optional, and an optional one stays so: older files have no value (M24).
 * - Names of new fields obey `checkNewColumnNames`.
 *
 * `known` are all schemas of the table, `current` the one among them that rows are written with. Throws invalid
 * `bad-evolution` or `bad-column-name`.
 */
export function checkEvolution(input: {
  current: Schema;
  known: readonly Schema[];
  next: Schema;
  lastColumnId: number;
  hasRows: boolean;
}): void {
  const { current, known, next, lastColumnId, hasRows } = input;
  checkNewColumnNames(next, current);
  const now = fieldsById(current);
  for (const [id, facts] of fieldsById(next)) {
    if (id > lastColumnId) {
      const insideNew = facts.parent !== null && facts.parent > lastColumnId;
      if (hasRows && facts.field.required && !insideNew)
        throw bad(facts, 'is new and required, but the table has rows');
      continue;
    }
    const before = beforeOf(id, now, known);
    if (before.length === 0) throw bad(facts, `has an id that another column had: ${id}`);
    for (const one of before) {
      if (one.parent !== facts.parent) throw bad(facts, 'has moved to another place');
      checkType(one, facts);
    }
    const wasRequired = now.get(id)?.field.required === true;
    if (hasRows && facts.field.required && !wasRequired) throw bad(facts, 'cannot become required');
  }
}

/**
 * Checks that the rows of a table read well through another of its schemas: types may only widen, and what rows may lack is
 * not required. `known` are all schemas of the table. Throws invalid `bad-evolution`.
 */
export function checkReadable(current: Schema, next: Schema, known: readonly Schema[]): void {
  const now = fieldsById(current);
  for (const [id, facts] of fieldsById(next)) {
    for (const one of beforeOf(id, now, known)) checkType(one, facts);
    const insideNew = facts.parent !== null && !now.has(facts.parent);
    if (facts.field.required && !insideNew && now.get(id)?.field.required !== true) {
      throw bad(facts, 'is required, but the table has rows that may lack it');
    }
  }
}

/**
 * What files know a column as: as it is now, which all before it widen to; one that was dropped, as it was in each schema.
 */
function beforeOf(id: number, now: ReadonlyMap<number, FieldFacts>, known: readonly Schema[]): FieldFacts[] {
  const current = now.get(id);
  return current === undefined ? known.flatMap((schema) => fieldsById(schema).get(id) ?? []) : [current];
}

function checkType(before: FieldFacts, after: FieldFacts): void {
  const from = before.field.type;
  const to = after.field.type;
  const fine = typeof from === 'string' && typeof to === 'string' ? canPromote(from, to) : kind(from) === kind(to);
  if (!fine) throw bad(after, `cannot change from ${kind(from)} to ${kind(to)}`);
}

function kind(type: Type): string {
  return typeof type === 'string' ? type : type.type;
}

function bad(facts: FieldFacts, why: string): SluiceError {
  return invalid('bad-evolution', `column ${why}: ${facts.path}`, { field: facts.path });
}

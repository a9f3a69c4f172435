import { invalid, rejected } from '../base/errors.ts';
import { PROPERTIES_MAX } from '../base/limits.ts';
import { own } from '../base/shape.ts';
import { currentSchema } from '../iceberg/metadata.ts';
import { upgradedProperties } from '../table/definition.ts';
import { checkEpochUnits, checkProperties, checkRemovals, checkWritable, isManaged } from '../table/properties.ts';
import type { Plan, Planned } from './plan.ts';

/**
 * Sets and removes properties. Values are checked and written in normal form; the last of several clients wins, property
 * by property.
 *
 * @throws invalid `bad-property` (see `checkProperties`); rejected `too-many-properties`
 */
export function setProperties(change: { set: Readonly<Record<string, unknown>>; remove: readonly string[] }): Plan {
  const set = checkProperties({ ...change.set });
  const remove = checkRemovals(change.remove);
  for (const key of remove) {
    if (own(set, key) !== undefined) {
      throw invalid('bad-property', `property is both set and removed: ${key}`, { property: key });
    }
  }
  return (metadata): Planned => {
    const { properties } = metadata;
    const updates = Object.fromEntries(Object.entries(set).filter(([key, value]) => own(properties, key) !== value));
    checkEpochUnits(updates, currentSchema(metadata));
    const removals = remove.filter((key) => own(properties, key) !== undefined);
    const before = Object.keys(properties).filter((key) => !isManaged(key));
    const added = Object.keys(updates).filter((key) => own(properties, key) === undefined);
    const count = before.length + added.length - removals.length;
    // a table that was attached with more may still lose some
    if (count > PROPERTIES_MAX && count > before.length) {
      throw rejected('too-many-properties', `table would have ${count} properties, most is ${PROPERTIES_MAX}`);
    }
    return {
      updates: [
        ...(Object.keys(updates).length === 0 ? [] : [{ action: 'set-properties' as const, updates }]),
        ...(removals.length === 0 ? [] : [{ action: 'remove-properties' as const, removals }]),
      ],
    };
  };
}

/** Brings the table's format properties to what this build writes. @throws invalid `table-newer` */
export function upgrade(): Plan {
  return ({ properties }): Planned => {
    checkWritable(properties);
    const updates = upgradedProperties(properties);
    return { updates: Object.keys(updates).length === 0 ? [] : [{ action: 'set-properties', updates }] };
  };
}

import type { Requirement } from '../iceberg/requirements.ts';
import type { MetadataUpdate } from '../iceberg/updates.ts';
import { checkProperties, checkRemovals } from '../table/properties.ts';
import type { Plan } from './plan.ts';

/**
 * The updates of a client, under its own requirements: applied as they are or not at all. Properties are checked as in every
 * other way to set them, so that no client takes away or forges the service's own state (R7).
 *
 * @throws invalid `bad-property`
 */
export function clientUpdates(requirements: readonly Requirement[], updates: readonly MetadataUpdate[]): Plan {
  const checked = updates.map((update): MetadataUpdate => {
    switch (update.action) {
      case 'set-properties':
        return { ...update, updates: checkProperties(update.updates) };
      case 'remove-properties':
        return { ...update, removals: checkRemovals(update.removals) };
      default:
        return update;
    }
  });
  const columns = updates.some(({ action }) => action === 'add-schema' || action === 'set-current-schema');
  return () => ({ requirements, updates: checked, ...(columns ? { columns: true as const } : {}) });
}

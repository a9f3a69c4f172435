import { rejected } from '../base/errors.ts';
import type { TableMetadata } from '../iceberg/types.ts';
import { type Expired, selectExpired } from '../maintain/expire-select.ts';
import { isGcDisabled, retentionPolicy } from '../maintain/retention-policy.ts';
import type { Plan } from './plan.ts';

/** Removes what the table's own rules no longer keep. `nowMs` is the caller's: a commit that waits expires no more. */
export function expire(nowMs: number): Plan {
  return (metadata) => {
    const { refs, snapshotIds } = expiredOf(metadata, nowMs);
    return {
      updates: [
        ...refs.map((name) => ({ action: 'remove-snapshot-ref' as const, 'ref-name': name })),
        ...(snapshotIds.length === 0 ? [] : [{ action: 'remove-snapshots' as const, 'snapshot-ids': snapshotIds }]),
      ],
    };
  };
}

/**
 * What `expire` would remove.
 *
 * @throws rejected `gc-disabled` when the table's files may belong to other tables too
 */
export function expiredOf(metadata: TableMetadata, nowMs: number): Expired {
  if (isGcDisabled(metadata.properties)) {
    throw rejected('gc-disabled', 'snapshots of the table must not expire: gc.enabled=false');
  }
  return selectExpired(metadata, retentionPolicy(metadata.properties), nowMs);
}

import { conflict, unavailable, unknown } from '../core/base/errors.ts';
import { ADMIN_TRIES_MAX } from '../core/base/limits.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import type { Operation } from '../core/commit/operation.ts';
import type { CommitResult } from './committer.ts';
import type { OpenTable } from './open-table.ts';
import type { Clock } from './ports.ts';

/** How an operation of an administrator can end without an error. */
export type Ended = Extract<CommitResult<IcebergBase>, { outcome: 'committed' | 'nothing' | 'refused' }>;

/** Wait before an operation whose outcome is open is run again: the late write of a slow store has landed by then. */
const RETRY_MS = 1_000;

/**
 * Runs an operation until it is settled. An outcome that stays open is tried again a few times, and then told as it is: once
 * a write may have happened, nothing but its being found or another's version in its place is an end.
 *
 * @throws conflict `commit-conflict` and what the operation reports; unavailable `store-unavailable`; unknown `commit-unknown`
 */
export async function commitToEnd(clock: Clock, table: OpenTable, operation: Operation): Promise<Ended> {
  let isOpen = false;
  for (let attempt = 0; attempt < ADMIN_TRIES_MAX; attempt++) {
    const result = await table.commit(operation, () => undefined);
    switch (result.outcome) {
      case 'committed':
      case 'nothing':
      case 'refused':
        return result;
      case 'conflict':
        throw conflict(result.type, result.message);
      case 'again':
        continue;
      case 'unavailable':
        if (!isOpen) throw unavailable('store-unavailable', result.error.message, {}, result.error);
        break;
      case 'unknown':
        isOpen = true;
        break;
    }
    await clock.sleep(RETRY_MS);
  }
  throw unknown('commit-unknown', 'the write may have happened; ask for the table before repeating it');
}

import { hex } from '../core/base/bytes.ts';
import { snapshotIdOf } from '../core/base/ids.ts';
import type { CommitIdentity } from '../core/commit/operation.ts';
import { snapshotById } from '../core/iceberg/snapshot.ts';
import type { TableMetadata } from '../core/iceberg/types.ts';
import type { Clock, Random } from './ports.ts';

/** Identity of a new commit that makes a snapshot of this table: ids nobody has, and the time it was decided on. */
export function newIdentity(ports: { clock: Clock; random: Random }, metadata: TableMetadata): CommitIdentity {
  return {
    commitId: hex(ports.random.bytes(16)),
    snapshotId: freshSnapshotId(ports.random, metadata),
    timeMs: ports.clock.now(),
    tableUuid: metadata['table-uuid'],
  };
}

/** A snapshot id that the table does not have (J3). */
export function freshSnapshotId(random: Random, metadata: TableMetadata): bigint {
  for (;;) {
    const id = snapshotIdOf(random.bytes(8));
    if (snapshotById(metadata, id) === null) return id;
  }
}

import { own } from '../core/base/shape.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import type { UpdateOperation } from '../core/commit/operation.ts';
import type { Plan } from '../core/commit/plan.ts';
import { clientUpdates } from '../core/commit/plan-client.ts';
import { setProperties, upgrade } from '../core/commit/plan-properties.ts';
import { dropRef, fastForward, type RefChange, rollback, setRef } from '../core/commit/plan-refs.ts';
import { changeSchema } from '../core/commit/plan-schema.ts';
import { changeSpec, type SpecChange } from '../core/commit/plan-spec.ts';
import type { Requirement } from '../core/iceberg/requirements.ts';
import type { SchemaChange } from '../core/iceberg/schema-change.ts';
import { currentSnapshot } from '../core/iceberg/snapshot.ts';
import type { TableMetadata } from '../core/iceberg/types.ts';
import type { MetadataUpdate } from '../core/iceberg/updates.ts';
import type { AdminCommits } from './commit-to-end.ts';
import { forgetHead } from './head.ts';
import { newIdentity } from './identity.ts';
import type { OpenTable, TablePorts } from './open-table.ts';

export interface Changed {
  base: IcebergBase;
  /** False: the table was as asked already, and no version was written. */
  changed: boolean;
}

/** Changes of a table's metadata. Each is one conditional write, planned anew on whatever base it meets. */
export class TableChanges {
  readonly #ports: TablePorts;
  readonly #table: OpenTable;
  readonly #commits: AdminCommits;

  constructor(ports: TablePorts, table: OpenTable, commits: AdminCommits) {
    this.#ports = ports;
    this.#table = table;
    this.#commits = commits;
  }

  properties(set: Readonly<Record<string, unknown>>, remove: readonly string[]): Promise<Changed> {
    return this.change(setProperties({ set, remove }));
  }

  upgrade(): Promise<Changed> {
    return this.change(upgrade());
  }

  schema(changes: readonly SchemaChange[], expected: number | null): Promise<Changed> {
    return this.change(changeSchema(changes, expected));
  }

  /** Partitions are none of an engine's index: rows and columns stay what they are. */
  spec(changes: readonly SpecChange[], expected: number | null): Promise<Changed> {
    return this.change(changeSpec(changes, expected));
  }

  async setRef(change: RefChange): Promise<Changed & { created: boolean }> {
    const plan = setRef(change);
    let isNew = false;
    const result = await this.change((metadata) => {
      isNew = own(metadata.refs, change.name) === undefined;
      return plan(metadata);
    });
    return { ...result, created: result.changed && isNew };
  }

  dropRef(name: string, expected?: bigint | null): Promise<Changed> {
    return this.change(dropRef(name, expected));
  }

  fastForward(name: string, to: string): Promise<Changed> {
    return this.change(fastForward(name, to));
  }

  rollback(snapshotId: bigint, expected?: bigint | null): Promise<Changed> {
    return this.change(rollback(snapshotId, expected));
  }

  /** A list of updates under requirements, as the REST protocol has them. */
  update(requirements: readonly Requirement[], updates: readonly MetadataUpdate[]): Promise<Changed> {
    return this.change(clientUpdates(requirements, updates));
  }

  /**
   * Makes a change of the table that is there now. It is found by its commit id: a lost answer neither makes it twice nor
   * turns it into a conflict with itself.
   *
   * @throws invalid `unknown-table`, `not-attached`; conflict `requirement-failed`, `commit-conflict`; unknown
   * `commit-unknown`; and what the plan throws
   */
  async change(plan: Plan): Promise<Changed> {
    let operation: UpdateOperation | null = null;
    let before: TableMetadata | null = null;
    const { base, outcome } = await this.#commits.commit(({ metadata }) => {
      before ??= metadata;
      const identity = operation?.identity ?? newIdentity(this.#ports, metadata);
      operation = { kind: 'update', commitId: identity.commitId, uploads: [], identity, plan };
      return operation;
    });
    const changed = outcome === 'committed';
    if (changed && before !== null && isIndexOfOtherColumns(before, base.metadata)) {
      await forgetHead(this.#ports.store, this.#table.place.prefix);
    }
    return { base, changed };
  }
}

/**
 * Whether an index that an engine remembers may be of other columns than the table has now: they were changed, or main went to a
 * snapshot from before they were.
 */
function isIndexOfOtherColumns(before: TableMetadata, after: TableMetadata): boolean {
  if (before['current-schema-id'] !== after['current-schema-id']) return true;
  const snapshot = currentSnapshot(after);
  const moved = snapshot?.['snapshot-id'] !== before['current-snapshot-id'];
  return moved && snapshot !== null && snapshot['schema-id'] !== after['current-schema-id'];
}

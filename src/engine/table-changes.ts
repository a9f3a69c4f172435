import { invalid } from '../core/base/errors.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import type { Plan } from '../core/commit/plan.ts';
import { clientUpdates } from '../core/commit/plan-client.ts';
import { setProperties, upgrade } from '../core/commit/plan-properties.ts';
import { dropRef, fastForward, type RefChange, rollback, setRef } from '../core/commit/plan-refs.ts';
import { changeSchema } from '../core/commit/plan-schema.ts';
import type { Requirement } from '../core/iceberg/requirements.ts';
import type { SchemaChange } from '../core/iceberg/schema-change.ts';
import type { MetadataUpdate } from '../core/iceberg/updates.ts';
import { StoreError } from '../store/store.ts';
import { commitToEnd } from './commit-to-end.ts';
import { newIdentity } from './identity.ts';
import { liveTable } from './live-table.ts';
import type { OpenTable, TablePorts } from './open-table.ts';
import type { Ledger } from './ports.ts';
import type { TableWriter } from './table-writer.ts';

export interface Changed {
  base: IcebergBase;
  /** False: the table was as asked already, and no version was written. */
  changed: boolean;
}

/** Changes of a table's metadata. Each is one conditional write, planned anew on whatever base it meets. */
export class TableChanges {
  readonly #ports: TablePorts & { ledger: Ledger };
  readonly #table: OpenTable;
  readonly #writer: TableWriter;

  constructor(ports: TablePorts & { ledger: Ledger }, table: OpenTable, writer: TableWriter) {
    this.#ports = ports;
    this.#table = table;
    this.#writer = writer;
  }

  properties(set: Readonly<Record<string, unknown>>, remove: readonly string[]): Promise<Changed> {
    return this.change(setProperties({ set, remove }));
  }

  upgrade(): Promise<Changed> {
    return this.change(upgrade());
  }

  /** An engine's head object beside the table may hold an index of the old columns; it is a cache, and goes. */
  async schema(changes: readonly SchemaChange[], expected: number | null): Promise<Changed> {
    const result = await this.change(changeSchema(changes, expected));
    if (result.changed) await this.#forgetHead();
    return result;
  }

  setRef(change: RefChange): Promise<Changed> {
    return this.change(setRef(change));
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
    const { clock, ledger } = this.#ports;
    await this.#writer.check();
    // Fresh: a plan's complaint about the table must not be about one that is long past.
    const { metadata } = liveTable(await this.#table.load(), this.#table.place);
    const identity = newIdentity(this.#ports, metadata);
    const { commitId } = identity;
    const result = await commitToEnd(clock, this.#table, { kind: 'update', commitId, uploads: [], identity, plan });
    if (result.outcome === 'refused') throw invalid('unknown-table', result.message);
    const base = liveTable(result.base, this.#table.place);
    const known = ledger.state().table;
    if (known?.uuid === base.metadata['table-uuid'] && known.version < base.version) {
      ledger.know({ uuid: known.uuid, version: base.version });
    }
    // The pointer follows; when it cannot now, the writer's next run moves it.
    await this.#writer.run();
    return { base, changed: result.outcome === 'committed' };
  }

  async #forgetHead(): Promise<void> {
    // A failure leaves a head of an older version, which readers of the engine look past.
    await this.#ports.store.delete([`${this.#table.place.prefix}/metadata/timelake-head`]).catch((error) => {
      if (!(error instanceof StoreError)) throw error;
    });
  }
}

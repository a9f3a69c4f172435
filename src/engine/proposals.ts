import { conflict, SluiceError } from '../core/base/errors.ts';
import type { NewFrame } from '../core/batch/frame.ts';
import { checkPartitionNames } from '../core/commit/evolve.ts';
import { currentSchema } from '../core/iceberg/metadata.ts';
import { type Proposal, proposalBetween, schemaAfter } from '../core/iceberg/proposal.ts';
import { highestFieldId } from '../core/iceberg/schema.ts';
import type { Schema, TableMetadata } from '../core/iceberg/types.ts';
import { tableSettings } from '../core/table/properties.ts';
import type { GroupCommit } from './group.ts';
import type { Ledger } from './ports.ts';

/**
 * What the batches that wait ask of the table's schema. The door reads rows by it, so that a row that contradicts a column
 * which is not in the table yet is refused while its sender listens, and not when it is to be committed.
 */
export class Proposals {
  readonly #ledger: Ledger;
  readonly #group: GroupCommit;
  #known: { current: Schema; next: Schema } | null = null;

  constructor(ledger: Ledger, group: GroupCommit) {
    this.#ledger = ledger;
    this.#group = group;
  }

  /** What waits; null: nothing that the table does not have. */
  waiting(metadata: TableMetadata): Proposal | null {
    return proposalBetween(currentSchema(metadata), this.#next(metadata), metadata['last-column-id']);
  }

  /**
   * Takes note of what a batch asks for. One that contradicts what waits was read by whoever did not know of it.
   *
   * @throws invalid `bad-column-name`, `bad-schema`; conflict `table-changed`: read the rows again, as the table is now
   */
  take({ proposal }: NewFrame, metadata: TableMetadata): void {
    // Once nothing waits, what was refused meanwhile does not count any more.
    if (this.#isIdle) this.#known = null;
    if (proposal === undefined) return;
    if (tableSettings(metadata.properties).schemaEvolution === 'off') {
      throw conflict('table-changed', 'table does not take new columns from batches any more');
    }
    checkPartitionNames(proposal, metadata);
    const next = this.#next(metadata);
    try {
      this.#known = { current: currentSchema(metadata), next: after(next, proposal, metadata['last-column-id']) };
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error;
      // A name that the table itself does not let in: reading again would not help.
      if (error.type !== 'incompatible-type') after(currentSchema(metadata), proposal, metadata['last-column-id']);
      throw conflict('table-changed', `columns came from elsewhere meanwhile: ${error.message}`, error.detail, error);
    }
  }

  get #isIdle(): boolean {
    return this.#ledger.state().buffer.frames === 0 && this.#group.pending.frames === 0;
  }

  /** The schema that the table will have once what waits is committed. */
  #next(metadata: TableMetadata): Schema {
    const current = currentSchema(metadata);
    if (this.#isIdle) return current;
    if (this.#known?.current !== current) this.#known = { current, next: this.#fromLedger(metadata) };
    return this.#known.next;
  }

  #fromLedger(metadata: TableMetadata): Schema {
    let schema = currentSchema(metadata);
    for (const proposal of this.#ledger.proposals()) {
      try {
        schema = after(schema, proposal, metadata['last-column-id']);
      } catch (error) {
        // Another writer's change came in between: the batch will be refused by itself, and asks for nothing.
        if (!(error instanceof SluiceError)) throw error;
      }
    }
    return schema;
  }
}

function after(schema: Schema, proposal: Proposal, lastColumnId: number): Schema {
  return schemaAfter(schema, proposal, Math.max(lastColumnId, highestFieldId(schema)));
}

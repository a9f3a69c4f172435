import type { Requirement } from '../iceberg/requirements.ts';
import type { TableMetadata } from '../iceberg/types.ts';
import type { MetadataUpdate } from '../iceberg/updates.ts';

/** What a change of metadata comes to on one state of the table. */
export interface Planned {
  /** Facts of the base that the updates build on. One that does not hold is a conflict that names it. */
  requirements?: readonly Requirement[];
  /** None: the table is as asked already, and no version is written. */
  updates: readonly MetadataUpdate[];
  /**
   * The columns change. A last-value index is made for the old ones and must not be named any more: where the current
   * snapshot names one, the commit adds a snapshot of the same files with one for the new columns (contract, section 6).
   */
  columns?: true;
}

/**
 * A change of metadata, planned anew on each base it is tried on. Pure. Throws the error its caller is to see: invalid
 * when it can never be made, rejected when the table does not allow it, conflict when another change came first.
 */
export type Plan = (metadata: TableMetadata) => Planned;

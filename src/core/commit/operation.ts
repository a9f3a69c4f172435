import type { Intent } from '../batch/intent.ts';
import type { AppProgress } from '../batch/select.ts';
import type { Columns } from '../columns/columns.ts';
import type { TableMetadata, Value } from '../iceberg/types.ts';
import type { Change } from '../sink.ts';
import type { TableLayout } from '../table/definition.ts';
import type { AddedManifest } from './added-manifest.ts';
import type { Evolution } from './evolve.ts';
import type { FileFilter } from './file-filter.ts';
import type { Plan } from './plan.ts';
import type { Layout } from './premises.ts';
import type { Changed } from './select-files.ts';

/** What identifies a commit that makes a snapshot, fixed before its first attempt and the same in all of them. */
export interface CommitIdentity {
  /** 128 bits, hexadecimal. */
  commitId: string;
  snapshotId: bigint;
  /** When it was decided on; names its files. */
  timeMs: number;
  /** The table it is for; another one at its place is left alone. */
  tableUuid: string;
}

/** Rows of one flush, encoded and described once; every attempt reuses the files. */
export interface AppendOperation extends Change {
  kind: 'append';
  intent: Intent;
  /** The branch it appends to. Another than main leaves main and its progress untouched. */
  branch: string;
  /** Highest own epoch of the frames inside; their lowest is above the watermark that the preparation saw. */
  last: bigint;
  first: bigint;
  /** Premises: what the files were made for. */
  layout: Layout;
  /** The change of schema that its rows ask for, made in the same commit; null: none. */
  evolution: Evolution | null;
  /** Producers whose progress moves on with it. */
  progress: ReadonlyMap<string, AppProgress>;
  /** Batches of the intent's range that it does not hold, as its summary says; null: it holds all. */
  leftOut: string | null;
  /** Null when there are no rows and only progress moves on. */
  manifest: AddedManifest | null;
  added: Changed;
  /** The newest row of each series among its rows, in the schema of its files; null: the table has no series. */
  newest: Columns | null;
  /** Written for the engine when the commit holds exactly one batch and that batch has an id. */
  batchId: string | null;
}

/** Removes whole data files. */
export interface DeleteOperation extends Change {
  kind: 'delete';
  identity: CommitIdentity;
  /** Which; chosen anew on each base. */
  filter: FileFilter;
  /** The table's retention asks for it: what is wholly before this instant goes, UTC microseconds. */
  retention?: bigint;
}

/** Puts files in the place of others that hold the same rows. */
export interface ReplaceOperation extends Change {
  kind: 'replace';
  identity: CommitIdentity;
  /** What the outputs were written with; the inputs are of the same spec. */
  layout: Layout;
  inputs: readonly ReplaceInput[];
  /** Of two rows of one key the later wins: runs must be contiguous in data sequence number. */
  dedup: boolean;
  manifest: AddedManifest;
  added: Changed;
}

export interface ReplaceInput {
  path: string;
  partition: readonly Value[];
  /** Data sequence number. */
  sequenceNumber: bigint;
  /** Highest data sequence number of its run: that of the outputs. */
  highest: bigint;
}

/** Puts new rows in the place of all files that a filter covers. */
export interface OverwriteOperation extends Change {
  kind: 'overwrite';
  identity: CommitIdentity;
  /** Which files go; chosen anew on each base. */
  filter: FileFilter;
  /** Premise: what the new files were made for. */
  layout: Layout;
  /** See `AppendOperation`. */
  evolution: Evolution | null;
  manifest: AddedManifest;
  added: Changed;
}

/** Lists the same files in fewer manifests, clustered by partition. */
export interface RewriteManifestsOperation extends Change {
  kind: 'rewrite-manifests';
  identity: CommitIdentity;
}

/** Names a last-value index on a table that has none, or one that cannot be read, beside the same files. */
export interface IndexOperation extends Change {
  kind: 'index';
  identity: CommitIdentity;
  /** Snapshot whose rows were looked through. */
  covers: bigint;
  /** Location of the index that the table names and that cannot be read; null when it names none. */
  lost: string | null;
  /** The newest row of each of its series. */
  newest: Columns;
}

/** A change of metadata alone; found by its commit id in the list of changes, see `changes.ts`. */
export interface UpdateOperation extends Change {
  kind: 'update';
  /** The snapshot id is used only where a change of columns needs a snapshot. */
  identity: CommitIdentity;
  /** What to do on the base of each attempt. */
  plan: Plan;
}

/** A new table, at version 1 or on top of a tombstone. */
export interface CreateOperation extends Change {
  kind: 'create';
  /** The new table's uuid. */
  uuid: string;
  location: string;
  layout: TableLayout;
}

/** Takes over a table that somebody else made: marks it as served, and gives it a Hadoop version where it has none. */
export interface AttachOperation extends Change {
  kind: 'attach';
  /** Metadata of a table that is not in `vN` layout, and where it was read; null when it is. */
  foreign: { metadata: TableMetadata; location: string } | null;
  properties: Record<string, string>;
}

/** Ends a table: a last valid version with a new uuid and no snapshots. */
export interface DropOperation extends Change {
  kind: 'drop';
  /** The table to drop; another one at its place is left alone. */
  tableUuid: string;
  /** Uuid of the tombstone. */
  uuid: string;
}

export type Operation =
  | AppendOperation
  | DeleteOperation
  | ReplaceOperation
  | OverwriteOperation
  | RewriteManifestsOperation
  | IndexOperation
  | UpdateOperation
  | CreateOperation
  | AttachOperation
  | DropOperation;

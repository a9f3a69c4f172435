import type { Detail } from './base/errors.ts';

/**
 * The seam between the commit driver and a table format. A sink turns a change and a base into files, one conditional
 * write and a verdict on premises; it makes no request. The driver uploads, writes, reads back and loops; it knows no
 * format. Nothing here names Iceberg, so that another numbered-version format can stand behind the same driver.
 */

/** One table state: version `version` as stored under `etag`. */
export interface Based {
  readonly version: number;
  readonly etag: string;
}

/** An object to create. Content-named keys: `exists` then means the same bytes are already there. */
export interface Upload {
  key: string;
  bytes: Uint8Array;
}

/** Where a commit was found in the chain of a base. Null ids: it is known to be there, but its snapshot has expired. */
export interface Found {
  snapshotId: bigint | null;
  version: number;
}

/** The verdict on one change against one base. */
export type Decision<Base> =
  | {
      kind: 'proceed';
      /** Files of this attempt alone (the change's own files are in `Change.uploads`). */
      uploads: Upload[];
      /** The version file: `versionKey(base.version + 1)` (1 without a base) with these bytes. */
      bytes: Uint8Array;
      /** The base that results once the store answered with an etag. */
      next: (etag: string) => Base;
    }
  /** The change is in the chain already. */
  | { kind: 'settled'; found: Found }
  /** The change no longer fits the base (schema moved, part of it committed): prepare again. */
  | { kind: 'again'; reason: string }
  /** The base already is as the change would leave it: no version is written. */
  | { kind: 'nothing'; message: string; detail: Record<string, Detail> }
  /** Another change took away what this one builds on: it has to be planned anew. */
  | { kind: 'conflict'; type: string; message: string }
  /** The change can never be applied. */
  | { kind: 'refused'; type: string; message: string };

/** Kinds of change that another writer can have made in between (see `core/commit/conflicts.ts`). */
export type RebasedOver =
  | 'append'
  | 'replace'
  | 'delete'
  | 'overwrite'
  | 'rewrite-manifests'
  | 'expire'
  | 'layout'
  | 'properties'
  | 'refs'
  | 'rollback'
  | 'drop';

/** A change prepared once, decided on every attempt. */
export interface Change {
  /** 128 bits in hexadecimal: what the chain is searched for. */
  readonly commitId: string;
  /** Files that do not depend on the base. */
  readonly uploads: readonly Upload[];
}

export interface Sink<Base extends Based, C extends Change> {
  /** Object key of a version. */
  versionKey(version: number): string;
  /** Version number in an object key, or null when it is no version of this table. */
  versionOf(key: string): number | null;
  /** Prefix under which all versions of the table lie. */
  readonly versionPrefix: string;
  /** Key of the pointer to the newest version. */
  readonly pointerKey: string;
  /** Content of the pointer. */
  pointer(version: number): Uint8Array;
  /** Version a pointer names, or null when it cannot be read. */
  parsePointer(bytes: Uint8Array): number | null;
  /** Parses and checks a version. Throws corrupt when the table cannot be read. Also the check before a write. */
  parseBase(version: number, bytes: Uint8Array, etag: string): Base;
  /** Keys whose bytes `decide` must see for this base and that are not in `seen` yet; asked again until there are none. */
  needs(change: C, base: Base | null, seen: ReadonlyMap<string, Uint8Array>): string[];
  /** Bytes of a needed object that are read at most; null: it is read whole. A longer one is not shown to `decide`. */
  bytesMaxOf(key: string): number | null;
  /** Pure. Every premise is checked here, against the base of this attempt (null: the table has no version). */
  decide(change: C, base: Base | null, seen: ReadonlyMap<string, Uint8Array>, nowMs: number): Decision<Base>;
  /** The change in the chain of the base, if it is there. Asked before every decision and after every write. */
  find(change: C, base: Base): Found | null;
  /** What other writers' changes between two bases were: a change first decided on `from` was committed on `to`. */
  rebasedOver(from: Base | null, to: Base | null): RebasedOver[];
  /** True when the base refers to an object of an earlier attempt, or may: it must stay. */
  refersTo(base: Base, key: string): boolean;
}

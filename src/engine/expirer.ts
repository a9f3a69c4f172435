import { SluiceError } from '../core/base/errors.ts';
import { DOOMED_KEYS_MAX, ERASE_GRACE_MS } from '../core/base/limits.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { expire, expiredOf } from '../core/commit/plan-expire.ts';
import type { TableMetadata } from '../core/iceberg/types.ts';
import { applyUpdates } from '../core/iceberg/updates.ts';
import type { Expired } from '../core/maintain/expire-select.ts';
import type { Eraser } from './eraser.ts';
import { liveTable } from './live-table.ts';
import type { OpenTable, TablePorts } from './open-table.ts';
import type { Ledger } from './ports.ts';
import { Reach, retainsAll } from './reach.ts';
import type { TableChanges } from './table-changes.ts';

/** What an expiry did, or would do. */
export interface ExpireReport extends Expired {
  base: IcebergBase;
  /** A version was written. */
  changed: boolean;
  /** Files that become unreachable, to be deleted; null when telling took too many reads and they are left. */
  files: number | null;
  /** When they are deleted at the earliest, milliseconds since 1970; null when there are none. */
  eraseMs: number | null;
  /** Superseded metadata files that were deleted. */
  metadataFiles: number;
}

/**
 * Expires snapshots and refs by the table's rules, and queues the files that only they reached.
 *
 * The files are queued before the commit: a crash between the two then leaves no file behind that nobody knows of. That is
 * safe because the queue is no verdict; the eraser asks the newest version first, and much later.
 */
export class Expirer {
  readonly #ports: TablePorts & { ledger: Ledger };
  readonly #table: OpenTable;
  readonly #changes: TableChanges;
  readonly #eraser: Eraser;
  readonly #reach: Reach;

  constructor(ports: TablePorts & { ledger: Ledger }, table: OpenTable, changes: TableChanges, eraser: Eraser) {
    this.#ports = ports;
    this.#eraser = eraser;
    this.#table = table;
    this.#changes = changes;
    this.#reach = new Reach(ports, table.place, table.reached);
  }

  /** @throws rejected `gc-disabled`, what a change throws, corrupt when a retained snapshot lacks its files */
  async expire(dryRun: boolean): Promise<ExpireReport> {
    const { clock, ledger } = this.#ports;
    const nowMs = clock.now();
    const base = liveTable(await this.#table.load(), this.#table.place);
    const planned = expiredOf(base.metadata, nowMs);
    const nothing = planned.refs.length + planned.snapshotIds.length === 0;
    if (nothing) {
      const metadataFiles = dryRun ? 0 : await this.#eraser.trimMetadata(base);
      return { ...planned, base, changed: false, files: 0, eraseMs: null, metadataFiles };
    }
    const keys = await this.#lost(base.metadata, nowMs);
    const eraseMs = keys === null || keys.length === 0 ? null : nowMs + ERASE_GRACE_MS;
    if (dryRun) return { ...planned, base, changed: false, files: keys?.length ?? null, eraseMs, metadataFiles: 0 };
    if (keys !== null) ledger.doom(keys, nowMs + ERASE_GRACE_MS);

    let decidedOn = base.metadata;
    const plan = expire(nowMs);
    const result = await this.#changes.change((metadata) => {
      decidedOn = metadata;
      return plan(metadata);
    });
    const expired = expiredOf(decidedOn, nowMs);
    let files = keys?.length ?? null;
    if (result.changed && decidedOn['last-updated-ms'] !== base.metadata['last-updated-ms']) {
      // Chosen again on a later base: what that lets go of beyond the first choice is queued as well.
      const more = await this.#lost(decidedOn, nowMs);
      const known = new Set(keys ?? []);
      const rest = more?.filter((key) => !known.has(key)) ?? [];
      ledger.doom(rest, nowMs + ERASE_GRACE_MS);
      files = more?.length ?? null;
    }
    const metadataFiles = await this.#eraser.trimMetadata(result.base);
    return { ...expired, base: result.base, changed: result.changed, files, eraseMs, metadataFiles };
  }

  /**
   * Keys that only what expires on this state reaches, at most `DOOMED_KEYS_MAX`; null when that cannot be told, and they
   * are left to the sweep: too many reads, or another writer has expired and deleted some of it in the meantime.
   */
  async #lost(metadata: TableMetadata, nowMs: number): Promise<string[] | null> {
    const { updates } = expire(nowMs)(metadata);
    const after = applyUpdates(metadata, updates, { nowMs, previousMetadataLocation: null });
    try {
      const keys = await this.#reach.lost(metadata, after);
      return keys?.slice(0, DOOMED_KEYS_MAX) ?? null;
    } catch (error) {
      // Damage only when the newest version still needs what is missing.
      if (!(error instanceof SluiceError && error.kind === 'corrupt')) throw error;
      if (retainsAll(await this.#table.load(), metadata)) throw error;
      return null;
    }
  }
}

import { conflict, rejected, SluiceError } from '../core/base/errors.ts';
import { DOOMED_KEYS_MAX, ERASE_GRACE_MS, SWEEP_OBJECTS_MAX, SWEEP_SAMPLE_MAX } from '../core/base/limits.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { parseMetadata } from '../core/iceberg/metadata.ts';
import type { TableMetadata } from '../core/iceberg/types.ts';
import { consider, noCandidates, sweepBeforeMs } from '../core/maintain/orphans.ts';
import { isGcDisabled } from '../core/maintain/retention-policy.ts';
import { tableSettings } from '../core/table/properties.ts';
import { liveTable } from './live-table.ts';
import type { OpenTable, TablePorts } from './open-table.ts';
import type { Ledger } from './ports.ts';
import { Reach, retainsAll } from './reach.ts';
import { persevere } from './uploader.ts';

/** What a sweep found. */
export interface SweepReport {
  base: IcebergBase;
  /** Objects of the folder that were looked at. */
  listed: number;
  /** Too young to be called orphans, and of kinds that a sweep leaves alone. */
  young: number;
  other: number;
  /** Files that nothing refers to, and their bytes. */
  orphans: number;
  bytes: number;
  /** Some of them, as keys below the table's folder. */
  sample: string[];
  /** When they are deleted at the earliest; null: none is, or it was only a look. */
  eraseMs: number | null;
  /** Where the next part of the folder begins; null: this was the last. */
  next: string | null;
}

/**
 * Finds files that commits have left behind and nothing refers to: of attempts that lost, of crashes, of writers that gave up,
 * and what expiries had to leave. A part of the folder at a time: listed first, and then held against the newest version *and*
 * all versions in its log, so that what is committed meanwhile is seen. What it finds is queued for the eraser, which an hour
 * later asks the newest version once more; nothing is deleted here.
 */
export class OrphanSweep {
  readonly #ports: TablePorts & { ledger: Ledger };
  readonly #table: OpenTable;
  readonly #reach: Reach;
  readonly #graceMs: number | null;

  /** `graceMs`: the least age of an orphan; null: as the table says. */
  constructor(ports: TablePorts & { ledger: Ledger }, table: OpenTable, graceMs: number | null = null) {
    this.#ports = ports;
    this.#table = table;
    this.#reach = new Reach(ports, table.place);
    this.#graceMs = graceMs;
  }

  /**
   * One part of the folder, behind `after`. With `dryRun` it only tells.
   *
   * @throws rejected `gc-disabled`, `too-many-manifests`; corrupt when the table lacks files of its own; StoreError
   */
  async sweep(dryRun: boolean, after: string | null = null): Promise<SweepReport> {
    const { clock, ledger } = this.#ports;
    const first = liveTable(await this.#table.load(), this.#table.place);
    if (isGcDisabled(first.metadata.properties)) {
      throw rejected('gc-disabled', 'files of the table may belong to others too: gc.enabled=false');
    }
    const graceMs = this.#graceMs ?? tableSettings(first.metadata.properties).sweep.graceMs;
    const { candidates, listed, next } = await this.#list(graceMs, after);
    // Loaded again: what was committed while the listing ran is not an orphan.
    const base = liveTable(await this.#table.load(), this.#table.place);
    const past = candidates.objects.size === 0 ? [] : await this.#logged(base.metadata);
    const orphans = await this.#unreached([...candidates.objects.keys()], base.metadata, past);
    if (orphans === null) throw rejected('too-many-manifests', 'telling orphans from files in use would read too much');
    const nowMs = clock.now();
    if (!dryRun) ledger.doom(orphans, nowMs + ERASE_GRACE_MS);
    const { prefix } = this.#table.place;
    return {
      base,
      listed,
      young: candidates.young,
      other: candidates.other,
      orphans: orphans.length,
      bytes: orphans.reduce((sum, key) => sum + (candidates.objects.get(key) ?? 0), 0),
      sample: orphans.slice(0, SWEEP_SAMPLE_MAX).map((key) => key.slice(prefix.length + 1)),
      eraseMs: dryRun || orphans.length === 0 ? null : nowMs + ERASE_GRACE_MS,
      next,
    };
  }

  async #unreached(keys: readonly string[], metadata: TableMetadata, past: readonly TableMetadata[]) {
    try {
      return await this.#reach.unreached(keys, metadata, past);
    } catch (error) {
      // Damage only when the newest version still needs what is missing; else somebody has expired and deleted it meanwhile.
      if (!(error instanceof SluiceError && error.kind === 'corrupt')) throw error;
      if (retainsAll(await this.#table.load(), metadata)) throw error;
      throw conflict('commit-conflict', 'snapshots expired while the folder was looked through', {}, error);
    }
  }

  async #list(graceMs: number, after: string | null) {
    const { clock, ledger, store } = this.#ports;
    const { prefix } = this.#table.place;
    const intentMs = ledger.state().intent?.intent.timeMs ?? null;
    const rule = {
      prefix,
      beforeMs: sweepBeforeMs({ nowMs: clock.now(), graceMs, intentMs }),
      queued: new Set(ledger.doomed(Number.POSITIVE_INFINITY, DOOMED_KEYS_MAX)),
    };
    return persevere(this.#ports, async () => {
      const candidates = noCandidates();
      let listed = 0;
      for await (const object of store.list(`${prefix}/`, after ?? undefined)) {
        consider(candidates, object, rule);
        if (++listed === SWEEP_OBJECTS_MAX) return { candidates, listed, next: object.key };
      }
      return { candidates, listed, next: null };
    });
  }

  /** The versions in the log of the newest one, as far as they are still there: readers may hold them. */
  async #logged({ 'metadata-log': log }: TableMetadata): Promise<TableMetadata[]> {
    const { location, prefix } = this.#table.place;
    const past: TableMetadata[] = [];
    for (const { 'metadata-file': file } of log) {
      if (!file.startsWith(`${location}/`)) continue;
      const key = prefix + file.slice(location.length);
      const stored = await persevere(this.#ports, () => this.#ports.store.get(key));
      if (stored !== null) past.push(parseMetadata(new TextDecoder().decode(stored.bytes)));
    }
    return past;
  }
}

import { hex } from '../core/base/bytes.ts';
import { SluiceError, unavailable } from '../core/base/errors.ts';
import { ownWatermark, readEpochs } from '../core/batch/epochs.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { liveTable } from './live-table.ts';
import type { OpenTable, TablePorts } from './open-table.ts';
import type { Ledger, Settlement } from './ports.ts';

/** What the writer hears of the comparison. */
export interface CheckHooks {
  /** The table was looked for, and found or not. */
  loaded(): void;
  /** What the ledger holds is let go of. */
  replaced(base: IcebergBase, settlement: Settlement): void;
}

/**
 * Compares the ledger with the table, once per incarnation and before the first batch is accepted: a ledger restored to an
 * earlier time must not give out numbers that the table has already seen.
 */
export class LedgerCheck {
  readonly #ports: TablePorts & { ledger: Ledger };
  readonly #table: OpenTable;
  readonly #hooks: CheckHooks;
  #checked: Promise<void> | null = null;
  #isLooked = false;

  constructor(ports: TablePorts & { ledger: Ledger }, table: OpenTable, hooks: CheckHooks) {
    this.#ports = ports;
    this.#table = table;
    this.#hooks = hooks;
  }

  /** The table was looked for in this incarnation: what is due follows from what was found. */
  get isLooked(): boolean {
    return this.#isLooked;
  }

  /** @throws unavailable `table-unreadable` when the store does not answer */
  check(): Promise<void> {
    this.#checked ??= this.#compare().catch((error) => {
      this.#checked = null;
      throw error instanceof SluiceError
        ? error
        : unavailable('table-unreadable', 'table cannot be loaded now', {}, error);
    });
    return this.#checked;
  }

  /**
   * The table as it is served. Asked for again when what is known says that there is none: it may have been made
   * meanwhile, by another writer or by a request whose answer was lost.
   *
   * @throws as `check` and `liveTable`
   */
  async live(): Promise<IcebergBase> {
    await this.check();
    try {
      return liveTable(this.#table.base, this.#table.place);
    } catch {
      this.again();
      await this.check();
      return liveTable(this.#table.base, this.#table.place);
    }
  }

  /** As `check`, and once more when the table is another one than the ledger knows: it was dropped and made anew by somebody else. */
  async checkFor(base: IcebergBase): Promise<void> {
    await this.check();
    const { table } = this.#ports.ledger.state();
    if (table === null || table.uuid === base.metadata['table-uuid']) return;
    this.again();
    await this.check();
  }

  /** The next check looks for the table once more. */
  again(): void {
    this.#checked = null;
  }

  async #compare(): Promise<void> {
    const { clock, ledger, marks, random } = this.#ports;
    const base = await this.#table.load();
    this.#isLooked = true;
    this.#hooks.loaded();
    if (base === null) return;
    // Read after the load: batches are taken and settled while it is on its way.
    const state = ledger.state();
    const uuid = base.metadata['table-uuid'];
    const epochs = readEpochs(base.metadata);
    if (
      state.table === null &&
      state.lastSequence === 0 &&
      [...epochs.keys()].some((app) => app.startsWith('sluice/'))
    ) {
      marks.hit('ledger-lost');
    }
    if (state.table !== null && state.table.uuid !== uuid) {
      marks.hit('table-replaced');
      const message = 'table was dropped and another one is at its place';
      this.#hooks.replaced(base, { outcome: 'refused', type: 'table-replaced', message, atMs: clock.now() });
      // And on: a ledger restored to before the drop may have given numbers to the new table already.
    }
    const watermark = ownWatermark(base.metadata, state.ledgerId);
    if (watermark !== null && watermark > BigInt(state.lastSequence)) {
      marks.hit('ledger-restored');
      this.#hooks.replaced(base, {
        outcome: 'committed',
        snapshotId: null,
        version: base.version,
        tableUuid: uuid,
        committedMs: clock.now(),
        rows: state.buffer.rows,
      });
      ledger.renew(hex(random.bytes(8)));
    }
    ledger.know({ uuid, version: base.version });
  }
}

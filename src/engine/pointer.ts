import type { OpenTable } from './open-table.ts';
import type { Ledger } from './ports.ts';

/** What the writer hears of the pointer. */
export interface PointerHooks {
  /** The store did not take it. What is still to be moved is moved when `move` is called again. */
  failed(error: unknown): void;
  /** It is not being moved any more. */
  ended(): void;
}

/**
 * Lets the version pointer follow the commits, beside them: the store takes one write a second to it, and no flush waits
 * for that. How far it got is in the ledger.
 */
export class Pointer {
  readonly #ledger: Ledger;
  readonly #table: OpenTable;
  readonly #hooks: PointerHooks;
  #isLoaded = false;
  #moving: Promise<void> | null = null;

  constructor(ledger: Ledger, table: OpenTable, hooks: PointerHooks) {
    this.#ledger = ledger;
    this.#table = table;
    this.#hooks = hooks;
  }

  /** The table was read by this incarnation. */
  loaded(): void {
    this.#isLoaded = true;
  }

  get isMoving(): boolean {
    return this.#moving !== null;
  }

  get isBehind(): boolean {
    return this.#ledger.state().hintedVersion < this.#newest();
  }

  /** Starts moving it to the newest version, unless it is there or is being moved. What is committed meanwhile is followed. */
  move(): void {
    if (this.#moving !== null || !this.isBehind) return;
    this.#moving = this.#once()
      .then(
        () => true,
        (error) => {
          this.#hooks.failed(error);
          return false;
        },
      )
      .then((isMoved) => {
        this.#moving = null;
        if (isMoved) this.move();
        this.#hooks.ended();
      })
      // The ledger's: this incarnation has lost it, and the next one goes on from there.
      .catch(() => undefined);
  }

  /** Resolves when it is at the version known now, or could not be moved there. Never throws. */
  async reached(): Promise<void> {
    const version = this.#newest();
    // A move under way may have begun before that version: the one behind it then brings it there.
    while (this.#moving !== null && this.#ledger.state().hintedVersion < version) await this.#moving;
  }

  async #once(): Promise<void> {
    const uuid = this.#ledger.state().table?.uuid;
    const version = await this.#table.point();
    // Another table took the place meanwhile: its pointer is still to be moved.
    if (this.#ledger.state().table?.uuid === uuid) this.#ledger.hinted(version);
  }

  /**
   * Version that it can be moved to; 0: none. Once the table was read, only what was read: the store may have no version
   * of it any more, or those of another one, which the ledger has not been told of yet.
   */
  #newest(): number {
    const { table } = this.#ledger.state();
    if (table === null || !this.#isLoaded) return table?.version ?? 0;
    const { base } = this.#table;
    return base?.metadata['table-uuid'] === table.uuid ? Math.min(base.version, table.version) : 0;
  }
}

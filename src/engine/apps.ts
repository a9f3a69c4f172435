import { conflict, invalid } from '../core/base/errors.ts';
import { readEpochs } from '../core/batch/epochs.ts';
import type { NewFrame } from '../core/batch/frame.ts';
import { currentSchema } from '../core/iceberg/metadata.ts';
import { liveTable } from './live-table.ts';
import type { OpenTable } from './open-table.ts';
import type { Clock, Ledger, ParkedState, Settlement } from './ports.ts';

/** Where a producer's app stands. */
export interface AppStatus {
  app: string;
  /** Highest epoch in the table; null: none. */
  committed: bigint | null;
  /** Highest epoch that is accepted and waits for its commit; null: none waits. */
  accepted: bigint | null;
  parked: ParkedState | null;
  retiring: boolean;
}

/** What the owner of a producer may ask and decide. */
export class Apps {
  readonly #ports: { ledger: Ledger; clock: Clock };
  readonly #table: OpenTable;
  readonly #onChange: () => void;

  /** `onChange` runs in the same turn as a ledger step that makes something due. */
  constructor(ports: { ledger: Ledger; clock: Clock }, table: OpenTable, onChange: () => void) {
    this.#ports = ports;
    this.#table = table;
    this.#onChange = onChange;
  }

  /** @throws invalid `unknown-app` when neither table nor ledger has heard of it */
  status(app: string): AppStatus {
    const base = liveTable(this.#table.base, this.#table.place);
    const committed = readEpochs(base.metadata).get(app) ?? null;
    const { waiting, parked, retiring, recent } = this.#ports.ledger.app(app);
    if (committed === null && waiting === null && parked === null && recent.length === 0) {
      throw invalid('unknown-app', `app is not known to the table: ${app}`, { app });
    }
    return { app, committed, accepted: waiting, parked, retiring };
  }

  /**
   * Gives the refused epoch up: it counts as committed without its rows, and those behind it follow.
   *
   * @throws conflict `app-not-parked`; `app-busy` while batches of it wait that the next flush will put behind it
   */
  skip(app: string, epoch: bigint): number {
    return this.#goOn(
      app,
      epoch,
      this.#empty({ app, epoch, sparse: true }),
      'epoch-skipped',
      'epoch was skipped by its owner',
    );
  }

  /** Puts another batch in the place of the refused one. @throws as `skip` */
  replace(app: string, epoch: bigint, frame: NewFrame): number {
    const replacement = { ...frame, producer: { app, epoch, sparse: true } };
    return this.#goOn(app, epoch, replacement, 'epoch-replaced', 'epoch was sent again with another body');
  }

  /**
   * Lets the app leave the progress map with the next commit: what it sends afterwards begins anew.
   *
   * @throws conflict `app-busy` while batches of it wait
   */
  retire(app: string): void {
    const { accepted, parked } = this.status(app);
    if (accepted !== null || parked !== null) {
      throw conflict('app-busy', `app has batches that wait for their commit: ${app}`, { app });
    }
    const { ledger, clock } = this.#ports;
    ledger.retire(app, true);
    // A commit is needed to say so, with or without rows.
    ledger.accept([this.#empty(null)], clock.now());
    this.#onChange();
  }

  #goOn(app: string, epoch: bigint, replacement: NewFrame, type: string, message: string): number {
    const { ledger, clock } = this.#ports;
    const { parked, waiting } = ledger.app(app);
    if (parked === null) throw conflict('app-not-parked', `app is not held up: ${app}`, { app });
    if (parked.epoch !== epoch) {
      throw conflict('app-not-parked', `app is held up by another epoch: app=${app} epoch=${parked.epoch}`, {
        app,
        epoch: parked.epoch.toString(),
      });
    }
    // Taken before the refusal was known: the next flush puts them behind it. Let go now, they would come before it.
    if (waiting !== null) throw conflict('app-busy', `app has batches that wait for their commit: ${app}`, { app });
    const verdict: Settlement = { outcome: 'refused', type, message, atMs: clock.now() };
    const sequence = ledger.unpark(app, replacement, verdict, clock.now());
    this.#onChange();
    return sequence;
  }

  /** A batch without rows, which only moves progress on. */
  #empty(producer: NewFrame['producer']): NewFrame {
    const { metadata } = liveTable(this.#table.base, this.#table.place);
    const schemaId = currentSchema(metadata)['schema-id'];
    return { digest: '', batchId: null, producer, schemaId, rows: 0, partitions: 0, body: new Uint8Array(0) };
  }
}

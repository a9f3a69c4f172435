import { conflict, invalid, rejected, unavailable, unknown } from '../core/base/errors.ts';
import { ADMIN_TRIES_MAX } from '../core/base/limits.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import type { Operation } from '../core/commit/operation.ts';
import type { CommitResult } from './committer.ts';
import { liveTable } from './live-table.ts';
import type { OpenTable, TablePorts } from './open-table.ts';
import type { Clock, Ledger } from './ports.ts';
import type { TableWriter } from './table-writer.ts';

/** How an operation of an administrator can end without an error. */
export type Ended = Extract<CommitResult<IcebergBase>, { outcome: 'committed' | 'nothing' | 'refused' }>;

/** Refusals that mean: the table it was asked for is not there any more. */
const GONE = new Set(['table-gone', 'table-dropped', 'table-replaced', 'unknown-table']);

/** Wait before an operation whose outcome is open is run again: the late write of a slow store has landed by then. */
const RETRY_MS = 1_000;

/**
 * Runs an operation until it is settled. An outcome that stays open is tried again a few times, and then told as it is: once
 * a write may have happened, nothing but its being found or another's version in its place is an end. `prepare` is asked
 * first, and again when the files it made no longer fit the base; it keeps the commit's identity. `note`: see `Committer.commit`.
 *
 * @throws conflict `commit-conflict` and what the operation reports; unavailable `store-unavailable`; unknown `commit-unknown`
 */
export async function commitToEnd(
  clock: Clock,
  table: OpenTable,
  prepare: (base: IcebergBase | null) => Operation,
  note: (version: number) => void = () => undefined,
): Promise<Ended> {
  let isOpen = false;
  let operation = prepare(table.base);
  for (let attempt = 0; attempt < ADMIN_TRIES_MAX; attempt++) {
    const result = await table.commit(operation, note);
    switch (result.outcome) {
      case 'committed':
      case 'nothing':
      case 'refused':
        return result;
      case 'conflict':
        throw conflict(result.type, result.message);
      case 'again':
        operation = prepare(result.base);
        continue;
      case 'unavailable':
        if (!isOpen) throw unavailable('store-unavailable', result.error.message, {}, result.error);
        break;
      case 'unknown':
        isOpen = true;
        break;
    }
    await clock.sleep(RETRY_MS);
  }
  if (!isOpen) throw conflict('commit-conflict', 'table moved under the commit again and again');
  throw unknown('commit-unknown', 'the write may have happened; ask for the table before repeating it');
}

/** Commits of administrators, or of the writer's own chores, to a table that is there and served. */
export class AdminCommits {
  readonly #ports: TablePorts & { ledger: Ledger };
  readonly #table: OpenTable;
  readonly #writer: TableWriter;
  readonly #isInRun: boolean;

  /** `isInRun`: for a chore, which is part of a run of the writer and cannot wait for its end. */
  constructor(ports: TablePorts & { ledger: Ledger }, table: OpenTable, writer: TableWriter, isInRun = false) {
    this.#ports = ports;
    this.#table = table;
    this.#writer = writer;
    this.#isInRun = isInRun;
  }

  /**
   * Loads the table, runs the operation to its end, and moves the pointer. `prepare` is given a base of the table it was
   * asked for: fresh, so that a complaint about the table is not about one that is long past.
   *
   * @throws invalid `unknown-table`, `not-attached`; what `commitToEnd` and `prepare` throw
   */
  async commit(
    prepare: (base: IcebergBase) => Operation,
  ): Promise<Exclude<Ended, { outcome: 'refused' }> & { base: IcebergBase }> {
    const { clock, ledger } = this.#ports;
    const { place } = this.#table;
    await this.#writer.check();
    const first = liveTable(await this.#table.load(), place);
    // A chore is part of a run that has checked.
    if (!this.#isInRun) await this.#writer.checkFor(first);
    const result = await commitToEnd(clock, this.#table, (base) => prepare(base ?? first));
    if (result.outcome === 'refused') {
      if (GONE.has(result.type)) throw invalid('unknown-table', result.message);
      throw rejected(result.type, result.message);
    }
    const base = liveTable(result.base, place);
    const known = ledger.state().table;
    if (known?.uuid === base.metadata['table-uuid'] && known.version < base.version) {
      ledger.know({ uuid: known.uuid, version: base.version });
    }
    // The pointer follows; when it cannot now, the writer's next run moves it.
    if (!this.#isInRun) {
      await this.#writer.runFlushes();
      await this.#writer.pointed();
    }
    return { ...result, base };
  }
}

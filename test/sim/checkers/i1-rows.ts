import { type Batch, livesIn } from '../model.ts';
import { FOREIGN_FROM, rowOf } from '../rows.ts';
import type { SimWorld } from '../world.ts';
import type { Checker } from './checker.ts';
import { currentOf, Missing, type RawMetadata } from './reader.ts';

/**
 * I1: the table holds each acknowledged batch once, whole and unchanged; what is not in it waits in its ledger, was refused
 * visibly, or left with a ledger, a rollback or the table. Nothing else is in it.
 */
export class RowsChecker implements Checker {
  readonly #world: SimWorld;
  /** The table state that `present` flags are of. */
  #uuid = '';
  #counts: ReadonlyMap<number, number> = new Map();
  #snapshot: number | null = null;

  constructor(world: SimWorld) {
    this.#world = world;
  }

  async atRest(): Promise<void> {
    const { history, model } = this.#world;
    const raw = history.tip?.raw ?? null;
    const counts = raw === null ? new Map<number, number>() : await this.#count(raw);
    if (counts === null) return;
    const uuid = raw?.['table-uuid'] ?? '';
    const changed = uuid !== this.#uuid;
    const rolledBack = raw !== null && !changed && this.#rolledBack(raw);
    if (raw !== null && !changed && !rolledBack) this.#remove(raw, counts);
    for (const batch of model.batches) {
      const count = this.#countOf(batch.rows, counts, `batch ${batch.id}`);
      if (batch.branch !== null) {
        // Main is never moved to the branch.
        if (count > 0) this.#violate(`batch ${batch.id} is for the branch, and on main`);
        continue;
      }
      const lives = livesIn(batch, uuid);
      if (count > 0 && batch.isDamaged) this.#violate(`batch ${batch.id} is damaged and in the table`);
      if (count > this.#most(batch, lives)) this.#violate(`batch ${batch.id} is in the table ${count} times`);
      if (count > 0 && lives === 0) this.#violate(`batch ${batch.id} is in a table it was not sent to`);
      if (batch.present && count === 0) {
        if (batch.rows.every((row) => model.removed.has(row))) batch.excuse = 'deleted';
        else if (changed) batch.excuse = 'its table went';
        else if (rolledBack) batch.excuse = 'rolled back';
        else if (batch.excuse === null) this.#violate(`batch ${batch.id} left the table`);
      }
      batch.present = count > 0;
      this.#kept(batch, count, uuid);
    }
    for (const append of model.foreign) {
      const count = this.#countOf(append.rows, counts, 'append of the foreign writer');
      if (count > 1) this.#violate(`foreign rows ${append.rows[0]} are in the table ${count} times`);
      if (append.present && count === 0) {
        if (changed || rolledBack || append.rows.every((row) => model.removed.has(row))) append.excuse = 'gone';
        else this.#violate(`foreign rows ${append.rows[0]} left the table`);
      }
      append.present = count > 0;
      if (append.state === 'committed' && append.uuid === uuid && count === 0 && append.excuse === null) {
        this.#violate(`foreign rows ${append.rows[0]} were committed and are not in the table`);
      }
    }
    this.#uuid = uuid;
    this.#counts = counts;
    this.#snapshot = raw === null ? null : (currentOf(raw)?.['snapshot-id'] ?? null);
  }

  /** An epoch comes once, whatever becomes of ledgers, unless the table itself has forgotten the app. */
  #most({ app }: Batch, lives: number): number {
    return app === null ? Math.max(1, lives) : 1 + (this.#world.forgotten.get(app) ?? 0);
  }

  /** What was promised about a batch, held against the ledger's receipt and the table. */
  #kept(batch: Batch, count: number, uuid: string): void {
    if (batch.promise === null) return;
    const { history, objects } = this.#world;
    const { sequence, object: name } = batch.promise;
    const object = objects.find((other) => other.name === name);
    if (object === undefined) return;
    const receipt = object.ledger.receipt(sequence);
    const what = `batch ${batch.id} of ${name} (sequence ${sequence})`;
    if (receipt === null) {
      this.#violate(`${what} was accepted and nobody knows of it`);
      return;
    }
    const isHere = batch.promise.uuid === uuid;
    switch (receipt.state) {
      case 'buffered':
      case 'parked':
        return;
      case 'committed':
        if (isHere && count === 0 && batch.excuse === null)
          this.#violate(`${what} is called committed and is not there`);
        return;
      case 'refused':
        if (isHere && count > 0 && batch.app === null && livesIn(batch, uuid) === 1)
          this.#violate(`${what} is called refused and is there`);
        if (receipt.type.startsWith('table-') && !history.gone.has(batch.promise.uuid)) {
          this.#violate(`${what} was refused as ${receipt.type}, and its table is still there`);
        }
        if (!receipt.type.startsWith('table-') && batch.app === null) {
          this.#violate(`${what} was refused as ${receipt.type}, and nothing is wrong with it`);
        }
        return;
    }
  }

  /** Rows that left with their files: only by a commit that says so, and as many as it says. */
  #remove(raw: RawMetadata, counts: ReadonlyMap<number, number>): void {
    const gone = [...this.#counts.keys()].filter((row) => !counts.has(row));
    if (gone.length === 0) return;
    const rows = gone.reduce((sum, row) => sum + (this.#counts.get(row) ?? 0), 0);
    const summary = currentOf(raw)?.summary ?? {};
    const operation = summary['operation'];
    if (operation !== 'delete' && operation !== 'overwrite') return;
    if (Number(summary['deleted-records']) !== rows) {
      this.#violate(`${rows} rows left with a ${operation} that says ${summary['deleted-records']}`);
    }
    for (const row of gone) this.#world.model.removed.add(row);
  }

  /** How often the rows are there: each as often as the others, or a batch was torn. */
  #countOf(rows: readonly number[], counts: ReadonlyMap<number, number>, what: string): number {
    const { removed } = this.#world.model;
    const first = counts.get(rows.find((row) => !removed.has(row)) ?? rows[0]) ?? 0;
    for (const row of rows) {
      if (removed.has(row) && !counts.has(row)) continue;
      if ((counts.get(row) ?? 0) !== first) this.#violate(`${what} is torn: row ${row}`);
    }
    return first;
  }

  /** Main moved to a snapshot that is no descendant of where it was, and somebody meant it. */
  #rolledBack(raw: RawMetadata): boolean {
    return this.#snapshot !== null && this.#world.model.rollbacks.has(raw['table-uuid']) && this.#meant(raw);
  }

  #meant(raw: RawMetadata): boolean {
    const byId = new Map((raw.snapshots ?? []).map((snapshot) => [snapshot['snapshot-id'], snapshot]));
    for (let id = currentOf(raw)?.['snapshot-id']; id !== undefined; id = byId.get(id)?.['parent-snapshot-id']) {
      if (id === this.#snapshot) return false;
    }
    return true;
  }

  async #count(raw: RawMetadata): Promise<Map<number, number> | null> {
    const counts = new Map<number, number>();
    const snapshot = currentOf(raw);
    if (snapshot === null) return counts;
    const { reader } = this.#world.history;
    const schema = raw.schemas.find((known) => known['schema-id'] === raw['current-schema-id']);
    try {
      for (const file of reader.reached(snapshot).live) {
        for (const { v, device, time } of await reader.rows(file.path, schema?.fields ?? [])) {
          const expected = rowOf(v);
          if (device !== expected.device || time !== expected.time) this.#violate(`row ${v} is not what was sent`);
          const known = v > FOREIGN_FROM ? this.#world.model.foreignOf.has(v) : this.#world.model.batchOf.has(v);
          if (!known) this.#violate(`row ${v} was sent by nobody`);
          counts.set(v, (counts.get(v) ?? 0) + 1);
        }
      }
    } catch (error) {
      if (error instanceof Missing) return null; // I3 says so
      throw error;
    }
    return counts;
  }

  #violate(text: string): void {
    this.#world.violate('I1', text);
  }
}

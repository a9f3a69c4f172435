import { ERASE_KEYS_MAX } from '../core/base/limits.ts';
import type { DoomedState } from '../engine/ports.ts';

interface Row {
  position: number;
  notBeforeMs: number;
  count: number;
}

/** The ledger's queue of keys to be deleted. Every method that changes it runs inside the caller's transaction. */
export class LedgerDoomed {
  readonly #sql: SqlStorage;
  #rows: Row[] = [];

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.load();
  }

  load(): void {
    this.#rows = this.#sql
      .exec<DoomedRow>('SELECT position, not_before_ms, json_array_length(keys) AS count FROM doomed')
      .toArray()
      .map(({ position, not_before_ms, count }) => ({ position, notBeforeMs: not_before_ms, count }));
  }

  get state(): DoomedState {
    const keys = this.#rows.reduce((sum, row) => sum + row.count, 0);
    return { keys, dueMs: keys === 0 ? null : Math.min(...this.#rows.map((row) => row.notBeforeMs)) };
  }

  add(keys: readonly string[], notBeforeMs: number): void {
    let position = this.#rows.reduce((last, row) => Math.max(last, row.position), 0);
    for (let at = 0; at < keys.length; at += ERASE_KEYS_MAX) {
      position++;
      const part = keys.slice(at, at + ERASE_KEYS_MAX);
      this.#sql.exec(
        'INSERT INTO doomed (position, not_before_ms, keys) VALUES (?, ?, ?)',
        position,
        notBeforeMs,
        JSON.stringify(part),
      );
      this.#rows.push({ position, notBeforeMs, count: part.length });
    }
  }

  due(nowMs: number, most: number): string[] {
    const keys: string[] = [];
    for (const row of this.#inOrder()) {
      if (row.notBeforeMs > nowMs || keys.length >= most) break;
      keys.push(...this.#keysOf(row));
    }
    return keys.slice(0, most);
  }

  remove(keys: readonly string[]): void {
    const gone = new Set(keys);
    for (const row of this.#inOrder()) {
      if (gone.size === 0) break;
      const held = this.#keysOf(row);
      const rest = held.filter((key) => !gone.has(key));
      if (rest.length === held.length) continue;
      for (const key of held) gone.delete(key);
      if (rest.length === 0) this.#sql.exec('DELETE FROM doomed WHERE position = ?', row.position);
      else this.#sql.exec('UPDATE doomed SET keys = ? WHERE position = ?', JSON.stringify(rest), row.position);
      row.count = rest.length;
    }
    this.#rows = this.#rows.filter((row) => row.count > 0);
  }

  #inOrder(): Row[] {
    return [...this.#rows].sort((a, b) => a.notBeforeMs - b.notBeforeMs || a.position - b.position);
  }

  #keysOf(row: Row): string[] {
    const { keys } = this.#sql.exec<{ keys: string }>('SELECT keys FROM doomed WHERE position = ?', row.position).one();
    return JSON.parse(keys) as string[];
  }
}

type DoomedRow = { position: number; not_before_ms: number; count: number };

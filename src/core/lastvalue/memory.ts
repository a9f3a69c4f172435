import { INDEXES_KEPT_BYTES_MAX, INDEXES_KEPT_MAX } from '../base/index-limits.ts';
import type { Columns } from '../columns/columns.ts';
import { byteSizeOf } from '../columns/row-bytes.ts';

/**
 * Rows of the last indexes, by location, so that a commit on top of the one before reads nothing. A location never holds two
 * contents, so this is a cache and no state: what is decided with it is what would be decided without it.
 */
export class IndexMemory {
  /** The one used last is the last. */
  readonly #kept = new Map<string, { rows: Columns; bytes: number }>();

  get(location: string): Columns | null {
    const found = this.#kept.get(location);
    if (found === undefined) return null;
    this.#kept.delete(location);
    this.#kept.set(location, found);
    return found.rows;
  }

  put(location: string, rows: Columns): void {
    this.#kept.delete(location);
    this.#kept.set(location, { rows, bytes: byteSizeOf(rows) });
    let bytes = [...this.#kept.values()].reduce((sum, kept) => sum + kept.bytes, 0);
    for (const [oldest, kept] of this.#kept) {
      if (bytes <= INDEXES_KEPT_BYTES_MAX && this.#kept.size <= INDEXES_KEPT_MAX) break;
      this.#kept.delete(oldest);
      bytes -= kept.bytes;
    }
  }
}

import { unavailable } from '../core/base/errors.ts';
import { LIST_TABLES_MAX } from '../core/base/limits.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { IcebergSink } from '../core/commit/iceberg-sink.ts';
import type { Operation } from '../core/commit/operation.ts';
import { isName, type Lake, tablePlace } from '../core/iceberg/locations.ts';
import { currentSnapshot } from '../core/iceberg/snapshot.ts';
import { tableSettings } from '../core/table/properties.ts';
import { codecs } from '../engine/codecs.ts';
import { Loader } from '../engine/loader.ts';
import type { TablePlace } from '../engine/open-table.ts';
import type { Clock, Random } from '../engine/ports.ts';
import { runBounded } from '../engine/uploader.ts';
import { r2Store } from '../store/r2.ts';
import { type Store, StoreError } from '../store/store.ts';

/** A table as the listing shows it. */
export interface TableEntry {
  namespace: string;
  table: string;
  location: string;
  version: number;
  snapshot_id: string | null;
  total_records: string | null;
  updated_ms: number;
}

export interface TablePage {
  tables: TableEntry[];
  /** Folders that hold no table this service can read, with the reason. */
  unreadable: { namespace: string; table: string; reason: string }[];
  /** Where the next page begins; null at the end. */
  next: string | null;
}

/** Where a table is, or could be. */
interface TableFolder {
  namespace: string;
  table: string;
}

/** What of the lake is shown: a namespace that may hold such tables, and each table. */
export interface Visible {
  namespace(namespace: string): boolean;
  table(namespace: string, table: string): boolean;
}

const ALL: Visible = { namespace: () => true, table: () => true };

/** The tables of a bucket, found by listing: nothing but the objects themselves says which tables there are. */
export class LakeTables {
  readonly #store: Store;
  readonly #lake: Lake;
  readonly #ports: { store: Store; clock: Clock; random: Random };

  constructor(bucket: R2Bucket, lake: Lake, ports: { clock: Clock; random: Random }) {
    this.#store = r2Store(bucket);
    this.#lake = lake;
    this.#ports = { store: this.#store, ...ports };
  }

  /** Names of all visible tables behind `after` (`namespace/table`), in order, at most `most`. Other folders have no object. */
  names(after: string | null, most: number, visible: Visible = ALL): Promise<TableFolder[]> {
    return firstOf(this.#folders(after, visible), most, ({ namespace, table }) => isName(namespace) && isName(table));
  }

  async *#folders(after: string | null, visible: Visible): AsyncGenerator<TableFolder> {
    const root = this.#lake.prefix === '' ? '' : `${this.#lake.prefix}/`;
    for await (const namespace of this.#store.listFolders(root)) {
      // Folders come in the order of their keys, in which the slash counts.
      if (after !== null && `${namespace}/` < after.slice(0, after.indexOf('/') + 1)) continue;
      if (!visible.namespace(namespace)) continue;
      for await (const table of this.#store.listFolders(`${root}${namespace}/`)) {
        if (after !== null && `${namespace}/${table}/` <= `${after}/`) continue;
        if (visible.table(namespace, table)) yield { namespace, table };
      }
    }
  }

  /**
   * One page of live tables with what their newest version says. Dropped ones are left out.
   *
   * @throws unavailable `store-unavailable`
   */
  async page(after: string | null, limit: number, visible: Visible = ALL): Promise<TablePage> {
    const most = Math.min(limit, LIST_TABLES_MAX);
    const names = await firstOf(this.#folders(after, visible), most + 1).catch((error) => {
      throw unavailable('store-unavailable', 'the lake cannot be listed now', {}, error);
    });
    const shown = names.slice(0, most);
    const page: TablePage = { tables: [], unreadable: [], next: null };
    const entries = new Array<TableEntry | null>(shown.length).fill(null);
    await runBounded(
      shown.map(({ namespace, table }, index) => async () => {
        try {
          const base = await this.#load(namespace, table);
          if (base !== null && !tableSettings(base.metadata.properties).dropped) {
            entries[index] = entryOf(namespace, table, base);
          }
        } catch (error) {
          if (error instanceof StoreError) throw unavailable('store-unavailable', error.message, {}, error);
          const reason = error instanceof Error ? error.message : String(error);
          page.unreadable.push({ namespace, table, reason });
        }
      }),
    );
    page.tables = entries.filter((entry) => entry !== null);
    const last = shown[shown.length - 1];
    if (names.length > most && last !== undefined) page.next = `${last.namespace}/${last.table}`;
    return page;
  }

  /** Where a table of that name is, whether there is one or not. Checks both names. */
  place(namespace: string, table: string): TablePlace {
    return tablePlace(this.#lake, namespace, table);
  }

  async #load(namespace: string, table: string): Promise<IcebergBase | null> {
    const sink = new IcebergSink(this.place(namespace, table), codecs);
    return new Loader<IcebergBase, Operation>(this.#ports, sink).load();
  }
}

async function firstOf<T>(
  all: AsyncIterable<T>,
  most: number,
  isWanted: (one: T) => boolean = () => true,
): Promise<T[]> {
  const found: T[] = [];
  for await (const one of all) {
    if (isWanted(one)) found.push(one);
    if (found.length >= most) break;
  }
  return found;
}

function entryOf(namespace: string, table: string, base: IcebergBase): TableEntry {
  const snapshot = currentSnapshot(base.metadata);
  return {
    namespace,
    table,
    location: base.metadata.location,
    version: base.version,
    snapshot_id: snapshot === null ? null : snapshot['snapshot-id'].toString(),
    total_records: snapshot?.summary['total-records'] ?? null,
    updated_ms: base.metadata['last-updated-ms'],
  };
}

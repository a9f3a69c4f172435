import { invalid } from '../core/base/errors.ts';
import { own } from '../core/base/shape.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { refAt } from '../core/commit/plan-refs.ts';
import { MAIN } from '../core/iceberg/snapshot.ts';
import { checkWritable, tableSettings } from '../core/table/properties.ts';
import type { OpenTable, TablePlace } from './open-table.ts';

/**
 * The base of a table that is there and served, for whoever wants to read or write it.
 *
 * @throws invalid `unknown-table` when there is none or it was dropped, `not-attached` when the table was made by
 * somebody else and never attached, `table-newer` when a newer build or engine has written it
 */
export function liveTable(base: IcebergBase | null, place: TablePlace): IcebergBase {
  const name = place.location.split('/').slice(-2).join('.');
  if (base === null) throw invalid('unknown-table', `table does not exist: ${name}`);
  const settings = tableSettings(base.metadata.properties);
  if (settings.dropped) throw invalid('unknown-table', `table was dropped: ${name}`);
  if (!settings.served) throw invalid('not-attached', `table was made by another writer and is not attached: ${name}`);
  checkWritable(base.metadata.properties);
  return base;
}

/**
 * The table with a branch that takes rows. One that the base does not have may have been made since it was read: it is looked
 * for again before it is refused.
 *
 * @throws invalid `unknown-ref`; `bad-ref` for a tag; and see `liveTable`
 */
export async function liveWithBranch(base: IcebergBase, branch: string, table: OpenTable): Promise<IcebergBase> {
  if (branch === MAIN || own(base.metadata.refs, branch)?.type === 'branch') return base;
  const newest = liveTable(await table.load(), table.place);
  if (refAt(newest.metadata, branch).type === 'branch') return newest;
  throw invalid('bad-ref', `ref is a tag and takes no rows: ${branch}`);
}

import { invalid } from '../core/base/errors.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { checkWritable, tableSettings } from '../core/table/properties.ts';
import type { TablePlace } from './open-table.ts';

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

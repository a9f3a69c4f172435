import { invalid } from '../base/errors.ts';
import type { TableMetadata } from '../iceberg/types.ts';
import { checkWritable, tableSettings } from '../table/properties.ts';
import { currentOf } from './make-files.ts';

/**
 * Refuses a table that this service could not write rightly.
 *
 * @throws invalid `not-attachable` with the reason, `table-newer`
 */
export function checkAttachable(metadata: TableMetadata, location: string): void {
  const no = (why: string) => invalid('not-attachable', `table cannot be attached: ${why}`);
  if (metadata.location !== location) throw no(`its location is ${metadata.location}, not ${location}`);
  checkWritable(metadata.properties);
  const { schema } = currentOf(metadata);
  const settings = tableSettings(metadata.properties);
  if (settings.dropped) throw no('it was dropped');
  for (const key of ['write.metadata.path', 'write.data.path', 'write.object-storage.enabled']) {
    const value = metadata.properties[key];
    if (value !== undefined && value !== 'false') throw no(`property ${key} puts files elsewhere`);
  }
  const columns = [settings.timeColumn, settings.ingestTimeColumn, ...settings.seriesKey];
  for (const name of columns) {
    if (name !== null && !schema.fields.some((field) => field.name === name)) throw no(`column ${name} is missing`);
  }
  if (schema.fields.length === 0) throw no('it has no columns');
}

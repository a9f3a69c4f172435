import { textOf } from '../core/base/bytes.ts';
import { invalid } from '../core/base/errors.ts';
import { METADATA_FILES_LISTED_MAX } from '../core/base/limits.ts';
import type { TableMetadata } from '../core/iceberg/types.ts';
import type { Store } from '../store/store.ts';
import type { TablePlace } from './open-table.ts';

/**
 * Metadata of a table that a catalog's writer made (`00003-<uuid>.metadata.json`): the file named, else the one of the
 * highest number. Null when there is none.
 *
 * @throws invalid `unknown-table` when the named file is missing; `ambiguous-metadata` when two files share the highest
 * number, since only the catalog knows which one was committed
 */
export async function foreignMetadata(
  store: Store,
  place: TablePlace,
  named: string | null,
  parse: (text: string) => TableMetadata,
): Promise<{ metadata: TableMetadata; location: string } | null> {
  const folder = `${place.prefix}/metadata/`;
  const location = named ?? (await highest(store, place, folder));
  if (location === null) return null;
  if (!location.startsWith(`${place.location}/metadata/`)) {
    throw invalid('not-attachable', `metadata_location is not inside the table's folder: ${location}`);
  }
  const stored = await store.get(place.prefix + location.slice(place.location.length));
  if (stored === null) throw invalid('unknown-table', `metadata file is missing: ${location}`);
  return { metadata: parse(textOf(stored.bytes)), location };
}

async function highest(store: Store, place: TablePlace, folder: string): Promise<string | null> {
  let best: { number: number; names: string[] } | null = null;
  let seen = 0;
  for await (const object of store.list(folder)) {
    if (++seen > METADATA_FILES_LISTED_MAX) break;
    const name = object.key.slice(folder.length);
    const match = /^([0-9]{1,9})-[0-9a-fA-F-]{36}\.metadata\.json$/.exec(name);
    if (match === null) continue;
    const number = Number(match[1]);
    if (best === null || number > best.number) best = { number, names: [name] };
    else if (number === best.number) best.names.push(name);
  }
  if (best === null) return null;
  if (best.names.length > 1) {
    throw invalid(
      'ambiguous-metadata',
      `several metadata files have the highest number, name one: ${best.names.join(' ')}`,
    );
  }
  return `${place.location}/metadata/${best.names[0]}`;
}

import { readAvro, writeAvro } from '../../oracle/avro.ts';
import type { Objects } from '../../oracle/mutate.ts';

/** Where a table is: its folder's key and location, neither with a slash at the end. */
export interface Place {
  key: string;
  location: string;
}

/**
 * The objects of a table as its writer would have made them elsewhere: keys, and every location in metadata, manifest
 * lists and manifests. Data files stay as they are; lengths of manifests follow.
 */
export function relocate(objects: Objects, from: Place, to: Place): Objects {
  const moved: Objects = new Map();
  const lengths = new Map<string, bigint>();
  const isAt = (text: string) => text === from.location || text.startsWith(`${from.location}/`);
  const change = (value: unknown): unknown => {
    if (typeof value === 'string') return isAt(value) ? to.location + value.slice(from.location.length) : value;
    if (Array.isArray(value)) return value.map(change);
    if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
    return Object.fromEntries(Object.entries(value).map(([name, held]) => [name, change(held)]));
  };
  const put = (key: string, bytes: Uint8Array): void => {
    moved.set(to.key + key.slice(from.key.length), bytes);
  };
  const lists: [key: string, bytes: Uint8Array][] = [];
  for (const [key, bytes] of objects) {
    if (key.endsWith('.metadata.json')) {
      put(
        key,
        new TextEncoder().encode(new TextDecoder().decode(bytes).replaceAll(`"${from.location}`, `"${to.location}`)),
      );
    } else if (!key.endsWith('.avro')) put(key, bytes);
    else if (/\/snap-[^/]*$/.test(key)) lists.push([key, bytes]);
    else {
      const file = readAvro(bytes);
      const written = writeAvro({ ...file, records: change(file.records) as typeof file.records });
      lengths.set(to.location + key.slice(from.key.length), BigInt(written.length));
      put(key, written);
    }
  }
  for (const [key, bytes] of lists) {
    const file = readAvro(bytes);
    const records = change(file.records) as typeof file.records;
    for (const row of records)
      row['manifest_length'] = lengths.get(String(row['manifest_path'])) ?? row['manifest_length'];
    put(key, writeAvro({ ...file, records }));
  }
  return moved;
}

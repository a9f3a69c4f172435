import { type AvroFile, readAvro, writeAvro } from './avro.ts';
import { isObject, type JsonObject, parseJson, printJson } from './json.ts';
import { readThrift, type ThriftStruct, writeThrift } from './thrift.ts';

/** Objects of a bucket, changed in place by the functions below. Each plants one fault and keeps the rest consistent. */
export type Objects = Map<string, Uint8Array>;

const encoder = new TextEncoder();

function known(objects: Objects, key: string): Uint8Array {
  const bytes = objects.get(key);
  if (bytes === undefined) throw new Error(`no object ${key}`);
  return bytes;
}

export function metadataKey(table: string, version: number): string {
  return `${table}/metadata/v${version}.metadata.json`;
}

/** The newest version of a table. */
export function newestVersion(objects: Objects, table: string): number {
  const numbers = [...objects.keys()].flatMap((key) => {
    const match = /^([^/]+)\/metadata\/v([0-9]+)\.metadata\.json$/.exec(key);
    return match?.[1] === table ? [Number(match[2])] : [];
  });
  return Math.max(...numbers);
}

/** Edits one metadata file, the newest by default. */
export function editMetadata(
  objects: Objects,
  table: string,
  edit: (metadata: JsonObject) => void,
  version = newestVersion(objects, table),
): void {
  const key = metadataKey(table, version);
  const metadata = parseJson(known(objects, key));
  if (!isObject(metadata)) throw new Error(`${key} is no object`);
  edit(metadata);
  objects.set(key, encoder.encode(printJson(metadata)));
}

/** The snapshots of the newest version, oldest first. */
export function snapshotsOf(metadata: JsonObject): JsonObject[] {
  return (metadata.snapshots as JsonObject[]).sort(
    (a, b) => Number(a['sequence-number']) - Number(b['sequence-number']),
  );
}

function keyOf(table: string, location: unknown): string {
  const text = String(location);
  const at = text.lastIndexOf('/metadata/');
  return table + text.slice(at);
}

/** Keys of the manifest lists of the retained snapshots, oldest first. */
export function listKeys(objects: Objects, table: string): string[] {
  const metadata = parseJson(known(objects, metadataKey(table, newestVersion(objects, table)))) as JsonObject;
  return snapshotsOf(metadata).map((snapshot) => keyOf(table, snapshot['manifest-list']));
}

export function editAvro(objects: Objects, key: string, edit: (file: AvroFile) => void): void {
  const file = readAvro(known(objects, key));
  edit(file);
  objects.set(key, writeAvro(file));
}

/** Edits the manifest list of a retained snapshot, counted from the oldest; negative from the newest. */
export function editList(objects: Objects, table: string, edit: (list: AvroFile) => void, snapshot = -1): void {
  editAvro(objects, listKeys(objects, table).at(snapshot) as string, edit);
}

/** Keys of the manifests of a snapshot in the order of its list. */
export function manifestKeys(objects: Objects, table: string, snapshot = -1): string[] {
  const list = readAvro(known(objects, listKeys(objects, table).at(snapshot) as string));
  return list.records.map((row) => keyOf(table, row.manifest_path));
}

/** Edits a manifest, the first of the newest list by default, and its length wherever a list names it. */
export function editManifest(
  objects: Objects,
  table: string,
  edit: (manifest: AvroFile) => void,
  key = manifestKeys(objects, table)[0],
): void {
  editAvro(objects, key, edit);
  const length = BigInt(known(objects, key).length);
  for (const list of listKeys(objects, table))
    editAvro(objects, list, (file) => {
      for (const row of file.records) if (keyOf(table, row.manifest_path) === key) row.manifest_length = length;
    });
}

/** The data file record of an entry, the first by default. */
export function dataFileOf(manifest: AvroFile, entry = 0): Record<string, unknown> {
  return manifest.records[entry].data_file as Record<string, unknown>;
}

/** Edits a Thrift struct at an offset; it must keep its length. */
export function editThrift(objects: Objects, key: string, offset: number, edit: (value: ThriftStruct) => void): void {
  const bytes = Uint8Array.from(known(objects, key));
  const { value, end } = readThrift(bytes, offset);
  edit(value);
  const written = writeThrift(value);
  if (written.length !== end - offset)
    throw new Error(`struct at ${offset} changes from ${end - offset} to ${written.length}`);
  bytes.set(written, offset);
  objects.set(key, bytes);
}

/** Edits a Parquet footer; it must keep its length. */
export function editFooter(objects: Objects, key: string, edit: (footer: ThriftStruct) => void): void {
  const bytes = known(objects, key);
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(bytes.length - 8, true);
  editThrift(objects, key, bytes.length - 8 - length, edit);
}

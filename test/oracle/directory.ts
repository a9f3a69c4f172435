import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Bucket, mapBucket } from './bucket.ts';

function walk(folder: string, prefix: string, visit: (key: string, path: string) => void): void {
  for (const name of readdirSync(folder).sort()) {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) walk(path, `${prefix}${name}/`, visit);
    else visit(prefix + name, path);
  }
}

/** Every file below `folder` as an object; the key is the path below it with `prefix` in front. */
export function loadDirectory(folder: string, prefix = ''): Map<string, Uint8Array> {
  const objects = new Map<string, Uint8Array>();
  walk(folder, prefix, (key, path) => objects.set(key, new Uint8Array(readFileSync(path))));
  return objects;
}

/** A bucket over a local folder, read afresh on each call. */
export function directoryBucket(folder: string): Bucket {
  return {
    get: async (key) => loadDirectory(folder).get(key) ?? null,
    list: async (prefix) => mapBucket(loadDirectory(folder)).list(prefix),
  };
}

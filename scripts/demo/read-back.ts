import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { icebergManifests, icebergMetadata } from 'icebird';

/**
 * Reads a table without a line of this project: icebird follows version hint, metadata, manifest list and manifests to
 * the live data files, through the S3 gateway; DuckDB's Parquet reader takes it from there. (DuckDB's own Iceberg
 * extension is not among the npm packages, and this must work offline.)
 */

export interface LiveFile {
  /** As the manifest names it. */
  location: string;
  rows: number;
  bytes: number;
  /** The copy for DuckDB. */
  path: string;
}

export interface ReadBack {
  location: string;
  snapshots: number;
  files: LiveFile[];
}

const DOWNLOADS_AT_ONCE = 6;

/** The current snapshot's data files, downloaded into `folder`. */
export async function readBack(
  bucket: { s3: string; bucketName: string },
  table: string,
  folder: string,
): Promise<ReadBack> {
  const root = `${bucket.s3}/${bucket.bucketName}/`;
  const addressOf = (location: string): string => {
    const prefix = `s3://${bucket.bucketName}/`;
    if (!location.startsWith(prefix)) throw new Error(`location is outside the bucket: ${location}`);
    return root + encodeURI(location.slice(prefix.length));
  };
  const { metadata, manifests } = await redirected(`https://${bucket.bucketName}.s3.amazonaws.com/`, root, async () => {
    const found = await icebergMetadata({ tableUrl: `${root}warehouse/${table}` });
    return { metadata: found, manifests: await icebergManifests(found) };
  });
  mkdirSync(folder, { recursive: true });
  const files = manifests
    .flatMap(({ entries }) => entries)
    // 2: deleted by a later snapshot.
    .filter(({ status }) => status !== 2)
    .map(({ data_file: file }, i): LiveFile => {
      if ((file.content ?? 0) !== 0) throw new Error(`delete file where none is written: ${file.file_path}`);
      return {
        location: file.file_path,
        rows: Number(file.record_count),
        bytes: Number(file.file_size_in_bytes),
        path: join(folder, `${i}.parquet`),
      };
    });
  const queue = files.values();
  const downloader = async (): Promise<void> => {
    for (const file of queue) {
      const response = await fetch(addressOf(file.location));
      if (!response.ok) throw new Error(`data file answered ${response.status}: ${file.location}`);
      writeFileSync(file.path, new Uint8Array(await response.arrayBuffer()));
    }
  };
  await Promise.all(Array.from({ length: DOWNLOADS_AT_ONCE }, downloader));
  return { location: metadata.location, snapshots: metadata.snapshots?.length ?? 0, files };
}

/** icebird turns `s3://` into the bucket's public address; while `run` is under way, that is the gateway's. */
async function redirected<T>(from: string, to: string, run: () => Promise<T>): Promise<T> {
  const original = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    if (typeof input !== 'string') return original(input, init);
    const url = input.startsWith(from) ? to + input.slice(from.length) : input;
    const response = await original(url, init);
    // Not all of its requests look at the status.
    if (!response.ok) throw new Error(`${url} answered ${response.status}`);
    return response;
  };
  try {
    return await run();
  } finally {
    globalThis.fetch = original;
  }
}

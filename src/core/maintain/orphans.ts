import { INTENT_SKEW_MS } from '../base/limits.ts';

/** An object of the table's folder, as a listing tells of it. */
export interface ListedObject {
  key: string;
  size: number;
  /** By the store's clock. */
  uploadedMs: number;
}

/** What of a listing a sweep may take for orphans, if the table does not reach it; and what it leaves anyway. */
export interface Candidates {
  objects: Map<string, number>;
  /** Uploaded too lately: somebody may be about to commit them. */
  young: number;
  /** No file of a kind that commits leave behind: versions, pointer, head, what others keep here. */
  other: number;
}

export function noCandidates(): Candidates {
  return { objects: new Map(), young: 0, other: 0 };
}

/**
 * Objects uploaded before this time may be orphans: the grace period is over, and they are older than the commit that is open,
 * however long its outcome stays unknown.
 */
export function sweepBeforeMs({
  nowMs,
  graceMs,
  intentMs,
}: {
  nowMs: number;
  graceMs: number;
  intentMs: number | null;
}): number {
  const graceOver = nowMs - graceMs;
  return intentMs === null ? graceOver : Math.min(graceOver, intentMs - INTENT_SKEW_MS);
}

/** Takes one object in. `queued`: keys that wait for their deletion already, those of a compaction under way among them. */
export function consider(
  candidates: Candidates,
  { key, size, uploadedMs }: ListedObject,
  { prefix, beforeMs, queued }: { prefix: string; beforeMs: number; queued: ReadonlySet<string> },
): void {
  if (!isCommitFile(prefix, key) || queued.has(key)) candidates.other++;
  else if (uploadedMs >= beforeMs) candidates.young++;
  else candidates.objects.set(key, size);
}

/**
 * Files that commits write before their version, and so may leave behind: data, manifests and their lists, last-value indexes.
 * Metadata files are none: versions have an order of their own in which they go, and those of catalogs are not ours.
 */
function isCommitFile(prefix: string, key: string): boolean {
  const data = `${prefix}/data/`;
  const metadata = `${prefix}/metadata/`;
  if (key.startsWith(data)) return /\.(parquet|orc|avro)$/.test(key);
  if (!key.startsWith(metadata)) return false;
  return /^([^/]+\.avro|lvi-[^/]+\.parquet)$/.test(key.slice(metadata.length));
}

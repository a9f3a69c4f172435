import { MANIFEST_MERGE_BYTES_MAX, MANIFEST_MERGE_FILES_MAX, MANIFESTS_PER_TIER_MAX } from '../base/limits.ts';
import type { ManifestFile } from '../iceberg/types.ts';

/** Each tier holds manifests of up to four times the files of the one below. */
const TIER_FACTOR = 4;

/** Tier of a manifest by its live files: 1 to 3 are tier 0, 4 to 15 tier 1, 16 to 63 tier 2. */
export function tierOf(manifest: ManifestFile): number {
  return tierOfFiles(liveFiles(manifest));
}

/** Files that a manifest keeps in the table. */
export function liveFiles(manifest: ManifestFile): number {
  return manifest.addedFilesCount + manifest.existingFilesCount;
}

/**
 * Which manifests of the parent one commit merges: per partition spec, at most one group, which becomes one manifest.
 *
 * A tier that would hold more than `MANIFESTS_PER_TIER_MAX` with the commit's own manifest is merged upwards, and on with
 * the tier it lands in when that overflows too. So an entry is rewritten once a tier, and a plan reads few manifests
 * however many commits made them. The commit's own manifest is never merged: it is made once, for any base. Manifests of
 * delete files and large ones stay as they are. What one commit merges is bounded in bytes: a tier that does not fit is merged in part, the
 * oldest first, and the tiers above it another time.
 */
export function manifestsToMerge(carried: readonly ManifestFile[], own: ManifestFile): ManifestFile[][] {
  const groups: ManifestFile[][] = [];
  for (const specId of new Set(carried.map((manifest) => manifest.partitionSpecId))) {
    const candidates = carried.filter((manifest) => manifest.partitionSpecId === specId && isMergeable(manifest));
    const group = overflowing(candidates, own.partitionSpecId === specId ? own : null);
    if (group.length > 1) groups.push(group);
  }
  return groups;
}

/** A manifest of more than half of what a commit merges has nothing of its size to be merged with. */
function isMergeable(manifest: ManifestFile): boolean {
  const { bytes, files } = sizeOf([manifest]);
  const isSmall = bytes <= MANIFEST_MERGE_BYTES_MAX / 2 && files <= MANIFEST_MERGE_FILES_MAX / 2;
  return manifest.content === 0 && files > 0 && isSmall;
}

function overflowing(candidates: readonly ManifestFile[], own: ManifestFile | null): ManifestFile[] {
  const merged: ManifestFile[] = [];
  let files = 0;
  const top = Math.max(0, ...candidates.map(tierOf));
  for (let tier = 0; tier <= top; tier++) {
    const inTier = candidates.filter((manifest) => tierOf(manifest) === tier);
    const ownHere = own !== null && tierOf(own) === tier ? 1 : 0;
    const landsHere = merged.length > 0 && tierOfFiles(files) === tier ? 1 : 0;
    if (inTier.length + ownHere + landsHere <= MANIFESTS_PER_TIER_MAX) continue;
    const fitting = fittingOf(inTier, merged);
    merged.push(...fitting);
    if (fitting.length < inTier.length) break;
    files = merged.reduce((sum, manifest) => sum + liveFiles(manifest), 0);
  }
  return merged;
}

/** As many of the oldest as fit beside what is merged already; lists have the newest first. */
function fittingOf(inTier: readonly ManifestFile[], merged: readonly ManifestFile[]): ManifestFile[] {
  let { bytes, files } = sizeOf(merged);
  let from = inTier.length;
  while (from > 0) {
    const next = sizeOf([inTier[from - 1]]);
    bytes += next.bytes;
    files += next.files;
    if (bytes > MANIFEST_MERGE_BYTES_MAX || files > MANIFEST_MERGE_FILES_MAX) break;
    from--;
  }
  return inTier.slice(from);
}

function sizeOf(manifests: readonly ManifestFile[]): { bytes: number; files: number } {
  return {
    bytes: manifests.reduce((sum, { manifestLength }) => sum + Number(manifestLength), 0),
    files: manifests.reduce((sum, manifest) => sum + liveFiles(manifest), 0),
  };
}

function tierOfFiles(files: number): number {
  let tier = 0;
  for (let rest = files; rest >= TIER_FACTOR; rest = Math.floor(rest / TIER_FACTOR)) tier++;
  return tier;
}

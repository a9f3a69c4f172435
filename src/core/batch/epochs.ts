import { corrupt, rejected } from '../base/errors.ts';
import { EPOCHS_BYTES_MAX } from '../base/limits.ts';
import { own } from '../base/shape.ts';
import { ancestors, MAIN, snapshotById } from '../iceberg/snapshot.ts';
import { SUMMARY_KEYS } from '../iceberg/summary.ts';
import type { Snapshot, TableMetadata } from '../iceberg/types.ts';

/**
 * Progress of producers: app id → highest committed epoch (its watermark). The map of a table state is complete: every
 * commit of ours carries it on. It is read along the ancestry, so that a rollback takes progress back with the rows.
 */
export type Epochs = ReadonlyMap<string, bigint>;

/** Table property that mirrors main's map, for when expiry or foreign commits cut the carrying ancestor off. */
export const EPOCHS_MIRROR_KEY = 'sluice.epochs-main';

/**
 * The app under which a ledger commits its own frames; the epoch is a frame's sequence number. Each branch has its own:
 * else a frame that went to a branch would, once main moves forward to it, cover earlier ones that still wait for main.
 */
export function ownApp(ledgerId: string, branch: string = MAIN): string {
  return branch === MAIN ? `sluice/${ledgerId}` : `sluice/${ledgerId}/${branch}`;
}

/** Compact JSON with sorted apps; epochs are decimal text, as they are 64-bit. */
export function serializeEpochs(epochs: Epochs): string {
  const text = textOf(epochs);
  if (text.length > EPOCHS_BYTES_MAX) {
    throw rejected('too-many-apps', `progress map is full: bytes=${text.length} most=${EPOCHS_BYTES_MAX}`);
  }
  return text;
}

/** False for a map that `serializeEpochs` refuses. */
export function epochsFit(epochs: Epochs): boolean {
  return textOf(epochs).length <= EPOCHS_BYTES_MAX;
}

function textOf(epochs: Epochs): string {
  const apps = [...epochs.keys()].sort();
  return JSON.stringify(Object.fromEntries(apps.map((app) => [app, (epochs.get(app) ?? 0n).toString()])));
}

/**
 * The highest number that a ledger has given and that the table knows of, on main or on a branch; null: none. Numbers of
 * all branches come from one count.
 */
export function ownWatermark(metadata: TableMetadata, ledgerId: string): bigint | null {
  const branches = Object.keys(metadata.refs).filter((name) => metadata.refs[name].type === 'branch');
  let highest: bigint | null = null;
  for (const branch of new Set([MAIN, ...branches])) {
    for (const [app, epoch] of readEpochs(metadata, branch)) {
      const isOwn = app === ownApp(ledgerId) || app.startsWith(`${ownApp(ledgerId)}/`);
      if (isOwn && (highest === null || epoch > highest)) highest = epoch;
    }
  }
  return highest;
}

/** @throws corrupt `epochs-corrupt` */
export function parseEpochs(text: string): Epochs {
  const broken = (cause?: unknown) =>
    corrupt('epochs-corrupt', `progress map cannot be read: ${text.slice(0, 100)}`, {}, cause);
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch (error) {
    throw broken(error);
  }
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) throw broken();
  const epochs = new Map<string, bigint>();
  for (const [app, epoch] of Object.entries(raw)) {
    if (typeof epoch !== 'string' || !/^[0-9]{1,19}$/.test(epoch)) throw broken();
    epochs.set(app, BigInt(epoch));
  }
  return epochs;
}

/**
 * The progress that a table state records for a branch: of the nearest ancestor that carries it; else, for `main`, the
 * mirror, unless that is of a later state than the current snapshot (a rollback went past it); else nothing.
 */
export function readEpochs(metadata: TableMetadata, branch: string = MAIN): Epochs {
  const current = branch === MAIN ? metadata['current-snapshot-id'] : own(metadata.refs, branch)?.['snapshot-id'];
  if (current === undefined) return new Map();
  const line: Snapshot[] = [];
  for (const snapshot of ancestors(metadata, current)) {
    line.push(snapshot);
    const carried = snapshot.summary[SUMMARY_KEYS.epochs];
    if (carried !== undefined) return parseEpochs(carried);
  }
  if (branch !== MAIN || line.length === 0) return new Map();
  const mirror = parseMirror(metadata.properties[EPOCHS_MIRROR_KEY]);
  if (mirror === null || mirror.sequenceNumber > line[0]['sequence-number']) return new Map();
  return isAside(metadata, line, mirror) ? new Map() : mirror.epochs;
}

/**
 * The mirrored snapshot is retained and main went another way: a rollback put it aside, whatever another writer has put on
 * top since. Not where expiry cut main's line above it, since it may have stood there: an engine expires by timestamps, and
 * with clocks that differ a snapshot of ours outlives those that came after it.
 */
function isAside(
  metadata: TableMetadata,
  line: readonly Snapshot[],
  mirror: { snapshotId: bigint; sequenceNumber: bigint },
): boolean {
  if (snapshotById(metadata, mirror.snapshotId) === null) return false;
  if (line.some((snapshot) => snapshot['snapshot-id'] === mirror.snapshotId)) return false;
  const oldest = line[line.length - 1];
  // A line that leads on below has room for it between the oldest and its number, unless it begins there.
  const leadsOn = oldest['parent-snapshot-id'] !== undefined;
  return !leadsOn || oldest['sequence-number'] <= mirror.sequenceNumber + 1n;
}

/** Value of the mirror property for the map that snapshot `snapshotId` carries. */
export function serializeMirror(snapshotId: bigint, sequenceNumber: bigint, epochs: Epochs): string {
  return `${snapshotId} ${sequenceNumber} ${serializeEpochs(epochs)}`;
}

function parseMirror(text: string | undefined) {
  const match = text === undefined ? null : /^([0-9]{1,19}) ([0-9]{1,19}) (\{.*\})$/.exec(text);
  if (match === null) return null;
  return { snapshotId: BigInt(match[1]), sequenceNumber: BigInt(match[2]), epochs: parseEpochs(match[3]) };
}

import { parseDuration } from '../base/duration.ts';
import { own } from '../base/shape.ts';

/** How long snapshots and refs of a table are kept, where a ref does not say it itself. Times in milliseconds. */
export interface RetentionPolicy {
  /** Snapshots of a branch younger than this stay; `Infinity`: all. */
  snapshotAgeMs: number;
  /** So many newest snapshots of a branch stay whatever their age. At least 1. */
  snapshotsMin: number;
  /** Snapshots of a branch beyond so many go even if young; `Infinity`: no such bound. At least `snapshotsMin`. */
  snapshotsMax: number;
  /** Refs whose snapshot is older go, but for main; `Infinity`: none. */
  refAgeMs: number;
  /** Nothing expires before this time. */
  keepUntilMs: number;
}

/** What the Timelake engine assumes where a table of its format does not say (contract, section 1.3). */
const ENGINE = { ageMs: 3_600_000, min: 5, max: 100 };
/** What Iceberg assumes (spec: snapshot retention policy; the reference writer's defaults). */
const ICEBERG = { ageMs: 5 * 24 * 3_600_000, min: 1, max: Number.POSITIVE_INFINITY };

/**
 * The policy in a table's properties: the engine's keys, then Iceberg's `history.expire.*`, then the defaults of the one
 * whose table it is. A value that cannot be read counts as absent.
 */
export function retentionPolicy(properties: Readonly<Record<string, string>>): RetentionPolicy {
  const defaults = own(properties, 'timelake.format-version') === undefined ? ICEBERG : ENGINE;
  const count = (key: string) => wholeNumber(own(properties, key));
  const snapshotsMin = Math.max(
    1,
    count('timelake.min-snapshots') ?? count('history.expire.min-snapshots-to-keep') ?? defaults.min,
  );
  return {
    snapshotAgeMs:
      durationMs(own(properties, 'timelake.snapshot-retention')) ??
      count('history.expire.max-snapshot-age-ms') ??
      defaults.ageMs,
    snapshotsMin,
    snapshotsMax: Math.max(snapshotsMin, count('timelake.max-snapshots') ?? defaults.max),
    refAgeMs: count('history.expire.max-ref-age-ms') ?? Number.POSITIVE_INFINITY,
    keepUntilMs: count('timelake.keep-snapshots-until') ?? 0,
  };
}

/** Whether nothing of the table may be deleted: its files may belong to other tables too. */
export function isGcDisabled(properties: Readonly<Record<string, string>>): boolean {
  return isOff(properties, 'gc.enabled');
}

/**
 * Whether snapshots of the table are to expire without anybody asking: it says itself how long or how many it keeps, and does
 * not say that nothing of it may go or that nobody is to maintain it. The defaults of engines are for engines to apply.
 */
export function expiresByItself(properties: Readonly<Record<string, string>>): boolean {
  const says = ['timelake.snapshot-retention', 'timelake.max-snapshots', 'history.expire.max-snapshot-age-ms'];
  return (
    !isGcDisabled(properties) &&
    !isOff(properties, 'timelake.auto-maintain') &&
    says.some((key) => own(properties, key) !== undefined)
  );
}

function isOff(properties: Readonly<Record<string, string>>, key: string): boolean {
  return own(properties, key)?.trim().toLowerCase() === 'false';
}

function wholeNumber(text: string | undefined): number | null {
  if (text === undefined || !/^[0-9]{1,19}$/.test(text.trim())) return null;
  // "for ever" is the largest 64-bit number in some writers; what rounds stays far in the future
  return Number(text);
}

function durationMs(text: string | undefined): number | null {
  const seconds = text === undefined ? null : parseDuration(text.trim());
  return seconds === null ? null : seconds * 1000;
}

import { formatDuration, parseDuration } from '../base/duration.ts';
import { invalid } from '../base/errors.ts';
import { INDEX_ROWS_MAX, LAST_VALUE_SERIES_DEFAULT } from '../base/index-limits.ts';
import {
  FLUSH_BYTES_DEFAULT,
  FLUSH_INTERVAL_DEFAULT_MS,
  FLUSH_INTERVAL_MIN_MS,
  FLUSH_ROWS_MAX,
  PROPERTIES_MAX,
  PROPERTY_BYTES_MAX,
  SWEEP_GRACE_DEFAULT_MS,
  SWEEP_GRACE_MIN_MS,
  SWEEP_INTERVAL_MIN_MS,
} from '../base/limits.ts';
import { checkedProperties } from '../iceberg/properties.ts';
import { fieldByName } from '../iceberg/schema.ts';
import type { Schema } from '../iceberg/types.ts';

/**
 * Table properties as this service reads and checks them. A bad value of a `timelake.*` key makes the whole table
 * unreadable for the engine, and one unknown key makes it refuse changes; so both are refused before they are written
 * (docs/timelake-contract.md, section 1). On reading, a bad value of ours falls back to the default instead: a table
 * is never bricked by a property.
 */

/** Reads a value into its normal form; null for a bad one. */
type Read = (value: string) => string | null;
/** `form`: what a value looks like, for whoever gave a bad one. */
type Check = Read & { form: string };

const checkOf = (form: string, read: Read): Check => Object.assign(read, { form });

const count = checkOf('a whole number above 0', (value) =>
  /^[0-9]{1,15}$/.test(value) && Number(value) > 0 ? String(Number(value)) : null,
);
const flag = checkOf('true or false', (value) => (/^(true|false)$/i.test(value) ? value.toLowerCase() : null));
const millis = checkOf('milliseconds since 1970', (value) => (/^[0-9]{1,15}$/.test(value) ? value : null));
const duration = checkOf('a duration such as 90d', (value) => {
  const seconds = parseDuration(value);
  return seconds === null ? null : formatDuration(seconds);
});
const durationOrOff = checkOf('a duration such as 1h, or off', (value) =>
  value.toLowerCase() === 'off' ? 'off' : duration(value),
);
const oneOf = (...words: string[]): Check =>
  checkOf(`one of ${words.join(', ')}`, (value) => (words.includes(value.toLowerCase()) ? value.toLowerCase() : null));
const flushInterval = checkOf('a duration from 1s to 1h', (value) => {
  const seconds = parseDuration(value);
  return seconds === null || seconds * 1000 < FLUSH_INTERVAL_MIN_MS || seconds > 3600 ? null : formatDuration(seconds);
});
const sweepGrace = checkOf('a duration of at least 1d', (value) => {
  const seconds = parseDuration(value);
  return seconds === null || seconds * 1000 < SWEEP_GRACE_MIN_MS ? null : formatDuration(seconds);
});
const sweepInterval = checkOf('a duration of at least 1d, or off', (value) => {
  if (value.toLowerCase() === 'off') return 'off';
  const seconds = parseDuration(value);
  return seconds === null || seconds * 1000 < SWEEP_INTERVAL_MIN_MS ? null : formatDuration(seconds);
});
const flushRows = checkOf(`a whole number from 1 to ${FLUSH_ROWS_MAX}`, (value) =>
  count(value) !== null && Number(value) <= FLUSH_ROWS_MAX ? String(Number(value)) : null,
);
const flushBytes = checkOf(`a whole number from 1 to ${FLUSH_BYTES_DEFAULT}`, (value) =>
  count(value) !== null && Number(value) <= FLUSH_BYTES_DEFAULT ? String(Number(value)) : null,
);
const seriesMax = checkOf(`a whole number from 0 to ${INDEX_ROWS_MAX}`, (value) =>
  /^[0-9]{1,15}$/.test(value) && Number(value) <= INDEX_ROWS_MAX ? String(Number(value)) : null,
);

/** Settings a definition may carry, canonical key → check that also normalises. What creation fixes is not here. */
export const SETTINGS: ReadonlyMap<string, { check: Check; meaning: string }> = new Map([
  ['timelake.retention', { check: duration, meaning: 'drop partitions wholly older than this' }],
  ['timelake.auto-maintain', { check: flag, meaning: 'maintain after appends' }],
  ['timelake.compact-min-files', { check: count, meaning: 'small files of one tier before they are merged' }],
  ['timelake.compact-cold-after', { check: durationOrOff, meaning: 'rewrite a partition once data moved on this far' }],
  ['timelake.target-file-size-bytes', { check: count, meaning: 'size at which data files roll over' }],
  ['timelake.row-group-rows', { check: count, meaning: 'rows of a row group in compacted files' }],
  ['timelake.data-page-rows', { check: count, meaning: 'rows of a data page in files of the engine' }],
  ['timelake.snapshot-retention', { check: duration, meaning: 'snapshots younger than this stay' }],
  ['timelake.min-snapshots', { check: count, meaning: 'newest snapshots that stay whatever their age' }],
  ['timelake.max-snapshots', { check: count, meaning: 'snapshots beyond this many go even if young' }],
  ['timelake.keep-snapshots-until', { check: millis, meaning: 'no snapshot expires before this time, ms since 1970' }],
  ['timelake.head-format', { check: oneOf('arrow', 'json', 'none'), meaning: 'codec of the engine’s head object' }],
  ['timelake.head-inline-bytes', { check: count, meaning: 'bytes inlined in the head object' }],
  ['timelake.read-dedup', { check: flag, meaning: 'the engine’s readers hide older copies' }],
  ['timelake.read-dedup-strategy', { check: oneOf('merge', 'keys-first'), meaning: 'how they do it' }],
  ['timelake.filter-pushdown', { check: oneOf('auto', 'true', 'false'), meaning: 'the engine’s reader' }],
  ['timelake.in-list-pruning', { check: flag, meaning: 'the engine’s reader' }],
  ['timelake.newest-first', { check: flag, meaning: 'the engine’s reader' }],
  ['timelake.time-weighted-mean', { check: oneOf('auto', 'segments', 'merge'), meaning: 'the engine’s reader' }],
  ['timelake.version-check-interval', { check: duration, meaning: 'how long the engine reuses a version' }],
  ['timelake.rollup-routing', { check: flag, meaning: 'the engine answers from rollups' }],
  ['timelake.rollup-refresh-interval', { check: durationOrOff, meaning: 'least time between refreshes' }],
  ['sluice.flush-interval', { check: flushInterval, meaning: 'longest age of a buffered row (1s to 1h, default 10s)' }],
  ['sluice.flush-rows', { check: flushRows, meaning: 'buffered rows that start a flush (default and most 100000)' }],
  ['sluice.flush-bytes', { check: flushBytes, meaning: 'buffered bytes that start a flush (default and most 16 MiB)' }],
  [
    'sluice.epoch-unit',
    { check: oneOf('s', 'ms', 'us', 'ns'), meaning: 'unit of numbers in timestamp columns (default ms)' },
  ],
  [
    'sluice.schema-evolution',
    {
      check: oneOf('off', 'additive'),
      meaning: 'additive: batches bring new columns and wider types with them (default off)',
    },
  ],
  [
    'sluice.parquet-encodings',
    { check: oneOf('auto', 'compatible'), meaning: 'compatible: only PLAIN and dictionary, for old Spark readers' },
  ],
  [
    'sluice.sweep-interval',
    { check: sweepInterval, meaning: 'time between sweeps of files that nothing refers to (at least 1d; default off)' },
  ],
  ['sluice.sweep-grace', { check: sweepGrace, meaning: 'least age of such a file (at least 1d; default 3d)' }],
  [
    'sluice.last-value-series-max',
    {
      check: seriesMax,
      meaning: 'series up to which the newest rows are kept (default 100000, most 1000000, 0: never)',
    },
  ],
  ['write.parquet.compression-codec', { check: oneOf('zstd'), meaning: 'always zstd in files of this service' }],
  ['write.metadata.previous-versions-max', { check: count, meaning: 'length of the metadata log' }],
]);

/** Beginning of the keys that say what numbers count in one column; its name, case and all, follows. */
const EPOCH_UNIT_OF = 'sluice.epoch-unit.';

/** The key of a column's own `sluice.epoch-unit`. */
export function epochUnitKey(column: string): string {
  return EPOCH_UNIT_OF + column;
}

/**
 * Checks that units are set of columns that have one: a misspelt name would leave its times a thousand times off.
 *
 * @throws invalid `bad-property`
 */
export function checkEpochUnits(properties: Readonly<Record<string, string>>, schema: Schema): void {
  for (const property of Object.keys(properties)) {
    if (!property.startsWith(EPOCH_UNIT_OF)) continue;
    const type = fieldByName(schema, property.slice(EPOCH_UNIT_OF.length))?.type;
    if (type === 'timestamp' || type === 'timestamptz') continue;
    throw invalid('bad-property', `property is of no timestamp column: ${property}`, { property });
  }
}

function settingOf(key: string) {
  return SETTINGS.get(key.startsWith(EPOCH_UNIT_OF) && key !== EPOCH_UNIT_OF ? 'sluice.epoch-unit' : key);
}

/** Keys the service or the engine manages; a definition or a property change must not name them. */
const MANAGED =
  /^(timelake\.(format-version|time-column|series-key|chunk|chunk-interval|dedup|ingest-time-column|rollups|rollup-(source|bucket|aggregates))|sluice\.(format-version|epochs.*|dropped|commit.*|changes)|write\.metadata\.path|write\.data\.path|write\.format\.default)$/;

/**
 * Checks properties a client gives and returns them in normal form.
 *
 * @throws invalid `bad-property` (detail: property) for an unknown key under our or the engine's prefix, a managed
 * key, a bad value, or too many; keys under other prefixes pass as they are.
 */
export function checkProperties(given: Record<string, unknown>): Record<string, string> {
  const entries = Object.entries(given);
  if (entries.length > PROPERTIES_MAX) {
    throw invalid('bad-property', `properties are too many: count=${entries.length} most=${PROPERTIES_MAX}`);
  }
  const checked: [string, string][] = [];
  for (const [name, value] of entries) {
    const fail = (why: string) => invalid('bad-property', `property ${why}: ${name}`, { property: name });
    if (typeof value !== 'string') throw fail('value is not a string');
    if (name.length === 0 || name.length + value.length > PROPERTY_BYTES_MAX) throw fail('is empty or too long');
    const key = canonicalKey(name);
    if (MANAGED.test(key)) throw fail('is managed by the service');
    const setting = settingOf(key);
    if (setting === undefined) {
      if (key.startsWith('timelake.') || key.startsWith('sluice.')) throw fail('is unknown');
      checked.push(...Object.entries(checkedProperties({ [name]: value })));
      continue;
    }
    const normal = setting.check(value.trim());
    if (normal === null) throw fail(`has a bad value "${value}", not ${setting.check.form}`);
    checked.push([key, normal]);
  }
  return Object.fromEntries(checked);
}

/**
 * Checks the names of properties a client takes away and returns them as they are stored.
 *
 * @throws invalid `bad-property` for a managed key
 */
export function checkRemovals(names: readonly string[]): string[] {
  return names.map((name) => {
    const key = canonicalKey(name);
    if (MANAGED.test(key)) {
      throw invalid('bad-property', `property is managed by the service: ${name}`, { property: name });
    }
    return key;
  });
}

/** True for a key that only the service or the engine changes. */
export function isManaged(name: string): boolean {
  return MANAGED.test(canonicalKey(name));
}

/** Look-up in the engine ignores case and takes underscores for hyphens; written is always kebab-case. Names of columns stay. */
function canonicalKey(name: string): string {
  const lower = name.toLowerCase();
  const unitOf = EPOCH_UNIT_OF.length;
  if (lower.slice(0, unitOf).replaceAll('_', '-') === EPOCH_UNIT_OF) return EPOCH_UNIT_OF + name.slice(unitOf);
  return lower.startsWith('timelake.') || lower.startsWith('sluice.') ? lower.replaceAll('_', '-') : name;
}

export type Chunk = 'hour' | 'day' | 'month';
export type EpochUnit = 's' | 'ms' | 'us' | 'ns';

/** What this service does with a table, read from its properties; defaults where a key is absent or unusable. */
export interface TableSettings {
  timeColumn: string | null;
  seriesKey: string[];
  chunk: Chunk | null;
  dedup: boolean;
  ingestTimeColumn: string | null;
  targetFileBytes: number;
  /** What maintenance after appends goes by. `coldAfterMs` null: no partition becomes cold. */
  maintain: { isAuto: boolean; minFiles: number; coldAfterMs: number | null };
  /** Partitions that ended longer ago are dropped; null: none. */
  retentionMs: number | null;
  /** Files that nothing refers to: how often they are looked for (null: never by schedule), and how old they must be. */
  sweep: { intervalMs: number | null; graceMs: number };
  /** Rows of a row group, in files that maintenance writes. */
  rowGroupRows: number;
  encodings: 'auto' | 'compatible';
  epochUnit: EpochUnit;
  /** Columns that have a unit of their own. */
  epochUnits: ReadonlyMap<string, EpochUnit>;
  /** `additive`: batches bring new columns and wider types with them. */
  schemaEvolution: 'off' | 'additive';
  flush: { intervalMs: number; rows: number; bytes: number };
  /** Series up to which the newest row of each is kept. */
  lastValueSeriesMax: number;
  dropped: boolean;
  /** True once the service serves this table (created or attached by it). */
  served: boolean;
}

/** Version of our own state in table properties; a table with a newer one is not written. */
export const SLUICE_FORMAT_VERSION = '1';

/** The engine's format version that we write and the highest we accept for writing (contract, section 1.4). */
export const TIMELAKE_FORMAT_VERSION = '0.3.0';

export function tableSettings(properties: Record<string, string>): TableSettings {
  const read = (key: string, fallback: string): string => {
    const value = properties[key];
    if (value === undefined) return fallback;
    return SETTINGS.get(key)?.check(value.trim()) ?? fallback;
  };
  const names = (properties['timelake.series-key'] ?? '').split(',').map((name) => name.trim());
  const seriesKey = names.filter((name) => name !== '');
  const chunk = properties['timelake.chunk-interval'];
  const coldSeconds = parseDuration(read('timelake.compact-cold-after', '1h'));
  const retentionSeconds = parseDuration(read('timelake.retention', ''));
  const sweepSeconds = parseDuration(read('sluice.sweep-interval', 'off'));
  const graceSeconds = parseDuration(read('sluice.sweep-grace', ''));
  const intervalSeconds = parseDuration(read('sluice.flush-interval', ''));
  return {
    timeColumn: properties['timelake.time-column'] ?? null,
    seriesKey,
    chunk: chunk === 'hour' || chunk === 'day' || chunk === 'month' ? chunk : null,
    // Absent means no, also with a series key: so the engine reads it.
    dedup: properties['timelake.dedup']?.trim().toLowerCase() === 'true',
    ingestTimeColumn: properties['timelake.ingest-time-column'] ?? null,
    targetFileBytes: Number(read('timelake.target-file-size-bytes', '268435456')),
    maintain: {
      isAuto: read('timelake.auto-maintain', 'true') === 'true',
      // One file makes no run.
      minFiles: Math.max(2, Number(read('timelake.compact-min-files', '8'))),
      coldAfterMs: coldSeconds === null ? null : coldSeconds * 1000,
    },
    retentionMs: retentionSeconds === null ? null : retentionSeconds * 1000,
    sweep: {
      intervalMs: sweepSeconds === null ? null : sweepSeconds * 1000,
      graceMs: graceSeconds === null ? SWEEP_GRACE_DEFAULT_MS : graceSeconds * 1000,
    },
    rowGroupRows: Number(read('timelake.row-group-rows', '1048576')),
    encodings: read('sluice.parquet-encodings', 'auto') as 'auto' | 'compatible',
    epochUnit: read('sluice.epoch-unit', 'ms') as EpochUnit,
    epochUnits: epochUnitsOf(properties),
    schemaEvolution: read('sluice.schema-evolution', 'off') as 'off' | 'additive',
    flush: {
      intervalMs: intervalSeconds === null ? FLUSH_INTERVAL_DEFAULT_MS : intervalSeconds * 1000,
      rows: Number(read('sluice.flush-rows', String(FLUSH_ROWS_MAX))),
      bytes: Number(read('sluice.flush-bytes', String(FLUSH_BYTES_DEFAULT))),
    },
    lastValueSeriesMax: Number(read('sluice.last-value-series-max', String(LAST_VALUE_SERIES_DEFAULT))),
    dropped: properties['sluice.dropped'] === 'true',
    served: properties['sluice.format-version'] !== undefined,
  };
}

function epochUnitsOf(properties: Record<string, string>): ReadonlyMap<string, EpochUnit> {
  const units = new Map<string, EpochUnit>();
  for (const [key, value] of Object.entries(properties)) {
    const unit = key.startsWith(EPOCH_UNIT_OF) ? settingOf(key)?.check(value.trim()) : null;
    if (unit) units.set(key.slice(EPOCH_UNIT_OF.length), unit as EpochUnit);
  }
  return units;
}

/**
 * Refuses tables whose writer is newer than this build.
 *
 * @throws invalid `table-newer`
 */
export function checkWritable(properties: Record<string, string>): void {
  const own = properties['sluice.format-version'];
  if (own !== undefined && own !== SLUICE_FORMAT_VERSION) {
    throw invalid('table-newer', `table was written by a newer service: sluice.format-version=${own}`);
  }
  const engine = properties['timelake.format-version'];
  if (engine === undefined) return;
  const parts = engine.split('.').map(Number);
  const [major, minor] = parts.length === 1 ? [0, parts[0]] : parts;
  if (!parts.every(Number.isInteger) || major > 0 || minor > 3) {
    throw invalid('table-newer', `table was written by a newer engine: timelake.format-version=${engine}`);
  }
}

import { invalid, rejected } from '../base/errors.ts';
import { METADATA_LOG } from '../base/limits.ts';
import { describe, own } from '../base/shape.ts';

/** Table properties that this code reads, or whose bad values would stop somebody's commits (B177). */

/** Length of the metadata log: how many previous files a table names. */
export const PREVIOUS_VERSIONS_MAX = 'write.metadata.previous-versions-max';

/** Names that the reference implementation keeps for itself and never stores. */
const RESERVED = new Set([
  'format-version',
  'uuid',
  'snapshot-count',
  'current-snapshot-summary',
  'current-snapshot-id',
  'current-snapshot-timestamp-ms',
  'current-schema',
  'default-partition-spec',
  'default-sort-order',
]);

/** Paths that Hadoop-layout tables must not move (H11). */
const FORBIDDEN = new Set(['write.metadata.path']);

/** Engines parse these as whole numbers before each commit and fail on anything else. */
const WHOLE_NUMBERS = new Set([
  'commit.retry.num-retries',
  'commit.retry.min-wait-ms',
  'commit.retry.max-wait-ms',
  'commit.retry.total-timeout-ms',
  'commit.status-check.num-retries',
  'commit.manifest.target-size-bytes',
  'commit.manifest.min-count-to-merge',
  'history.expire.max-snapshot-age-ms',
  'history.expire.min-snapshots-to-keep',
  'history.expire.max-ref-age-ms',
  'read.split.target-size',
  'write.target-file-size-bytes',
  'write.parquet.row-group-size-bytes',
  'write.parquet.page-size-bytes',
  'write.parquet.page-row-limit',
  'write.parquet.dict-size-bytes',
  'write.parquet.compression-level',
  'write.metadata.metrics.max-inferred-column-defaults',
  PREVIOUS_VERSIONS_MAX,
]);

const BOOLEANS = new Set([
  'commit.manifest-merge.enabled',
  'write.metadata.delete-after-commit.enabled',
  'gc.enabled',
  'write.spark.fanout.enabled',
]);

/**
 * Checks properties that somebody wants to set, and leaves out reserved names. Throws invalid `bad-property`, or
 * rejected `unsupported-format-version` for a `format-version` other than 2.
 */
export function checkedProperties(given: Readonly<Record<string, string>>): Record<string, string> {
  const kept: [string, string][] = [];
  for (const [key, value] of Object.entries(given)) {
    if (key === 'format-version' && value !== '2') {
      throw rejected('unsupported-format-version', `format version of a table must be 2: ${describe(value)}`);
    }
    if (RESERVED.has(key)) continue;
    if (FORBIDDEN.has(key)) throw invalid('bad-property', `property cannot be set here: ${key}`, { property: key });
    if (WHOLE_NUMBERS.has(key) && !/^-?[0-9]{1,18}$/.test(value)) {
      throw invalid('bad-property', `property must be a whole number: ${key}=${describe(value)}`, { property: key });
    }
    if (BOOLEANS.has(key) && !/^(true|false)$/i.test(value)) {
      throw invalid('bad-property', `property must be true or false: ${key}=${describe(value)}`, { property: key });
    }
    if (key === '' || !key.isWellFormed() || !value.isWellFormed()) {
      throw invalid('bad-property', `property must be well-formed text with a name: ${describe(key)}`);
    }
    kept.push([key, value]);
  }
  return Object.fromEntries(kept);
}

/** Entries the metadata log keeps. A value that is no number, from whatever writer, means the default (B177). */
export function metadataLogMax(properties: Readonly<Record<string, string>>): number {
  const text = own(properties, PREVIOUS_VERSIONS_MAX);
  if (text === undefined || !/^[0-9]{1,9}$/.test(text.trim())) return METADATA_LOG.default;
  return Math.min(Math.max(1, Number(text)), METADATA_LOG.max);
}

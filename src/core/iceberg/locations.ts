import { invalid, type SluiceError } from '../base/errors.ts';
import { NAME_LENGTH_MAX } from '../base/limits.ts';
import { describe } from '../base/shape.ts';

/**
 * Every object key the service can write, and the locations that stand for them in metadata (H2, H13, L1-L3):
 *
 *     s3://<bucket>/<prefix>/<namespace>/<table>/metadata/v<N>.metadata.json, version-hint.text,
 *                                                snap-<id>-<uuid>.avro, <uuid>-added-m.avro, lvi-<id>-<uuid>.parquet
 *                                                data/<partition>/<uuid>.parquet
 *
 * A *location* is the absolute URI stored in metadata; a *key* is the object's name in the bucket, so `prefix` is part
 * of it. Functions that name a file take a *root*: the table's location or the table's key; both give the same file.
 */

/** Where all tables of a deployment live. */
export interface Lake {
  scheme: 's3';
  bucket: string;
  /** Without slashes at either end; empty for the whole bucket. */
  prefix: string;
}

const SEGMENT = /^[A-Za-z0-9_=.-]+$/;
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const LOCATION_LENGTH_MAX = 900;

/**
 * The canonical location, or an error: `s3://`, a bucket, segments of `[A-Za-z0-9_=.-]` with none empty, `.` or `..`, no
 * slash at the end. Nothing is repaired: a location that is not canonical means two spellings of one object (L2, B162).
 */
export function checkLocation(location: string): string {
  splitLocation(location);
  return location;
}

function splitLocation(location: string): { bucket: string; key: string } {
  if (location.length > LOCATION_LENGTH_MAX) throw badLocation(location, 'is too long');
  const match = /^s3:\/\/([^/]*)(?:\/(.*))?$/s.exec(location);
  if (match === null) throw badLocation(location, 'does not begin with s3://');
  const [, bucket, key] = match;
  if (!BUCKET.test(bucket)) throw badLocation(location, 'has no proper bucket');
  if (key === undefined) return { bucket, key: '' };
  for (const segment of key.split('/')) {
    if (!SEGMENT.test(segment) || segment === '.' || segment === '..') {
      throw badLocation(location, 'has an empty segment, a dot segment, or characters beyond A-Z a-z 0-9 _ = . -');
    }
  }
  return { bucket, key };
}

/** Takes the lake's own location apart. Throws invalid `bad-location`. */
export function parseLake(location: string): Lake {
  const { bucket, key } = splitLocation(location);
  return { scheme: 's3', bucket, prefix: key };
}

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_-]*$/;
/** Readers of a moved table cut its paths at the last `/metadata/` or `/data/`: no folder above may be called so (H13). */
const RESERVED_NAMES = new Set(['metadata', 'data']);

/**
 * Checks the name of a namespace or a table: letters, digits, `_` and `-`, not `-` first, at most 128, not `metadata`
 * or `data`. Names become folders and SQL identifiers; nothing in them needs escaping anywhere. Throws `bad-name`.
 */
export function checkName(name: string, what: 'namespace' | 'table'): string {
  if (!NAME.test(name) || name.length > NAME_LENGTH_MAX) {
    throw invalid('bad-name', `${what} must be 1 to 128 of A-Z a-z 0-9 _ -, not - first: ${describe(name)}`);
  }
  if (RESERVED_NAMES.has(name.toLowerCase())) throw invalid('bad-name', `${what} is a reserved name: ${name}`);
  return name;
}

/** Location of a table: `s3://bucket/prefix/namespace/table`. Checks both names. */
export function tableLocation(lake: Lake, namespace: string, table: string): string {
  return locationOf(lake, tableKey(lake, namespace, table));
}

/** Key of a table: `prefix/namespace/table`. Checks both names. */
export function tableKey(lake: Lake, namespace: string, table: string): string {
  const names = `${checkName(namespace, 'namespace')}/${checkName(table, 'table')}`;
  return lake.prefix === '' ? names : `${lake.prefix}/${names}`;
}

/** Location of an object of the lake's bucket. */
export function locationOf(lake: Lake, key: string): string {
  return `${lake.scheme}://${lake.bucket}/${key}`;
}

/**
 * Key of an object of this lake. The stored text is compared as it is: another scheme or bucket, or a place outside the
 * lake's prefix, is refused (`outside-lake`), never guessed to be the same object (L3, B145). Characters are not held
 * to our own rules: other writers' files may have spaces.
 */
export function keyOf(lake: Lake, location: string): string {
  const root =
    lake.prefix === '' ? `${lake.scheme}://${lake.bucket}/` : `${lake.scheme}://${lake.bucket}/${lake.prefix}/`;
  if (!location.startsWith(root)) throw outside(location);
  const key = location.slice(lake.scheme.length + 3 + lake.bucket.length + 1);
  if (key.split('/').some((segment) => segment === '' || segment === '.' || segment === '..')) throw outside(location);
  return key;
}

/** True when `location` names something inside the table, by its text. */
export function isWithin(tableRoot: string, location: string): boolean {
  return location.startsWith(`${tableRoot}/`);
}

/** `metadata/v<N>.metadata.json` */
export function metadataKey(root: string, version: bigint): string {
  return `${metadataPrefix(root)}v${version}.metadata.json`;
}

/** Folder of metadata, with its slash: what is listed. */
export function metadataPrefix(root: string): string {
  return `${root}/metadata/`;
}

/** Folder of data files, with its slash. */
export function dataPrefix(root: string): string {
  return `${root}/data/`;
}

/** `metadata/version-hint.text` */
export function versionHintKey(root: string): string {
  return `${metadataPrefix(root)}version-hint.text`;
}

/** `metadata/snap-<snapshot id>-<uuid>.avro` */
export function manifestListKey(root: string, snapshotId: bigint, uuid: string): string {
  return `${metadataPrefix(root)}snap-${snapshotId}-${uuid}.avro`;
}

export type ManifestKind = 'added' | 'merged' | 'deleted';

/** `metadata/<uuid>-added-m.avro`, `-merged-m.avro`, `-deleted-m.avro` */
export function manifestKey(root: string, uuid: string, kind: ManifestKind): string {
  return `${metadataPrefix(root)}${uuid}-${kind}-m.avro`;
}

/** `metadata/lvi-<snapshot id>-<uuid>.parquet`: the last-value index of a snapshot. */
export function indexKey(root: string, snapshotId: bigint, uuid: string): string {
  return `${metadataPrefix(root)}lvi-${snapshotId}-${uuid}.parquet`;
}

/** `data/<partition path>/<uuid>.parquet`; directly in `data/` for an unpartitioned table (empty path). */
export function dataKey(root: string, partitionPath: string, uuid: string): string {
  const folder = partitionPath === '' ? dataPrefix(root) : `${dataPrefix(root)}${partitionPath}/`;
  return `${folder}${uuid}.parquet`;
}

/** Digits of a version. Foreign tables have been seen with sixteen; more than this is no version (H16, B157). */
const VERSION = /^[1-9][0-9]{0,39}$/;
const METADATA_NAME = /(?:^|\/)v([0-9]+)\.metadata\.json$/;

/** Version in a name, key or location that ends in `vN.metadata.json`; null for any other, padded or compressed name. */
export function versionOfMetadata(name: string): bigint | null {
  const digits = METADATA_NAME.exec(name)?.[1] ?? '';
  return VERSION.test(digits) ? BigInt(digits) : null;
}

/** Version in a hint file. White space around it is accepted on reading (H5). Null when it is no number. */
export function parseVersionHint(text: string): bigint | null {
  const digits = text.trim();
  return VERSION.test(digits) ? BigInt(digits) : null;
}

/** Content of the hint file: digits, no newline (H5). */
export function versionHintText(version: bigint): string {
  return String(version);
}

function badLocation(location: string, why: string): SluiceError {
  return invalid('bad-location', `location ${why}: ${describe(location)}`);
}

function outside(location: string): SluiceError {
  return invalid('outside-lake', `location is not in this lake: ${describe(location)}`);
}

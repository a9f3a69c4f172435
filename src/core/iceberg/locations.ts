import { corrupt, invalid, type SluiceError } from '../base/errors.ts';
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
 * of it. A *root* is the table's location or the table's key: both give the same file.
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
  if (!isWord(name)) {
    throw invalid('bad-name', `${what} must be 1 to 128 of A-Z a-z 0-9 _ -, not - first: ${describe(name)}`);
  }
  if (RESERVED_NAMES.has(name.toLowerCase())) throw invalid('bad-name', `${what} is a reserved name: ${name}`);
  return name;
}

/** True for what `checkName` lets pass. */
export function isName(name: string): boolean {
  return isWord(name) && !RESERVED_NAMES.has(name.toLowerCase());
}

function isWord(name: string): boolean {
  return NAME.test(name) && name.length <= NAME_LENGTH_MAX;
}

/** Both of a table: where metadata says that it is, and the key prefix of its folder. */
export function tablePlace(lake: Lake, namespace: string, table: string): { location: string; prefix: string } {
  return { location: tableLocation(lake, namespace, table), prefix: tableKey(lake, namespace, table) };
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

/** `<root>/metadata/v<N>.metadata.json` */
export function metadataKey(root: string, version: number): string {
  return `${metadataPrefix(root)}v${version}.metadata.json`;
}

/** Folder of metadata, with its slash. */
export function metadataPrefix(root: string): string {
  return `${root}/metadata/`;
}

/** What all versions' keys begin with, for a listing: other files of the folder begin otherwise. */
export function versionPrefix(root: string): string {
  return `${metadataPrefix(root)}v`;
}

/** `<root>/metadata/version-hint.text` */
export function versionHintKey(root: string): string {
  return `${metadataPrefix(root)}version-hint.text`;
}

/** `snap-<snapshot id>-<uuid>.avro`, in the folder of metadata. */
export function manifestListName(snapshotId: bigint, uuid: string): string {
  return `snap-${snapshotId}-${uuid}.avro`;
}

export type ManifestKind = 'added' | 'merged' | 'deleted';

/** `<uuid>-added-m.avro`, `-merged-m.avro` or `-deleted-m.avro`, in the folder of metadata. */
export function manifestName(kind: ManifestKind, uuid: string): string {
  return `${uuid}-${kind}-m.avro`;
}

/** `lvi-<snapshot id>-<uuid>.parquet`, the last-value index of a snapshot, in the folder of metadata. */
export function indexName(snapshotId: bigint, uuid: string): string {
  return `lvi-${snapshotId}-${uuid}.parquet`;
}

/** `data/<partition path>/<uuid>.parquet` under the root; directly in `data/` for an unpartitioned table (empty path). */
export function dataFilePath(partitionPath: string, uuid: string): string {
  return partitionPath === '' ? `data/${uuid}.parquet` : `data/${partitionPath}/${uuid}.parquet`;
}

/** No padding, from 1. Foreign tables have been seen with sixteen digits (H16, B157). */
const DIGITS = /^[1-9][0-9]*$/;
const METADATA_NAME = /(?:^|\/)v([0-9]+)\.metadata\.json$/;

/**
 * Version in a name, key or location that ends in `vN.metadata.json`; null for any other, padded or compressed name.
 * Throws corrupt `version-too-large` above 2^53 - 1: passing over it would begin a second chain below it.
 */
export function versionOfMetadata(name: string): number | null {
  const digits = METADATA_NAME.exec(name)?.[1] ?? '';
  if (!DIGITS.test(digits)) return null;
  const version = Number(digits);
  if (!Number.isSafeInteger(version)) throw corrupt('version-too-large', `version is too large: ${describe(name)}`);
  return version;
}

/** Version in a hint file, white space around it accepted (H5). Null when it is no usable number: then list. */
export function parseVersionHint(text: string): number | null {
  const digits = text.trim();
  const version = Number(digits);
  return DIGITS.test(digits) && Number.isSafeInteger(version) ? version : null;
}

/** Content of the hint file: digits, no newline (H5). */
export function versionHintText(version: number): string {
  return String(version);
}

function badLocation(location: string, why: string): SluiceError {
  return invalid('bad-location', `location ${why}: ${describe(location)}`);
}

function outside(location: string): SluiceError {
  return invalid('outside-lake', `location is not in this lake: ${describe(location)}`);
}

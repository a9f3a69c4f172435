import type { Bucket } from './bucket.ts';
import { checkEntryOfFile } from './check-entry.ts';
import { checkIndexes } from './check-index.ts';
import { checkSnapshots } from './check-manifests.ts';
import { checkMetadata } from './check-metadata.ts';
import { checkVersions } from './check-versions.ts';
import { collector, describeFindings, type Finding, type Report } from './finding.ts';
import { printJson } from './json.ts';
import { type FileProfile, profileFile } from './profile.ts';
import { type EntryState, loadTable, type ReadOptions, type TableState } from './reader.ts';

export interface ValidateOptions extends ReadOptions {
  /** Demands by number (`B9`) or by number and word (`P12 min`) that the writer is known to break. */
  ignore?: readonly string[];
  /** At most so many data files are read, evenly chosen; the rest is checked by manifest and by size alone. */
  dataFilesMax?: number;
  /** Look at the versions' chain and hint. On by default. */
  versions?: boolean;
  /** A missing hint is a finding. Off by default: it is written after the commit. */
  hintRequired?: boolean;
  /** Every column chunk of a data file must have a page index. */
  pageIndexRequired?: boolean;
  /** Data files must be ZSTD; without it SNAPPY passes too. */
  zstdRequired?: boolean;
  /** Bounds must be cut by `truncate(16)`. On by default. */
  boundsTruncated?: boolean;
  /** Columns beyond the first so many may lack metrics. 100 by default. */
  metricColumnsMax?: number;
}

/**
 * Re-derives everything that a table says about itself from its objects: for every retained snapshot by default.
 * Empty means valid. Shares no code with the service.
 */
export async function validateTable(
  bucket: Bucket,
  tablePrefix: string,
  options: ValidateOptions = {},
): Promise<Finding[]> {
  const { findings, report } = collector();
  let table = null as TableState | null;
  await guarded('M19 metadata file', tablePrefix, report, async () => {
    table = await loadTable(bucket, tablePrefix, options, report);
  });
  if (table !== null) await checkTable(table, options, report);
  const ignored = new Set(options.ignore ?? []);
  const isIgnored = ({ demand }: Finding) => ignored.has(demand) || ignored.has(demand.split(' ')[0]);
  return distinct(findings).filter((finding) => !isIgnored(finding));
}

/** Throws an Error that lists the findings when the table is not valid. */
export async function assertValidTable(
  bucket: Bucket,
  tablePrefix: string,
  options: ValidateOptions = {},
): Promise<void> {
  const findings = await validateTable(bucket, tablePrefix, options);
  if (findings.length > 0)
    throw new Error(`${findings.length} findings in ${tablePrefix}:\n${describeFindings(findings)}`);
}

async function checkTable(table: TableState, options: ValidateOptions, report: Report): Promise<void> {
  const key = table.metadataKey;
  await guarded('M19 metadata file', key, report, () => checkMetadata(table, options.bucketName, report));
  if (options.versions !== false)
    await guarded('M19 versions', key, report, () => checkVersions(table, options.hintRequired === true, report));
  await guarded('S1 snapshots', key, report, () => checkSnapshots(table, report));
  await guarded('S1 summaries', key, report, () => checkIndexes(table, report));
  await guarded('S1 data files', key, report, () => checkFiles(table, options, report));
}

/** Turns an exception of a check into a finding: a table so odd that the check breaks is not valid. */
async function guarded(demand: string, key: string, report: Report, check: () => void | Promise<void>): Promise<void> {
  try {
    await check();
  } catch (error) {
    report(demand, key, 'what the spec describes', (error as Error).stack ?? String(error));
  }
}

function distinct(findings: readonly Finding[]): Finding[] {
  const seen = new Map(findings.map((finding) => [JSON.stringify(finding), finding]));
  return [...seen.values()];
}

async function checkFiles(table: TableState, options: ValidateOptions, report: Report): Promise<void> {
  const entries = new Map<string, { entry: EntryState; specId: number; manifest: string }>();
  for (const { manifests } of table.snapshots)
    for (const manifest of manifests)
      for (const entry of manifest.entries) {
        const known = entries.get(entry.dataFile.filePath);
        if (entry.status !== 2 || known === undefined)
          if (known === undefined || known.entry.status === 2)
            entries.set(entry.dataFile.filePath, {
              entry,
              specId: manifest.row.partitionSpecId,
              manifest: manifest.key,
            });
      }
  const data = [...entries.values()].filter(({ entry }) => entry.dataFile.content === 0);
  const step = Math.max(1, Math.ceil(data.length / (options.dataFilesMax ?? Number.POSITIVE_INFINITY)));
  for (const [i, { entry, specId, manifest }] of data.entries()) {
    const { filePath, fileSizeInBytes } = entry.dataFile;
    const key = table.keyOf(filePath);
    if (key === null) {
      report('L2 location', manifest, `below ${table.metadata.location}`, filePath);
      continue;
    }
    const size = table.objects.get(key);
    if (size === undefined) {
      if (entry.status !== 2) report('I3 object', key, `present, named by ${manifest}`, 'missing');
      continue;
    }
    checkPlace(table, key, report);
    if (i % step !== 0) {
      if (BigInt(size) !== fileSizeInBytes) report('E9 file_size_in_bytes', key, size, fileSizeInBytes);
      continue;
    }
    const profile = await profileOf(table, key, size, options, report);
    if (profile === null) {
      if (BigInt(size) !== fileSizeInBytes) report('E9 file_size_in_bytes', key, size, fileSizeInBytes);
      continue;
    }
    checkEntryOfFile(
      key,
      entry,
      specId,
      profile,
      table.metadata,
      { truncated: options.boundsTruncated !== false, metricColumnsMax: options.metricColumnsMax ?? 100 },
      report,
    );
    for (const finding of profile.findings) report(finding.demand, finding.key, finding.expected, finding.found);
  }
}

function checkPlace(table: TableState, key: string, report: Report): void {
  if (!key.startsWith(`${table.prefix}/data/`)) report('H13 folder', key, 'below data/', key);
  const rest = key.slice(table.prefix.length);
  if (/\/\/|[^A-Za-z0-9_=./-]/.test(rest)) report('T11 characters', key, 'only A-Z a-z 0-9 _ = . / -', rest);
}

async function profileOf(
  table: TableState,
  key: string,
  size: number,
  options: ValidateOptions,
  report: Report,
): Promise<FileProfile | null> {
  const { metadata } = table;
  const shape = printJson([table.raw.schemas, table.raw['partition-specs'], table.raw['sort-orders']]);
  const known = table.cache.profiles.get(`${key} ${size} ${shape}`);
  if (known !== undefined) return known;
  try {
    const bytes = await table.bucket.get(key);
    if (bytes === null) throw new Error('listed but missing');
    const profile = await profileFile(key, bytes, metadata, {
      pageIndexRequired: options.pageIndexRequired === true,
      zstdRequired: options.zstdRequired === true,
    });
    table.cache.profiles.set(`${key} ${size} ${shape}`, profile);
    return profile;
  } catch (error) {
    report('P4 data file', key, 'readable Parquet of the schema', (error as Error).message);
    return null;
  }
}

export { newCache, type ValidatorCache } from './cache.ts';
export type { Finding } from './finding.ts';
export { describeFindings } from './finding.ts';

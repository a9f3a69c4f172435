import { isDeepStrictEqual } from 'node:util';
import type { TableMetadata } from '../../src/core/iceberg/types.ts';
import { collector, type Report } from './finding.ts';
import { type JsonObject, objects, printJson } from './json.ts';
import { parseMetadata, type TableState } from './reader.ts';

/** Names of the versions, the hint, and the chain from version to version: H2, H5, H6, H8, I4, M14, M15. */
export async function checkVersions(table: TableState, requireHint: boolean, report: Report): Promise<void> {
  const folder = `${table.prefix}/metadata/`;
  const hintKey = `${folder}version-hint.text`;
  for (const key of table.objects.keys())
    if (key.startsWith(folder) && key.endsWith('.metadata.json') && !/\/v[1-9][0-9]*\.metadata\.json$/.test(key))
      report('H2 version name', key, 'v<N>.metadata.json, N without padding from 1', key.slice(folder.length));
  const newest = table.versions.at(-1) ?? 0;
  let lowest = newest;
  while (table.versions.includes(lowest - 1)) lowest--;
  if (table.hint === null) {
    if (requireHint) report('H5 version-hint', hintKey, 'present', 'missing');
  } else {
    const text = new TextDecoder('latin1').decode(table.hint);
    if (!/^[1-9][0-9]*$/.test(text)) report('H5 version-hint', hintKey, 'decimal digits only', JSON.stringify(text));
    else if (Number(text) > newest) report('H6 version-hint', hintKey, `at most ${newest}`, text);
    else if (Number(text) < lowest)
      report('H8 versions', hintKey, `every version from ${text} to ${newest}`, table.versions);
  }
  let previous: { key: string; version: number; raw: JsonObject; metadata: TableMetadata } | null = null;
  for (const version of table.versions) {
    const key = `${folder}v${version}.metadata.json`;
    const bytes = await table.bucket.get(key);
    const parsed = bytes === null ? null : parseMetadata(table.cache, bytes, key, report);
    if (parsed === null) continue;
    const here = { key, version, ...parsed };
    checkLog(here, report);
    if (previous !== null && previous.version === version - 1) stepFindings(table, previous, here, report);
    previous = here;
  }
}

interface VersionFile {
  key: string;
  version: number;
  raw: JsonObject;
  metadata: TableMetadata;
}

/** The findings of one step, from the cache when both versions are the ones it was made from. */
function stepFindings(table: TableState, before: VersionFile, after: VersionFile, report: Report): void {
  const { steps } = table.cache;
  const known = steps.get(after.key);
  const isSame = known?.before === before.raw && known.after === after.raw;
  const made = collector();
  if (!isSame) checkStep(before, after, made.report);
  const findings = isSame ? known.findings : made.findings;
  steps.set(after.key, { before: before.raw, after: after.raw, findings });
  for (const finding of findings) report(finding.demand, finding.key, finding.expected, finding.found);
}

function checkLog({ key, version, metadata }: VersionFile, report: Report): void {
  const log = metadata['metadata-log'];
  const expected = log.map((_, i) => `${metadata.location}/metadata/v${version - log.length + i}.metadata.json`);
  const names = log.map((entry) => entry['metadata-file']);
  if (names.join() !== expected.join()) report('I4 metadata-log', key, expected, names);
  if (version > 1 && log.length === 0) report('I4 metadata-log', key, `names v${version - 1}`, 'empty');
  if (log.some((entry, i) => i > 0 && log[i - 1]['timestamp-ms'] > entry['timestamp-ms']))
    report(
      'M15 metadata-log',
      key,
      'ascending times',
      log.map((entry) => entry['timestamp-ms']),
    );
  const max = Number(metadata.properties['write.metadata.previous-versions-max'] ?? 100);
  if (log.length > max) report('M15 metadata-log', key, `at most ${max} entries`, log.length);
}

function checkStep(before: VersionFile, after: VersionFile, report: Report): void {
  const [a, b] = [before.metadata, after.metadata];
  const must = (holds: boolean, demand: string, expected: unknown, found: unknown) => {
    if (!holds) report(demand, after.key, expected, found);
  };
  const logged = b['metadata-log'].at(-1)?.['timestamp-ms'];
  if (logged !== undefined)
    must(logged === a['last-updated-ms'], 'M15 metadata-log', `time ${a['last-updated-ms']}`, logged);
  must(
    b['last-updated-ms'] > a['last-updated-ms'],
    'M5 last-updated-ms',
    `above ${a['last-updated-ms']}`,
    b['last-updated-ms'],
  );
  must(a.location === b.location, 'M3 location', a.location, b.location);
  const dropped = [a, b].some((m) => m.properties['sluice.dropped'] === 'true');
  if (dropped) return;
  must(a['table-uuid'] === b['table-uuid'], 'I4 table-uuid', a['table-uuid'], b['table-uuid']);
  for (const name of ['last-column-id', 'last-partition-id'] as const)
    must(
      b[name] >= a[name],
      name === 'last-column-id' ? 'M6 last-column-id' : 'M9 last-partition-id',
      `at least ${a[name]}`,
      b[name],
    );
  const sequence = a['last-sequence-number'];
  // The order of keys is not compared: writers are free to change it.
  const mustBeKept = (list: string, idKey: string, demand: string) => {
    const old = new Map(objects(before.raw, list).map((item) => [item[idKey], item]));
    const all = objects(after.raw, list);
    for (const item of all) {
      const known = old.get(item[idKey]);
      if (known !== undefined && !isDeepStrictEqual(known, item))
        report(demand, after.key, printJson(known), printJson(item));
    }
    return all.filter((item) => !old.has(item[idKey]));
  };
  const added = mustBeKept('snapshots', 'snapshot-id', 'M20 snapshot');
  const numbers = added.map((snapshot) => snapshot['sequence-number']).sort();
  const expected = numbers.map((_, i) => sequence + 1n + BigInt(i));
  must(numbers.join() === expected.join(), 'S7 sequence-number', expected, numbers);
  must(
    b['last-sequence-number'] === sequence + BigInt(added.length),
    'S9 last-sequence-number',
    sequence + BigInt(added.length),
    b['last-sequence-number'],
  );
  mustBeKept('schemas', 'schema-id', 'M20 schemas');
  mustBeKept('partition-specs', 'spec-id', 'M20 partition-specs');
  mustBeKept('sort-orders', 'order-id', 'M20 sort-orders');
  const logOf = (m: TableMetadata) =>
    m['snapshot-log'].map((entry) => `${entry['snapshot-id']}@${entry['timestamp-ms']}`);
  const [oldLog, newLog] = [logOf(a), logOf(b)];
  const kept = newLog.filter((entry) => oldLog.includes(entry));
  const fresh = newLog.slice(kept.length);
  const isSuffix =
    oldLog.slice(oldLog.length - kept.length).join() === kept.join() &&
    newLog.slice(0, kept.length).join() === kept.join();
  must(isSuffix, 'M14 snapshot-log', `a tail of [${oldLog}] and then new entries`, newLog);
  const moved = a['current-snapshot-id'] !== b['current-snapshot-id'] && b['current-snapshot-id'] !== undefined;
  const entry = `${b['current-snapshot-id']}@${b['last-updated-ms']}`;
  if (moved) must(fresh.at(-1) === entry, 'M14 snapshot-log', `new entry ${entry}`, fresh);
  else must(fresh.length === 0, 'M14 snapshot-log', 'no new entry', fresh);
}

import type { FieldSummary, ManifestFile, PartitionSpec, Snapshot, Value } from '../../src/core/iceberg/types.ts';
import { checkListLayout, checkManifestLayout } from './avro-layout.ts';
import { type Report, show, wholeText } from './finding.ts';
import { inKeyOrder, isObject, type Json, type JsonObject, parseJson } from './json.ts';
import {
  type EntryState,
  fieldsById,
  liveEntries,
  type ManifestState,
  partitionTypes,
  type SnapshotState,
  specById,
  type TableState,
} from './reader.ts';
import {
  compareValues,
  decodeSingle,
  isFloating,
  isNaNValue,
  keyOfValue,
  type Primitive,
  sameValue,
} from './values.ts';

/** Demands ML1-ML12, A1-A15, E1-E6, E19, Q1-Q9 and S8 on every snapshot that was read. */
export function checkSnapshots(table: TableState, report: Report): void {
  const byId = new Map(table.snapshots.map((state) => [state.snapshot['snapshot-id'], state]));
  const seen = new Set<string>();
  for (const state of table.snapshots) {
    checkList(table, state, report);
    for (const manifest of state.manifests) {
      checkRow(state, manifest, byId, report);
      if (seen.has(manifest.key)) continue;
      seen.add(manifest.key);
      checkManifest(table, manifest, report);
    }
    checkLive(table, state, byId, report);
    checkSummary(state, report);
  }
  checkHistory(table, byId, report);
}

function checkList(table: TableState, state: SnapshotState, report: Report): void {
  const { snapshot, list, listKey: key } = state;
  checkFolder(table, key, 'metadata', report);
  const header: [string, string][] = [
    ['format-version', '2'],
    ['snapshot-id', String(snapshot['snapshot-id'])],
    ['parent-snapshot-id', String(snapshot['parent-snapshot-id'] ?? 'null')],
    ['sequence-number', String(snapshot['sequence-number'])],
  ];
  for (const [name, expected] of header)
    if (list.meta.get(name) !== expected) report(`ML1 ${name}`, key, expected, list.meta.get(name));
  checkListLayout(list.schema, key, report);
  const paths = list.records.map((record) => record.manifest_path);
  if (new Set(paths).size !== paths.length) report('E2 manifests', key, 'each once', paths);
  const order = state.manifests.map(({ row }) => row.sequenceNumber);
  if (order.some((sequence, i) => i > 0 && sequence > order[i - 1]))
    report('ML12 order', key, 'newest manifests first', order);
}

function checkFolder(table: TableState, key: string, folder: string, report: Report): void {
  if (!key.startsWith(`${table.prefix}/${folder}/`)) report('H13 folder', key, `below ${folder}/`, key);
  if (/\/\/|\/\.\.?\/|[^A-Za-z0-9_=./-]/.test(key))
    report('L2 characters', key, 'only A-Z a-z 0-9 _ = . / -', key.replace(/[A-Za-z0-9_=./-]/g, ''));
}

/** One manifest list row against the manifest it names: ML4-ML10, Q6. */
function checkRow(
  state: SnapshotState,
  manifest: ManifestState,
  byId: Map<bigint, SnapshotState>,
  report: Report,
): void {
  const { row, entries } = manifest;
  const key = state.listKey;
  const must = (holds: boolean, demand: string, expected: unknown, found: unknown) => {
    if (!holds) report(demand, key, expected, found);
  };
  must(row.manifestLength === BigInt(manifest.size), 'ML5 manifest_length', manifest.size, row.manifestLength);
  const total = (status: number) => {
    const chosen = entries.filter((entry) => entry.status === status);
    return { files: chosen.length, rows: chosen.reduce((sum, { dataFile }) => sum + dataFile.recordCount, 0n) };
  };
  const counts: [string, number, number | bigint, bigint][] = [
    ['existing', 0, row.existingFilesCount, row.existingRowsCount],
    ['added', 1, row.addedFilesCount, row.addedRowsCount],
    ['deleted', 2, row.deletedFilesCount, row.deletedRowsCount],
  ];
  for (const [name, status, files, count] of counts) {
    const real = total(status);
    must(files === real.files, `ML6 ${name}_files_count`, real.files, files);
    must(count === real.rows, `ML6 ${name}_rows_count`, real.rows, count);
  }
  const adder = row.addedSnapshotId === state.snapshot['snapshot-id'] ? state : byId.get(row.addedSnapshotId);
  if (adder !== undefined) {
    const sequence = adder.snapshot['sequence-number'];
    must(row.sequenceNumber === sequence, 'Q6 sequence_number', sequence, row.sequenceNumber);
    const first = adder.manifests.find((other) => other.key === manifest.key);
    if (adder !== state)
      must(first !== undefined && wholeText(first.row) === wholeText(row), 'Q6 carried row', first?.row, row);
  } else
    must(
      row.sequenceNumber < state.snapshot['sequence-number'],
      'Q6 sequence_number',
      `below ${state.snapshot['sequence-number']}`,
      row.sequenceNumber,
    );
  const live = entries.filter((entry) => entry.status !== 2).map((entry) => entry.effective.sequenceNumber);
  const least = [...live, row.sequenceNumber].sort(compareValues)[0];
  must(row.minSequenceNumber === least, 'Q6 min_sequence_number', least, row.minSequenceNumber);
  const isCarried = row.addedSnapshotId !== state.snapshot['snapshot-id'];
  must(entries.length > 0, 'E4 manifest', 'at least one entry', manifest.key);
  must(
    !isCarried || live.length > 0 || entries.length === 0,
    'E3 manifest',
    'dropped: nothing live in it',
    manifest.key,
  );
}

/** One manifest by itself: header, layout, entries, and the partition summaries of its row. */
function checkManifest(table: TableState, manifest: ManifestState, report: Report): void {
  const { row, key, avro, entries } = manifest;
  checkFolder(table, key, 'metadata', report);
  const spec = specById(table.metadata, row.partitionSpecId) as PartitionSpec;
  const types = partitionTypes(table.metadata, spec).map(({ result }) => result);
  checkHeader(table, manifest, spec, report);
  checkManifestLayout(avro.schema, spec, types, key, report);
  if (row.partitions === null) report('ML7 partitions', key, `${types.length} summaries`, null);
  else if (row.partitions.length !== types.length) report('ML7 partitions', key, types.length, row.partitions.length);
  else
    for (const [i, type] of types.entries())
      checkFieldSummary(row.partitions[i], type, i, entries, spec.fields[i].name, key, report);
  const known = new Set(table.metadata.schemas.flatMap((schema) => [...fieldsById(schema.fields).keys()]));
  for (const entry of entries) checkEntry(row, entry, known, key, report);
}

function headerJson(manifest: ManifestState, name: string): Json {
  try {
    return parseJson(manifest.avro.meta.get(name) ?? '');
  } catch (error) {
    return (error as Error).message;
  }
}

function checkHeader(table: TableState, manifest: ManifestState, spec: PartitionSpec, report: Report): void {
  const { row, key, avro } = manifest;
  const must = (holds: boolean, demand: string, expected: unknown, found: unknown) => {
    if (!holds) report(demand, key, expected, found);
  };
  const schema = headerJson(manifest, 'schema') as JsonObject;
  const isTableSchema = isObject(schema) && schema.type === 'struct' && Array.isArray(schema.fields);
  must(isTableSchema, 'A1 schema', 'the table schema', avro.meta.get('schema'));
  if (isTableSchema) {
    must(typeof schema['schema-id'] === 'bigint', 'A2 schema-id', 'inside the schema', schema['schema-id']);
    const same = table.metadata.schemas.find((s) => BigInt(s['schema-id']) === schema['schema-id']);
    const raw = (table.raw.schemas as JsonObject[]).find((s) => s['schema-id'] === schema['schema-id']);
    must(
      same === undefined || wholeText(inKeyOrder(raw?.fields ?? null)) === wholeText(inKeyOrder(schema.fields)),
      'A1 schema',
      inKeyOrder(raw?.fields ?? null),
      inKeyOrder(schema.fields),
    );
  }
  const schemaId = isTableSchema ? String(schema['schema-id']) : undefined;
  must(avro.meta.get('schema-id') === schemaId, 'A2 schema-id', schemaId, avro.meta.get('schema-id'));
  const fields = headerJson(manifest, 'partition-spec');
  const rawSpec = (table.raw['partition-specs'] as JsonObject[]).find((s) => s['spec-id'] === BigInt(spec['spec-id']));
  must(
    wholeText(inKeyOrder(fields)) === wholeText(inKeyOrder(rawSpec?.fields ?? null)),
    'A3 partition-spec',
    inKeyOrder(rawSpec?.fields ?? null),
    inKeyOrder(fields),
  );
  must(
    avro.meta.get('partition-spec-id') === String(row.partitionSpecId),
    'A4 partition-spec-id',
    row.partitionSpecId,
    avro.meta.get('partition-spec-id'),
  );
  must(avro.meta.get('format-version') === '2', 'A4 format-version', '2', avro.meta.get('format-version'));
  const content = row.content === 0 ? 'data' : 'deletes';
  must(avro.meta.get('content') === content, 'A4 content', content, avro.meta.get('content'));
}

/** ML8-ML11: a summary may cover all entries or the live ones; anything else is wrong. */
function checkFieldSummary(
  summary: FieldSummary,
  type: Primitive,
  at: number,
  entries: readonly EntryState[],
  name: string,
  key: string,
  report: Report,
): void {
  const candidates = [entries, entries.filter((entry) => entry.status !== 2)].map((chosen) => {
    const values = chosen.map((entry) => entry.dataFile.partition[at]);
    const ordered = values.filter((v) => v !== null && !isNaNValue(v)).sort(compareValues);
    return {
      containsNull: values.includes(null),
      containsNan: values.some(isNaNValue),
      lower: ordered[0] ?? null,
      upper: ordered.at(-1) ?? null,
    };
  });
  const decode = (bytes: Uint8Array | null): Value => {
    try {
      return bytes === null ? null : decodeSingle(type, bytes);
    } catch (error) {
      report('ML9 bound', key, `${type.name} of ${name}`, (error as Error).message);
      return null;
    }
  };
  const [lower, upper] = [decode(summary.lowerBound), decode(summary.upperBound)];
  const any = (holds: (candidate: (typeof candidates)[0]) => boolean) => candidates.some(holds);
  const expected = candidates[0];
  if (!any((c) => c.containsNull === summary.containsNull))
    report('ML8 contains_null', key, `${expected.containsNull} for ${name}`, summary.containsNull);
  const nan = summary.containsNan ?? false;
  if (!any((c) => c.containsNan === nan) || (isFloating(type) && summary.containsNan === null))
    report('ML8 contains_nan', key, `${expected.containsNan} for ${name}`, summary.containsNan);
  if (!any((c) => sameValue(c.lower, lower))) report('ML8 lower_bound', key, expected.lower, lower);
  if (!any((c) => sameValue(c.upper, upper))) report('ML8 upper_bound', key, expected.upper, upper);
}

/** E1, E5, E6, E19, Q1-Q3 on one entry. */
function checkEntry(
  row: ManifestFile,
  entry: EntryState,
  known: ReadonlySet<number>,
  manifest: string,
  report: Report,
): void {
  const { status, dataFile: file } = entry;
  const key = `${manifest} ${file.filePath.split('/').at(-1)}`;
  const must = (holds: boolean, demand: string, expected: unknown, found: unknown) => {
    if (!holds) report(demand, key, expected, found);
  };
  must([0, 1, 2].includes(status), 'E1 status', '0, 1 or 2', status);
  if (status === 1) {
    must(
      entry.snapshotId === null || entry.snapshotId === row.addedSnapshotId,
      'Q1 snapshot_id',
      row.addedSnapshotId,
      entry.snapshotId,
    );
    must(entry.fileSequenceNumber === null, 'Q1 file_sequence_number', null, entry.fileSequenceNumber);
    must(
      entry.sequenceNumber === null || entry.sequenceNumber <= row.sequenceNumber,
      'Q1 sequence_number',
      `null or at most ${row.sequenceNumber}`,
      entry.sequenceNumber,
    );
  } else {
    for (const [name, value] of [
      ['snapshot_id', entry.snapshotId],
      ['sequence_number', entry.sequenceNumber],
      ['file_sequence_number', entry.fileSequenceNumber],
    ] as const)
      must(value !== null, `Q2 ${name}`, 'explicit', value);
    must(
      entry.effective.fileSequenceNumber <= row.sequenceNumber &&
        entry.effective.sequenceNumber <= entry.effective.fileSequenceNumber,
      'Q2 sequence_number',
      `data ≤ file ≤ ${row.sequenceNumber}`,
      entry.effective,
    );
  }
  if (status === 2)
    must(entry.effective.snapshotId === row.addedSnapshotId, 'Q3 snapshot_id', row.addedSnapshotId, entry.snapshotId);
  must(file.fileFormat === 'PARQUET', 'E5 file_format', 'PARQUET', file.fileFormat);
  must(
    row.content === 0 ? file.content === 0 : file.content > 0,
    'E6 content',
    row.content === 0 ? 0 : '1 or 2',
    file.content,
  );
  must(row.content === 1 || file.equalityIds === null, 'E6 equality_ids', null, file.equalityIds);
  must(file.keyMetadata === null, 'E6 key_metadata', null, file.keyMetadata);
  for (const name of [
    'columnSizes',
    'valueCounts',
    'nullValueCounts',
    'nanValueCounts',
    'lowerBounds',
    'upperBounds',
  ] as const)
    for (const id of file[name]?.keys() ?? []) must(known.has(id), `E19 ${name}`, 'ids of a schema', id);
}

/** E2, and what changed against the parent: S3, C1, Q9. */
function checkLive(table: TableState, state: SnapshotState, byId: Map<bigint, SnapshotState>, report: Report): void {
  const live = liveEntries(state).map((entry) => entry.dataFile.filePath);
  const paths = new Set<string>();
  for (const path of live) {
    if (paths.has(path)) report('E2 live path', state.listKey, 'once', path);
    paths.add(path);
  }
  const id = state.snapshot['snapshot-id'];
  const { added, deleted } = changesOf(state);
  const operation = state.snapshot.summary.operation;
  if (operation === 'append' && deleted.length > 0)
    report('S3 append', state.listKey, 'nothing deleted', deleted.length);
  if (operation === 'delete' && added.length > 0) report('S3 delete', state.listKey, 'nothing added', added.length);
  if (operation === 'replace') {
    const [before, after] = [deleted, added].map((list) =>
      list.reduce((sum, { dataFile }) => sum + dataFile.recordCount, 0n),
    );
    const dedups =
      table.metadata.properties['timelake.series-key'] !== undefined &&
      table.metadata.properties['timelake.dedup'] !== 'false';
    if (dedups ? after > before : after !== before) report('C1 rows', state.listKey, before, after);
  }
  const parentId = state.snapshot['parent-snapshot-id'];
  const parent = parentId === undefined ? undefined : byId.get(parentId);
  if (parentId !== undefined && parent === undefined) return;
  const expected = new Set(parent === undefined ? [] : liveEntries(parent).map((entry) => entry.dataFile.filePath));
  for (const { dataFile } of deleted)
    if (!expected.delete(dataFile.filePath))
      report('C2 deleted path', state.listKey, `live in ${parentId}`, dataFile.filePath);
  for (const { dataFile } of added) expected.add(dataFile.filePath);
  for (const path of expected)
    if (!paths.has(path)) report('I3 live file', state.listKey, `${path} carried on`, `lost in ${id}`);
  for (const path of paths)
    if (!expected.has(path)) report('E1 live file', state.listKey, `added by ${id} or live before`, path);
}

function changesOf(state: SnapshotState): { added: EntryState[]; deleted: EntryState[] } {
  const id = state.snapshot['snapshot-id'];
  const own = state.manifests.filter(({ row }) => row.addedSnapshotId === id).flatMap(({ entries }) => entries);
  const pick = (status: number) => own.filter((entry) => entry.status === status && entry.effective.snapshotId === id);
  return { added: pick(1), deleted: pick(2) };
}

/** S8, I9: totals of the summary are the sums over the manifests. */
function checkSummary(state: SnapshotState, report: Report): void {
  const { snapshot } = state;
  const { added, deleted } = changesOf(state);
  const live = liveEntries(state);
  const sum = (list: readonly EntryState[], what: 'recordCount' | 'fileSizeInBytes') =>
    list.reduce((total, { dataFile }) => total + dataFile[what], 0n);
  const of = (list: readonly EntryState[], ...contents: number[]) =>
    list.filter(({ dataFile }) => contents.includes(dataFile.content));
  const tuples = new Set([...added, ...deleted].map(({ dataFile }) => dataFile.partition.map(keyOfValue).join('|')));
  const expected: Record<string, number | bigint> = {
    'total-records': sum(of(live, 0), 'recordCount'),
    'total-data-files': of(live, 0).length,
    'total-files-size': sum(live, 'fileSizeInBytes'),
    'total-delete-files': of(live, 1, 2).length,
    'total-position-deletes': sum(of(live, 1), 'recordCount'),
    'total-equality-deletes': sum(of(live, 2), 'recordCount'),
    'added-data-files': of(added, 0).length,
    'added-records': sum(of(added, 0), 'recordCount'),
    'added-files-size': sum(added, 'fileSizeInBytes'),
    'deleted-data-files': of(deleted, 0).length,
    'deleted-records': sum(of(deleted, 0), 'recordCount'),
    'removed-files-size': sum(deleted, 'fileSizeInBytes'),
    'added-delete-files': of(added, 1, 2).length,
    'removed-delete-files': of(deleted, 1, 2).length,
    'changed-partition-count': tuples.size,
  };
  for (const [name, value] of Object.entries(expected)) {
    const found = (snapshot.summary as Record<string, string>)[name];
    if (
      found === undefined &&
      (!name.startsWith('total-') ? value === 0 || value === 0n || name === 'changed-partition-count' : false)
    )
      continue;
    if (found !== String(value)) report(`S8 ${name}`, `${state.listKey} summary`, value, found);
  }
}

/** What retained snapshots say about one file must agree: Q3, Q4, Q9, E11, M20. */
function checkHistory(table: TableState, byId: Map<bigint, SnapshotState>, report: Report): void {
  const facts = new Map<string, { entry: EntryState; manifest: string }>();
  const order = [...table.snapshots].sort((a, b) =>
    Number(a.snapshot['sequence-number'] - b.snapshot['sequence-number']),
  );
  const seen = new Set<string>();
  for (const { manifests } of order)
    for (const manifest of [...manifests].reverse()) {
      if (seen.has(manifest.key)) continue;
      seen.add(manifest.key);
      for (const entry of manifest.entries) {
        const path = entry.dataFile.filePath;
        const first = facts.get(path);
        if (first === undefined) {
          facts.set(path, { entry, manifest: manifest.key });
          const adder = byId.get(entry.effective.snapshotId)?.snapshot as Snapshot | undefined;
          if (
            entry.status === 0 &&
            adder !== undefined &&
            adder['sequence-number'] !== entry.effective.fileSequenceNumber
          )
            report(
              'Q3 snapshot_id',
              manifest.key,
              `of sequence ${entry.effective.fileSequenceNumber}`,
              entry.snapshotId,
            );
          continue;
        }
        const numbers = ({ sequenceNumber, fileSequenceNumber }: EntryState['effective']) => [
          sequenceNumber,
          fileSequenceNumber,
        ];
        if (entry.status === 1 && entry.effective.snapshotId !== first.entry.effective.snapshotId)
          report('Q9 path', manifest.key, 'never added twice', path);
        else {
          const [was, is] = [numbers(first.entry.effective), numbers(entry.effective)];
          if (show(was) !== show(is)) report('Q4 sequence numbers', manifest.key, `${show(was)} of ${path}`, is);
          if (entry.status === 0 && entry.effective.snapshotId !== first.entry.effective.snapshotId)
            report('Q3 snapshot_id', manifest.key, first.entry.effective.snapshotId, entry.snapshotId);
          for (const [name, value] of Object.entries(first.entry.dataFile)) {
            const other = entry.dataFile[name as keyof typeof entry.dataFile];
            if (canonical(value) !== canonical(other)) report(`M20 ${name}`, manifest.key, value, other);
          }
        }
      }
    }
}

/** Text of a data file's member without regard to the order of map keys. */
function canonical(value: unknown): string {
  if (value instanceof Map)
    return [...value]
      .sort(([a], [b]) => a - b)
      .map(([k, v]) => `${k}:${canonical(v)}`)
      .join();
  if (value instanceof Uint8Array) return `x${Array.from(value).join()}`;
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  return Object.is(value, -0) ? '-0' : String(value);
}

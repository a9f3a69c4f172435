import type { NestedField, Schema, TableMetadata, Type } from '../../src/core/iceberg/types.ts';
import type { Report } from './finding.ts';
import { isObject, type Json, type JsonObject, objects } from './json.ts';
import { fieldsById, type TableState } from './reader.ts';
import { resultType } from './transform.ts';
import { parsePrimitive } from './values.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const RESERVED_ID_MIN = 2147483448;
const RESERVED_NAMES = new Set([
  '_file',
  '_pos',
  '_deleted',
  '_spec_id',
  '_partition',
  '_row_id',
  '_last_updated_sequence_number',
]);
const OPERATIONS = ['append', 'replace', 'overwrite', 'delete'];

/** Demands M1-M28, S1-S6 and J1-J4 on one metadata file. */
export function checkMetadata(table: TableState, bucketName: string | undefined, report: Report): void {
  const { raw, metadata, metadataKey: key } = table;
  const must = (holds: boolean, demand: string, expected: unknown, found: unknown) => {
    if (!holds) report(demand, key, expected, found);
  };
  must(raw['format-version'] === 2n, 'M1 format-version', 2, raw['format-version']);
  const uuid = raw['table-uuid'];
  must(typeof uuid === 'string' && UUID.test(uuid), 'M2 table-uuid', 'a lower-case UUID', uuid);
  const location = String(raw.location);
  must(
    /^[a-z][a-z0-9]*:\/\/.+[^/]$/.test(location),
    'M3 location',
    'an absolute URI without a slash at its end',
    location,
  );
  if (bucketName !== undefined) {
    const expected = `s3://${bucketName}/${table.prefix}`;
    must(location === expected, 'L2 location', expected, location);
  }
  const fields = metadata.schemas.flatMap((schema) => [...fieldsById(schema.fields).keys()]);
  const partitionFields = metadata['partition-specs'].flatMap((spec) => spec.fields);
  must(
    typeof raw['last-sequence-number'] === 'bigint',
    'M4 last-sequence-number',
    'an integer',
    raw['last-sequence-number'],
  );
  for (const snapshot of metadata.snapshots)
    must(
      snapshot['sequence-number'] <= metadata['last-sequence-number'],
      'M4 last-sequence-number',
      `at least ${snapshot['sequence-number']}`,
      metadata['last-sequence-number'],
    );
  const updated = metadata['last-updated-ms'];
  must(typeof raw['last-updated-ms'] === 'bigint', 'M5 last-updated-ms', 'an integer', raw['last-updated-ms']);
  for (const name of ['snapshot-log', 'metadata-log'] as const)
    for (const entry of metadata[name])
      must(
        entry['timestamp-ms'] <= updated,
        'M5 last-updated-ms',
        `at least ${entry['timestamp-ms']} (${name})`,
        updated,
      );
  const highest = Math.max(0, ...fields);
  must(metadata['last-column-id'] >= highest, 'M6 last-column-id', `at least ${highest}`, metadata['last-column-id']);
  checkSchemas(raw, metadata, must);
  checkSpecs(raw, metadata, must);
  const lastPartition = Math.max(999, ...partitionFields.map((field) => field['field-id']));
  must(
    metadata['last-partition-id'] >= lastPartition,
    'M9 last-partition-id',
    `at least ${lastPartition}`,
    metadata['last-partition-id'],
  );
  checkSortOrders(metadata, must);
  for (const [name, value] of Object.entries(isObject(raw.properties) ? raw.properties : {}))
    must(typeof value === 'string', 'M11 properties', `text for ${name}`, value);
  must(
    !('write.metadata.path' in metadata.properties),
    'H11 write.metadata.path',
    'absent',
    metadata.properties['write.metadata.path'],
  );
  must(raw['next-row-id'] === undefined, 'M18 next-row-id', undefined, raw['next-row-id']);
  must(raw['encryption-keys'] === undefined, 'M18 encryption-keys', undefined, raw['encryption-keys']);
  for (const list of ['snapshots', 'snapshot-log', 'metadata-log', 'statistics', 'partition-statistics'])
    must(
      Array.isArray(raw[list]),
      list === 'snapshots'
        ? 'M13 snapshots'
        : list === 'snapshot-log'
          ? 'M14 snapshot-log'
          : list === 'metadata-log'
            ? 'M15 metadata-log'
            : `M17 ${list}`,
      'a list',
      raw[list],
    );
  checkRefs(raw, metadata, must);
  checkSnapshots(raw, metadata, must);
  checkStatistics(metadata, must);
}

type Must = (holds: boolean, demand: string, expected: unknown, found: unknown) => void;

function checkSchemas(raw: JsonObject, metadata: TableMetadata, must: Must): void {
  const ids = metadata.schemas.map((schema) => schema['schema-id']);
  must(raw.schema === undefined, 'M7 schema', 'no single schema key', 'present');
  must(new Set(ids).size === ids.length, 'M7 schemas', 'distinct schema ids', ids);
  must(ids.includes(metadata['current-schema-id']), 'M7 current-schema-id', ids, metadata['current-schema-id']);
  for (const schema of objects(raw, 'schemas')) {
    must(schema.type === 'struct', 'M7 schema type', 'struct', schema.type);
    must(typeof schema['schema-id'] === 'bigint', 'M7 schema-id', 'an integer', schema['schema-id']);
  }
  for (const schema of metadata.schemas) {
    const seen = new Set<number>();
    const visit = (field: NestedField, path: string) => {
      must(!seen.has(field.id), 'M21 field ids', 'distinct', `${field.id} twice in schema ${schema['schema-id']}`);
      must(field.id >= 1 && field.id < RESERVED_ID_MIN, 'M21 field ids', `1 to ${RESERVED_ID_MIN - 1}`, field.id);
      seen.add(field.id);
      must(typeof field.required === 'boolean', 'M7 required', 'a boolean', `${field.required} of ${path}`);
      inside(field.type, path);
    };
    const inside = (type: Type, path: string) => {
      if (typeof type === 'string')
        must(parsePrimitive(type) !== null, 'P10 type', 'a type of format version 2', `${type} of ${path}`);
      else if (type.type === 'struct') {
        must(type.fields.length > 0, 'P10 struct', 'at least one field', path);
        names(type.fields, path);
        for (const field of type.fields) visit(field, `${path}.${field.name}`);
      } else
        for (const field of fieldsById([{ id: 0, name: path, required: false, type }]).values())
          if (field.id !== 0) seen.add(field.id);
    };
    const names = (list: readonly NestedField[], path: string) => {
      const lower = list.map((field) => field.name.toLowerCase());
      must(
        new Set(lower).size === lower.length,
        'M25 column names',
        'distinct without regard to case',
        `${path} [${lower}]`,
      );
      must(!lower.includes(''), 'M25 column names', 'no empty name', path);
    };
    names(schema.fields, '');
    for (const field of schema.fields) {
      must(!RESERVED_NAMES.has(field.name), 'M25b column name', 'not a name of engines', field.name);
      visit(field, field.name);
    }
    checkIdentifiers(schema, must);
  }
  checkPromotions(metadata, must);
}

function checkIdentifiers(schema: Schema, must: Must): void {
  const outer = new Map(schema.fields.map((field) => [field.id, field]));
  for (const id of schema['identifier-field-ids'] ?? []) {
    const field = outer.get(id) ?? fieldsById(schema.fields).get(id);
    const fine =
      field?.required === true && typeof field.type === 'string' && !['float', 'double'].includes(field.type);
    must(fine, 'M22 identifier-field-ids', 'a required primitive, neither float nor double', field ?? id);
  }
}

const PROMOTIONS: Record<string, string[]> = { int: ['long'], float: ['double'] };

function checkPromotions(metadata: TableMetadata, must: Must): void {
  const known = new Map<number, Type>();
  for (const schema of [...metadata.schemas].sort((a, b) => a['schema-id'] - b['schema-id']))
    for (const [id, { type }] of fieldsById(schema.fields)) {
      const before = known.get(id);
      if (typeof before === 'string' && typeof type === 'string' && before !== type) {
        const [from, to] = [parsePrimitive(before), parsePrimitive(type)];
        const wider =
          from?.name === 'decimal' &&
          to?.name === 'decimal' &&
          from.scale === to.scale &&
          from.precision < to.precision;
        must(
          wider || (PROMOTIONS[before] ?? []).includes(type),
          'M23 promotion',
          `a wider form of ${before}`,
          `${type} of field ${id}`,
        );
      }
      known.set(id, type);
    }
}

function checkSpecs(raw: JsonObject, metadata: TableMetadata, must: Must): void {
  const specs = metadata['partition-specs'];
  const ids = specs.map((spec) => spec['spec-id']);
  must(raw['partition-spec'] === undefined, 'M8 partition-spec', 'no single spec key', 'present');
  must(new Set(ids).size === ids.length, 'M8 partition-specs', 'distinct spec ids', ids);
  must(ids.includes(metadata['default-spec-id']), 'M8 default-spec-id', ids, metadata['default-spec-id']);
  const meaning = new Map<number, string>();
  for (const spec of specs)
    for (const field of spec.fields) {
      const what = `${field.transform} of ${field['source-id']}`;
      const before = meaning.get(field['field-id']);
      must(
        before === undefined || before === what,
        'M9 partition field ids',
        before,
        `${what} under ${field['field-id']}`,
      );
      meaning.set(field['field-id'], what);
      must(field['field-id'] >= 1000, 'M9 partition field ids', 'from 1000', field['field-id']);
      const source = metadata.schemas
        .map((s) => fieldsById(s.fields).get(field['source-id']))
        .find((f) => f !== undefined);
      const primitive = typeof source?.type === 'string' ? parsePrimitive(source.type) : null;
      const result = primitive === null ? null : resultType(field.transform, primitive);
      must(result !== null, 'M8 transform', 'a transform of the source type', `${what} (${source?.type})`);
      const clash = metadata.schemas.flatMap((s) => s.fields).find((f) => f.name === field.name);
      must(
        clash === undefined || (field.transform === 'identity' && clash.id === field['source-id']),
        'T7 partition field name',
        'no column of that name, unless identity of it',
        field.name,
      );
    }
}

function checkSortOrders(metadata: TableMetadata, must: Must): void {
  const orders = metadata['sort-orders'];
  const ids = orders.map((order) => order['order-id']);
  must(new Set(ids).size === ids.length, 'M10 sort-orders', 'distinct order ids', ids);
  must(
    ids.includes(metadata['default-sort-order-id']),
    'M10 default-sort-order-id',
    ids,
    metadata['default-sort-order-id'],
  );
  for (const order of orders) {
    must(
      (order['order-id'] === 0) === (order.fields.length === 0),
      'M10 sort-orders',
      'order 0 and only order 0 without fields',
      order,
    );
    for (const field of order.fields) {
      const source = metadata.schemas
        .map((s) => fieldsById(s.fields).get(field['source-id']))
        .find((f) => f !== undefined);
      must(source !== undefined, 'M10 sort field', 'a known source', field['source-id']);
      must(['asc', 'desc'].includes(field.direction), 'M10 direction', 'asc or desc', field.direction);
      must(
        ['nulls-first', 'nulls-last'].includes(field['null-order']),
        'M10 null-order',
        'nulls-first or nulls-last',
        field['null-order'],
      );
    }
  }
}

function checkRefs(raw: JsonObject, metadata: TableMetadata, must: Must): void {
  const known = new Set(metadata.snapshots.map((snapshot) => snapshot['snapshot-id']));
  const current = metadata['current-snapshot-id'];
  must(current === undefined || known.has(current), 'M12 current-snapshot-id', 'a known snapshot', current);
  if (current === undefined) {
    must(
      raw['current-snapshot-id'] === undefined,
      'M12 current-snapshot-id',
      'left out of a table without one',
      raw['current-snapshot-id'],
    );
    must(metadata.refs.main === undefined, 'M16 refs', 'no main without a current snapshot', 'main');
  } else {
    must(metadata.refs.main?.['snapshot-id'] === current, 'M16 refs', `main at ${current}`, metadata.refs.main);
    must(
      metadata.refs.main === undefined || metadata.refs.main.type === 'branch',
      'M16 refs',
      'main a branch',
      metadata.refs.main,
    );
  }
  for (const [name, ref] of Object.entries(metadata.refs)) {
    must(known.has(ref['snapshot-id']), 'M16 refs', `${name} at a known snapshot`, ref['snapshot-id']);
    must(['branch', 'tag'].includes(ref.type), 'M16 refs', 'branch or tag', ref.type);
  }
  const log = metadata['snapshot-log'];
  for (const [i, entry] of log.entries()) {
    must(
      i === 0 || log[i - 1]['timestamp-ms'] <= entry['timestamp-ms'],
      'M14 snapshot-log',
      'ascending times',
      log.map((e) => e['timestamp-ms']),
    );
    must(known.has(entry['snapshot-id']), 'M14 snapshot-log', 'only retained snapshots', entry['snapshot-id']);
  }
  if (current !== undefined)
    must(
      log.at(-1)?.['snapshot-id'] === current,
      'M14 snapshot-log',
      `last entry ${current}`,
      log.at(-1)?.['snapshot-id'],
    );
}

function checkSnapshots(raw: JsonObject, metadata: TableMetadata, must: Must): void {
  const byId = new Map(metadata.snapshots.map((snapshot) => [snapshot['snapshot-id'], snapshot]));
  must(
    byId.size === metadata.snapshots.length,
    'J3 snapshot ids',
    'distinct',
    metadata.snapshots.map((s) => s['snapshot-id']),
  );
  const sequences = metadata.snapshots.map((snapshot) => snapshot['sequence-number']);
  must(new Set(sequences).size === sequences.length, 'S7 sequence-number', 'distinct', sequences);
  const integer = (value: Json | undefined) => typeof value === 'bigint' && value > 0n;
  for (const snapshot of objects(raw, 'snapshots')) {
    const id = snapshot['snapshot-id'];
    must(integer(id), 'J1 snapshot-id', 'a positive integer', id);
    for (const name of ['sequence-number', 'timestamp-ms'])
      must(integer(snapshot[name]), `S1 ${name}`, 'a positive integer', snapshot[name]);
    must(typeof snapshot['manifest-list'] === 'string', 'S1 manifest-list', 'text', snapshot['manifest-list']);
    must(snapshot.manifests === undefined, 'S5 manifests', undefined, 'present');
    const schemaId = snapshot['schema-id'];
    must(
      metadata.schemas.some((schema) => BigInt(schema['schema-id']) === schemaId),
      'S2 schema-id',
      'a known schema',
      schemaId,
    );
    const summary = isObject(snapshot.summary) ? snapshot.summary : {};
    must(OPERATIONS.includes(String(summary.operation)), 'S3 operation', OPERATIONS, summary.operation);
    for (const [name, value] of Object.entries(summary))
      must(typeof value === 'string', 'J4 summary', `text for ${name}`, value);
    const parent = snapshot['parent-snapshot-id'];
    must(parent === undefined || integer(parent), 'S4 parent-snapshot-id', 'left out or a snapshot id', parent);
  }
  for (const snapshot of metadata.snapshots) {
    const parent = byId.get(snapshot['parent-snapshot-id'] ?? 0n);
    if (parent === undefined) continue;
    must(
      snapshot['timestamp-ms'] >= parent['timestamp-ms'],
      'S6 timestamp-ms',
      `at least ${parent['timestamp-ms']}`,
      snapshot['timestamp-ms'],
    );
    must(
      snapshot['sequence-number'] > parent['sequence-number'],
      'S7 sequence-number',
      `above ${parent['sequence-number']}`,
      snapshot['sequence-number'],
    );
  }
}

function checkStatistics(metadata: TableMetadata, must: Must): void {
  const known = new Set(metadata.snapshots.map((snapshot) => snapshot['snapshot-id']));
  for (const list of ['statistics', 'partition-statistics'] as const) {
    const ids = metadata[list].map((entry) => entry['snapshot-id']);
    must(
      ids.every((id) => known.has(id)),
      `M17 ${list}`,
      'only of retained snapshots',
      ids,
    );
    must(new Set(ids).size === ids.length, `M17 ${list}`, 'one a snapshot', ids);
  }
}

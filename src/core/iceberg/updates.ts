import { unreachable } from '../base/assert.ts';
import { conflict, invalid, rejected, type SluiceError } from '../base/errors.ts';
import { parseUuid } from '../base/ids.ts';
import { describe, own } from '../base/shape.ts';
import { checkEvolution, checkReadable } from './evolution.ts';
import { checkMetadata, currentSchema, schemaById, specById } from './metadata.ts';
import { checkNewSpec, highestPartitionId, PARTITION_ID_FIRST, sameSpec } from './partition-spec.ts';
import { checkedProperties, metadataLogMax } from './properties.ts';
import { checkNewColumnNames, highestFieldId, sameSchema } from './schema.ts';
import { MAIN, snapshotById } from './snapshot.ts';
import { checkSortOrder, sameSortOrder, UNSORTED } from './sort-order.ts';
import type {
  PartitionField,
  PartitionSpec,
  Schema,
  Snapshot,
  SnapshotRef,
  SortOrder,
  StatisticsFile,
  TableMetadata,
} from './types.ts';

/** A spec whose field ids may be left to the table. Its own id is never used. */
export interface UnboundSpec {
  'spec-id'?: number;
  fields: (Omit<PartitionField, 'field-id'> & { 'field-id'?: number })[];
}

/** Changes of table metadata, as the REST protocol spells them. An id of -1 means the one added last in the list. */
export type MetadataUpdate =
  | { action: 'assign-uuid'; uuid: string }
  | { action: 'upgrade-format-version'; 'format-version': number }
  | { action: 'add-schema'; schema: Schema }
  | { action: 'set-current-schema'; 'schema-id': number }
  | { action: 'add-spec'; spec: UnboundSpec }
  | { action: 'set-default-spec'; 'spec-id': number }
  | { action: 'add-sort-order'; 'sort-order': SortOrder }
  | { action: 'set-default-sort-order'; 'sort-order-id': number }
  | { action: 'add-snapshot'; snapshot: Snapshot }
  | ({ action: 'set-snapshot-ref'; 'ref-name': string } & SnapshotRef)
  | { action: 'remove-snapshots'; 'snapshot-ids': bigint[] }
  | { action: 'remove-snapshot-ref'; 'ref-name': string }
  | { action: 'set-location'; location: string }
  | { action: 'set-properties'; updates: Record<string, string> }
  | { action: 'remove-properties'; removals: string[] }
  | { action: 'set-statistics'; statistics: StatisticsFile }
  | { action: 'remove-statistics'; 'snapshot-id': bigint }
  | { action: 'set-partition-statistics'; 'partition-statistics': StatisticsFile }
  | { action: 'remove-partition-statistics'; 'snapshot-id': bigint }
  | { action: 'remove-schemas'; 'schema-ids': number[] }
  | { action: 'remove-partition-specs'; 'spec-ids': number[] };

export interface UpdateContext {
  nowMs: number;
  /** Location of the metadata file that the result follows; null for a first version. */
  previousMetadataLocation: string | null;
}

/** What is remembered while a list of updates is applied. */
interface Draft {
  metadata: TableMetadata;
  base: TableMetadata | null;
  timeMs: number;
  added: { schema: number | null; spec: number | null; order: number | null };
  removedSnapshots: boolean;
  clearedLog: boolean;
}

/**
 * Time of the commit that follows `metadata`: now, but later than all that the table has seen, so that a clock that
 * steps back never shows (M5, B147). Usually the base's `last-updated-ms` decides; logs do after a writer whose own
 * clock went back.
 */
export function commitTime(metadata: TableMetadata, nowMs: number): number {
  const logged = metadata['snapshot-log'].at(-1)?.['timestamp-ms'] ?? 0;
  const previous = metadata['metadata-log'].at(-1)?.['timestamp-ms'] ?? 0;
  return Math.max(nowMs, metadata['last-updated-ms'] + 1, logged, previous);
}

/**
 * Metadata after the updates, in order. Nothing given is changed; unchanged parts are shared. The result has a later
 * `last-updated-ms`, the previous file in its log, and has passed `checkMetadata`.
 *
 * Throws invalid (`bad-update`, `bad-evolution`, `bad-spec`, `bad-property`, ...) for a change that can never be made,
 * rejected (`location-fixed`, `unsupported-format-version`) for one that this service does not make, conflict
 * (`stale-sequence-number`, `snapshot-exists`, `snapshot-referenced`) for one made on another state of the table.
 */
export function applyUpdates(
  metadata: TableMetadata,
  updates: readonly MetadataUpdate[],
  context: UpdateContext,
): TableMetadata {
  const draft = draftOf(metadata, metadata, commitTime(metadata, context.nowMs));
  for (const update of updates) apply(draft, update);
  const log =
    context.previousMetadataLocation === null
      ? metadata['metadata-log']
      : [
          ...metadata['metadata-log'],
          { 'timestamp-ms': metadata['last-updated-ms'], 'metadata-file': context.previousMetadataLocation },
        ];
  return finish(draft, log);
}

/**
 * Metadata of a table that a client builds by updates alone (a staged create that is now committed): the updates bring
 * uuid, schema, spec and order, and everything else starts empty. Errors as above, and `bad-metadata` for what is missing.
 */
export function metadataFromUpdates(
  updates: readonly MetadataUpdate[],
  start: { location: string; nowMs: number },
): TableMetadata {
  const empty: TableMetadata = {
    'format-version': 2,
    'table-uuid': '',
    location: start.location,
    'last-sequence-number': 0n,
    'last-updated-ms': start.nowMs,
    'last-column-id': 0,
    schemas: [],
    'current-schema-id': -1,
    'partition-specs': [],
    'default-spec-id': -1,
    'last-partition-id': PARTITION_ID_FIRST - 1,
    'sort-orders': [],
    'default-sort-order-id': -1,
    properties: {},
    snapshots: [],
    'snapshot-log': [],
    'metadata-log': [],
    refs: {},
    statistics: [],
    'partition-statistics': [],
  };
  const draft = draftOf(empty, null, start.nowMs);
  for (const update of updates) apply(draft, update);
  return finish(draft, []);
}

function draftOf(metadata: TableMetadata, base: TableMetadata | null, timeMs: number): Draft {
  return {
    metadata: { ...metadata, 'last-updated-ms': timeMs },
    base,
    timeMs,
    added: { schema: null, spec: null, order: null },
    removedSnapshots: false,
    clearedLog: false,
  };
}

function apply(draft: Draft, update: MetadataUpdate): void {
  const { metadata } = draft;
  switch (update.action) {
    case 'assign-uuid':
      assignUuid(metadata, update.uuid);
      return;
    case 'upgrade-format-version':
      if (update['format-version'] === 2) return;
      throw rejected('unsupported-format-version', `format version of a table must be 2: ${update['format-version']}`);
    case 'add-schema':
      addSchema(draft, update.schema);
      return;
    case 'set-current-schema': {
      const id = resolve(update['schema-id'], draft.added.schema, 'schema');
      const schema = schemaById(metadata, id);
      if (schema === null) throw bad(`schema is not in the table: ${id}`);
      if (metadata.snapshots.length > 0) checkReadable(currentSchema(metadata), schema, metadata.schemas);
      metadata['current-schema-id'] = id;
      return;
    }
    case 'add-spec':
      addSpec(draft, update.spec);
      return;
    case 'set-default-spec': {
      const id = resolve(update['spec-id'], draft.added.spec, 'partition spec');
      if (specById(metadata, id) === null) throw bad(`partition spec is not in the table: ${id}`);
      metadata['default-spec-id'] = id;
      return;
    }
    case 'add-sort-order':
      addSortOrder(draft, update['sort-order']);
      return;
    case 'set-default-sort-order': {
      const id = resolve(update['sort-order-id'], draft.added.order, 'sort order');
      if (!metadata['sort-orders'].some((order) => order['order-id'] === id)) {
        throw bad(`sort order is not in the table: ${id}`);
      }
      metadata['default-sort-order-id'] = id;
      return;
    }
    case 'add-snapshot':
      addSnapshot(draft, update.snapshot);
      return;
    case 'set-snapshot-ref': {
      const { action: _, 'ref-name': name, 'snapshot-id': id, ...ref } = update;
      setRef(draft, name, { 'snapshot-id': id, ...ref });
      return;
    }
    case 'remove-snapshot-ref':
      removeRef(draft, update['ref-name']);
      return;
    case 'remove-snapshots': {
      const gone = new Set(update['snapshot-ids']);
      metadata.snapshots = metadata.snapshots.filter((snapshot) => !gone.has(snapshot['snapshot-id']));
      draft.removedSnapshots = true;
      return;
    }
    case 'set-location':
      if (update.location.replace(/\/+$/, '') === metadata.location) return;
      throw rejected('location-fixed', `location of a table never changes: ${describe(update.location)}`);
    case 'set-properties':
      metadata.properties = { ...metadata.properties, ...checkedProperties(update.updates) };
      return;
    case 'remove-properties': {
      const gone = new Set(update.removals);
      metadata.properties = Object.fromEntries(Object.entries(metadata.properties).filter(([key]) => !gone.has(key)));
      return;
    }
    case 'set-statistics':
      metadata.statistics = withStatistics(metadata, metadata.statistics, update.statistics);
      return;
    case 'remove-statistics':
      metadata.statistics = metadata.statistics.filter((entry) => entry['snapshot-id'] !== update['snapshot-id']);
      return;
    case 'set-partition-statistics':
      metadata['partition-statistics'] = withStatistics(
        metadata,
        metadata['partition-statistics'],
        update['partition-statistics'],
      );
      return;
    case 'remove-partition-statistics':
      metadata['partition-statistics'] = metadata['partition-statistics'].filter(
        (entry) => entry['snapshot-id'] !== update['snapshot-id'],
      );
      return;
    case 'remove-schemas':
      metadata.schemas = metadata.schemas.filter((schema) => !update['schema-ids'].includes(schema['schema-id']));
      return;
    case 'remove-partition-specs':
      metadata['partition-specs'] = metadata['partition-specs'].filter(
        (spec) => !update['spec-ids'].includes(spec['spec-id']),
      );
      return;
    default:
      unreachable(update);
  }
}

function resolve(id: number, lastAdded: number | null, what: string): number {
  if (id !== -1) return id;
  if (lastAdded === null) throw bad(`${what} -1 means the last one added, but none was`);
  return lastAdded;
}

function assignUuid(metadata: TableMetadata, uuid: string): void {
  if (parseUuid(uuid) === null) throw bad(`uuid is malformed: ${describe(uuid)}`);
  const before = metadata['table-uuid'];
  if (before !== '' && before.toLowerCase() !== uuid.toLowerCase()) {
    throw bad(`uuid of a table never changes: ${before}, ${uuid}`);
  }
  if (before === '') metadata['table-uuid'] = uuid;
}

/** A schema that is there already keeps its id; the id in the update is only a wish. Ids of columns never come back. */
function addSchema(draft: Draft, schema: Schema): void {
  const { metadata } = draft;
  const same = metadata.schemas.find((known) => sameSchema(known, schema));
  if (same !== undefined) {
    draft.added.schema = same['schema-id'];
    return;
  }
  if (metadata.schemas.length === 0) checkNewColumnNames(schema);
  else {
    checkEvolution({
      current: currentSchema(metadata),
      known: metadata.schemas,
      next: schema,
      lastColumnId: metadata['last-column-id'],
      hasRows: metadata.snapshots.length > 0,
    });
  }
  const id = nextId(
    metadata.schemas.map((known) => known['schema-id']),
    0,
  );
  metadata.schemas = [...metadata.schemas, { ...schema, 'schema-id': id }];
  metadata['last-column-id'] = Math.max(metadata['last-column-id'], highestFieldId(schema));
  draft.added.schema = id;
}

/** Equal source and transform keep their field id from spec to spec; everything else gets one never used (T8, M9). */
function addSpec(draft: Draft, unbound: UnboundSpec): void {
  const { metadata } = draft;
  const known = metadata['partition-specs'].flatMap((spec) => spec.fields);
  let last = metadata['last-partition-id'];
  for (const field of unbound.fields) last = Math.max(last, field['field-id'] ?? 0);
  const fields = unbound.fields.map((field): PartitionField => {
    const same = known.find((k) => k['source-id'] === field['source-id'] && k.transform === field.transform);
    const wish = field['field-id'];
    if (wish !== undefined && wish <= metadata['last-partition-id']) {
      const holder = known.find((k) => k['field-id'] === wish);
      const fits = holder?.['source-id'] === field['source-id'] && holder.transform === field.transform;
      if (!fits) throw bad(`partition field id means something else already: ${wish}`);
    }
    return {
      'source-id': field['source-id'],
      'field-id': wish ?? same?.['field-id'] ?? ++last,
      name: field.name,
      transform: field.transform,
    };
  });
  const spec: PartitionSpec = {
    'spec-id': nextId(
      metadata['partition-specs'].map((s) => s['spec-id']),
      0,
    ),
    fields,
  };
  const same = metadata['partition-specs'].find((s) => sameSpec(s, spec));
  if (same !== undefined) {
    draft.added.spec = same['spec-id'];
    return;
  }
  checkNewSpec(spec, currentOrLastSchema(draft));
  metadata['partition-specs'] = [...metadata['partition-specs'], spec];
  metadata['last-partition-id'] = Math.max(metadata['last-partition-id'], highestPartitionId(spec));
  draft.added.spec = spec['spec-id'];
}

function addSortOrder(draft: Draft, order: SortOrder): void {
  const { metadata } = draft;
  const orders = metadata['sort-orders'];
  const same = orders.find((known) => sameSortOrder(known, order));
  if (same !== undefined) {
    draft.added.order = same['order-id'];
    return;
  }
  checkSortOrder(order, currentOrLastSchema(draft));
  const id =
    order.fields.length === 0
      ? UNSORTED['order-id']
      : nextId(
          orders.map((known) => known['order-id']),
          1,
        );
  metadata['sort-orders'] = [...orders, { 'order-id': id, fields: order.fields }];
  draft.added.order = id;
}

/** What a new spec or order is checked against: a schema just added and not yet current counts, as it will be. */
function currentOrLastSchema(draft: Draft): Schema {
  const { metadata, added } = draft;
  return (added.schema === null ? null : schemaById(metadata, added.schema)) ?? currentSchema(metadata);
}

function nextId(ids: readonly number[], first: number): number {
  return ids.reduce((next, id) => Math.max(next, id + 1), first);
}

/**
 * A snapshot takes the next sequence number, not a lower one, whatever branch it is for (S7). Its time is brought between
 * its parent's and the commit's (S6): clients' clocks differ, and time travel needs an order. Its schema id is filled
 * in where it is missing (S2).
 */
function addSnapshot(draft: Draft, snapshot: Snapshot): void {
  const { metadata, timeMs } = draft;
  const id = snapshot['snapshot-id'];
  if (snapshotById(metadata, id) !== null) throw conflict('snapshot-exists', `snapshot is in the table already: ${id}`);
  const sequence = snapshot['sequence-number'];
  const next = metadata['last-sequence-number'] + 1n;
  if (sequence < next) {
    throw conflict(
      'stale-sequence-number',
      `sequence number was taken by another commit: ${sequence}, next is ${next}`,
    );
  }
  if (sequence > next) throw bad(`sequence number must be the next one: ${sequence}, next is ${next}`);
  const parentId = snapshot['parent-snapshot-id'];
  const parentMs = parentId === undefined ? 0 : (snapshotById(metadata, parentId)?.['timestamp-ms'] ?? 0);
  const added: Snapshot = {
    ...snapshot,
    'timestamp-ms': Math.max(Math.min(snapshot['timestamp-ms'], timeMs), parentMs),
    'schema-id': snapshot['schema-id'] ?? metadata['current-schema-id'],
  };
  metadata.snapshots = [...metadata.snapshots, added];
  metadata['last-sequence-number'] = sequence;
}

function setRef(draft: Draft, name: string, ref: SnapshotRef): void {
  const { metadata } = draft;
  const id = ref['snapshot-id'];
  if (snapshotById(metadata, id) === null) {
    // it may have expired since the client looked
    throw conflict('unknown-snapshot', `snapshot of ref ${describe(name)} is not in the table: ${id}`);
  }
  if (name === '' || !name.isWellFormed()) throw bad(`ref has no usable name: ${describe(name)}`);
  if (name === MAIN && ref.type !== 'branch') throw bad('main must be a branch');
  const before = own(metadata.refs, name);
  if (before !== undefined && before.type !== ref.type) throw bad(`ref cannot change its type: ${describe(name)}`);
  metadata.refs = { ...metadata.refs, ...Object.fromEntries([[name, ref]]) };
  if (name === MAIN) metadata['current-snapshot-id'] = id;
}

function removeRef(draft: Draft, name: string): void {
  const { metadata } = draft;
  metadata.refs = Object.fromEntries(Object.entries(metadata.refs).filter(([known]) => known !== name));
  if (name === MAIN) {
    delete metadata['current-snapshot-id'];
    draft.clearedLog = true;
  }
}

function withStatistics(metadata: TableMetadata, list: StatisticsFile[], entry: StatisticsFile): StatisticsFile[] {
  const id = entry['snapshot-id'];
  if (snapshotById(metadata, id) === null) throw bad(`snapshot of statistics is not in the table: ${id}`);
  return [...list.filter((known) => known['snapshot-id'] !== id), entry];
}

function finish(draft: Draft, log: TableMetadata['metadata-log']): TableMetadata {
  const { metadata, base } = draft;
  for (const [name, ref] of Object.entries(metadata.refs)) {
    if (snapshotById(metadata, ref['snapshot-id']) === null) {
      // X2, X5, B140: a ref may have been set on it since it was chosen for expiry
      throw conflict('snapshot-referenced', `snapshot is the target of ref ${describe(name)}: ${ref['snapshot-id']}`);
    }
  }
  if (draft.removedSnapshots) {
    const live = (entry: { 'snapshot-id': bigint }) => snapshotById(metadata, entry['snapshot-id']) !== null;
    metadata.statistics = metadata.statistics.filter(live);
    metadata['partition-statistics'] = metadata['partition-statistics'].filter(live);
  }
  checkRemovedSchemas(metadata, base);
  metadata['snapshot-log'] = snapshotLog(draft);
  metadata['metadata-log'] = log.slice(-metadataLogMax(metadata.properties));
  checkMetadata(metadata);
  return metadata;
}

/** A schema that a retained snapshot was written with stays: time travel reads through it. */
function checkRemovedSchemas(metadata: TableMetadata, base: TableMetadata | null): void {
  if (base === null || base.schemas === metadata.schemas) return;
  for (const snapshot of metadata.snapshots) {
    const id = snapshot['schema-id'];
    if (id !== undefined && schemaById(metadata, id) === null && schemaById(base, id) !== null) {
      throw bad(`schema is used by snapshot ${snapshot['snapshot-id']}: ${id}`);
    }
  }
}

/**
 * One entry more when `main` moved, at the commit's time; snapshots that were current only within this commit leave no
 * trace. After an expiry, what is older than the newest expired entry goes with it: history has no holes (M14).
 */
function snapshotLog(draft: Draft): TableMetadata['snapshot-log'] {
  const { metadata, base } = draft;
  let log = draft.clearedLog ? [] : metadata['snapshot-log'];
  if (draft.removedSnapshots) {
    const lost = log.findLastIndex((entry) => snapshotById(metadata, entry['snapshot-id']) === null);
    log = log.slice(lost + 1);
  }
  const current = metadata['current-snapshot-id'];
  if (current !== undefined && current !== base?.['current-snapshot-id']) {
    log = [...log, { 'timestamp-ms': draft.timeMs, 'snapshot-id': current }];
  }
  return log;
}

function bad(why: string): SluiceError {
  return invalid('bad-update', why);
}

import { invalid, rejected } from '../base/errors.ts';
import { METADATA_LIST_MAX, SNAPSHOTS_MAX, UPDATES_MAX } from '../base/limits.ts';
import { arrayAt, describe, idAt, int64At, malformed, objectAt, stringAt, stringMapAt } from '../base/shape.ts';
import { parsePartitionField } from './partition-spec.ts';
import type { Requirement } from './requirements.ts';
import { parseSchema } from './schema.ts';
import { optionalSnapshotId, parseRef, parseSnapshot, parseStatistics } from './snapshot-json.ts';
import { parseSortOrder } from './sort-order.ts';
import type { MetadataUpdate, UnboundSpec } from './updates.ts';

/** Checks the `updates` of a commit request. Throws invalid `malformed` and the like, or `unsupported-update`. */
export function parseUpdates(json: unknown, path = 'updates'): MetadataUpdate[] {
  return arrayAt(json, path, UPDATES_MAX).map((item, i) => parseUpdate(item, `${path}[${i}]`));
}

function parseUpdate(json: unknown, path: string): MetadataUpdate {
  const object = objectAt(json, path);
  const action = stringAt(object['action'], `${path}.action`);
  const at = (key: string) => `${path}.${key}`;
  const id = (key: string) => idAt(object[key], at(key));
  /** -1 is the one added last. */
  const idOrLast = (key: string) => (object[key] === -1 ? -1 : id(key));
  const ids = (key: string) =>
    arrayAt(object[key], at(key), METADATA_LIST_MAX).map((item, i) => idAt(item, `${at(key)}[${i}]`));
  switch (action) {
    case 'assign-uuid':
      return { action, uuid: stringAt(object['uuid'], at('uuid')) };
    case 'upgrade-format-version':
      return { action, 'format-version': id('format-version') };
    case 'add-schema':
      return { action, schema: parseSchema(object['schema'], at('schema')) };
    case 'set-current-schema':
      return { action, 'schema-id': idOrLast('schema-id') };
    case 'add-spec':
      return { action, spec: parseUnboundSpec(object['spec'], at('spec')) };
    case 'set-default-spec':
      return { action, 'spec-id': idOrLast('spec-id') };
    case 'add-sort-order':
      return { action, 'sort-order': parseSortOrder(object['sort-order'], at('sort-order')) };
    case 'set-default-sort-order':
      return { action, 'sort-order-id': idOrLast('sort-order-id') };
    case 'add-snapshot':
      return { action, snapshot: parseSnapshot(object['snapshot'], at('snapshot')) };
    case 'set-snapshot-ref':
      return { action, 'ref-name': stringAt(object['ref-name'], at('ref-name')), ...parseRef(json, path) };
    case 'remove-snapshots':
      return {
        action,
        'snapshot-ids': arrayAt(object['snapshot-ids'], at('snapshot-ids'), SNAPSHOTS_MAX).map((item, i) =>
          int64At(item, `${at('snapshot-ids')}[${i}]`),
        ),
      };
    case 'remove-snapshot-ref':
      return { action, 'ref-name': stringAt(object['ref-name'], at('ref-name')) };
    case 'set-location':
      return { action, location: stringAt(object['location'], at('location')) };
    case 'set-properties':
      return { action, updates: stringMapAt(object['updates'], at('updates')) };
    case 'remove-properties':
      return {
        action,
        removals: arrayAt(object['removals'], at('removals'), METADATA_LIST_MAX).map((item, i) =>
          stringAt(item, `${at('removals')}[${i}]`),
        ),
      };
    case 'set-statistics':
      return { action, statistics: parseStatistics(object['statistics'], at('statistics')) };
    case 'set-partition-statistics':
      return {
        action,
        'partition-statistics': parseStatistics(object['partition-statistics'], at('partition-statistics')),
      };
    case 'remove-statistics':
    case 'remove-partition-statistics':
      return { action, 'snapshot-id': int64At(object['snapshot-id'], at('snapshot-id')) };
    case 'remove-schemas':
      return { action, 'schema-ids': ids('schema-ids') };
    case 'remove-partition-specs':
      return { action, 'spec-ids': ids('spec-ids') };
    case 'add-encryption-key':
    case 'remove-encryption-key':
    case 'enable-row-lineage':
      throw rejected('unsupported-update', `update needs a later format version than 2: ${action}`, { path });
    default:
      throw invalid('unsupported-update', `update is not known: ${describe(action)}`, { path });
  }
}

/** Checks a partition spec whose field ids may be missing, in a request. */
export function parseUnboundSpec(json: unknown, path = 'spec'): UnboundSpec {
  const object = objectAt(json, path);
  const fields = arrayAt(object['fields'], `${path}.fields`, METADATA_LIST_MAX).map((item, i) => {
    const { id, ...field } = parsePartitionField(item, `${path}.fields[${i}]`);
    return id === null ? field : { ...field, 'field-id': id };
  });
  return { fields };
}

/** Checks the `requirements` of a commit request. */
export function parseRequirements(json: unknown, path = 'requirements'): Requirement[] {
  return arrayAt(json, path, UPDATES_MAX).map((item, i) => parseRequirement(item, `${path}[${i}]`));
}

function parseRequirement(json: unknown, path: string): Requirement {
  const object = objectAt(json, path);
  const type = stringAt(object['type'], `${path}.type`);
  const id = (key: string) => idAt(object[key], `${path}.${key}`);
  switch (type) {
    case 'assert-create':
      return { type };
    case 'assert-table-uuid':
      return { type, uuid: stringAt(object['uuid'], `${path}.uuid`) };
    case 'assert-ref-snapshot-id': {
      const value = object['snapshot-id'];
      // the protocol wants the key: left out by mistake, it must not mean "the ref does not exist"
      if (value === undefined) throw malformed(`${path}.snapshot-id`, 'a snapshot id or null', value);
      const ref = stringAt(object['ref'], `${path}.ref`);
      return { type, ref, 'snapshot-id': optionalSnapshotId(value, `${path}.snapshot-id`) ?? null };
    }
    case 'assert-last-assigned-field-id':
      return { type, 'last-assigned-field-id': id('last-assigned-field-id') };
    case 'assert-current-schema-id':
      return { type, 'current-schema-id': id('current-schema-id') };
    case 'assert-last-assigned-partition-id':
      return { type, 'last-assigned-partition-id': id('last-assigned-partition-id') };
    case 'assert-default-spec-id':
      return { type, 'default-spec-id': id('default-spec-id') };
    case 'assert-default-sort-order-id':
      return { type, 'default-sort-order-id': id('default-sort-order-id') };
    default:
      throw invalid('unsupported-requirement', `requirement is not known: ${describe(type)}`, { path });
  }
}

import { unreachable } from '../base/assert.ts';
import { own } from '../base/shape.ts';
import type { TableMetadata } from './types.ts';
import type { MetadataUpdate } from './updates.ts';

/** What must hold of the base for a change to be made on it, as the REST protocol spells it. */
export type Requirement =
  | { type: 'assert-create' }
  | { type: 'assert-table-uuid'; uuid: string }
  /** Null: the ref must not exist (R2). */
  | { type: 'assert-ref-snapshot-id'; ref: string; 'snapshot-id': bigint | null }
  | { type: 'assert-last-assigned-field-id'; 'last-assigned-field-id': number }
  | { type: 'assert-current-schema-id'; 'current-schema-id': number }
  | { type: 'assert-last-assigned-partition-id'; 'last-assigned-partition-id': number }
  | { type: 'assert-default-spec-id'; 'default-spec-id': number }
  | { type: 'assert-default-sort-order-id'; 'default-sort-order-id': number };

export interface RequirementFailure {
  requirement: Requirement;
  /** Lower case, subject first: `current schema has changed: expected 1, found 2`. */
  message: string;
}

/** Requirements that the metadata does not meet; null is a table that does not exist. Empty: all hold. */
export function checkRequirements(
  metadata: TableMetadata | null,
  requirements: readonly Requirement[],
): RequirementFailure[] {
  const failures: RequirementFailure[] = [];
  for (const requirement of requirements) {
    const message = failureOf(metadata, requirement);
    if (message !== null) failures.push({ requirement, message });
  }
  return failures;
}

function failureOf(metadata: TableMetadata | null, requirement: Requirement): string | null {
  if (requirement.type === 'assert-create') return metadata === null ? null : 'table exists already';
  if (metadata === null) return 'table does not exist';
  switch (requirement.type) {
    case 'assert-table-uuid':
      return compare('table uuid', requirement.uuid.toLowerCase(), metadata['table-uuid'].toLowerCase());
    case 'assert-ref-snapshot-id': {
      const found = own(metadata.refs, requirement.ref)?.['snapshot-id'] ?? null;
      return compare(`ref ${requirement.ref}`, requirement['snapshot-id'], found);
    }
    case 'assert-last-assigned-field-id':
      return compare('last field id', requirement['last-assigned-field-id'], metadata['last-column-id']);
    case 'assert-current-schema-id':
      return compare('current schema', requirement['current-schema-id'], metadata['current-schema-id']);
    case 'assert-last-assigned-partition-id':
      return compare('last partition id', requirement['last-assigned-partition-id'], metadata['last-partition-id']);
    case 'assert-default-spec-id':
      return compare('default spec', requirement['default-spec-id'], metadata['default-spec-id']);
    case 'assert-default-sort-order-id':
      return compare('default sort order', requirement['default-sort-order-id'], metadata['default-sort-order-id']);
    default:
      return unreachable(requirement);
  }
}

function compare<T extends string | number | bigint | null>(what: string, expected: T, found: T): string | null {
  if (expected === found) return null;
  return `${what} has changed: expected ${expected ?? 'none'}, found ${found ?? 'none'}`;
}

/**
 * Requirements under which `updates`, made from `base`, may be applied to a later state: the parts they build on are
 * unchanged. The table's identity always; a ref that is moved; ids that were handed out; defaults that are replaced;
 * and where something is removed that others may have begun to use, what shows such use. Null base: a creation.
 */
export function deriveRequirements(base: TableMetadata | null, updates: readonly MetadataUpdate[]): Requirement[] {
  if (base === null) return [{ type: 'assert-create' }];
  const derived = new Map<string, Requirement>();
  const add = (requirement: Requirement, key: string = requirement.type) => {
    if (!derived.has(key)) derived.set(key, requirement);
  };
  const sameRef = (ref: string) => {
    const id = own(base.refs, ref)?.['snapshot-id'] ?? null;
    add({ type: 'assert-ref-snapshot-id', ref, 'snapshot-id': id }, `assert-ref-snapshot-id ${ref}`);
  };
  const sameBranches = () => {
    for (const [name, ref] of Object.entries(base.refs)) if (ref.type === 'branch') sameRef(name);
  };
  const sameSchema = () => add({ type: 'assert-current-schema-id', 'current-schema-id': base['current-schema-id'] });
  const sameSpec = () => add({ type: 'assert-default-spec-id', 'default-spec-id': base['default-spec-id'] });
  add({ type: 'assert-table-uuid', uuid: base['table-uuid'] });
  for (const update of updates) {
    switch (update.action) {
      case 'add-schema':
        add({ type: 'assert-last-assigned-field-id', 'last-assigned-field-id': base['last-column-id'] });
        break;
      case 'set-current-schema':
        sameSchema();
        break;
      case 'add-spec':
        add({ type: 'assert-last-assigned-partition-id', 'last-assigned-partition-id': base['last-partition-id'] });
        break;
      case 'set-default-spec':
        sameSpec();
        break;
      case 'set-default-sort-order':
        add({ type: 'assert-default-sort-order-id', 'default-sort-order-id': base['default-sort-order-id'] });
        break;
      case 'set-snapshot-ref':
      case 'remove-snapshot-ref':
        sameRef(update['ref-name']);
        break;
      case 'remove-schemas':
        sameSchema();
        sameBranches();
        break;
      case 'remove-partition-specs':
        sameSpec();
        sameBranches();
        break;
      default:
        break;
    }
  }
  return [...derived.values()];
}

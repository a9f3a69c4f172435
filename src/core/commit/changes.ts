import { CHANGES_KEPT_MAX } from '../base/limits.ts';
import { own } from '../base/shape.ts';
import type { MetadataUpdate } from '../iceberg/updates.ts';
import type { Found } from '../sink.ts';
import type { IcebergBase } from './iceberg-base.ts';

/**
 * Finding a change whose snapshot does not tell. A snapshot's summary carries the id of its commit, but a change of metadata
 * alone has no such place, and a delete or overwrite whose answer comes late may find its snapshot expired: done again, it
 * would take rows that came in between. So a table property lists the ids of our last ones, newest first. Other writers carry
 * properties on, and so does every commit of ours, also across a drop and a re-creation.
 */
export const CHANGES_KEY = 'sluice.changes';

/** Value of the property after the commit `commitId` (hexadecimal), which goes first. */
export function changesAfter(properties: Readonly<Record<string, string>>, commitId: string): string {
  const before = changesOf(properties).filter((id) => id !== commitId);
  return [commitId, ...before].slice(0, CHANGES_KEPT_MAX).join(' ');
}

/** The commit `commitId` put into the list of the version that it makes of `properties`. */
export function listChange(properties: Readonly<Record<string, string>>, commitId: string): MetadataUpdate {
  return { action: 'set-properties', updates: { [CHANGES_KEY]: changesAfter(properties, commitId) } };
}

/** The commit in the list of a base; the version is that of the base, which it is at or below. */
export function findChange(base: IcebergBase, commitId: string): Found | null {
  return changesOf(base.metadata.properties).includes(commitId) ? { snapshotId: null, version: base.version } : null;
}

function changesOf(properties: Readonly<Record<string, string>>): string[] {
  return (own(properties, CHANGES_KEY) ?? '').split(' ').filter((id) => id !== '');
}

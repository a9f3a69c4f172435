import type { TableMetadata } from '../../src/core/iceberg/types.ts';
import type { AvroFile } from './avro.ts';
import type { Finding } from './finding.ts';
import type { JsonObject } from './json.ts';
import type { FileProfile } from './profile.ts';

/**
 * What was read before, for a simulation that validates after each step. Metadata and Avro files are taken from it only
 * when their bytes are the same; data files by key and size, so that they need not be read (M20: they never change).
 */
export interface ValidatorCache {
  /** By key, size and the table's schemas, specs and sort orders. */
  profiles: Map<string, FileProfile>;
  containers: Map<string, Same<AvroFile>>;
  versions: Map<string, Same<{ raw: JsonObject; metadata: TableMetadata }>>;
  /** What was found between two versions, by the key of the later one. */
  steps: Map<string, { before: JsonObject; after: JsonObject; findings: Finding[] }>;
}

interface Same<T> {
  bytes: Uint8Array;
  value: T;
}

export function newCache(): ValidatorCache {
  return { profiles: new Map(), containers: new Map(), versions: new Map(), steps: new Map() };
}

/** The value made from these bytes before, or made now. */
export function sameOr<T>(known: Map<string, Same<T>>, key: string, bytes: Uint8Array, make: () => T): T {
  const found = known.get(key);
  if (found !== undefined && isSame(found.bytes, bytes)) return found.value;
  const value = make();
  known.set(key, { bytes: Uint8Array.from(bytes), value });
  return value;
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

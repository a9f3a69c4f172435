import { corrupt } from '../core/base/errors.ts';
import { codecs } from '../engine/codecs.ts';
import type { Clock, Random } from '../engine/ports.ts';
import { persevere } from '../engine/uploader.ts';
import { r2Store } from '../store/r2.ts';
import type { Store } from '../store/store.ts';
import type { ReadBudget } from './budget.ts';

/** What reading rows needs of the world around it. */
export interface ReadPorts {
  store: Store;
  clock: Clock;
  random: Random;
  codecs: typeof codecs;
}

/** Ports over a bucket. */
export function readPorts(bucket: R2Bucket, ports: { clock: Clock; random: Random }): ReadPorts {
  return { store: r2Store(bucket), ...ports, codecs };
}

/** The whole of a file of the snapshot. Throws corrupt with the slug of what is missing; StoreError. */
export async function readWhole(
  ports: ReadPorts,
  budget: ReadBudget,
  key: string,
  missing: string,
): Promise<Uint8Array> {
  const stored = await persevere(ports, () => ports.store.get(key));
  if (stored === null) throw corrupt(missing, `file of the snapshot is missing: ${key}`);
  budget.spend(stored.bytes.length);
  return stored.bytes;
}

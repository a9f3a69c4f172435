import type { Decompress, Deflate, Digest } from '../core/base/codecs.ts';
import { corrupt } from '../core/base/errors.ts';
import type { Clock, Random } from '../engine/ports.ts';
import { persevere } from '../engine/uploader.ts';
import type { Store } from '../store/store.ts';
import type { ReadBudget } from './budget.ts';

/** What reading rows needs of the world around it. */
export interface ReadPorts {
  store: Store;
  clock: Clock;
  random: Random;
  codecs: { decompress: Decompress; deflate: Deflate; digest: Digest };
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

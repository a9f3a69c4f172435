import { CONNECTIONS_MAX, STORE_BACKOFF, STORE_TRIES_MAX } from '../core/base/limits.ts';
import { backoffMs } from '../core/commit/backoff.ts';
import type { Upload } from '../core/sink.ts';
import { type Store, StoreError } from '../store/store.ts';
import type { Clock, Random } from './ports.ts';

/** A number of 32 random bits. */
export function draw(random: Random): number {
  const bytes = random.bytes(4);
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);
}

/**
 * Repeats a request that is harmless to repeat: a read, or the creation of a content-named object. Not for the
 * conditional write of a version, whose ambiguity its caller must see.
 *
 * @throws StoreError of the last try
 */
export async function persevere<T>(ports: { clock: Clock; random: Random }, request: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await request();
    } catch (error) {
      if (!(error instanceof StoreError) || attempt >= STORE_TRIES_MAX) throw error;
      await ports.clock.sleep(backoffMs(attempt, draw(ports.random), STORE_BACKOFF));
    }
  }
}

/** Runs tasks in order, at most `CONNECTIONS_MAX` at a time. After a failure no further task starts; the first error is thrown once the running ones ended. */
export async function runBounded(tasks: readonly (() => Promise<unknown>)[]): Promise<void> {
  let next = 0;
  let failed: { error: unknown } | null = null;
  const lane = async () => {
    while (next < tasks.length && failed === null) {
      const task = tasks[next++];
      try {
        await task();
      } catch (error) {
        failed ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONNECTIONS_MAX, tasks.length) }, lane));
  if (failed !== null) throw (failed as { error: unknown }).error;
}

/** Tasks that create each object. `exists` is success: such keys are made of their content. */
export function uploadTasks(
  ports: { store: Store; clock: Clock; random: Random },
  uploads: readonly Upload[],
): (() => Promise<unknown>)[] {
  return uploads.map((upload) => () => persevere(ports, () => ports.store.putIfAbsent(upload.key, upload.bytes)));
}

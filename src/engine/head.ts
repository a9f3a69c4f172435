import { type Store, StoreError } from '../store/store.ts';

/**
 * Deletes an engine's head object beside a table whose columns changed: it may hold an index of the old ones (contract,
 * section 6), and is a cache. A failure leaves a head of an older version, which readers of the engine look past.
 */
export async function forgetHead(store: Store, prefix: string): Promise<void> {
  await store.delete([`${prefix}/metadata/timelake-head`]).catch((error) => {
    if (!(error instanceof StoreError)) throw error;
  });
}

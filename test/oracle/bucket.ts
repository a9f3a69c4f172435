import type { Store } from '../../src/store/store.ts';

/** What the oracles need of an object store: whole objects and names. They never write. */
export interface Bucket {
  /** The object's bytes, or null when it is missing. */
  get(key: string): Promise<Uint8Array | null>;
  /** All objects whose key begins with `prefix`, in key order. */
  list(prefix: string): Promise<Listing[]>;
}

export interface Listing {
  key: string;
  size: number;
}

function inOrder(listing: Listing[]): Listing[] {
  return listing.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
}

/** A bucket over a map from key to bytes, as the mutation tests and the simulator have it. */
export function mapBucket(objects: ReadonlyMap<string, Uint8Array>): Bucket {
  return {
    get: async (key) => objects.get(key) ?? null,
    list: async (prefix) =>
      inOrder(
        [...objects].filter(([key]) => key.startsWith(prefix)).map(([key, bytes]) => ({ key, size: bytes.length })),
      ),
  };
}

/** A bucket over the service's own store port. */
export function storeBucket(store: Pick<Store, 'get' | 'list'>): Bucket {
  return {
    get: async (key) => (await store.get(key))?.bytes ?? null,
    list: async (prefix) => {
      const found: Listing[] = [];
      for await (const { key, size } of store.list(prefix)) found.push({ key, size });
      return inOrder(found);
    },
  };
}

/** A bucket over an R2 binding. */
export function r2Bucket(bucket: R2Bucket): Bucket {
  return {
    get: async (key) => {
      const object = await bucket.get(key);
      return object === null ? null : new Uint8Array(await object.arrayBuffer());
    },
    list: async (prefix) => {
      const found: Listing[] = [];
      let cursor: string | undefined;
      do {
        const page: R2Objects = await bucket.list(cursor === undefined ? { prefix } : { prefix, cursor });
        for (const { key, size } of page.objects) found.push({ key, size });
        cursor = page.truncated ? page.cursor : undefined;
      } while (cursor !== undefined);
      return inOrder(found);
    },
  };
}

/** Remembers what was read and listed: for the validator, which looks at one object from several sides. */
export function cachingBucket(bucket: Bucket): Bucket {
  const seen = new Map<string, Promise<Uint8Array | null>>();
  return {
    get: (key) => {
      const known = seen.get(key) ?? bucket.get(key);
      seen.set(key, known);
      return known;
    },
    list: (prefix) => bucket.list(prefix),
  };
}

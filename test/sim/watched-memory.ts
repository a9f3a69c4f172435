import { MemoryStore } from '../../src/store/memory.ts';
import type { Created, Listed, Multipart, Replaced, Store, Stored } from '../../src/store/store.ts';

/** A change of the bucket. `by`: the client whose request it was. */
export interface Mutation {
  kind: 'created' | 'replaced' | 'deleted';
  key: string;
  by: string;
}

/** The bucket of a simulation: it tells what changed, and who changed it. */
export class WatchedMemory extends MemoryStore {
  /** Who acts now. Effects happen at the call, so that one variable is enough. */
  acting = 'nobody';
  /** Called with every change, in order, when it has happened. */
  onMutation: (mutation: Mutation) => void = () => undefined;
  /** Called with every conditional write that found the key taken. */
  onExists: (key: string, by: string) => void = () => undefined;

  readonly #there = new Set<string>();

  /** Whether a key holds an object, at once. */
  has(key: string): boolean {
    return this.#there.has(key);
  }

  override async putIfAbsent(key: string, bytes: Uint8Array): Promise<Created> {
    const taken = this.has(key);
    const answer = super.putIfAbsent(key, bytes);
    if (taken) this.onExists(key, this.acting);
    return answer;
  }

  override async delete(keys: readonly string[]): Promise<void> {
    const there = keys.filter((key) => this.#there.delete(key));
    const answer = super.delete(keys);
    for (const key of there) this.onMutation({ kind: 'deleted', key, by: this.acting });
    return answer;
  }

  override plant(key: string, bytes: Uint8Array, etag?: string): string {
    const kind = this.has(key) ? 'replaced' : 'created';
    const made = super.plant(key, bytes, etag);
    this.#there.add(key);
    this.onMutation({ kind, key, by: this.acting });
    return made;
  }

  /** An object whose bytes are not what they were, and no client has done it. */
  harm(key: string, bytes: Uint8Array): void {
    super.plant(key, bytes);
  }

  /** The bucket as one client reaches it: what it changes is put down to it. */
  as(by: string): Store {
    const acted = <T>(act: () => T): T => {
      const before = this.acting;
      this.acting = by;
      try {
        return act();
      } finally {
        this.acting = before;
      }
    };
    return {
      get: (key: string): Promise<Stored | null> => this.get(key),
      getRange: (key: string, offset: number, length: number) => this.getRange(key, offset, length),
      head: (key: string): Promise<Listed | null> => this.head(key),
      putIfAbsent: (key: string, bytes: Uint8Array): Promise<Created> => acted(() => this.putIfAbsent(key, bytes)),
      putIf: (key: string, bytes: Uint8Array, etag: string): Promise<Replaced> =>
        acted(() => this.putIf(key, bytes, etag)),
      delete: (keys: readonly string[]) => acted(() => this.delete(keys)),
      list: (prefix: string, after?: string) => this.list(prefix, after),
      listFolders: (prefix: string) => this.listFolders(prefix),
      multipart: (key: string): Promise<Multipart> => acted(() => this.multipart(key)),
      abortUpload: (key: string, uploadId: string): Promise<void> => acted(() => this.abortUpload(key, uploadId)),
    };
  }
}

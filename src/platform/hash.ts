import { createHash } from 'node:crypto';
import type { Digest } from '../core/base/codecs.ts';

/** SHA-256 of the parts in order. */
export const sha256: Digest = (parts) => {
  const digest = incrementalSha256();
  for (const part of parts) digest.update(part);
  return digest.finish();
};

/** A digest that is fed piece by piece. `finish` is called once, at the end; 32 bytes. */
export interface IncrementalDigest {
  update(bytes: Uint8Array): void;
  finish(): Uint8Array;
}

/** SHA-256 of a stream. */
export function incrementalSha256(): IncrementalDigest {
  const hash = createHash('sha256');
  return {
    update: (bytes) => {
      hash.update(bytes);
    },
    finish: () => new Uint8Array(hash.digest()),
  };
}

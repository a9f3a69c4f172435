import { assert } from '../base/assert.ts';
import type { Compress, Deflate, Digest } from '../base/codecs.ts';
import { SluiceError } from '../base/errors.ts';
import type { Frame } from '../batch/frame.ts';
import type { Intent } from '../batch/intent.ts';
import { type LeftOut, serializeLeftOut } from '../batch/left-out.ts';
import { progressOf } from '../batch/select.ts';
import { MAIN } from '../iceberg/snapshot.ts';
import type { TableMetadata } from '../iceberg/types.ts';
import { evolvedBy } from './evolve.ts';
import { makeFiles, planOf, rowsOf } from './make-files.ts';
import type { AppendOperation } from './operation.ts';

export interface AppendInput {
  intent: Intent;
  /** Not empty, in order of sequence; all of them are committed. */
  frames: readonly Frame[];
  /** Where the commit ends, and what it leaves out on the way. */
  last: number;
  leftOut: readonly LeftOut[];
  /** The base whose schema, spec and order the files are made for. */
  metadata: TableMetadata;
  place: { location: string; prefix: string };
  compress: Compress;
  deflate: Deflate;
  digest: Digest;
}

/**
 * Makes the files of a flush, once for all attempts: rows in the table's schema, with the ingest time filled in, split
 * by partition, sorted, duplicates dropped, encoded; and one manifest that describes them. Nothing in it depends on
 * the parent snapshot. The names come from the bytes, so making it again can only make the same objects or new ones.
 *
 * @throws corrupt `frame-corrupt`, `metadata-corrupt`; rejected `incompatible-type`, `null-in-required-column`;
 * invalid `too-many-partitions`; and as `evolvedBy`
 */
export function prepareAppend(input: AppendInput): AppendOperation {
  const { intent, frames } = input;
  assert(frames.length > 0, 'an append has at least one frame');
  const { metadata, evolution } = evolvedBy(frames, input.metadata);
  const made = makeFiles(rowsOf(frames, metadata, intent.timeMs), { ...input, metadata, identity: intent });
  return {
    kind: 'append',
    commitId: intent.commitId,
    uploads: made.uploads,
    intent,
    branch: intent.branch ?? MAIN,
    first: BigInt(frames[0].sequence),
    last: BigInt(input.last),
    layout: made.layout,
    evolution,
    progress: progressOf(frames),
    leftOut: input.leftOut.length === 0 ? null : serializeLeftOut(input.leftOut),
    manifest: made.manifest,
    added: made.added,
    newest: made.newest,
    batchId: frames.length === 1 ? frames[0].batchId : null,
  };
}

/**
 * Frames that do not fit the table any more, or not the columns that those before them bring, with the reason: asked one by
 * one after they failed together, so that one refused batch does not hold up the others.
 */
export function unfitFrames(input: AppendInput): Map<number, string> {
  const unfit = new Map<number, string>();
  let { metadata } = input;
  for (const frame of input.frames) {
    try {
      const evolved = evolvedBy([frame], metadata).metadata;
      planOf(rowsOf([frame], evolved, input.intent.timeMs), evolved);
      metadata = evolved;
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error;
      unfit.set(frame.sequence, error.type);
    }
  }
  return unfit;
}

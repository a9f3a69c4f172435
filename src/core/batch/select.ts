import { placeOf } from './admission.ts';
import { type Epochs, ownApp } from './epochs.ts';
import type { Frame } from './frame.ts';
import { fitting, type LeftOut } from './left-out.ts';

/** What one commit on a certain base takes of a range of frames. */
export interface Selection {
  /** In order; may be empty. */
  included: Frame[];
  /** In order of sequence. */
  leftOut: readonly LeftOut[];
  /** Where the commit ends: frames behind it stay in the buffer. */
  last: number;
}

/**
 * Decides batch by batch against the progress of a base. Ranges are compared, not equality: a part of the range, or of a
 * producer's epochs, may have been committed by somebody else. A refused batch holds up its own app and nobody else.
 *
 * - `refused`: frames found unfit for the base's schema, with the reason;
 * - `parked`: apps that are held up already.
 */
export function select(
  frames: readonly Frame[],
  input: {
    epochs: Epochs;
    ledgerId: string;
    /** The branch they are for; main when absent. */
    branch?: string;
    refused: ReadonlyMap<number, string>;
    parked: ReadonlySet<string>;
  },
): Selection {
  const watermarks = new Map(input.epochs);
  const own = watermarks.get(ownApp(input.ledgerId, input.branch)) ?? 0n;
  const held = new Set(input.parked);
  const included: Frame[] = [];
  const leftOut: LeftOut[] = [];
  for (const frame of frames) {
    const verdict = judge(frame);
    if (verdict === null) included.push(frame);
    else leftOut.push({ sequence: frame.sequence, ...verdict });
  }
  const kept = fitting(leftOut);
  const next = leftOut[kept.length];
  const last = next === undefined ? (frames[frames.length - 1]?.sequence ?? 0) : next.sequence - 1;
  return { included: included.filter((frame) => frame.sequence <= last), leftOut: kept, last };

  function judge({ sequence, producer }: Frame): Omit<LeftOut, 'sequence'> | null {
    if (BigInt(sequence) <= own) return passed(producer);
    const reason = input.refused.get(sequence);
    if (producer === null) return reason === undefined ? null : { outcome: 'refused', type: reason };
    const { app, epoch } = producer;
    if (held.has(app)) return { outcome: 'parked', type: 'app-parked' };
    const place = placeOf(producer, watermarks.get(app) ?? null);
    if (place === 'committed') return { outcome: 'committed', type: '' };
    if (place === 'gap') return { outcome: 'refused', type: 'epoch-gap' };
    if (reason !== undefined) {
      held.add(app);
      return { outcome: 'parked', type: reason };
    }
    watermarks.set(app, epoch);
    return null;
  }

  /**
   * A frame that a commit of this ledger has gone past: in the table, or left out of it by a snapshot that nobody can read
   * any more. Where the producer's own progress is behind, it was left out: then it is its owner's to decide.
   */
  function passed(producer: Frame['producer']): Omit<LeftOut, 'sequence'> {
    const watermark = producer === null ? null : (watermarks.get(producer.app) ?? null);
    if (producer === null || (watermark !== null && producer.epoch <= watermark))
      return { outcome: 'committed', type: '' };
    held.add(producer.app);
    return { outcome: 'parked', type: 'epoch-left-out' };
  }
}

/** Progress of one app that a commit brings: its epochs `first` to `last`. */
export interface AppProgress {
  first: bigint;
  last: bigint;
  /** Whether the first may leave a gap to the watermark before it. */
  sparse: boolean;
}

/** Per app, what the frames bring. */
export function progressOf(frames: readonly Frame[]): Map<string, AppProgress> {
  const progress = new Map<string, AppProgress>();
  for (const { producer } of frames) {
    if (producer === null) continue;
    const known = progress.get(producer.app);
    if (known === undefined) {
      progress.set(producer.app, { first: producer.epoch, last: producer.epoch, sparse: producer.sparse });
    } else {
      known.last = producer.epoch;
    }
  }
  return progress;
}

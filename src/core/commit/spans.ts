import type { ReplaceInput } from './operation.ts';
import { tupleKey } from './select-files.ts';

/** Data sequence numbers of a run of files that are to be replaced. Its outputs get the highest. */
export interface Span {
  lowest: bigint;
  highest: bigint;
}

/** Spans of the runs in each partition (`tupleKey` under spec 0: all are of one spec). A run is told by its highest number. */
export function spansOf(inputs: readonly ReplaceInput[]): Map<string, Span[]> {
  const spans = new Map<string, Span[]>();
  for (const { partition, sequenceNumber, highest } of inputs) {
    const key = tupleKey(0, partition);
    const list = spans.get(key) ?? [];
    const span = list.find((known) => known.highest === highest);
    if (span === undefined) list.push({ lowest: sequenceNumber, highest });
    else if (sequenceNumber < span.lowest) span.lowest = sequenceNumber;
    spans.set(key, list);
  }
  return spans;
}

/**
 * True when rows of a file with this number would change sides with rows of the run: older ones of the run get its highest
 * number. Files of one commit share a number and no key, so one beside the lowest is harmless, one beside the highest not.
 */
export function isBetween(sequenceNumber: bigint, { lowest, highest }: Span): boolean {
  return sequenceNumber > lowest && sequenceNumber <= highest;
}

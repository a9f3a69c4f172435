import { corrupt } from '../base/errors.ts';
import { LEFT_OUT_RUNS_MAX } from '../base/limits.ts';

/**
 * Batches of an intent's range that its commit does not hold, with what becomes of them. The snapshot says so itself: an
 * incarnation that finds the commit in the chain must settle the same batches the same way as the one that made it.
 */
export interface LeftOut {
  sequence: number;
  outcome: 'committed' | 'refused' | 'parked';
  /** Slug of the reason; empty for `committed` (in the table already, by another commit). */
  type: string;
}

/** Summary key. */
export const LEFT_OUT_KEY = 'sluice.left-out';

/**
 * The longest beginning of a list, in order of sequence, that fits a summary: neighbours of one kind are one run, and
 * there are at most `LEFT_OUT_RUNS_MAX` runs.
 */
export function fitting(list: readonly LeftOut[]): readonly LeftOut[] {
  let runs = 0;
  for (let index = 0; index < list.length; index++) {
    if (index === 0 || !continues(list[index - 1], list[index])) runs++;
    if (runs > LEFT_OUT_RUNS_MAX) return list.slice(0, index);
  }
  return list;
}

function continues(a: LeftOut, b: LeftOut): boolean {
  return b.sequence === a.sequence + 1 && b.outcome === a.outcome && b.type === a.type;
}

/** Compact JSON: `[["parked","incompatible-type",7,9],["committed","",12,12]]`. */
export function serializeLeftOut(list: readonly LeftOut[]): string {
  const runs: [string, string, number, number][] = [];
  list.forEach((one, index) => {
    const run = runs[runs.length - 1];
    if (run !== undefined && continues(list[index - 1], one)) run[3] = one.sequence;
    else runs.push([one.outcome, one.type, one.sequence, one.sequence]);
  });
  return JSON.stringify(runs);
}

/** @throws corrupt `left-out-corrupt` */
export function parseLeftOut(text: string | undefined): LeftOut[] {
  if (text === undefined) return [];
  const broken = () =>
    corrupt('left-out-corrupt', `batches left out of a commit cannot be read: ${text.slice(0, 100)}`);
  let runs: unknown;
  try {
    runs = JSON.parse(text);
  } catch {
    throw broken();
  }
  if (!Array.isArray(runs) || runs.length > LEFT_OUT_RUNS_MAX) throw broken();
  const list: LeftOut[] = [];
  for (const run of runs) {
    const [outcome, type, first, last] = Array.isArray(run) ? run : [];
    const isKnown = outcome === 'committed' || outcome === 'refused' || outcome === 'parked';
    const isRange = Number.isSafeInteger(first) && Number.isSafeInteger(last) && first <= last && last - first < 1e6;
    if (!isKnown || typeof type !== 'string' || !isRange) throw broken();
    for (let sequence = first; sequence <= last; sequence++) list.push({ sequence, outcome, type });
  }
  return list;
}

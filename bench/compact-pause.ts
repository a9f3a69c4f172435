/** How long rows wait while files are merged: acknowledgements, and commits that their senders wait for. */
import { START_MS, sensorBody } from './append-rows.ts';
import { type Case, type Merged, merge, post } from './compact-tables.ts';
import { type Spread, spread } from './report.ts';

/** Rows of the probes are of another day than those that are merged. */
const PROBE_MS = START_MS + 5 * 86_400_000;
const ACKNOWLEDGED_EVERY_MS = 10;

/** Commits of a table are a second apart at least: who comes later than that waits for the commit alone. */
const COMMITTED_EVERY_MS = 1_200;

/** Times of requests that were under way together, the longest of each kind among them. */
export interface Waits {
  acknowledged: { requests: number; medianMs: number; longestMs: number };
  committed: { requests: number; medianMs: number; longestMs: number };
}

export interface Pauses {
  /** The largest slice that was under way. */
  sliceBytes: number;
  sliceMs: number;
  /** Before it. */
  idle: Waits;
  beside: Waits;
}

/** Merges the files of a table while one row after the other is sent. */
export async function pausesOf(url: string, { full }: Case, idleMs: number): Promise<Pauses> {
  let seed = 0;
  const row = () => sensorBody(1, { startMs: PROBE_MS + 1000 * seed, spanMs: 1000, seed: seed++ });
  const { waits: idle } = await during(url, row, () => after(idleMs));
  const start = performance.now();
  const { waits: beside, result } = await during(url, row, () => merge(url, full));
  const sliceMs = Math.round(performance.now() - start);
  const sliceBytes = result.reduce((most: number, slice: Merged) => Math.max(most, slice.bytes), 0);
  return { sliceBytes, sliceMs, idle, beside };
}

async function during<T>(
  url: string,
  row: () => Uint8Array,
  work: () => Promise<T>,
): Promise<{ waits: Waits; result: T }> {
  let isOver = false;
  const result = work().finally(() => {
    isOver = true;
  });
  const probe = async (status: number, headers: Record<string, string>, everyMs: number): Promise<number[]> => {
    const times: number[] = [];
    do {
      const body = row();
      const start = performance.now();
      await post(url, body, status, headers);
      times.push(performance.now() - start);
      await Promise.race([after(everyMs), result]);
    } while (!isOver);
    return times;
  };
  const [acknowledged, committed] = await Promise.all([
    probe(202, {}, ACKNOWLEDGED_EVERY_MS),
    probe(201, { prefer: 'wait=60' }, COMMITTED_EVERY_MS),
  ]);
  return { waits: { acknowledged: waitsOf(acknowledged), committed: waitsOf(committed) }, result: await result };
}

function waitsOf(times: readonly number[]): Waits['acknowledged'] {
  const { median, max }: Spread = spread(times);
  return { requests: times.length, medianMs: median, longestMs: max };
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

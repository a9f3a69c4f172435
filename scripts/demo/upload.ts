import { setTimeout as sleep } from 'node:timers/promises';
import { type Batch, batchOf, type TableClient, type TableState } from './client.ts';
import type { DataSet } from './data-sets.ts';
import type { Engine } from './engine.ts';
import { count, type Progress } from './progress.ts';

export interface Uploaded {
  rows: number;
  batches: number;
  retries: number;
  /** Snapshots that hold the batches, by the receipts. */
  snapshots: number;
  /** From the first row read to the last answer. */
  sendMs: number;
  /** From the last answer to the last commit. */
  commitMs: number;
  /** Of the sending, time in which the source was read and turned into JSON, and in which bodies were compressed. */
  readMs: number;
  zipMs: number;
  /** One batch was sent a second time under its key, and the service knew it. */
  resent: boolean;
}

const STATE_INTERVAL_MS = 500;
const COMMIT_TIMEOUT_MS = 120_000;

/** Streams a data set into its table, waits until every batch is committed, and asks for each receipt. */
export async function upload(
  engine: Engine,
  client: TableClient,
  data: DataSet,
  progress: Progress,
): Promise<Uploaded> {
  const total = Number((await engine.query(`SELECT count(*) AS rows FROM (${data.source})`))[0]?.['rows']);
  const startMs = performance.now();
  const receipts: string[] = [];
  let rows = 0;
  let retries = 0;
  let readMs = 0;
  let zipMs = 0;
  let first: { batch: Batch; receipt: string } | undefined;
  let state: TableState | undefined;

  const show = (): void => {
    const speed = Math.round(rows / ((performance.now() - startMs) / 1000));
    progress.show('sending', rows / total, [`${count(rows)} rows`, `${count(speed)} rows/s`, ...factsOf(state)]);
  };
  const watch = everyInterval(STATE_INTERVAL_MS, async () => {
    state = await client.state();
    show();
  });

  try {
    const batches = engine.lines(data.source, data.batchRows);
    let number = 0;
    const sender = async (): Promise<void> => {
      for (;;) {
        const readFrom = performance.now();
        const { value: lines, done } = await batches.next();
        readMs += performance.now() - readFrom;
        if (done === true) return;
        const key = `${data.table}-${++number}`;
        const zipFrom = performance.now();
        const batch = await batchOf(key, lines);
        zipMs += performance.now() - zipFrom;
        const sent = await client.send(batch);
        first ??= { batch, receipt: sent.receipt };
        receipts.push(sent.receipt);
        rows += sent.rows;
        retries += sent.retries;
        show();
      }
    };
    await Promise.all(Array.from({ length: data.inFlight }, sender));
  } finally {
    await watch.stop();
  }
  const sendMs = performance.now() - startMs;
  if (rows !== total) throw new Error(`sent ${rows} of ${total} rows of ${data.table}`);

  // As a client does that lost an answer.
  const again = first === undefined ? undefined : await client.send(first.batch);
  const resent = again?.status === 200 && again.receipt === first?.receipt;
  if (data.oneFlush) await progress.during('flushing', client.flush());
  await committed(client, total, progress);
  const snapshots = await snapshotsOf(client, receipts);
  const commitMs = performance.now() - startMs - sendMs;
  return { rows, batches: receipts.length, retries, snapshots, sendMs, commitMs, readMs, zipMs, resent };
}

function factsOf(state: TableState | undefined): string[] {
  return state === undefined ? [] : [`buffered ${count(state.buffer.rows)}`, `snapshots ${state.snapshots}`];
}

/** Resolves once nothing is buffered, and readers that go by the version hint see all: it follows a commit within a second. */
async function committed(client: TableClient, rows: number, progress: Progress): Promise<void> {
  const untilMs = performance.now() + COMMIT_TIMEOUT_MS;
  for (;;) {
    const state = await client.state();
    const { buffer, flushing, pointed, lastError } = state;
    if (buffer.batches === 0 && !flushing && pointed) return;
    if (performance.now() > untilMs) {
      const why = lastError === null ? '' : `; last error ${lastError.type}: ${lastError.message}`;
      throw new Error(`rows are still buffered after ${COMMIT_TIMEOUT_MS / 1000} s: ${buffer.rows}${why}`);
    }
    progress.show('committing', (rows - buffer.rows) / rows, factsOf(state));
    await sleep(STATE_INTERVAL_MS);
  }
}

async function snapshotsOf(client: TableClient, receipts: readonly string[]): Promise<number> {
  const snapshots = new Set<string>();
  for (const id of receipts) {
    const receipt = await client.receipt(id);
    if (receipt.state !== 'committed') throw new Error(`batch is ${receipt.state}: ${receipt.message ?? id}`);
    snapshots.add(String(receipt.snapshot_id));
  }
  return snapshots.size;
}

/** Runs `task` again and again, one at a time; what it throws is left to the main work to meet. */
function everyInterval(ms: number, task: () => Promise<void>): { stop(): Promise<void> } {
  const end = new AbortController();
  const running = (async () => {
    while (!end.signal.aborted) {
      await task().catch(() => undefined);
      await sleep(ms, undefined, { signal: end.signal }).catch(() => undefined);
    }
  })();
  return {
    stop: () => {
      end.abort();
      return running;
    },
  };
}

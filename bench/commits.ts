import { MemoryStore } from '../src/store/memory.ts';
import { SERIES, SeededRandom, Service } from '../test/sim/service.ts';
import { SimLedger } from '../test/sim/sim-ledger.ts';
import { VirtualClock } from '../test/sim/virtual-clock.ts';

/** What one commit of a long row of them cost, and what the table was like after it. */
export interface CommitCost {
  commit: number;
  /** Store operations of the commit, the pointer's included. */
  writes: number;
  reads: number;
  bytesWritten: number;
  metadataBytes: number;
  manifestListBytes: number;
  manifests: number;
  liveFiles: number;
  snapshots: number;
  metadataFiles: number;
}

/** Mean over a stretch of commits that ends with the one named: a single one may or may not merge manifests. */
const STRETCH = 10;
const COMMIT_EVERY_MS = 10_000;
const EXPIRE_EVERY = 50;

/**
 * A table that gets a commit every ten seconds, expired as a schedule would. Store and time are simulated, so counts and
 * bytes are exact and say nothing about speed.
 */
export async function benchCommits(commits: number): Promise<CommitCost[]> {
  const clock = new VirtualClock();
  const memory = new MemoryStore({ now: () => clock.now() });
  const world = { clock, memory, random: new SeededRandom(1) };
  const service = new Service(world, new SimLedger('00000000000000aa'));
  const { metered } = service;
  await clock.until(service.admin.create(SERIES));
  const wanted = new Set([10, 100, 1000, commits].filter((commit) => commit <= commits));
  const costs: CommitCost[] = [];
  let stretch = { writes: 0, reads: 0, bytesWritten: 0 };
  for (let commit = 1; commit <= commits; commit++) {
    await clock.until(service.append([{ device: 'a', time: BigInt(clock.now()) * 1000n, v: BigInt(commit) }]));
    if ([...wanted].some((end) => commit === end - STRETCH + 1)) stretch = { writes: 0, reads: 0, bytesWritten: 0 };
    metered.reset();
    clock.advance(COMMIT_EVERY_MS);
    await clock.until(service.writer.run());
    await clock.until(service.writer.pointed());
    const { operations, bytesWritten } = metered.usage();
    const count = (...names: (keyof typeof operations)[]) =>
      names.reduce((sum, name) => sum + (operations[name]?.requests ?? 0), 0);
    stretch.writes += count('putIfAbsent', 'putIf');
    stretch.reads += count('get', 'head', 'list', 'getRange');
    stretch.bytesWritten += bytesWritten;
    if (wanted.has(commit)) costs.push(await costOf(service, memory, commit, stretch));
    if (commit % EXPIRE_EVERY === 0) {
      await clock.until(service.expirer.expire(false));
      await clock.until(service.writer.run());
      await clock.until(service.writer.pointed());
    }
  }
  return costs;
}

async function costOf(
  service: Service,
  memory: MemoryStore,
  commit: number,
  stretch: { writes: number; reads: number; bytesWritten: number },
): Promise<CommitCost> {
  const { base, place } = service.table;
  if (base === null) throw new Error('table is not loaded');
  const size = async (key: string) => (await memory.head(key))?.size ?? 0;
  const list = base.metadata.snapshots.at(-1)?.['manifest-list'] ?? '';
  let metadataFiles = 0;
  for await (const { key } of memory.list(`${place.prefix}/metadata/v`))
    if (key.endsWith('.metadata.json')) metadataFiles++;
  const manifests = base.manifests ?? [];
  return {
    commit,
    writes: stretch.writes / STRETCH,
    reads: stretch.reads / STRETCH,
    bytesWritten: Math.round(stretch.bytesWritten / STRETCH),
    metadataBytes: await size(`${place.prefix}/metadata/v${base.version}.metadata.json`),
    manifestListBytes: await size(place.prefix + list.slice(place.location.length)),
    manifests: manifests.length,
    liveFiles: manifests.reduce((sum, one) => sum + one.addedFilesCount + one.existingFilesCount, 0),
    snapshots: base.metadata.snapshots.length,
    metadataFiles,
  };
}

/** The costs as a table for people. */
export function commitsText(costs: readonly CommitCost[]): string {
  const columns = Object.keys(costs[0] ?? {}) as (keyof CommitCost)[];
  const rows = [columns as readonly string[], ...costs.map((cost) => columns.map((column) => String(cost[column])))];
  const widths = columns.map((_, index) => Math.max(...rows.map((row) => row[index].length)));
  return rows.map((row) => row.map((cell, index) => cell.padStart(widths[index])).join('  ')).join('\n');
}

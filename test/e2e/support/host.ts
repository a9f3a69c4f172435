import { createInterface } from 'node:readline';
// The simulator of wrangler's own; package.json pins its version under "overrides".
import { convertV4MiniflareOptions, Miniflare } from 'miniflare';

/**
 * Main module of a process that runs a bundle: `process.ts` starts it in a process group of its own, to kill the group.
 * It drives the simulator without wrangler's tools around it, which take seconds to load: a test starts a dozen of these.
 *
 * Says `loaded` when it could start at once, starts on the first line of its input, and says where it listens. Ends when
 * its input does: nothing outlives the test.
 */
export interface HostOrder {
  /** What wrangler hands the simulator for the Worker, with the bundle as its modules. */
  worker: Record<string, unknown>;
  /** Where the state is kept. */
  persist: string;
}

async function main(): Promise<void> {
  const lines = createInterface({ input: process.stdin });
  lines.on('close', () => process.exit(0));
  const ordered = new Promise<HostOrder>((resolve) => {
    lines.once('line', (line) => resolve(JSON.parse(line) as HostOrder));
  });
  console.log('loaded');
  const { worker, persist } = await ordered;
  const shared = { host: '127.0.0.1', port: 0, cf: false, resourcePersistencePath: persist };
  const runtime = new Miniflare(
    convertV4MiniflareOptions({ ...shared, ...worker } as Parameters<typeof convertV4MiniflareOptions>[0]),
  );
  console.log(`listening ${(await runtime.ready).href}`);
}

if (import.meta.main) await main();

import { createInterface } from 'node:readline';
import { quietRuntime } from './service.ts';

/**
 * Main module of a process that runs a bundle: `process.ts` starts it in a process group of its own, to kill the group.
 * Says `loaded` when it could start at once, starts on the first line of its input, and says where it listens.
 * Ends when its input does: nothing outlives the test.
 */
export interface HostOrder {
  /** Config and main module of the bundle. */
  config: string;
  main: string;
  /** Where the state is kept. */
  persist: string;
  vars: Record<string, string>;
}

async function main(): Promise<void> {
  quietRuntime();
  const lines = createInterface({ input: process.stdin });
  lines.on('close', () => process.exit(0));
  const { unstable_startWorker } = await import('wrangler');
  const ordered = new Promise<HostOrder>((resolve) => {
    lines.once('line', (line) => resolve(JSON.parse(line) as HostOrder));
  });
  console.log('loaded');
  const { config, main: entrypoint, persist, vars } = await ordered;
  const worker = await unstable_startWorker({
    config,
    entrypoint,
    build: { bundle: false },
    bindings: Object.fromEntries(Object.entries(vars).map(([name, value]) => [name, { type: 'plain_text', value }])),
    dev: {
      server: { hostname: '127.0.0.1', port: 0 },
      persist,
      inspector: false,
      watch: false,
      logLevel: 'none',
      remote: false,
    },
  });
  await worker.ready;
  console.log(`listening ${(await worker.url).href}`);
}

if (import.meta.main) await main();

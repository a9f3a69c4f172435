import type { TestProject } from 'vitest/node';
import { ENTRY, NO_EVAL_ENTRY, startService } from './service.ts';

const ENTRIES = [ENTRY, NO_EVAL_ENTRY];

/** Starts the services that test files share, and stops them when the last file has ended. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const services = await Promise.all(ENTRIES.map((entry) => startService({ entry })));
  project.provide('services', Object.fromEntries(ENTRIES.map((entry, i) => [entry, services[i].url.href])));
  return async () => {
    await Promise.all(services.map((service) => service.stop()));
  };
}

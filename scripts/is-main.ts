import { existsSync, realpathSync } from 'node:fs';

/** True in the module that Node was started with. `import.meta.main` says so only from Node 24.2 on. */
export function isMain(meta: ImportMeta): boolean {
  const started = process.argv[1];
  return started !== undefined && existsSync(started) && realpathSync(started) === meta.filename;
}

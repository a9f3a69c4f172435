import { inject } from 'vitest';
import { ENTRY, type ReachedService, reached } from './service.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Addresses of the services that run as long as the project's tests do, by main module. */
    services: Record<string, string>;
  }
}

/**
 * The service with its defaults that runs as long as the project's tests do: for files whose tables are in namespaces of
 * their own, and that look neither at the lake as a whole nor at the log.
 */
export function sharedService(entry: string = ENTRY): ReachedService {
  const address = inject('services')[entry];
  return reached((path, init) => fetch(new URL(path, address), init));
}

/** Steps of maintenance, in the order in which they run: what one lets go of, the next need not look at. */
export const STEPS = ['retention', 'compact', 'index', 'expire', 'erase', 'sweep'] as const;
export type Step = (typeof STEPS)[number];

/** Steps of a request that names none. A sweep lists the whole folder, and is asked for. */
export const STEPS_DEFAULT: readonly Step[] = ['retention', 'compact', 'index', 'expire', 'erase'];

export interface MaintenancePlan {
  steps: readonly Step[];
  /** Compaction of every partition with two small files, not only of what would be merged by itself. */
  full: boolean;
  /** Where the sweep begins: what the one before gave as `next`. */
  sweepAfter: string | null;
  dryRun: boolean;
}

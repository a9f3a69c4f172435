import type { SimMark } from './world.ts';

/** Situations that a campaign must have reached: a race that was never run proves nothing (design, section 11). */
export const MARKS: readonly SimMark[] = [
  'lost-race',
  'read-back-own',
  'read-back-other',
  'unknown-resolved',
  'intent-replayed',
  'zombie-landed-late',
  'rebased-over-replace',
  'stalled-past-expiry',
  'reopened-name-created',
  'reopened-own-found',
  'ledger-lost',
  'ledger-restored',
  'batch-left-out',
  'app-parked',
  'replayed-after-rollback',
  'recreated-by-engine',
  'expired-by-schedule',
  'compacted-by-itself',
  'commits-beside-slice',
  'retained-by-schedule',
  'erased',
  'orphans-swept',
  'index-lost',
  'index-harmed',
  'index-rebuilt',
  'index-mended',
  'index-overtaken',
  'branch-appended',
  'branch-refused',
];

/** Seeds after which every mark is due. */
export const MARKS_DUE_SEEDS = 500;

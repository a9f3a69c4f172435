import type { ExpiryPace } from '../../src/core/maintain/expiry-due.ts';
import type { FaultRates } from './faults.ts';
import { Rng } from './rng.ts';

/**
 * What one run is made of. An even mix never reaches the corners: so each run switches some actors and faults off and
 * gives the others very different weights, all drawn from the seed. Times are means in milliseconds; 0 is off.
 */
export interface Swarm {
  /** Events until the faults stop and the world is led to rest. */
  steps: number;
  flushSeconds: number;
  faults: FaultRates;
  /** Chance that a request of a service takes seconds, before its effect or after it. */
  slow: number;
  /** Chance that the write of a version takes far longer than the fence, before its effect or after it. */
  stall: number;
  latencyMs: number;
  /** Chance that a late effect ever lands. */
  landing: number;
  skewMs: number;
  crashMs: number;
  /** Chance that what ends an incarnation leaves it running, cut off from its storage. */
  zombie: number;
  newBuild: number;
  loseMs: number;
  restoreMs: number;
  second: boolean;
  producers: number;
  /** Producers that keep their progress in the table. */
  apps: number;
  /** Chance that a batch of theirs is damaged. */
  damaged: number;
  thinkMs: number;
  batchIds: number;
  replay: number;
  answerLost: number;
  dropMs: number;
  /** Between losses of the index's file. */
  damageMs: number;
  /** Between batches for the branch. */
  branchMs: number;
  /** The pace of expiries that nobody asks for; null: there are none. */
  expirySchedule: ExpiryPace | null;
  /** Small files are merged after appends. */
  compactBySelf: boolean;
  /** Partitions go when they ended a day ago; the first ones have when the run begins, the next falls due in it. */
  retention: boolean;
  /** After so long files are deleted that an expiry or a sweep has queued. */
  eraseMs: number;
  /** The folder is swept at the end, and nothing may be left that is of nobody. */
  sweep: boolean;
  /** What is asked of the service beside appends. */
  maintain: {
    compactMs: number;
    deleteMs: number;
    overwriteMs: number;
    manifestsMs: number;
    expireMs: number;
    sweepMs: number;
    changeMs: number;
    indexMs: number;
    rollbackMs: number;
  };
  engine: { appendMs: number; compactMs: number; expireMs: number; dropMs: number; rollbackMs: number; keep: number };
}

/** Weights with everything off, for scenarios that switch on what they are about. */
export function calm(): Swarm {
  return {
    steps: 600,
    flushSeconds: 1,
    faults: {},
    slow: 0,
    stall: 0,
    latencyMs: 15,
    landing: 1,
    skewMs: 0,
    crashMs: 0,
    zombie: 0,
    newBuild: 0,
    loseMs: 0,
    restoreMs: 0,
    second: false,
    producers: 1,
    apps: 0,
    damaged: 0,
    thinkMs: 700,
    batchIds: 0.5,
    replay: 0,
    answerLost: 0,
    dropMs: 0,
    damageMs: 0,
    branchMs: 0,
    expirySchedule: null,
    compactBySelf: false,
    retention: false,
    eraseMs: 3_600_000,
    sweep: false,
    maintain: {
      compactMs: 0,
      deleteMs: 0,
      overwriteMs: 0,
      manifestsMs: 0,
      expireMs: 0,
      sweepMs: 0,
      changeMs: 0,
      indexMs: 0,
      rollbackMs: 0,
    },
    engine: { appendMs: 0, compactMs: 0, expireMs: 0, dropMs: 0, rollbackMs: 0, keep: 3 },
  };
}

/** The weights of a seed. */
export function swarmOf(seed: number): Swarm {
  const rng = new Rng(seed, 'swarm');
  /** Off with the given chance, else log-uniform between the two. */
  const some = (off: number, low: number, high: number): number => {
    const value = low * (high / low) ** rng.float();
    return rng.chance(off) ? 0 : value;
  };
  const swarm = calm();
  swarm.steps = rng.between(400, 1_400);
  swarm.flushSeconds = rng.pick([1, 1, 2, 5]);
  swarm.latencyMs = some(0, 3, 150);
  const faulty = rng.chance(0.75);
  const rate = (off: number, high: number): number => (faulty ? some(off, 0.002, high) : 0);
  swarm.faults = {
    refused: rate(0.5, 0.08),
    'request-lost': rate(0.4, 0.08),
    throttled: rate(0.6, 0.05),
    'response-lost': rate(0.3, 0.15),
    late: rate(0.4, 0.12),
    unreadable: rate(0.5, 0.08),
  };
  swarm.slow = some(0.5, 0.002, 0.08);
  swarm.stall = some(0.6, 0.02, 0.4);
  swarm.landing = rng.pick([0, 0.5, 1]);
  swarm.skewMs = rng.pick([0, 0, 300, 1500]);
  swarm.crashMs = some(0.35, 1_500, 40_000);
  swarm.zombie = rng.pick([0, 0.3, 0.6, 1]);
  swarm.newBuild = rng.pick([0, 0, 0.5]);
  swarm.loseMs = some(0.75, 15_000, 120_000);
  swarm.restoreMs = some(0.7, 10_000, 90_000);
  swarm.second = rng.chance(0.5);
  swarm.producers = rng.between(1, 4);
  swarm.apps = rng.pick([0, 1, 1, 2, 3]);
  swarm.damaged = some(0.6, 0.02, 0.2);
  swarm.thinkMs = some(0, 150, 2_500);
  swarm.batchIds = rng.pick([0, 0.5, 1]);
  swarm.replay = some(0.4, 0.02, 0.3);
  swarm.answerLost = some(0.5, 0.01, 0.2);
  swarm.dropMs = some(0.75, 15_000, 120_000);
  const maintained = rng.chance(0.6);
  const care = (off: number, low: number, high: number): number => (maintained ? some(off, low, high) : 0);
  swarm.maintain = {
    compactMs: care(0.3, 1_000, 15_000),
    deleteMs: care(0.6, 5_000, 40_000),
    overwriteMs: care(0.6, 3_000, 30_000),
    manifestsMs: care(0.6, 3_000, 30_000),
    expireMs: care(0.5, 2_000, 20_000),
    sweepMs: 0,
    changeMs: care(0.5, 2_000, 20_000),
    indexMs: 0,
    rollbackMs: care(0.7, 5_000, 50_000),
  };
  const foreign = rng.chance(0.6);
  const act = (off: number, low: number, high: number): number => (foreign ? some(off, low, high) : 0);
  swarm.engine = {
    appendMs: act(0.2, 700, 12_000),
    compactMs: act(0.4, 1_500, 20_000),
    expireMs: act(0.4, 1_500, 25_000),
    dropMs: act(0.75, 20_000, 90_000),
    rollbackMs: act(0.65, 5_000, 50_000),
    keep: rng.between(1, 5),
  };
  // A corner that independent weights hardly ever reach: writes that stall for longer than the fence, beside a writer who
  // trims at once. A name must be opened again while its first owner is still under way.
  if (rng.chance(0.12)) {
    swarm.steps = rng.between(1_000, 1_600);
    swarm.stall = 0.3 + 0.4 * rng.float();
    swarm.dropMs = 0;
    swarm.engine = { ...swarm.engine, appendMs: rng.between(500, 1_500), expireMs: rng.between(1_000, 3_000) };
    swarm.engine.keep = 1;
    swarm.engine.dropMs = 0;
  }
  // Of its own stream, so that it changes no other weight of a seed.
  const beside = new Rng(seed, 'swarm beside');
  if (beside.chance(0.3)) swarm.branchMs = beside.between(200, 3_000);
  if (beside.chance(0.4)) swarm.expirySchedule = { batch: beside.between(1, 5), lateMs: beside.between(500, 10_000) };
  if (beside.chance(0.5)) swarm.compactBySelf = true;
  if (beside.chance(0.3)) swarm.retention = true;
  if (beside.chance(0.5)) swarm.eraseMs = beside.between(20_000, 90_000);
  if (beside.chance(0.4)) swarm.sweep = true;
  if (swarm.sweep) swarm.maintain.sweepMs = beside.between(5_000, 40_000);
  if (beside.chance(0.5)) swarm.maintain.indexMs = beside.between(500, 15_000);
  if (beside.chance(0.25)) swarm.damageMs = beside.between(3_000, 30_000);
  return swarm;
}

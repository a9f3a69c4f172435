import { storeBucket } from '../oracle/bucket.ts';
import { validateTable } from '../oracle/validator.ts';
import { AppProducerActor } from './actors/app-producer.ts';
import { BranchProducerActor } from './actors/branch-producer.ts';
import { ChaosActor, harmIndex } from './actors/chaos.ts';
import { EngineActor } from './actors/engine.ts';
import { MaintainerActor } from './actors/maintainer.ts';
import { OperatorActor } from './actors/operator.ts';
import { ProducerActor } from './actors/producer.ts';
import { isMendable } from './checkers/i8-index.ts';
import { checkSwept } from './checkers/i12-orphans.ts';
import { PLACE } from './service.ts';
import { type Incarnation, SimObject, SWEEP_GRACE_MS } from './sim-object.ts';
import { type Swarm, swarmOf } from './swarm.ts';
import { SimWorld, type Violation } from './world.ts';

/** Virtual time and events in which a world without faults must come to rest: retries wait at most a minute. */
const REST_MS = 15 * 60_000;
const REST_STEPS = 20_000;

/** One seed in so many ends with the independent validator over every file; the checkers see all of them at each step. */
export const VALIDATED_ONE_IN = 4;

export interface RunResult {
  seed: number;
  steps: number;
  versions: number;
  digest: string;
  violations: Violation[];
  marks: Record<string, number>;
  trace: readonly string[];
}

export interface RunOptions {
  swarm?: Swarm;
  /** Lines of the trace to keep. */
  traceLines?: number;
  validate?: boolean;
  /** Called with the world before it starts: a scenario adds its own actors and faults. */
  prepare?: (world: SimWorld) => void;
}

/** Runs one seed to its end, or to the first violation. */
export async function runSeed(seed: number, options: RunOptions = {}): Promise<RunResult> {
  const swarm = options.swarm ?? swarmOf(seed);
  const world = new SimWorld(seed, swarm, options.traceLines ?? 0);
  world.scheduler.note(JSON.stringify(swarm));
  world.objects.push(new SimObject(world, 'a'));
  if (swarm.second) world.objects.push(new SimObject(world, 'b'));
  const actors: { start(): void }[] = [
    new OperatorActor(world),
    new ChaosActor(world),
    new EngineActor(world),
    new MaintainerActor(world),
  ];
  for (let i = 0; i < swarm.producers; i++) {
    actors.push(new ProducerActor(world, world.objects[i % world.objects.length], `producer${i}`));
  }
  if (swarm.branchMs > 0) actors.push(new BranchProducerActor(world));
  for (let i = 0; i < swarm.apps; i++) {
    actors.push(new AppProducerActor(world, world.objects[i % world.objects.length], `source${i}`));
  }
  options.prepare?.(world);
  try {
    for (const actor of actors) actor.start();
    while (world.scheduler.steps < swarm.steps && world.violations.length === 0) {
      if (!(await world.step())) break;
    }
    await comeToRest(world);
    if (swarm.maintain.indexMs > 0) await mendIndex(world);
    if (world.violations.length === 0) await world.finish();
    if (swarm.sweep) await sweepUp(world);
    if (options.validate ?? seed % VALIDATED_ONE_IN === 0) await validate(world);
  } catch (error) {
    world.violate('error', String((error as Error).stack ?? error));
  }
  return {
    seed,
    steps: world.scheduler.steps,
    versions: world.history.tip?.version ?? 0,
    digest: world.trace.digest,
    violations: world.violations,
    marks: Object.fromEntries(world.marks),
    trace: world.trace.lines,
  };
}

/** No more faults, and nobody has new ideas: runs until nothing is open, or the time for that is over. */
async function comeToRest(world: SimWorld): Promise<void> {
  const { scheduler, objects } = world;
  world.isCalm = true;
  scheduler.note('faults stop');
  const steps = scheduler.steps + REST_STEPS;
  const endMs = scheduler.now() + REST_MS;
  let isAsked = false;
  for (const { incarnations } of objects) for (const { store } of incarnations) store.faults.stop();
  while (world.violations.length === 0 && scheduler.steps < steps && scheduler.now() < endMs) {
    if (!isAsked && world.history.isServed) {
      isAsked = true;
      // Whoever asks an object for its table makes it look, and the pointer follows.
      for (const object of objects) void object.call(({ writer }) => writer.live()).catch(() => undefined);
    }
    for (const object of objects) letGo(object);
    if (isAtRest(world)) return;
    if (!(await world.step())) return;
  }
}

/** A delete that slept between two tries may land behind the first. */
const MEND_ROUNDS = 3;

/** All is at rest: whatever has become of the last-value index, maintenance by request leaves the table with one. */
async function mendIndex(world: SimWorld): Promise<void> {
  const [object] = world.objects;
  if (world.violations.length > 0 || !isAtRest(world)) return;
  if (world.swarm.damageMs > 0) harmIndex(world, world.rng('mend'));
  for (let round = 0; round < MEND_ROUNDS && world.violations.length === 0 && isMendable(world); round++) {
    const { state } = await during(
      world,
      object.call(({ rebuild }) => rebuild.run(false)),
    );
    if (state === 'made') world.hit('index-rebuilt');
    // The pointer follows what was committed.
    await comeToRest(world);
  }
  if (world.violations.length === 0 && isMendable(world))
    world.violate('I8', 'maintenance has left the table without a whole index');
}

/** Sweeps until nothing is too young for one: upkeep that falls due after the first has its files swept by the next. */
const SWEEP_ROUNDS = 3;

/** All is at rest: what is old by now and of nobody is found, queued, and deleted; then nothing of the kind is left. */
async function sweepUp(world: SimWorld): Promise<void> {
  const [object] = world.objects;
  if (world.violations.length > 0 || !isAtRest(world)) return;
  for (let round = 0; round < SWEEP_ROUNDS; round++) {
    // Longer than a sweep's grace, and than what the other object has queued.
    await during(world, wait(world, SWEEP_GRACE_MS + world.swarm.eraseMs));
    const report = await during(
      world,
      object.call(({ sweep }) => sweep.sweep(false)).catch(() => null),
    );
    if (report === null) return;
    if (report.orphans > 0) world.hit('orphans-swept');
    // Retention that was due meanwhile has left files that are too young.
    if (report.young === 0) break;
  }
  await during(world, wait(world, world.swarm.eraseMs + SWEEP_GRACE_MS + 60_000));
  for (const one of world.objects)
    await during(
      world,
      one.call(({ writer }) => writer.run()),
    );
  if (world.violations.length === 0 && world.history.isServed) checkSwept(world);
}

function wait({ scheduler }: SimWorld, ms: number): Promise<void> {
  return new Promise((resolve) => {
    scheduler.after(ms, null, 'waits', resolve);
  });
}

/** Lets the world go on until the promise is kept. */
async function during<T>(world: SimWorld, promise: Promise<T>): Promise<T> {
  let isDone = false;
  const done = promise.finally(() => {
    isDone = true;
  });
  for (let step = 0; step < REST_STEPS && !isDone; step++) if (!(await world.step())) break;
  return done;
}

/** Whoever owns a held-up app gives its refused epoch up. */
function letGo(object: SimObject): void {
  const { writer, table } = object.running();
  if (table.base === null) return;
  for (const app of object.ledger.heldApps()) {
    const { parked, waiting } = object.ledger.app(app);
    if (parked !== null && waiting === null) writer.apps.skip(app, parked.epoch);
  }
}

function isAtRest(world: SimWorld): boolean {
  if (!world.history.isServed || world.isErasing) return false;
  return world.objects.every((object) => {
    if (object.isBusy || object.incarnations.some((incarnation) => isWaiting(incarnation))) return false;
    const state = object.ledger.state();
    const pointed = state.table === null || state.hintedVersion >= state.table.version;
    return state.intent === null && state.buffer.frames === 0 && pointed;
  });
}

/** Waits for an answer; to a listing too, which is not counted. */
function isWaiting({ ended, pending, store }: Incarnation): boolean {
  return !ended && (pending > 0 || store.log.slice(-40).some(({ outcome }) => outcome === 'pending'));
}

async function validate(world: SimWorld): Promise<void> {
  if (world.violations.length > 0 || world.history.tip === null) return;
  const findings = await validateTable(storeBucket(world.memory), PLACE.prefix, {
    bucketName: 'sim-lake',
    cache: world.cache,
    // The file of a reopened name lies among the versions and is none of the chain.
    versions: !world.marks.has('reopened-name-created'),
    // A pointer that was on its way when the folder was emptied may name a version of the table before.
    // After a rollback over a deletion, or on a branch that goes on beside one, a file's entry is met as deleted first, and
    // as added or existing by a later list.
    ignore: [
      ...(world.history.gone.size > 0 ? ['H6'] : []),
      ...(world.harmed.size > 0 ? ['I3 last-value index'] : []),
      ...(world.model.rollbacks.size > 0 || world.swarm.branchMs > 0 ? ['Q9', 'Q3 snapshot_id'] : []),
    ],
  });
  for (const finding of findings.slice(0, 5)) world.violate('validator', JSON.stringify(finding));
}

import { type Batch, livesIn } from '../model.ts';
import { BRANCH, rowOf } from '../rows.ts';
import type { SimWorld } from '../world.ts';
import type { Checker } from './checker.ts';
import type { Arrival, SeenVersion } from './history.ts';
import { Missing, type RawMetadata } from './reader.ts';

/**
 * I1 for the branch of a simulation: each acknowledged batch of it is there once, whole and unchanged, or waits, or was refused
 * because the branch went. Nobody but the service commits to it, so nothing that is there ever leaves.
 */
export class BranchesChecker implements Checker {
  readonly #world: SimWorld;
  /** Life of the branch at the last look. */
  #life = 0;
  readonly #refused = new Set<number>();

  constructor(world: SimWorld) {
    this.#world = world;
  }

  onVersion(arrival: Arrival, { raw }: SeenVersion): void {
    const { model } = this.#world;
    if (arrival !== 'reopens' && raw.refs?.[BRANCH] === undefined) model.branchLife++;
  }

  async atRest(): Promise<void> {
    const { history, model } = this.#world;
    const raw = history.tip?.raw ?? null;
    if (raw === null) model.branchLife++;
    const counts = await this.#count(raw);
    if (counts === null) return;
    const uuid = raw?.['table-uuid'] ?? '';
    const isSame = this.#life === model.branchLife;
    for (const batch of model.batches) {
      if (batch.branch === null) continue;
      const [count, ...others] = batch.rows.map((row) => counts.get(row) ?? 0);
      if (others.some((other) => other !== count)) this.#violate(`batch ${batch.id} is torn`);
      if (count > Math.max(1, livesIn(batch, uuid))) this.#violate(`batch ${batch.id} is in the branch ${count} times`);
      if (isSame && batch.present && count === 0) this.#violate(`batch ${batch.id} left the branch`);
      if (count > 0 && !batch.present) this.#world.hit('branch-appended');
      batch.present = count > 0;
      this.#kept(batch, count, uuid);
    }
    this.#life = model.branchLife;
  }

  #kept(batch: Batch, count: number, uuid: string): void {
    const { promise, branch } = batch;
    if (promise === null || branch === null) return;
    const { history, model, objects } = this.#world;
    const receipt = objects.find(({ name }) => name === promise.object)?.ledger.receipt(promise.sequence) ?? null;
    const what = `batch ${batch.id} of ${promise.object} (sequence ${promise.sequence})`;
    if (receipt === null) {
      this.#violate(`${what} was accepted and nobody knows of it`);
      return;
    }
    const isHere = promise.uuid === uuid && branch.life === model.branchLife;
    if (receipt.state === 'committed' && isHere && count === 0)
      this.#violate(`${what} is called committed and is not there`);
    if (receipt.state !== 'refused') return;
    if (receipt.type === 'unknown-ref' && !this.#refused.has(batch.id)) {
      this.#refused.add(batch.id);
      this.#world.hit('branch-refused');
    }
    const isGone = receipt.type.startsWith('table-') && history.gone.has(promise.uuid);
    if (isHere && count > 0 && livesIn(batch, uuid) === 1) this.#violate(`${what} is called refused and is there`);
    if (!isGone && (receipt.type !== 'unknown-ref' || branch.life === model.branchLife)) {
      this.#violate(`${what} was refused as ${receipt.type}, and nothing is wrong with it`);
    }
  }

  /** How often each row of a batch for the branch is there; null when files are missing, which I3 says. */
  async #count(raw: RawMetadata | null): Promise<Map<number, number> | null> {
    const counts = new Map<number, number>();
    const id = raw?.refs?.[BRANCH]?.['snapshot-id'];
    const head = (raw?.snapshots ?? []).find((snapshot) => snapshot['snapshot-id'] === id);
    if (raw === null || head === undefined) return counts;
    const { model, history } = this.#world;
    const schema = raw.schemas.find((known) => known['schema-id'] === raw['current-schema-id']);
    try {
      for (const file of history.reader.reached(head).live) {
        for (const { v, device, time } of await history.reader.rows(file.path, schema?.fields ?? [])) {
          if (model.batchOf.get(v)?.branch == null) continue;
          const expected = rowOf(v);
          if (device !== expected.device || time !== expected.time) this.#violate(`row ${v} is not what was sent`);
          counts.set(v, (counts.get(v) ?? 0) + 1);
        }
      }
    } catch (error) {
      if (error instanceof Missing) return null;
      throw error;
    }
    return counts;
  }

  #violate(text: string): void {
    this.#world.violate('I1', text);
  }
}

import { SluiceError } from '../../../src/core/base/errors.ts';
import { makeFiles, rowsOf } from '../../../src/core/commit/make-files.ts';
import type { Operation } from '../../../src/core/commit/operation.ts';
import { prepareReplace } from '../../../src/core/commit/prepare-replace.ts';
import { DELETED, readManifest } from '../../../src/core/iceberg/manifest.ts';
import { readManifestList } from '../../../src/core/iceberg/manifest-list.ts';
import { currentSchema } from '../../../src/core/iceberg/metadata.ts';
import { ancestors, currentSnapshot } from '../../../src/core/iceberg/snapshot.ts';
import type { ManifestEntry, TableMetadata } from '../../../src/core/iceberg/types.ts';
import { codecs } from '../../../src/engine/codecs.ts';
import { newIdentity } from '../../../src/engine/identity.ts';
import { Missing } from '../checkers/reader.ts';
import type { Rng } from '../rng.ts';
import { frameOf, rowOf } from '../rows.ts';
import type { Owner } from '../scheduler.ts';
import { PLACE } from '../service.ts';
import type { Incarnation } from '../sim-object.ts';
import type { SimWorld } from '../world.ts';

const TRIES_MAX = 5;

/** Everything an administrator or a schedule asks of a table beside appends, one at a time, through any object. */
export class MaintainerActor implements Owner {
  readonly name = 'maintainer';
  ended = false;
  readonly #world: SimWorld;
  readonly #rng: Rng;
  #busy = false;
  #count = 0;

  constructor(world: SimWorld) {
    this.#world = world;
    this.#rng = world.rng('maintainer');
  }

  start(): void {
    const { maintain } = this.#world.swarm;
    this.#every(maintain.compactMs, 'compacts', (incarnation) => this.#compact(incarnation));
    this.#every(maintain.deleteMs, 'deletes', (incarnation) => this.#delete(incarnation));
    this.#every(maintain.overwriteMs, 'overwrites', (incarnation) => this.#overwrite(incarnation));
    this.#every(maintain.manifestsMs, 'rewrites manifests', ({ files }) => files.rewriteManifests());
    this.#every(maintain.expireMs, 'expires', ({ expirer }) => expirer.expire(false));
    this.#every(maintain.sweepMs, 'sweeps', ({ sweep }) => sweep.sweep(false));
    this.#every(maintain.changeMs, 'changes metadata', (incarnation) => this.#change(incarnation));
    this.#every(maintain.indexMs, 'makes the index', (incarnation) => this.#index(incarnation));
    this.#every(maintain.rollbackMs, 'rolls back', (incarnation) => this.#rollback(incarnation));
  }

  /**
   * A compaction as its driver will run it: outputs made once, the replace tried again while its outcome is open, outputs
   * deleted only when it can never have been made.
   */
  async #compact(incarnation: Incarnation): Promise<void> {
    const { metadata } = await incarnation.writer.live();
    const inputs = this.#inputs(metadata);
    if (inputs === null) return;
    const fields = currentSchema(metadata).fields as never[];
    const numbers: number[] = [];
    for (const { dataFile } of inputs) {
      for (const { v } of await this.#world.history.reader.rows(dataFile.filePath, fields)) numbers.push(v);
    }
    const identity = newIdentity({ clock: this.#world.scheduler as never, random: this.#rng }, metadata);
    const columns = rowsOf([{ ...frameOf(metadata, numbers), sequence: 1 }], metadata, identity.timeMs);
    const made = makeFiles(columns, { identity, metadata, place: PLACE, ...codecs });
    const uploads = made.uploads.filter(({ key }) => key.endsWith('.parquet'));
    const operation: Operation = prepareReplace({
      identity,
      metadata,
      layout: made.layout,
      runs: [{ inputs, outputs: made.entries.map(({ dataFile }) => dataFile) }],
      uploads,
      place: PLACE,
      ...codecs,
    });
    for (let attempt = 0; attempt < TRIES_MAX; attempt++) {
      const result = await incarnation.table.commit(operation, () => undefined);
      if (result.outcome === 'conflict' && result.discardable) {
        await incarnation.store.delete(uploads.map(({ key }) => key)).catch(() => undefined);
      }
      if (result.outcome === 'committed') incarnation.saw(result.base);
      if (result.outcome !== 'unknown' && result.outcome !== 'unavailable') return;
      await this.#pause(1_000);
    }
  }

  /** A few neighbours by data sequence number in one partition; null when no partition has two files. */
  #inputs(metadata: TableMetadata): ManifestEntry[] | null {
    const { memory } = this.#world;
    const bytesOf = (location: string): Uint8Array => {
      const key = PLACE.prefix + location.slice(PLACE.location.length);
      const stored = memory.peek(key);
      if (stored === null) throw new Missing(key);
      return stored.bytes;
    };
    const current = currentSnapshot(metadata);
    if (current === null) return null;
    const folders = new Map<string, ManifestEntry[]>();
    for (const row of readManifestList(bytesOf(current['manifest-list']), codecs.deflate)) {
      const { entries } = readManifest(bytesOf(row.manifestPath), {
        deflate: codecs.deflate,
        row,
        schema: currentSchema(metadata),
        specs: metadata['partition-specs'],
      });
      for (const entry of entries) {
        if (entry.status === DELETED) continue;
        const folder = entry.dataFile.filePath.slice(0, entry.dataFile.filePath.lastIndexOf('/'));
        folders.set(folder, [...(folders.get(folder) ?? []), entry]);
      }
    }
    const full = [...folders.values()].filter((entries) => entries.length > 1);
    if (full.length === 0) return null;
    const entries = this.#rng.pick(full).sort((a, b) => Number((a.sequenceNumber ?? 0n) - (b.sequenceNumber ?? 0n)));
    const from = this.#rng.below(entries.length - 1);
    const end = this.#rng.between(from + 2, Math.min(entries.length, from + 6));
    // Files of one data sequence number go together.
    const highest = entries[end - 1].sequenceNumber;
    const lowest = entries[from].sequenceNumber;
    return entries.filter(
      ({ sequenceNumber: n }) => n !== null && lowest !== null && highest !== null && n >= lowest && n <= highest,
    );
  }

  async #delete(incarnation: Incarnation): Promise<void> {
    const { history } = this.#world;
    const current = history.current;
    const file = current === null ? undefined : this.#rng.pick(history.reader.reached(current).live);
    const label = file === undefined ? undefined : /\/time_day=([0-9-]+)\//.exec(file.path)?.[1];
    if (label === undefined) return;
    await incarnation.files.delete({ kind: 'partitions', partitions: [{ time_day: label }] });
  }

  async #overwrite(incarnation: Incarnation): Promise<void> {
    const { metadata } = await incarnation.writer.live();
    const uuid = metadata['table-uuid'];
    const batch = this.#world.model.newBatch(1, false);
    batch.lives.add(`${uuid} overwrite`);
    const label = new Date(Number(rowOf(batch.rows[0]).time / 1000n)).toISOString().slice(0, 10);
    const filter = { kind: 'partitions' as const, partitions: [{ time_day: label }] };
    await incarnation.files.overwrite(frameOf(metadata, batch.rows), uuid, filter);
  }

  async #change(incarnation: Incarnation): Promise<void> {
    const { changes } = incarnation;
    const name = `n${++this.#count}`;
    switch (this.#rng.below(5)) {
      case 0:
        await changes.properties({ owner: name }, []);
        return;
      case 1:
        await changes.setRef({ name, type: 'tag', snapshotId: null });
        return;
      case 2:
        await changes.setRef({ name, type: 'branch', snapshotId: null });
        return;
      case 3:
        await changes.dropRef(`n${this.#rng.between(1, this.#count)}`);
        return;
      default: {
        const field = { id: 0, name, required: false, type: 'long' as const };
        await changes.schema([{ kind: 'add', parent: null, field }], null);
      }
    }
  }

  async #index(incarnation: Incarnation): Promise<void> {
    const { state } = await incarnation.rebuild.run(false);
    if (state === 'made') this.#world.hit('index-rebuilt', incarnation);
  }

  async #rollback(incarnation: Incarnation): Promise<void> {
    const { metadata } = await incarnation.writer.live();
    const current = metadata['current-snapshot-id'];
    const line = current === undefined ? [] : [...ancestors(metadata, current)].slice(1, 5);
    if (line.length === 0) return;
    this.#world.model.rollbacks.add(metadata['table-uuid']);
    await incarnation.changes.rollback(this.#rng.pick(line)['snapshot-id']);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#world.scheduler.after(ms, this, 'waits', () => resolve());
    });
  }

  #every(meanMs: number, label: string, act: (incarnation: Incarnation) => Promise<unknown>): void {
    if (meanMs === 0) return;
    const { scheduler, objects } = this.#world;
    scheduler.after(this.#rng.exponential(meanMs), this, label, () => {
      if (this.#world.isCalm) return;
      if (!this.#busy) {
        this.#busy = true;
        void this.#rng
          .pick(objects)
          .call(act)
          .catch((error: Error) => this.#note(label, error))
          .finally(() => {
            this.#busy = false;
          });
      }
      this.#every(meanMs, label, act);
    });
  }

  /** Known errors are answers; anything else is a bug. */
  #note(label: string, error: Error): void {
    this.#world.scheduler.note(`maintainer ${label}: ${error.message}`);
    const isKnown = error instanceof SluiceError && error.kind !== 'corrupt';
    if (!isKnown && !['Gone', 'StoreError', 'Missing'].includes(error.name) && !this.#world.isErasing) {
      this.#world.violate('error', `maintainer ${label}: ${error.stack}`);
    }
  }
}

import { utf8 } from '../../../src/core/base/bytes.ts';
import { snapshotIdOf, uuidV4, uuidV7 } from '../../../src/core/base/ids.ts';
import { FENCE_MS } from '../../../src/core/base/limits.ts';
import { readManifestList, writeManifestList } from '../../../src/core/iceberg/manifest-list.ts';
import { newTableMetadata, serializeMetadata } from '../../../src/core/iceberg/metadata.ts';
import { ancestors, currentSnapshot, MAIN } from '../../../src/core/iceberg/snapshot.ts';
import type { ManifestFile, Snapshot, Summary, TableMetadata } from '../../../src/core/iceberg/types.ts';
import { applyUpdates, type MetadataUpdate } from '../../../src/core/iceberg/updates.ts';
import { layOut } from '../../../src/core/table/definition.ts';
import { codecs } from '../../../src/engine/codecs.ts';
import type { Store } from '../../../src/store/store.ts';
import type { RawSnapshot } from '../checkers/reader.ts';
import type { Rng } from '../rng.ts';
import type { Owner } from '../scheduler.ts';
import { PLACE, SERIES } from '../service.ts';
import type { SimWorld } from '../world.ts';
import { encodeFiles, mergeAll, rewriteWithout } from './engine-files.ts';

/** A version as the engine holds it. */
interface EngineBase {
  version: number;
  metadata: TableMetadata;
}

/** Who deletes a whole folder: nothing in it needs anything of it any more. */
export const ERASER = 'engine-drop';

const ATTEMPTS_MAX = 10;
/** The longest that a write and the look after it are under way: stalls on both sides, and retries of the look. */
const UNDER_WAY_MS = 120_000;
const MANIFESTS_MAX = 8;

/**
 * A foreign writer that follows the protocol as the Timelake engine does (docs/timelake-contract.md): it knows none of our
 * keys and drops those in summaries, carries properties on, trims its metadata log hard, expires whatever it likes, moves
 * the pointer late and without a condition, rolls back, and drops the whole folder to begin again at version 1. It does one
 * thing at a time; its requests are slow but never fail.
 */
export class EngineActor implements Owner {
  readonly name = 'engine';
  ended = false;
  readonly #world: SimWorld;
  readonly #rng: Rng;
  readonly #store: Store;
  readonly #eraser: Store;
  #busy = false;

  constructor(world: SimWorld) {
    this.#world = world;
    this.#rng = world.rng('engine');
    this.#store = world.memory.as('engine');
    this.#eraser = world.memory.as(ERASER);
  }

  start(): void {
    const { engine } = this.#world.swarm;
    this.#every(engine.appendMs, 'appends', () => this.append());
    this.#every(engine.compactMs, 'compacts', () => this.compact());
    this.#every(engine.expireMs, 'expires', () => this.expire());
    this.#every(engine.rollbackMs, 'rolls back', () => this.rollback());
    this.#every(engine.dropMs, 'drops', () => this.dropAndCreate());
  }

  async append(): Promise<void> {
    const append = this.#world.model.newForeign(this.#rng.between(1, 3), '');
    const snapshotId = snapshotIdOf(this.#rng.bytes(8));
    await this.#commit(async (base) => {
      append.uuid = base.metadata['table-uuid'];
      const files = encodeFiles(base.metadata, append.rows, { snapshotId, timeMs: this.#nowMs(), rng: this.#rng });
      for (const { key, bytes } of files.uploads) await this.#put(key, bytes);
      let carried = this.#manifests(base.metadata);
      if (carried.length + 1 > MANIFESTS_MAX) {
        const merged = mergeAll(base.metadata, carried, this.#commitOf(base, snapshotId), this.#world.memory);
        await this.#put(keyOf(merged.row.manifestPath), merged.bytes);
        carried = [merged.row];
      }
      return this.#snapshot(
        base,
        snapshotId,
        'append',
        [files.row(base.metadata['last-sequence-number'] + 1n), ...carried],
        {
          'added-data-files': String(files.added.files),
          'added-records': String(files.added.records),
          'added-files-size': String(files.added.bytes),
          'changed-partition-count': String(files.added.partitions.size),
        },
      );
    }).then((committed) => {
      append.state = committed ? 'committed' : 'failed';
    });
  }

  /** Writes the rows of a few neighbouring files of one partition anew. */
  async compact(): Promise<void> {
    const snapshotId = snapshotIdOf(this.#rng.bytes(8));
    await this.#commit(async (base) => {
      const current = currentSnapshot(base.metadata);
      if (current === null) return null;
      const { reader } = this.#world.history;
      const { live } = reader.reached(rawOf(current));
      const folders = new Map<string, string[]>();
      for (const { path } of live) {
        const folder = path.slice(0, path.lastIndexOf('/'));
        folders.set(folder, [...(folders.get(folder) ?? []), path]);
      }
      const [inputs] = [...folders.values()].filter((paths) => paths.length > 1).sort((a, b) => b.length - a.length);
      if (inputs === undefined) return null;
      const chosen = new Set(inputs.slice(0, this.#rng.between(2, 6)));
      const fields = base.metadata.schemas[0].fields as never[];
      const numbers: number[] = [];
      for (const path of chosen) for (const { v } of await reader.rows(path, fields)) numbers.push(v);
      const files = encodeFiles(base.metadata, numbers, { snapshotId, timeMs: this.#nowMs(), rng: this.#rng });
      for (const { key, bytes } of files.uploads) await this.#put(key, bytes);
      const rewritten = rewriteWithout(
        base.metadata,
        this.#manifests(base.metadata),
        chosen,
        this.#commitOf(base, snapshotId),
        this.#world.memory,
      );
      for (const { row, bytes } of rewritten.made) await this.#put(keyOf(row.manifestPath), bytes);
      const own = files.row(base.metadata['last-sequence-number'] + 1n);
      return this.#snapshot(base, snapshotId, 'replace', [own, ...rewritten.manifests], {
        'added-data-files': String(files.added.files),
        'added-records': String(files.added.records),
        'added-files-size': String(files.added.bytes),
        'changed-partition-count': String(files.added.partitions.size),
        'deleted-data-files': String(rewritten.removed.files),
        'deleted-records': String(rewritten.removed.records),
        'removed-files-size': String(rewritten.removed.bytes),
      });
    });
  }

  /** Keeps the newest few snapshots; then deletes what only the others reach, and old versions whatever their age. */
  async expire(): Promise<void> {
    const { keep } = this.#world.swarm.engine;
    let doomed: RawSnapshot[] = [];
    let target = 0;
    const committed = await this.#commit(async ({ metadata, version }) => {
      const newest = [...metadata.snapshots].sort((a, b) => b['timestamp-ms'] - a['timestamp-ms']).slice(0, keep);
      const kept = new Set(newest.map((snapshot) => snapshot['snapshot-id']));
      const current = metadata['current-snapshot-id'];
      const line = new Set<bigint>();
      if (current !== undefined) {
        kept.add(current);
        for (const snapshot of ancestors(metadata, current)) line.add(snapshot['snapshot-id']);
      }
      // Snapshots go by age, and that is an hour: longer than any write is under way. So a commit is not expired before
      // its writer had the time to look for it, nor what main was rolled back over.
      for (const id of this.#underWay()) kept.add(id);
      for (const { 'snapshot-id': id } of metadata.snapshots) if (!line.has(id)) kept.add(id);
      const gone = metadata.snapshots.filter((snapshot) => !kept.has(snapshot['snapshot-id']));
      if (gone.length === 0) return null;
      doomed = gone.map(rawOf);
      target = version + 1;
      const ids = gone.map((snapshot) => snapshot['snapshot-id']);
      const refs = Object.entries(metadata.refs).filter(([, ref]) => ids.includes(ref['snapshot-id']));
      return [
        ...refs.map(([name]): MetadataUpdate => ({ action: 'remove-snapshot-ref', 'ref-name': name })),
        { action: 'remove-snapshots', 'snapshot-ids': ids },
      ];
    });
    if (!committed) return;
    const { history } = this.#world;
    const raw = history.reader.metadata(history.keyOf(target));
    if (raw === null) return;
    const reached = new Set<string>();
    for (const snapshot of raw.snapshots ?? [])
      for (const key of history.reader.reached(snapshot).keys) reached.add(key);
    const keys = new Set<string>();
    for (const snapshot of doomed) {
      for (const key of history.reader.reached(snapshot).keys) if (!reached.has(key)) keys.add(key);
    }
    // Whatever their age, says the contract; but the engine keeps 22, and so many are not made within our fence.
    const old = this.#nowMs() - 2 * FENCE_MS;
    for (let version = 1; version < target - keep - 1; version++) {
      const key = history.keyOf(version);
      const head = await this.#store.head(key);
      if (head !== null && head.uploadedMs < old) keys.add(key);
    }
    await this.#pause();
    await this.#store.delete([...keys]);
  }

  /** A metadata-only commit that moves main back; later snapshots stay until they expire. */
  async rollback(): Promise<void> {
    await this.#commit(async ({ metadata }) => {
      const current = metadata['current-snapshot-id'];
      if (current === undefined) return null;
      const line = [...ancestors(metadata, current)].slice(1);
      if (line.length === 0) return null;
      const target = this.#rng.pick(line.slice(0, 4));
      this.#world.model.rollbacks.add(metadata['table-uuid']);
      return [{ action: 'set-snapshot-ref', 'ref-name': MAIN, type: 'branch', 'snapshot-id': target['snapshot-id'] }];
    });
  }

  /** Deletes every object of the table's folder, ours too, and begins again at version 1 under a new uuid. */
  async dropAndCreate(): Promise<void> {
    const { memory, scheduler, history } = this.#world;
    if (history.tip === null) return;
    const folder = `${PLACE.prefix}/`;
    this.#world.isErasing = true;
    const first = this.#rng.chance(0.5) ? `${folder}data/` : `${folder}metadata/`;
    for (const part of [first, folder]) {
      // A version of ours that is on its way now would land in the new table's folder, whatever we do: see ARCHITECTURE.
      while (this.#world.objects.some(({ isWriting }) => isWriting)) await this.#pause(50);
      const keys = memory.keys().filter((key) => key.startsWith(part));
      this.#takeBackLate();
      await this.#eraser.delete(keys);
      if (part === first) await this.#pause();
    }
    this.#world.isErasing = false;
    scheduler.note('the engine dropped the table');
    await this.#pause(this.#rng.pick([10, 500, 5_000]));
    const layout = layOut({ ...SERIES, properties: {} });
    const properties = Object.fromEntries(
      Object.entries(layout.properties).filter(([key]) => !key.startsWith('sluice.')),
    );
    const nowMs = this.#nowMs();
    const uuid = uuidV7(nowMs, this.#rng.bytes(10));
    const metadata = newTableMetadata({ uuid, location: PLACE.location, ...layout, properties, nowMs });
    const created = await this.#store.putIfAbsent(history.keyOf(1), utf8(serializeMetadata(metadata)));
    if (created.outcome === 'created') this.#point(1);
  }

  /** Snapshots of ours whose writers may still have to look for them. */
  #underWay(): bigint[] {
    const { attempts, scheduler } = this.#world;
    return attempts
      .filter(({ answer, atMs }) => (answer === 'open' || answer === 'error') && scheduler.now() - atMs < UNDER_WAY_MS)
      .map(({ raw }) => BigInt(raw['current-snapshot-id'] ?? -1));
  }

  /** What would land after the folder was emptied: the store gives up on a request long before. */
  #takeBackLate(): void {
    for (const { incarnations } of this.#world.objects) {
      for (const { store } of incarnations) {
        const { waiting } = store.faults;
        for (const entry of [...waiting]) {
          if (this.#world.history.versionOf(entry.call.key) !== null) waiting.splice(waiting.indexOf(entry), 1);
        }
      }
    }
  }

  /** The engine's loop: load the newest, make the change on it, write the next version if absent. */
  async #commit(change: (base: EngineBase) => Promise<MetadataUpdate[] | null>): Promise<boolean> {
    const { history, swarm } = this.#world;
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      await this.#pause();
      const base = this.#world.metadata();
      if (base === null || base.metadata.properties['sluice.dropped'] === 'true') return false;
      const updates = await change(base);
      if (updates === null) return false;
      const next = applyUpdates(base.metadata, updates, {
        nowMs: this.#nowMs(),
        previousMetadataLocation: `${PLACE.location}/metadata/v${base.version}.metadata.json`,
      });
      const trimmed = { ...next, 'metadata-log': next['metadata-log'].slice(-Math.max(1, swarm.engine.keep)) };
      const target = base.version + 1;
      await this.#pause();
      const { outcome } = await this.#store.putIfAbsent(history.keyOf(target), utf8(serializeMetadata(trimmed)));
      if (outcome === 'created') {
        this.#pointLater(target);
        return true;
      }
      await this.#pause(this.#rng.between(5, 49) * attempt);
    }
    return false;
  }

  async #snapshot(
    base: EngineBase,
    snapshotId: bigint,
    operation: Summary['operation'],
    manifests: readonly ManifestFile[],
    counters: Record<string, string>,
  ): Promise<MetadataUpdate[]> {
    const { metadata } = base;
    const parent = currentSnapshot(metadata);
    const sequenceNumber = metadata['last-sequence-number'] + 1n;
    const list = writeManifestList({
      snapshotId,
      parentSnapshotId: parent?.['snapshot-id'] ?? null,
      sequenceNumber,
      manifests,
      syncMarker: this.#rng.bytes(16),
      deflate: codecs.deflate,
    });
    const location = `${PLACE.location}/metadata/snap-${snapshotId}-${uuidV4(this.#rng.bytes(16))}.avro`;
    await this.#put(keyOf(location), list);
    const total = (name: string, added: string, removed: string): string =>
      String(Number(parent?.summary[name] ?? 0) + Number(counters[added] ?? 0) - Number(counters[removed] ?? 0));
    const snapshot: Snapshot = {
      'snapshot-id': snapshotId,
      ...(parent === null ? {} : { 'parent-snapshot-id': parent['snapshot-id'] }),
      'sequence-number': sequenceNumber,
      'timestamp-ms': Math.max(this.#nowMs(), metadata['last-updated-ms'] + 1),
      'manifest-list': location,
      summary: {
        operation,
        ...counters,
        'total-data-files': total('total-data-files', 'added-data-files', 'deleted-data-files'),
        'total-records': total('total-records', 'added-records', 'deleted-records'),
        'total-files-size': total('total-files-size', 'added-files-size', 'removed-files-size'),
        'total-delete-files': '0',
        'total-position-deletes': '0',
        'total-equality-deletes': '0',
      },
      'schema-id': metadata['current-schema-id'],
    };
    return [
      { action: 'add-snapshot', snapshot },
      { action: 'set-snapshot-ref', 'ref-name': MAIN, type: 'branch', 'snapshot-id': snapshotId },
    ];
  }

  #commitOf(base: EngineBase, snapshotId: bigint) {
    return {
      seed: this.#rng.bytes(16),
      snapshotId,
      sequenceNumber: base.metadata['last-sequence-number'] + 1n,
      timeMs: this.#nowMs(),
    };
  }

  #manifests(metadata: TableMetadata): ManifestFile[] {
    const current = currentSnapshot(metadata);
    if (current === null) return [];
    const list = this.#world.memory.peek(keyOf(current['manifest-list']));
    if (list === null) throw new Lost();
    return readManifestList(list.bytes, codecs.deflate).filter(
      (row) => row.addedFilesCount + row.existingFilesCount > 0,
    );
  }

  #pointLater(version: number): void {
    const { scheduler } = this.#world;
    scheduler.after(this.#rng.exponential(this.#rng.pick([50, 3_000])), this, 'points', () => this.#point(version));
  }

  /** Without a condition: it may take the pointer back. */
  #point(version: number): void {
    const { memory } = this.#world;
    if (!memory.has(this.#world.history.keyOf(version))) return;
    const before = memory.acting;
    memory.acting = this.name;
    memory.plant(`${PLACE.prefix}/metadata/version-hint.text`, utf8(String(version)));
    memory.acting = before;
  }

  async #put(key: string, bytes: Uint8Array): Promise<void> {
    await this.#pause();
    await this.#store.putIfAbsent(key, bytes);
  }

  #pause(meanMs = this.#world.swarm.latencyMs): Promise<void> {
    return new Promise((resolve) => {
      this.#world.scheduler.after(this.#rng.exponential(meanMs), this, 'works', () => resolve());
    });
  }

  #nowMs(): number {
    return this.#world.scheduler.now();
  }

  #every(meanMs: number, label: string, act: () => Promise<void>): void {
    if (meanMs === 0) return;
    const { scheduler } = this.#world;
    scheduler.after(this.#rng.exponential(meanMs), this, label, () => {
      if (this.#world.isCalm) return;
      if (!this.#busy) {
        this.#busy = true;
        void act()
          .catch((error: Error) => {
            // Its table was dropped under it by somebody else: then it gives up, as the engine does.
            if (error.name === 'Missing' || error instanceof Lost) scheduler.note(`engine gave up: ${error.message}`);
            else this.#world.violate('error', `engine: ${error.stack}`);
          })
          .finally(() => {
            this.#busy = false;
          });
      }
      this.#every(meanMs, label, act);
    });
  }
}

class Lost extends Error {}

function keyOf(location: string): string {
  return PLACE.prefix + location.slice(PLACE.location.length);
}

function rawOf(snapshot: Snapshot): RawSnapshot {
  return {
    'snapshot-id': Number(snapshot['snapshot-id']),
    'sequence-number': Number(snapshot['sequence-number']),
    'timestamp-ms': snapshot['timestamp-ms'],
    'manifest-list': snapshot['manifest-list'],
    summary: snapshot.summary,
  };
}

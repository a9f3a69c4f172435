import { codecs } from '../src/engine/codecs.ts';
import { Faults } from '../src/engine/faults.ts';
import { LiveFiles } from '../src/engine/live-files.ts';
import { MemoryStore } from '../src/store/memory.ts';
import type { StoreUsage } from '../src/store/metered.ts';
import { storeBucket } from '../test/oracle/bucket.ts';
import { newCache } from '../test/oracle/cache.ts';
import { readTable } from '../test/oracle/reader.ts';
import { PLACE, SeededRandom, Service } from '../test/sim/service.ts';
import { SimLedger } from '../test/sim/sim-ledger.ts';
import { VirtualClock } from '../test/sim/virtual-clock.ts';
import { type DayTable, dayBatch } from './day-table.ts';

/** What the table was like at its worst during a stretch of appends, and what they cost. */
export interface Stretch {
  /** The last append of it. */
  append: number;
  /** Highest after any append of the stretch. */
  liveFiles: number;
  partitions: number;
  filesOfAPartition: number;
  manifests: number;
  snapshots: number;
  metadataBytes: number;
  manifestListBytes: number;
  doomedKeys: number;
  /** Of the state at the stretch's end. */
  versionFiles: number;
  objects: number;
  storeBytes: number;
  /** Objects that no snapshot reaches, no version file is and no queue of deletions names. */
  orphans: number;
  /** Mean over the time from one append to the next: everything that the table does in it. */
  writes: number;
  reads: number;
  lists: number;
  deletes: number;
  bytesWritten: number;
  bytesRead: number;
  /** The dearest of these times. */
  operationsMost: number;
  versions: number;
}

export interface DayRun {
  appends: number;
  rows: number;
  /** Lines of the log by event. */
  events: Record<string, number>;
  stretches: Stretch[];
  /** When all that is due is done and nothing is appended any more. */
  atRest: Pick<Stretch, 'liveFiles' | 'snapshots' | 'versionFiles' | 'doomedKeys' | 'objects' | 'orphans'>;
}

/** Noon: the day of the clock changes within the run. */
const START_MS = Date.UTC(2026, 0, 8, 12);
/** Runs of an object between two appends, at most: more and it never comes to rest. */
const RUNS_MAX = 200;

/**
 * Appends to one table at even times of a simulated clock, with everything that the object does beside: it runs when its
 * alarm would go off. Store and time are simulated, so counts and bytes are exact and say nothing about speed.
 */
export async function runDay(
  table: DayTable,
  { appends, stretch, everyMs }: { appends: number; stretch: number; everyMs: number },
  progress: (stretch: Stretch) => void = () => undefined,
): Promise<DayRun> {
  const day = new Day(table, everyMs);
  await day.create();
  const stretches: Stretch[] = [];
  while (day.appended < appends) {
    stretches.push(await day.stretch(Math.min(stretch, appends - day.appended)));
    progress(stretches[stretches.length - 1]);
  }
  const atRest = await day.rest();
  return { appends, rows: day.rows, events: day.events(), stretches, atRest };
}

class Day {
  appended = 0;
  rows = 0;
  readonly #table: DayTable;
  readonly #everyMs: number;
  readonly #clock = new VirtualClock(START_MS);
  readonly #memory = new MemoryStore({ now: () => this.#clock.now() });
  readonly #ledger = new SimLedger('00000000000000aa');
  readonly #random = new SeededRandom(1);
  readonly #service: Service;
  /** A look at the files that does not count. */
  readonly #live: LiveFiles;
  readonly #cache = newCache();

  constructor(table: DayTable, everyMs: number) {
    this.#table = table;
    this.#everyMs = everyMs;
    this.#service = new Service({ clock: this.#clock, memory: this.#memory, random: this.#random }, this.#ledger);
    // In the object's order (src/object/table-parts.ts).
    this.#service.retainBySchedule();
    this.#service.compactByItself();
    this.#service.expireBySchedule();
    this.#service.sweepBySchedule();
    this.#live = new LiveFiles(
      { ...codecs, store: this.#memory, clock: this.#clock, random: this.#random, marks: { hit: () => undefined } },
      PLACE,
      new Faults(),
    );
  }

  async create(): Promise<void> {
    await this.#clock.until(this.#service.admin.create(this.#table.definition));
    await this.#runUntil(this.#clock.now());
  }

  async stretch(appends: number): Promise<Stretch> {
    const { metered, table } = this.#service;
    const most = {
      liveFiles: 0,
      partitions: 0,
      filesOfAPartition: 0,
      manifests: 0,
      snapshots: 0,
      metadataBytes: 0,
      manifestListBytes: 0,
      doomedKeys: 0,
    };
    const sum = { writes: 0, reads: 0, lists: 0, deletes: 0, bytesWritten: 0, bytesRead: 0 };
    let operationsMost = 0;
    const before = table.base?.version ?? 0;
    for (let i = 0; i < appends; i++) {
      metered.reset();
      await this.#append();
      const used = costs(metered.usage());
      operationsMost = Math.max(operationsMost, used.writes + used.reads + used.lists + used.deletes);
      for (const name of keysOf(sum)) sum[name] += used[name];
      const now = await this.#known();
      for (const name of keysOf(most)) most[name] = Math.max(most[name], now[name]);
    }
    const mean = Object.fromEntries(
      keysOf(sum).map((name) => [name, Math.round((100 * sum[name]) / appends) / 100]),
    ) as typeof sum;
    const versions = (table.base?.version ?? 0) - before;
    return { append: this.appended, ...most, ...(await this.#looked()), ...mean, operationsMost, versions };
  }

  /** Runs whatever is still due, however late. */
  async rest(): Promise<DayRun['atRest']> {
    for (let run = 0; this.#service.writer.dueMs() !== null; run++) {
      if (run === RUNS_MAX) throw new Error('the table does not come to rest');
      await this.#runUntil(Math.max(this.#clock.now(), this.#service.writer.dueMs() ?? 0));
    }
    const { liveFiles, snapshots, doomedKeys } = await this.#known();
    const { versionFiles, objects, orphans } = await this.#looked();
    return { liveFiles, snapshots, versionFiles, doomedKeys, objects, orphans };
  }

  events(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { event, kind } of this.#service.events as { event: string; kind?: string }[]) {
      const name = kind === undefined ? event : `${event} ${kind}`;
      counts[name] = (counts[name] ?? 0) + 1;
    }
    return counts;
  }

  async #append(): Promise<void> {
    const { writer, table } = this.#service;
    const atMs = START_MS + ++this.appended * this.#everyMs;
    await this.#runUntil(atMs);
    const metadata = table.base?.metadata;
    if (metadata === undefined) throw new Error('table is not loaded');
    const frame = dayBatch(this.#table, metadata, { number: this.appended, nowMs: atMs }, this.#random);
    this.rows += frame.rows;
    await this.#clock.until(writer.append(frame, metadata['table-uuid'], 0));
  }

  /** The object's alarms up to a time. */
  async #runUntil(untilMs: number): Promise<void> {
    const { writer } = this.#service;
    for (let run = 0; ; run++) {
      const dueMs = writer.dueMs();
      if (dueMs === null || dueMs > untilMs) break;
      if (run === RUNS_MAX)
        throw new Error(`work is due again and again: ${new Date(this.#clock.now()).toISOString()}`);
      await this.#advanceTo(dueMs);
      await this.#clock.until(writer.run());
    }
    await this.#advanceTo(untilMs);
  }

  /** Who sleeps until then goes on: the pointer follows a commit by itself, and nobody waits for it. */
  async #advanceTo(ms: number): Promise<void> {
    if (ms > this.#clock.now()) this.#clock.advance(ms - this.#clock.now());
    await this.#clock.idle();
  }

  /** What the newest version tells of itself. */
  async #known() {
    const { base, place } = this.#service.table;
    if (base === null) throw new Error('table is not loaded');
    const sizeOf = async (key: string) => (await this.#memory.head(key))?.size ?? 0;
    const list = base.metadata.snapshots.at(-1)?.['manifest-list'] ?? '';
    const { files } = await this.#live.of(base);
    const partitions = new Map<string, number>();
    for (const { entry } of files) {
      const { filePath } = entry.dataFile;
      const partition = filePath.slice(0, filePath.lastIndexOf('/'));
      partitions.set(partition, (partitions.get(partition) ?? 0) + 1);
    }
    return {
      liveFiles: files.length,
      partitions: partitions.size,
      filesOfAPartition: Math.max(0, ...partitions.values()),
      manifests: (await this.#live.rows(base)).length,
      snapshots: base.metadata.snapshots.length,
      metadataBytes: await sizeOf(`${place.prefix}/metadata/v${base.version}.metadata.json`),
      manifestListBytes: await sizeOf(place.prefix + list.slice(place.location.length)),
      doomedKeys: this.#ledger.state().doomed.keys,
    };
  }

  /** What only a look at the whole table shows, by a reader that shares no code with the service. */
  async #looked() {
    const table = await readTable(storeBucket(this.#memory), PLACE.prefix, { cache: this.#cache });
    const reached = new Set<string | null>([`${PLACE.prefix}/metadata/version-hint.text`]);
    for (const version of table.versions) reached.add(`${PLACE.prefix}/metadata/v${version}.metadata.json`);
    for (const { snapshot, listKey, manifests } of table.snapshots) {
      reached.add(listKey);
      const index = snapshot.summary['timelake.last-value-index'];
      if (index !== undefined) reached.add(table.keyOf(index));
      for (const { key, entries } of manifests) {
        reached.add(key);
        for (const { status, dataFile } of entries) if (status !== DELETED) reached.add(table.keyOf(dataFile.filePath));
      }
    }
    const doomed = new Set(this.#ledger.doomed(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY));
    const sizes = [...table.objects.values()];
    return {
      versionFiles: table.versions.length,
      objects: sizes.length,
      storeBytes: sizes.reduce((sum, size) => sum + size, 0),
      orphans: [...table.objects.keys()].filter((key) => !reached.has(key) && !doomed.has(key)).length,
    };
  }
}

/** Status of a manifest entry whose file is gone from the table. */
const DELETED = 2;

function costs({ operations, bytesWritten, bytesRead }: StoreUsage) {
  const count = (...names: (keyof typeof operations)[]) =>
    names.reduce((sum, name) => sum + (operations[name]?.requests ?? 0), 0);
  return {
    writes: count('putIfAbsent', 'putIf', 'multipart', 'part', 'complete'),
    reads: count('get', 'head', 'getRange'),
    lists: count('list', 'listFolders'),
    deletes: count('delete'),
    bytesWritten,
    bytesRead,
  };
}

function keysOf<T extends object>(value: T): (keyof T)[] {
  return Object.keys(value) as (keyof T)[];
}

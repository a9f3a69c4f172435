import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { DevBucket, ListAsked, ListPage, ObjectFacts } from '../../scripts/dev-bucket.ts';
import { startGateway } from '../../scripts/s3-gateway.ts';
import { MemoryStore } from '../../src/store/memory.ts';
import type { Listed, Multipart } from '../../src/store/store.ts';
import { PLACE, SERIES, SeededRandom, Service, type World } from '../sim/service.ts';
import { SimLedger } from '../sim/sim-ledger.ts';
import { VirtualClock } from '../sim/virtual-clock.ts';

/**
 * A lake whose clock is moved by hand: the engine of the service over a store in memory, with one table of the simulator in
 * it, and the S3 gateway over the same store. Real readers read through the gateway, while hours pass between two of their
 * requests.
 */
export interface SteppedLake {
  /** Address of the gateway. */
  s3: string;
  /** Where steps are asked for: `POST` with a `Step` as JSON; the answer is a `State`. */
  url: string;
  stop(): Promise<void>;
}

/** One of: a new table in a new lake; rows, and the flush that commits them; time that passes, and then what is due. */
type Step = { begin: true } | { rows: number } | { passMs: number };

interface State {
  location: string;
  version: number;
  snapshotId: string | null;
  snapshots: number;
  /** Keys queued for deletion, and in how many milliseconds the first of them may go; null: there are none. */
  doomed: number;
  eraseInMs: number | null;
  objects: number;
}

/** Times of rows are seconds of the first day of the simulator's clock, counted from one; so are their values. */
const DAY_MICROS = BigInt(Date.UTC(2026, 0, 1)) * 1000n;

export async function startSteppedLake(): Promise<SteppedLake> {
  let lake = await newLake();
  let rows = 0;
  const take = async (step: Step): Promise<State> => {
    const { world, service } = lake;
    if ('begin' in step) {
      lake = await newLake();
      rows = 0;
    } else if ('rows' in step) {
      const batch = Array.from({ length: step.rows }, () => {
        rows++;
        return { device: `device-${rows % 3}`, time: DAY_MICROS + BigInt(rows) * 1_000_000n, v: BigInt(rows) };
      });
      await world.clock.until(service.append(batch));
      await world.clock.until(service.writer.flush());
    } else {
      world.clock.advance(step.passMs);
      await world.clock.until(service.writer.run());
      await world.clock.until(service.writer.pointed());
    }
    return stateOf(lake);
  };
  const gateway = await startGateway({ bucket: 'sim-lake', store: bucketOf(() => lake.world.memory) });
  // One step at a time.
  let turn: Promise<unknown> = Promise.resolve();
  const server = createServer((request, response) => {
    turn = turn
      .then(async () => JSON.stringify(await take((await bodyOf(request)) as Step)))
      .then(
        (text) => response.writeHead(200).end(text),
        (error: unknown) => response.writeHead(500).end(error instanceof Error ? error.stack : String(error)),
      );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    s3: gateway.url,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await gateway.stop();
    },
  };
}

interface Lake {
  world: World;
  service: Service;
}

/** The chores of an object run by themselves in it. */
async function newLake(): Promise<Lake> {
  const clock = new VirtualClock();
  const world = { clock, random: new SeededRandom(7), memory: new MemoryStore({ now: () => clock.now() }) };
  const service = new Service(world, new SimLedger('00000000000000aa'));
  service.expireBySchedule();
  service.compactByItself();
  await clock.until(service.admin.create(SERIES));
  return { world, service };
}

function stateOf({ world, service }: Lake): State {
  const { base } = service.table;
  if (base === null) throw new Error('table is not loaded');
  const { doomed } = service.ledger.state();
  return {
    location: PLACE.location,
    version: base.version,
    snapshotId: base.metadata['current-snapshot-id']?.toString() ?? null,
    snapshots: base.metadata.snapshots.length,
    doomed: doomed.keys,
    eraseInMs: doomed.dueMs === null ? null : doomed.dueMs - world.clock.now(),
    objects: world.memory.keys().length,
  };
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString('utf8'));
}

/** What other engines ask of a bucket, of the store that there is now. They delete nothing in it. */
function bucketOf(store: () => MemoryStore): DevBucket {
  const refuse = (): never => {
    throw new Error('nothing is deleted from outside');
  };
  const uploads = new Map<string, Multipart>();
  const upload = (id: string): Multipart => {
    const found = uploads.get(id);
    if (found === undefined) throw new Error(`no such upload: ${id}`);
    return found;
  };
  return {
    async get(key, range) {
      const [facts, stored] = [await store().head(key), store().peek(key)];
      if (facts === null || stored === null) return null;
      const { bytes } = stored;
      if (range === undefined) return { facts, bytes };
      const from = 'suffix' in range ? Math.max(0, bytes.length - range.suffix) : range.offset;
      const to = 'suffix' in range || range.length === undefined ? bytes.length : from + range.length;
      if (from >= bytes.length) throw new Error('range begins behind the end (10039)');
      return { facts, bytes: bytes.subarray(from, to) };
    },
    head: (key) => store().head(key),
    list: (asked) => pageOf(store(), asked),
    async put(key, bytes, { onlyIf }) {
      if (onlyIf === undefined) store().plant(key, bytes);
      else if ('etag' in onlyIf) throw new Error('writes have no other condition than that the key is absent');
      else if ((await store().putIfAbsent(key, bytes)).outcome === 'exists') return null;
      return store().head(key);
    },
    delete: refuse,
    async createUpload(key) {
      const begun = await store().multipart(key);
      uploads.set(begun.uploadId, begun);
      return begun.uploadId;
    },
    async uploadPart(_key, id, number, bytes) {
      await upload(id).part(number, bytes);
      return `part-${number}`;
    },
    async completeUpload(key, id) {
      await upload(id).complete();
      return (await store().head(key)) as ObjectFacts;
    },
    abortUpload: (_key, id) => upload(id).abort(),
  };
}

async function pageOf(store: { list(prefix: string, after?: string): AsyncIterable<Listed> }, asked: ListAsked) {
  const { prefix = '', delimiter = '', limit = 1000 } = asked;
  const page: ListPage = { objects: [], folders: [] };
  let last = asked.cursor ?? asked.startAfter;
  for await (const object of store.list(prefix, last)) {
    const end = delimiter === '' ? -1 : object.key.indexOf(delimiter, prefix.length);
    const folder = end === -1 ? null : object.key.slice(0, end + delimiter.length);
    if (folder !== null && page.folders.at(-1) === folder) continue;
    if (page.objects.length + page.folders.length === limit) return { ...page, cursor: last };
    if (folder === null) page.objects.push(object);
    else page.folders.push(folder);
    last = object.key;
  }
  return page;
}

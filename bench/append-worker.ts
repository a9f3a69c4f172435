/**
 * The stages of an append, run one request each in the real runtime: `POST /<stage>`. What is kept between requests is in
 * the isolate, which the object shares. Never deployed.
 */
import { DurableObject } from 'cloudflare:workers';
import type { NewFrame } from '../src/core/batch/frame.ts';
import { SqlLedger } from '../src/object/ledger.ts';
import { migrate } from '../src/object/migrate.ts';
import { r2Store } from '../src/store/r2.ts';
import { LibraryAppend } from './append-peer.ts';
import { StagedAppend } from './append-stages.ts';

interface Env {
  LAKE: R2Bucket;
  TABLES: DurableObjectNamespace<StageObject>;
}

/** Made at the first request, as the service makes its parts. */
let staged: StagedAppend | null = null;
let library: LibraryAppend | null = null;

function append(): StagedAppend {
  staged ??= new StagedAppend();
  return staged;
}

function peer(): LibraryAppend {
  library ??= new LibraryAppend();
  return library;
}

/** The object's part: a call that does nothing, and the ledger. */
export class StageObject extends DurableObject<Env> {
  readonly #ledger: SqlLedger;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    migrate(ctx.storage);
    this.#ledger = new SqlLedger(ctx.storage, '0123456789abcdef');
  }

  call(frame: NewFrame): number {
    return frame.body.length;
  }

  accept(frame: NewFrame): number {
    return this.#ledger.accept([frame], Date.now());
  }

  /** Reads the frame back, to where the next stage finds it. */
  frames(): number {
    const { lastSequence } = this.#ledger.state();
    const [{ sequence, ...frame }] = this.#ledger.frames(lastSequence, lastSequence);
    append().frame = frame;
    return sequence;
  }

  settle(): number {
    const { lastSequence, ledgerId } = this.#ledger.state();
    this.#ledger.seal(
      {
        form: 1,
        operation: 'append',
        commitId: '0'.repeat(32),
        snapshotId: 1n,
        timeMs: Date.now(),
        ledgerId,
        first: lastSequence,
        last: lastSequence,
        rows: 0,
        tableUuid: '',
        retire: [],
      },
      2,
    );
    this.#ledger.settle({
      outcome: 'committed',
      snapshotId: 1n,
      version: 2,
      tableUuid: '',
      committedMs: Date.now(),
      rows: 0,
    });
    return lastSequence;
  }
}

export default {
  async fetch(request, env): Promise<Response> {
    const stage = new URL(request.url).pathname.slice(1);
    const start = performance.now();
    const result = await run(stage, request, env);
    return Response.json({ result, ms: performance.now() - start });
  },
} satisfies ExportedHandler<Env>;

async function run(stage: string, request: Request, env: Env): Promise<number> {
  const body = request.body as ReadableStream<Uint8Array>;
  const object = env.TABLES.getByName('bench/stages');
  switch (stage) {
    case 'nothing':
      return 0;
    case 'read':
      return append().read(body);
    case 'align':
      return append().align(body);
    case 'partitions':
      return append().partitions();
    case 'encode-frame':
      return append().encodeFrame();
    case 'call':
      return object.call(held());
    case 'accept':
      return object.accept(held());
    case 'frames':
      append().frame = null;
      return object.frames();
    case 'decode-frame':
      return append().decodeFrame();
    case 'join':
      return append().join();
    case 'plan':
      return append().plan();
    case 'gather':
      return append().gather();
    case 'encode-parquet':
      return append().encodeParquet();
    case 'prepare':
      return append().prepare();
    case 'decide':
      return append().decide();
    case 'puts': {
      const store = r2Store(env.LAKE);
      const puts = append().uploads.map(({ key, bytes }) => store.putIfAbsent(key, bytes));
      append().uploads = [];
      return (await Promise.all(puts)).length;
    }
    case 'settle':
      return object.settle();
    case 'library-parse':
      return peer().parse(body);
    case 'library-sort':
      return peer().sort();
    case 'library-encode':
      return peer().encode();
    default:
      throw new Error(`no such stage: ${stage}`);
  }
}

function held(): NewFrame {
  const { frame } = append();
  if (frame === null) throw new Error('no frame is held');
  return frame;
}

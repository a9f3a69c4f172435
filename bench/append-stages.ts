/**
 * An append cut into its stages, on the modules of the service: each is run and timed by itself. What a stage needs of the
 * stages before it is kept in a `StagedAppend`, and let go where the service lets it go.
 */
import { hex } from '../src/core/base/bytes.ts';
import { BATCH_PARTITIONS_MAX, INGEST_ROW_GROUP_ROWS } from '../src/core/base/limits.ts';
import type { NewFrame } from '../src/core/batch/frame.ts';
import type { Intent } from '../src/core/batch/intent.ts';
import type { Columns } from '../src/core/columns/columns.ts';
import { concat } from '../src/core/columns/concat.ts';
import { fillNulls } from '../src/core/columns/fill.ts';
import { decodeFrameBody, encodeFrameBody } from '../src/core/columns/frame.ts';
import { gather } from '../src/core/columns/gather.ts';
import { partitionRows } from '../src/core/columns/partition.ts';
import type { FilePlan } from '../src/core/columns/prepare-files.ts';
import type { IcebergBase } from '../src/core/commit/iceberg-base.ts';
import { IcebergSink } from '../src/core/commit/iceberg-sink.ts';
import { currentOf, planOf } from '../src/core/commit/make-files.ts';
import type { AppendOperation } from '../src/core/commit/operation.ts';
import { prepareAppend } from '../src/core/commit/prepare-append.ts';
import { writeParquet } from '../src/core/parquet/writer.ts';
import type { Upload } from '../src/core/sink.ts';
import { layOut } from '../src/core/table/definition.ts';
import { tableSettings } from '../src/core/table/properties.ts';
import { codecs } from '../src/engine/codecs.ts';
import { readWindows } from '../src/http/body.ts';
import { readRows } from '../src/http/rows.ts';
import { SENSORS } from './append-rows.ts';

type Body = ReadableStream<Uint8Array>;

const PLACE = { location: 's3://sluice-lake/warehouse/bench/stages', prefix: 'warehouse/bench/stages' };
const TIME_MS = Date.UTC(2026, 10, 29);
const NDJSON = 'application/x-ndjson';

/** One append under measurement. Each method is a stage and returns a number that depends on its work. */
export class StagedAppend {
  readonly #sink = new IcebergSink(PLACE, codecs);
  readonly #base: IcebergBase;
  #columns: Columns | null = null;
  #gathered: Columns[] = [];
  #plan: FilePlan | null = null;
  #operation: AppendOperation | null = null;
  #digest = '';
  #commits = 0;
  frame: NewFrame | null = null;

  constructor() {
    this.#base = newTable(this.#sink);
  }

  /** The body's bytes, nothing of what is in them, and no digest, as the request has no key. */
  async read(body: Body): Promise<number> {
    const facts = await readWindows(body, { contentEncoding: null, digested: false }, (window) => window.length);
    return facts.bytes;
  }

  /** The same, and its rows as typed columns: all that the rows endpoint does with a body. */
  async align(body: Body): Promise<number> {
    const { schema } = currentOf(this.#base.metadata);
    const settings = tableSettings(this.#base.metadata.properties);
    const { columns, digest } = await readRows({
      body,
      contentType: NDJSON,
      contentEncoding: null,
      schema,
      options: {
        onError: 'refuse',
        epochUnit: settings.epochUnit,
        ingestTimeField: settings.ingestTimeColumn,
        digested: false,
      },
    });
    this.#columns = columns;
    this.#digest = hex(digest);
    return columns.rows;
  }

  partitions(): number {
    const { spec } = currentOf(this.#base.metadata);
    return partitionRows(this.#held(), spec, BATCH_PARTITIONS_MAX).tuples.length;
  }

  encodeFrame(): number {
    const columns = this.#held();
    const body = encodeFrameBody(columns);
    this.frame = {
      digest: this.#digest,
      batchId: null,
      producer: null,
      schemaId: columns.schema['schema-id'],
      rows: columns.rows,
      partitions: 1,
      body,
    };
    this.#columns = null;
    return body.length;
  }

  decodeFrame(): number {
    this.#columns = decodeFrameBody(this.#framed().body, currentOf(this.#base.metadata).schema);
    return this.#columns.rows;
  }

  /** Fills in the ingest time and joins the frames of a flush, of which there is one here. */
  join(): number {
    const { schema } = currentOf(this.#base.metadata);
    const { ingestTimeColumn } = tableSettings(this.#base.metadata.properties);
    const columns = this.#held();
    const filled = ingestTimeColumn === null ? columns : fillNulls(columns, ingestTimeColumn, BigInt(TIME_MS) * 1000n);
    this.#columns = concat([filled], schema);
    return this.#columns.rows;
  }

  /** Partition, sort, drop duplicates, split into files. */
  plan(): number {
    this.#plan = planOf(this.#held(), this.#base.metadata);
    return this.#plan.files.length;
  }

  gather(): number {
    const columns = this.#held();
    this.#gathered = (this.#plan?.files ?? []).map(({ rowIndexes }) => gather(columns, rowIndexes));
    return this.#gathered.length;
  }

  /** Parquet with zstd, as a flush writes it. */
  encodeParquet(): number {
    const { sortOrder, schema } = currentOf(this.#base.metadata);
    const sortingColumns = sortOrder.fields.map((field) => ({
      columnIndex: schema.fields.findIndex(({ id }) => id === field['source-id']),
      descending: false,
      nullsFirst: true,
    }));
    const { encodings } = tableSettings(this.#base.metadata.properties);
    let bytes = 0;
    for (const columns of this.#gathered) {
      const options = { rowGroupRows: INGEST_ROW_GROUP_ROWS, encodings, sortingColumns, keyValues: [] };
      bytes += writeParquet(columns, options, codecs.compress).bytes.length;
    }
    this.#gathered = [];
    this.#plan = null;
    this.#columns = null;
    return bytes;
  }

  /** All from the frame to the files: decode, join, plan, gather, Parquet, and the manifest. */
  prepare(): number {
    const { metadata } = this.#base;
    const frame = this.#framed();
    const intent: Intent = {
      form: 1,
      operation: 'append',
      commitId: (++this.#commits).toString(16).padStart(32, '0'),
      snapshotId: BigInt(this.#commits),
      timeMs: TIME_MS + this.#commits,
      ledgerId: '0123456789abcdef',
      first: 1,
      last: 1,
      rows: frame.rows,
      tableUuid: metadata['table-uuid'],
      retire: [],
    };
    this.#operation = prepareAppend({
      intent,
      frames: [{ ...frame, sequence: 1 }],
      last: 1,
      leftOut: [],
      metadata,
      place: PLACE,
      ...codecs,
    });
    return this.#operation.uploads.length;
  }

  /** Manifest list and metadata of the next version, and its check before it is written. */
  decide(): number {
    const operation = this.#operation ?? fail();
    const decision = this.#sink.decide(operation, this.#base, new Map(), TIME_MS + 1000);
    if (decision.kind !== 'proceed') throw new Error(`append was not decided: ${decision.kind}`);
    this.#sink.parseBase(2, decision.bytes, '');
    this.uploads = [
      ...operation.uploads,
      ...decision.uploads,
      { key: this.#sink.versionKey(1 + this.#commits), bytes: decision.bytes },
    ];
    this.#operation = null;
    this.frame = null;
    return decision.bytes.length;
  }

  /** What a commit puts into the store, after `decide`. */
  uploads: Upload[] = [];

  #held(): Columns {
    return this.#columns ?? fail();
  }

  #framed(): NewFrame {
    return this.frame ?? fail();
  }
}

function newTable(sink: IcebergSink): IcebergBase {
  const uuid = '01a22967-4fbe-7180-825a-ee47d9a6e567';
  const decision = sink.decide(
    { kind: 'create', commitId: '0'.repeat(32), uploads: [], uuid, location: PLACE.location, layout: layOut(SENSORS) },
    null,
    new Map(),
    TIME_MS - 1000,
  );
  if (decision.kind !== 'proceed') throw new Error(`table was not made: ${decision.kind}`);
  return decision.next('etag');
}

function fail(): never {
  throw new Error('stages run in order, on rows without faults');
}

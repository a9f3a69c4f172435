import { hex } from '../core/base/bytes.ts';
import { invalid, rejected } from '../core/base/errors.ts';
import {
  BATCH_ID_LENGTH_MAX,
  BATCH_PARTITIONS_MAX,
  FRAME_BYTES_MAX,
  INGEST_VIEW_MS,
  INGEST_VIEWS_MAX,
  WAIT_MAX_MS,
} from '../core/base/limits.ts';
import { isAppName, parseEpoch } from '../core/batch/admission.ts';
import type { NewFrame, Producer } from '../core/batch/frame.ts';
import { encodeFrameBody } from '../core/columns/frame.ts';
import { partitionRows } from '../core/columns/partition.ts';
import type { IngestView } from '../object/views.ts';
import { type RowError, readRows } from './rows.ts';
import { type Ctx, nameOf, objectOf, unwrap } from './table-context.ts';

/** What a request's body came to. */
export interface ReadFrame {
  /** Null when there are no rows. */
  frame: NewFrame | null;
  /** The table that the columns were made for. */
  tableUuid: string;
  /** For the answer: rows taken and, with `on_error=skip`, rows left out. */
  counts: { rows: number; rows_read?: number; rows_skipped?: number; errors?: RowError[] };
}

/**
 * Reads the rows of a request into one frame for its table.
 *
 * @throws what `readRows` throws; invalid `malformed`, `too-many-partitions`, `too-large`
 */
export async function readFrame(
  context: Ctx,
  named: { batchId: string | null; producer: Producer | null },
): Promise<ReadFrame> {
  const { req } = context;
  const onError = req.query('on_error') ?? 'refuse';
  if (onError !== 'refuse' && onError !== 'skip') throw invalid('malformed', `on_error is refuse or skip: ${onError}`);
  const { settings, schema, spec, tableUuid } = await ingestView(context);
  const { columns, rowsRead, errors, errorCount, digest } = await readRows({
    body: req.raw.body,
    contentType: req.header('content-type') ?? null,
    contentEncoding: req.header('content-encoding') ?? null,
    schema,
    options: {
      onError,
      epochUnit: settings.epochUnit,
      ingestTimeField: settings.ingestTimeColumn,
      delimiter: req.query('delimiter') ?? null,
    },
  });
  const counts = {
    rows: columns.rows,
    ...(onError === 'skip' ? { rows_read: rowsRead, rows_skipped: errorCount, errors } : {}),
  };
  if (columns.rows === 0) return { frame: null, tableUuid, counts };
  const { tuples } = partitionRows(columns, spec, BATCH_PARTITIONS_MAX);
  const body = encodeFrameBody(columns);
  if (body.length > FRAME_BYTES_MAX) {
    throw invalid('too-large', `batch is larger than a flush takes: bytes=${body.length} most=${FRAME_BYTES_MAX}`);
  }
  const frame = {
    ...named,
    digest: hex(digest),
    schemaId: schema['schema-id'],
    rows: columns.rows,
    partitions: tuples.length,
    body,
  };
  return { frame, tableUuid, counts };
}

export async function postRows(context: Ctx): Promise<Response> {
  const { req } = context;
  const batchId = batchIdOf(req.header('idempotency-key') ?? null);
  const producer = producerOf(req.query('app'), req.query('epoch'), req.query('epochs'));
  const waitMs = waitOf(req.header('prefer') ?? null);
  const { frame, tableUuid, counts } = await readFrame(context, { batchId, producer });
  // No rows, no batch: an empty commit would only make versions.
  if (frame === null) return context.json({ state: 'empty', ...counts });
  const answered = await objectOf(context).append(frame, tableUuid, waitMs);
  if (!answered.ok && answered.problem.type === 'table-changed') forgetView(context);
  const { duplicate, ...receipt } = unwrap(answered);
  const location = `${new URL(req.url).pathname.replace(/\/rows\/?$/, '')}/receipts/${receipt.receipt}`;
  // Waited for, or sent again: a success here would be taken for rows in the table.
  if (receipt.state === 'refused' || receipt.state === 'parked') {
    throw rejected(receipt.type ?? 'commit-refused', receipt.message ?? 'batch was refused', {
      receipt: receipt.receipt,
      state: receipt.state,
    });
  }
  const status = duplicate ? 200 : receipt.state === 'committed' ? 201 : 202;
  context.header('location', location);
  if (waitMs > 0) context.header('preference-applied', `wait=${waitMs / 1000}`);
  return context.json({ ...receipt, ...(duplicate ? { duplicate } : {}), ...counts }, status);
}

/** `?app=A&epoch=N`, both or none; `epochs=sparse` lets any higher epoch be the next. */
export function producerOf(app?: string, epoch?: string, epochs?: string): Producer | null {
  if (epochs !== undefined && epochs !== 'dense' && epochs !== 'sparse') {
    throw invalid('malformed', `epochs is dense or sparse: ${epochs}`);
  }
  if (app === undefined && epoch === undefined) return null;
  if (app === undefined || epoch === undefined) throw invalid('malformed', 'app and epoch come together');
  const number = epochOf(epoch);
  return { app: appOf(app), epoch: number, sparse: epochs === 'sparse' };
}

/** Throws invalid `bad-name` for what is no name of a producer's app. */
export function appOf(app: string): string {
  if (isAppName(app)) return app;
  throw invalid('bad-name', `app is 1 to 128 of A-Z a-z 0-9 . _ : @ / -, beginning with a letter or digit: ${app}`);
}

/** Throws invalid `malformed` for what is no epoch. */
export function epochOf(epoch: string | undefined): bigint {
  const number = epoch === undefined ? null : parseEpoch(epoch);
  if (number === null) throw invalid('malformed', `epoch is a number from 0 to 2^63-1: ${epoch ?? 'missing'}`);
  return number;
}

/** `Idempotency-Key`, bare or as the quoted string of its draft standard. */
function batchIdOf(header: string | null): string | null {
  if (header === null) return null;
  const key = /^"(.*)"$/.exec(header)?.[1] ?? header;
  if (key === '' || key.length > BATCH_ID_LENGTH_MAX || !/^[\x20-\x7e]+$/.test(key)) {
    throw invalid('malformed', `idempotency-key is 1 to ${BATCH_ID_LENGTH_MAX} printable ASCII characters`);
  }
  return key;
}

/** Milliseconds of `Prefer: wait=N` (RFC 7240, seconds), at most `WAIT_MAX_MS`; 0 without it. */
function waitOf(header: string | null): number {
  const match = /(?:^|[,;\s])wait\s*=\s*"?([0-9]{1,6})"?(?=$|[,;\s])/i.exec(header ?? '');
  return match === null ? 0 : Math.min(Number(match[1]) * 1000, WAIT_MAX_MS);
}

/** What this isolate knows of tables it ingests into. Short-lived: the object refuses what was made for another table. */
const views = new Map<string, { view: IngestView; untilMs: number }>();

/** The table as the door needs it, from memory or from its object. */
async function ingestView(context: Ctx): Promise<IngestView> {
  const { key } = nameOf(context);
  const nowMs = context.var.ports.now();
  const known = views.get(key);
  if (known !== undefined && known.untilMs > nowMs) return known.view;
  views.delete(key);
  const view = unwrap(await objectOf(context).ingest());
  if (views.size >= INGEST_VIEWS_MAX) views.delete(views.keys().next().value ?? '');
  views.set(key, { view, untilMs: nowMs + INGEST_VIEW_MS });
  return view;
}

/** Asks the object again at the next batch. */
export function forgetView(context: Ctx): void {
  views.delete(nameOf(context).key);
}

import { invalid, rejected } from '../core/base/errors.ts';
import { WAIT_MAX_MS } from '../core/base/limits.ts';
import { isAppName, parseEpoch } from '../core/batch/admission.ts';
import type { NewFrame, Producer } from '../core/batch/frame.ts';
import { proposedSchema } from '../core/iceberg/proposal.ts';
import { MAIN } from '../core/iceberg/snapshot.ts';
import type { Answer } from '../object/answer.ts';
import { forgetViewOf, ingestViewOf } from './ingest-views.ts';
import { batchIdOf, type Named, newFrame } from './new-frame.ts';
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
 * Reads the rows of a request into one frame for its table. `digested`: false where no later batch will be held against it.
 *
 * @throws what `readRows` throws; invalid `malformed`, `too-many-partitions`, `too-large`
 */
export async function readFrame(context: Ctx, named: Named, digested = true): Promise<ReadFrame> {
  const { req } = context;
  const onError = req.query('on_error') ?? 'refuse';
  if (onError !== 'refuse' && onError !== 'skip') throw invalid('malformed', `on_error is refuse or skip: ${onError}`);
  const { namespace, table } = nameOf(context);
  const view = await ingestViewOf(context.var.ports, namespace, table);
  const { settings, tableUuid } = view;
  // Columns are the table's, and main is where they come from: rows of a branch bring none along.
  const isMain = named.branch === undefined;
  const { columns, rowsRead, errors, errorCount, digest } = await readRows({
    body: req.raw.body,
    contentType: req.header('content-type') ?? null,
    contentEncoding: req.header('content-encoding') ?? null,
    schema: isMain ? proposedSchema(view.schema, view.proposal) : view.schema,
    options: {
      onError,
      epochUnit: settings.epochUnit,
      epochUnits: settings.epochUnits,
      evolves: isMain && settings.schemaEvolution === 'additive',
      ingestTimeField: settings.ingestTimeColumn,
      delimiter: req.query('delimiter') ?? null,
      digested,
    },
  });
  const counts = {
    rows: columns.rows,
    ...(onError === 'skip' ? { rows_read: rowsRead, rows_skipped: errorCount, errors } : {}),
  };
  if (columns.rows === 0) return { frame: null, tableUuid, counts };
  return { frame: newFrame(columns, view, named, digest), tableUuid, counts };
}

export async function postRows(context: Ctx): Promise<Response> {
  const { req } = context;
  const batchId = batchIdOf(req.header('idempotency-key') ?? null);
  const producer = producerOf(req.query('app'), req.query('epoch'), req.query('epochs'));
  const branch = branchOf(req.query('branch'), producer);
  const waitMs = waitOf(req.header('prefer') ?? null);
  const isNamed = batchId !== null || producer !== null;
  const { frame, tableUuid, counts } = await readFrame(context, { batchId, producer, ...branch }, isNamed);
  // No rows, no batch: an empty commit would only make versions.
  if (frame === null) return context.json({ state: 'empty', ...counts });
  const answered = await objectOf(context).append(frame, tableUuid, waitMs);
  if (isViewStale(frame, answered)) forgetView(context);
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
  return context.json({ ...receipt, ...branch, ...(duplicate ? { duplicate } : {}), ...counts }, status);
}

/** `?branch=B`. Whether there is one is the object's to say. */
function branchOf(branch: string | undefined, producer: Producer | null): { branch?: string } {
  if (branch === undefined || branch === MAIN) return {};
  // Progress of producers is kept along main; a branch has only that of this service.
  if (producer !== null) throw invalid('malformed', 'epochs are of the main branch: app and branch exclude each other');
  return { branch };
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

/** Milliseconds of `Prefer: wait=N` (RFC 7240, seconds), at most `WAIT_MAX_MS`; 0 without it. */
function waitOf(header: string | null): number {
  const match = /(?:^|[,;\s])wait\s*=\s*"?([0-9]{1,6})"?(?=$|[,;\s])/i.exec(header ?? '');
  return match === null ? 0 : Math.min(Number(match[1]) * 1000, WAIT_MAX_MS);
}

/** True when the object is to be asked again: it told so, or whoever sends next is to know of the columns that wait by now. */
export function isViewStale({ proposal }: NewFrame, answered: Answer<unknown>): boolean {
  return answered.ok ? proposal !== undefined : answered.problem.type === 'table-changed';
}

/** Asks the object again at the next batch. */
export function forgetView(context: Ctx): void {
  const { namespace, table } = nameOf(context);
  forgetViewOf(namespace, table);
}

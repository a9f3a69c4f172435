import { utf8 } from '../core/base/bytes.ts';
import { rejected, SluiceError } from '../core/base/errors.ts';
import { FLUSH_ROWS_MAX, GROUP_BYTES_MAX, QUEUE_LOOKS_MAX } from '../core/base/limits.ts';
import type { NewFrame } from '../core/batch/frame.ts';
import { proposedSchema } from '../core/iceberg/proposal.ts';
import type { TableCalls } from '../http/app.ts';
import { ndjsonReader } from '../http/formats/ndjson.ts';
import { forgetViewOf, ingestViewOf } from '../http/ingest-views.ts';
import { newFrame } from '../http/new-frame.ts';
import { rowBudget, rowCollector } from '../http/row-collector.ts';
import { digitsOf } from '../http/rows.ts';
import { unwrap } from '../http/table-context.ts';
import type { AppendView } from '../object/table-object.ts';
import type { IngestView } from '../object/views.ts';
import { sha256 } from '../platform/hash.ts';
import type { Decoded } from './message.ts';

/** What is needed to bring rows to their table. */
export interface Landing {
  object(namespace: string, table: string): Pick<TableCalls, 'ingest' | 'appendMany'>;
  now(): number;
}

/**
 * Brings the messages of one table into its ledger, each as a batch under its own id. Returns, for each, null or what stands
 * in its way; never throws.
 *
 * What does not fit the table as it is remembered is tried once more on the table as its object has it now: a column may
 * have been added a moment ago, and a dead letter is more than a refusal that a client sees.
 */
export async function land(messages: readonly Decoded[], ports: Landing): Promise<unknown[]> {
  const outcomes = new Array<unknown>(messages.length).fill(null);
  let open = messages.map((_, index) => index);
  for (let look = 1; look <= QUEUE_LOOKS_MAX && open.length > 0; look++) {
    const { namespace, table } = messages[open[0]];
    if (look > 1) forgetViewOf(namespace, table);
    const tried = await landOnce(
      open.map((index) => messages[index]),
      ports,
    );
    open.forEach((index, at) => {
      outcomes[index] = tried[at].error;
    });
    open = open.filter((_, at) => tried[at].again);
  }
  return outcomes;
}

interface Tried {
  error: unknown;
  /** True when another look at the table may change it. */
  again: boolean;
}

async function landOnce(messages: readonly Decoded[], ports: Landing): Promise<Tried[]> {
  const { namespace, table } = messages[0];
  const tried: Tried[] = messages.map(() => ({ error: null, again: false }));
  let view: IngestView;
  try {
    view = await ingestViewOf(ports, namespace, table);
  } catch (error) {
    return messages.map(() => ({ error, again: false }));
  }
  let part: Framed[] = [];
  let bytes = 0;

  async function send(): Promise<void> {
    const sent = part;
    part = [];
    bytes = 0;
    if (sent.length === 0) return;
    const frames = sent.map(({ frame }) => frame);
    const errors = await append(frames, view.tableUuid, ports.object(namespace, table));
    for (const [at, { index, frame }] of sent.entries()) {
      const error = errors[at];
      tried[index] = { error, again: error instanceof SluiceError && error.type === 'table-changed' };
      // Whoever reads rows next is to know of the columns that wait by now.
      if (frame.proposal !== undefined) forgetViewOf(namespace, table);
    }
  }

  for (const [index, message] of messages.entries()) {
    let frame: NewFrame | null;
    try {
      frame = frameOf(message, view);
    } catch (error) {
      tried[index] = { error, again: true };
      continue;
    }
    if (frame === null) continue;
    // More than the ledger takes in one step would make several rows in it anyway.
    if (bytes + frame.body.length > GROUP_BYTES_MAX) await send();
    part.push({ index, frame });
    bytes += frame.body.length;
  }
  await send();
  return tried;
}

interface Framed {
  index: number;
  frame: NewFrame;
}

/** The rows of a message as a frame under its batch id; null when it has none. */
function frameOf({ batchId, rows }: Decoded, view: IngestView): NewFrame | null {
  const { settings } = view;
  const schema = proposedSchema(view.schema, view.proposal);
  const collector = rowCollector(schema, rowBudget(FLUSH_ROWS_MAX), {
    onError: 'refuse',
    epochUnit: settings.epochUnit,
    epochUnits: settings.epochUnits,
    evolve: settings.schemaEvolution === 'additive' ? 'json' : undefined,
    filledField: settings.ingestTimeColumn,
    textual: false,
  });
  if (rows instanceof Uint8Array) ndjsonReader(collector, { digits: digitsOf(schema) }).take(rows, true);
  else for (const [index, row] of rows.entries()) collector.row(row, index + 1);
  const { columns } = collector.finish();
  if (columns.rows === 0) return null;
  const digest = sha256([rows instanceof Uint8Array ? rows : utf8(JSON.stringify(rows, withBigints))]);
  return newFrame(columns, view, { batchId, producer: null }, digest);
}

/** For digests alone: the same value gives the same text. */
function withBigints(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? `${value}n` : value;
}

async function append(
  frames: NewFrame[],
  tableUuid: string,
  object: Pick<TableCalls, 'appendMany'>,
): Promise<unknown[]> {
  try {
    return unwrap(await object.appendMany(frames, tableUuid)).map((answered) => {
      try {
        return refusalOf(unwrap(answered));
      } catch (error) {
        return error;
      }
    });
  } catch (error) {
    return frames.map(() => error);
  }
}

/** A batch that was taken before may have been refused since: then it is not in the table, and its message tells so. */
function refusalOf({ state, type, message, receipt }: AppendView): SluiceError | null {
  if (state !== 'refused' && state !== 'parked') return null;
  return rejected(type ?? 'commit-refused', message ?? 'batch was refused', { receipt, state });
}

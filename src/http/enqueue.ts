import { textOf } from '../core/base/bytes.ts';
import { invalid, unavailable } from '../core/base/errors.ts';
import {
  BATCH_ID_LENGTH_MAX,
  ENQUEUE_BODY_BYTES_MAX,
  ENQUEUE_MESSAGE_BYTES,
  FLUSH_ROWS_MAX,
  ROW_ERRORS_REPORTED_MAX,
} from '../core/base/limits.ts';
import { type MessageSplitter, messageSplitter, type SplitMessage, splitKeyLengthMax } from '../core/batch/message.ts';
import { preview } from '../core/columns/fault.ts';
import { readWindows } from './body.ts';
import type { RowReader, RowSink } from './formats/format.ts';
import { jsonReader } from './formats/json-array.ts';
import { ndjsonReader } from './formats/ndjson.ts';
import { batchIdOf } from './new-frame.ts';
import { invalidRows, type RowError } from './row-collector.ts';
import { formatOf, JSON_MEDIA_TYPES } from './rows.ts';
import { type Ctx, nameOf } from './table-context.ts';

/**
 * `POST …/enqueue`: rows into the queue, for the fastest answer. Neither the table's object nor the store is asked: that each
 * row is a JSON object and fits a message is all that is looked at, and what does not fit the table becomes a dead letter.
 *
 * The whole body is looked at before the first message is sent. Messages have batch ids made of the request's key, so that
 * a request that is sent again under its key changes nothing; one without a key gets one, which the answer tells.
 */
export async function enqueueRows(context: Ctx): Promise<Response> {
  const { req } = context;
  const { namespace, table, key } = nameOf(context);
  const queue = context.var.ports.queue();
  if (!queue.allows(namespace, table)) throw invalid('table-not-queued', `table takes no rows from queues: ${key}`);
  const requestKey = keyOf(req.header('idempotency-key') ?? null);
  const messages = await readMessages(context, messageSplitter(key, requestKey));
  const rows = messages.reduce((sum, message) => sum + message.rows, 0);
  // No rows, no messages: as for rows, an empty batch is none.
  if (rows === 0) return context.json({ state: 'empty', rows });
  const { missed, reason } = await queue.send(messages);
  if (missed > 0) {
    const message = `queue did not take ${missed} of ${messages.length} messages: send the request again under its key`;
    throw unavailable(
      'queue-unavailable',
      message,
      { idempotency_key: requestKey, messages: messages.length, missed },
      reason,
    );
  }
  const batchIds = messages.map(({ message }) => message.batch_id);
  return context.json({ state: 'queued', rows, messages: messages.length, batch_ids: batchIds }, 202);
}

/** The key of the request, which the batch ids of its messages begin with. */
function keyOf(header: string | null): string {
  const key = batchIdOf(header) ?? crypto.randomUUID();
  const lengthMax = splitKeyLengthMax(BATCH_ID_LENGTH_MAX);
  if (key.length <= lengthMax) return key;
  throw invalid(
    'malformed',
    `idempotency-key is at most ${lengthMax} characters here, where numbers are put behind it`,
  );
}

/**
 * @throws invalid `unsupported-media-type`, what `readWindows` and the readers of JSON throw, `invalid-rows`, `too-many-rows`,
 * `line-too-long` for a row that does not fit a message
 */
async function readMessages(context: Ctx, splitter: MessageSplitter): Promise<SplitMessage[]> {
  const { req } = context;
  const errors: RowError[] = [];
  let rows = 0;

  function report(error: RowError): void {
    if (errors.length === ROW_ERRORS_REPORTED_MAX) throw invalidRows(errors, errors.length + 1, false);
    errors.push(error);
  }

  function count(): void {
    rows++;
    if (rows <= FLUSH_ROWS_MAX) return;
    const rowsMax = FLUSH_ROWS_MAX;
    throw invalid('too-many-rows', `request has more than ${rowsMax} rows: split it`, { rowsMax });
  }

  const reader = readerOf(req.header('content-type') ?? null, {
    row(row, line, bytes) {
      count();
      if (typeof row !== 'object' || row === null || Array.isArray(row)) {
        const value = preview(row);
        report({ line, type: 'not-an-object', field: null, message: `row must be a JSON object: ${value}`, value });
      } else if (errors.length === 0 && !splitter.add(onOneLine(bytes as Uint8Array))) {
        const bytesMax = ENQUEUE_MESSAGE_BYTES;
        const message = `row at line ${line} is larger than a message, which takes ${bytesMax} bytes: send it to /rows`;
        throw invalid('line-too-long', message, { line, bytesMax });
      }
    },
    fault(line, type, message, text, field) {
      count();
      report({ line, type, field: field ?? null, message, ...(text === undefined ? {} : { value: text }) });
    },
  });
  const contentEncoding = req.header('content-encoding') ?? null;
  await readWindows(req.raw.body, { contentEncoding, bytesMax: ENQUEUE_BODY_BYTES_MAX }, (window, last) =>
    reader.take(window, last),
  );
  if (errors.length > 0) throw invalidRows(errors, errors.length, true);
  return splitter.finish();
}

function readerOf(contentType: string | null, sink: RowSink): RowReader {
  const options = { digits: 'integers', withBytes: true } as const;
  switch (formatOf(contentType)) {
    case 'ndjson':
      return ndjsonReader(sink, options);
    case 'json':
      return jsonReader(sink, options);
    default: {
      const message = `content-type must be NDJSON or JSON here: ${contentType}`;
      throw invalid('unsupported-media-type', message, { supported: [...JSON_MEDIA_TYPES] });
    }
  }
}

/** A row as it was sent, on one line. In JSON a line break is white space: one in a text is written as an escape. */
function onOneLine(bytes: Uint8Array): string {
  return textOf(bytes)
    .replace(/[\r\n]/g, ' ')
    .trim();
}

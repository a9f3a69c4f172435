import { utf8 } from '../base/bytes.ts';
import { ENQUEUE_MESSAGE_BYTES } from '../base/limits.ts';

/**
 * A queue message as this service makes it: rows of one table as NDJSON text, which keeps every digit through a queue.
 * The consumer takes other forms too (`queue/message.ts`).
 */
export interface RowsMessage {
  /** `namespace/table`. */
  table: string;
  batch_id: string;
  ndjson: string;
}

/** A message with the facts that an answer tells. */
export interface SplitMessage {
  message: RowsMessage;
  rows: number;
  /** Bytes of its JSON. */
  bytes: number;
}

/** Deals rows out to messages. */
export interface MessageSplitter {
  /** Takes one row as JSON on one line. False when it is larger than a message. */
  add(line: string): boolean;
  /** All messages; the splitter is spent. */
  finish(): SplitMessage[];
}

/** Index of the last message a body can come to, with digits to spare: the length of its batch id is reserved. */
const INDEX_DIGITS = 6;

/** Characters that a batch's own name may have, so that those of its messages are batch ids. */
export function splitKeyLengthMax(batchIdLengthMax: number): number {
  return batchIdLengthMax - INDEX_DIGITS - 1;
}

/**
 * Fills messages one after the other up to `bytesMax` of JSON. Their batch ids are `<key>/0`, `<key>/1`, ...: the same rows
 * under the same key are the same messages, so that sending them again changes nothing.
 */
export function messageSplitter(table: string, key: string, bytesMax = ENQUEUE_MESSAGE_BYTES): MessageSplitter {
  const empty = jsonBytes({ table, batch_id: `${key}/${'9'.repeat(INDEX_DIGITS)}`, ndjson: '' });
  const messages: SplitMessage[] = [];
  let lines: string[] = [];
  let bytes = empty;

  function close(): void {
    const message = { table, batch_id: `${key}/${messages.length}`, ndjson: lines.join('\n') };
    messages.push({ message, rows: lines.length, bytes });
    lines = [];
    bytes = empty;
  }

  return {
    add(line) {
      // Without its quotes, with the newline behind it, which JSON writes as two characters.
      const added = jsonBytes(line) - 2 + 2;
      if (empty + added > bytesMax) return false;
      if (bytes + added > bytesMax) close();
      lines.push(line);
      bytes += added;
      return true;
    },
    finish() {
      if (lines.length > 0) close();
      return messages;
    },
  };
}

function jsonBytes(value: unknown): number {
  return utf8(JSON.stringify(value)).length;
}

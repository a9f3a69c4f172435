import { textOf, utf8 } from '../core/base/bytes.ts';
import { DEAD_LETTER_ERRORS_MAX, JSON_DEPTH_MAX, QUEUE_MESSAGE_BYTES_MAX } from '../core/base/limits.ts';
import { type ProblemBody, problemOf } from '../http/problem.ts';
import type { Outgoing } from './sender.ts';

/** First member of a dead letter, by which a consumer knows one that was sent again. No column of a row in its right mind. */
export const DEAD_LETTER_MARK = 'sluice_dead_letter';

/**
 * What stands in the dead letter queue for a message that cannot be delivered. Sent to a rows queue again as it is, it is
 * delivered as the message that it is about, under the same batch id.
 */
export interface DeadLetter {
  [DEAD_LETTER_MARK]: 1;
  queue: string;
  message_id: string;
  /** What the message's rows are known by: its own batch id, else its message id. */
  batch_id: string;
  /** Table that its queue was bound to. */
  bound: string | null;
  /** Deliveries so far. */
  attempts: number;
  sent_ms: number;
  failed_ms: number;
  /** A problem body, as an HTTP client would have got it. */
  reason: ProblemBody;
  /** The message as it was sent. Bytes are text. Null with `body_follows`. */
  body: unknown;
  /** The body has no JSON form or is too large to stand beside a reason: it is the next message of the dead letter queue. */
  body_follows?: true;
}

/** A message that failed, and why. */
export interface Failure {
  queue: string;
  bound: string | null;
  /** Id and body of the message. */
  id: string;
  body: unknown;
  batchId: string;
  attempts: number;
  timestamp: Date;
  error: unknown;
  nowMs: number;
}

/** What is to be sent to the dead letter queue for a failure: a letter, and behind it the body if it cannot be inside. */
export function deadLetterOf(failure: Failure): Outgoing[] {
  const { queue, bound, id, body, batchId, attempts, timestamp, error, nowMs } = failure;
  const letter: DeadLetter = {
    [DEAD_LETTER_MARK]: 1,
    queue,
    message_id: id,
    batch_id: batchId,
    bound,
    attempts,
    sent_ms: timestamp.getTime(),
    failed_ms: nowMs,
    reason: reasonOf(error),
    body: jsonBody(body),
  };
  if (letter.body !== null) {
    const whole = outgoing(letter);
    if (whole.bytes <= QUEUE_MESSAGE_BYTES_MAX) return [whole];
  }
  return [outgoing({ ...letter, body: null, body_follows: true }), asItWas(body)];
}

function outgoing(letter: DeadLetter): Outgoing {
  return { body: letter, contentType: 'json', bytes: utf8(JSON.stringify(letter)).length };
}

function reasonOf(error: unknown): ProblemBody {
  const { body } = problemOf(error);
  const { errors } = body;
  return Array.isArray(errors) ? { ...body, errors: errors.slice(0, DEAD_LETTER_ERRORS_MAX) } : body;
}

/** The body as JSON holds it without a loss, bytes as their text; null when it does not. */
function jsonBody(body: unknown): unknown {
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) {
    try {
      return textOf(body instanceof ArrayBuffer ? new Uint8Array(body) : viewOf(body));
    } catch {
      return null;
    }
  }
  return isJson(body, 0) ? body : null;
}

function isJson(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true;
    case 'number':
      return Number.isFinite(value);
    case 'object': {
      if (value === null) return true;
      if (depth >= JSON_DEPTH_MAX) return false;
      if (Array.isArray(value)) return value.every((item) => isJson(item, depth + 1));
      const prototype: unknown = Object.getPrototypeOf(value);
      return prototype === Object.prototype && Object.values(value).every((item) => isJson(item, depth + 1));
    }
    default:
      return false;
  }
}

function viewOf(view: ArrayBufferView): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

function asItWas(body: unknown): Outgoing {
  if (typeof body === 'string') return { body, contentType: 'text', bytes: utf8(body).length };
  if (body instanceof ArrayBuffer) return { body, contentType: 'bytes', bytes: body.byteLength };
  if (ArrayBuffer.isView(body)) return { body, contentType: 'bytes', bytes: body.byteLength };
  // Its size is not known; it was a message before, so it fits one.
  return { body, contentType: isJson(body, 0) ? 'json' : 'v8', bytes: QUEUE_MESSAGE_BYTES_MAX };
}

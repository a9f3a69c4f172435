import {
  CONNECTIONS_MAX,
  QUEUE_MESSAGE_OVERHEAD_BYTES,
  QUEUE_SEND_BYTES_MAX,
  QUEUE_SEND_MESSAGES_MAX,
} from '../core/base/limits.ts';

/** A message on its way into a queue. */
export interface Outgoing {
  body: unknown;
  contentType: 'json' | 'text' | 'bytes' | 'v8';
  /** Bytes of the body as the queue counts them, at least. */
  bytes: number;
}

/** The part of a queue's binding that is used. */
export interface SendingQueue {
  sendBatch(messages: Iterable<{ body: unknown; contentType?: Outgoing['contentType'] }>): Promise<unknown>;
}

/**
 * Sends messages in as few calls as the platform's limits allow, several at a time. Messages of one item are sent in one
 * call, all or none. Returns, for each item, null or the error of its call; never throws.
 */
export async function sendAll(queue: SendingQueue, items: readonly (readonly Outgoing[])[]): Promise<unknown[]> {
  const calls = callsOf(items);
  const failures = new Array<unknown>(items.length).fill(null);
  let next = 0;
  const lane = async () => {
    while (next < calls.length) {
      const call = calls[next++];
      try {
        const messages = call.flatMap((index) => items[index]);
        await queue.sendBatch(messages.map(({ body, contentType }) => ({ body, contentType })));
      } catch (error) {
        for (const index of call) failures[index] = error ?? new Error('queue did not take the messages');
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONNECTIONS_MAX, calls.length) }, lane));
  return failures;
}

/** Indexes of items by call, in order. */
function callsOf(items: readonly (readonly Outgoing[])[]): number[][] {
  const calls: number[][] = [];
  let messages = 0;
  let bytes = 0;
  items.forEach((item, index) => {
    const added = item.reduce((sum, message) => sum + message.bytes + QUEUE_MESSAGE_OVERHEAD_BYTES, 0);
    const fits = messages + item.length <= QUEUE_SEND_MESSAGES_MAX && bytes + added <= QUEUE_SEND_BYTES_MAX;
    if (calls.length === 0 || !fits) {
      calls.push([]);
      messages = 0;
      bytes = 0;
    }
    calls[calls.length - 1].push(index);
    messages += item.length;
    bytes += added;
  });
  return calls;
}

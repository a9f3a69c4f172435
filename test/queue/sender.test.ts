import { describe, expect, it } from 'vitest';
import {
  CONNECTIONS_MAX,
  QUEUE_MESSAGE_BYTES_MAX,
  QUEUE_SEND_BYTES_MAX,
  QUEUE_SEND_MESSAGES_MAX,
} from '../../src/core/base/limits.ts';
import { type Outgoing, sendAll } from '../../src/queue/sender.ts';

interface Sent {
  body: unknown;
  contentType?: string;
}

/** A queue that keeps what it is sent; calls whose number is listed fail. */
function queueOf(failing: readonly number[] = []) {
  const calls: Sent[][] = [];
  let open = 0;
  const queue = {
    openMax: 0,
    calls,
    async sendBatch(messages: Iterable<Sent>) {
      const call = calls.push([...messages]);
      open++;
      queue.openMax = Math.max(queue.openMax, open);
      await new Promise((resolve) => setTimeout(resolve));
      open--;
      if (failing.includes(call)) throw new Error(`call ${call} failed`);
    },
  };
  return queue;
}

const message = (body: unknown, bytes: number): Outgoing => ({ body, contentType: 'json', bytes });

describe('sending to a queue', () => {
  it('keeps to the number of messages of one call, and their order', async () => {
    const queue = queueOf();
    const items = Array.from({ length: 2 * QUEUE_SEND_MESSAGES_MAX + 1 }, (_, n) => [message(n, 10)]);
    expect(await sendAll(queue, items)).toEqual(items.map(() => null));
    expect(queue.calls.map((call) => call.length)).toEqual([QUEUE_SEND_MESSAGES_MAX, QUEUE_SEND_MESSAGES_MAX, 1]);
    expect(queue.calls.flat().map(({ body }) => body)).toEqual(items.map((_, n) => n));
    expect(queue.calls[0][0]).toEqual({ body: 0, contentType: 'json' });
  });

  it('keeps to the bytes of one call: two of the largest messages do not fit', async () => {
    const queue = queueOf();
    await sendAll(queue, [[message(1, QUEUE_MESSAGE_BYTES_MAX)], [message(2, QUEUE_MESSAGE_BYTES_MAX)]]);
    expect(queue.calls.map((call) => call.length)).toEqual([1, 1]);
    const others = queueOf();
    await sendAll(others, [[message(1, 120_000)], [message(2, 120_000)], [message(3, QUEUE_SEND_BYTES_MAX - 241_000)]]);
    expect(others.calls.map((call) => call.length)).toEqual([3]);
  });

  it('the messages of an item stay together', async () => {
    const queue = queueOf();
    const pair = [message('letter', 100), message('body', QUEUE_MESSAGE_BYTES_MAX)];
    await sendAll(queue, [pair, pair, pair]);
    expect(queue.calls.map((call) => call.map(({ body }) => body))).toEqual([
      ['letter', 'body'],
      ['letter', 'body'],
      ['letter', 'body'],
    ]);
  });

  it('tells which items were not taken, and goes on', async () => {
    const queue = queueOf([2]);
    const items = Array.from({ length: 5 }, (_, n) => [message(n, QUEUE_MESSAGE_BYTES_MAX)]);
    const failures = await sendAll(queue, items);
    expect(failures.map((failure) => failure !== null)).toEqual([false, true, false, false, false]);
    expect(queue.calls).toHaveLength(5);
  });

  it('several calls at a time, as many as there are connections', async () => {
    const queue = queueOf();
    await sendAll(
      queue,
      Array.from({ length: 20 }, (_, n) => [message(n, QUEUE_MESSAGE_BYTES_MAX)]),
    );
    expect(queue.openMax).toBe(CONNECTIONS_MAX);
    expect(await sendAll(queueOf(), [])).toEqual([]);
  });
});

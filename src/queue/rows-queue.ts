import { type QueueSettings, takesMessages } from '../core/access/queues.ts';
import type { RowsQueue } from '../http/app.ts';
import { type SendingQueue, sendAll } from './sender.ts';

/** The queue of rows for the routes. */
export function rowsQueue(queue: SendingQueue, settings: QueueSettings): RowsQueue {
  return {
    allows: (namespace, table) => takesMessages(settings, namespace, table),
    async send(messages) {
      const items = messages.map(({ message, bytes }) => [{ body: message, contentType: 'json' as const, bytes }]);
      const failures = (await sendAll(queue, items)).filter((failure) => failure !== null);
      return { missed: failures.length, reason: failures[0] ?? null };
    },
  };
}

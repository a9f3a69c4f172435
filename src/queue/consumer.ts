import { type QueueSettings, takesMessages } from '../core/access/queues.ts';
import { invalid, SluiceError } from '../core/base/errors.ts';
import { CONNECTIONS_MAX, QUEUE_DELIVERIES_MAX } from '../core/base/limits.ts';
import { problemOf } from '../http/problem.ts';
import { deadLetterOf } from './dead-letter.ts';
import { type Landing, land } from './landing.ts';
import { type Decoded, decodeMessage, type Opened, openMessage } from './message.ts';
import { redeliverySeconds } from './redelivery.ts';
import { type SendingQueue, sendAll } from './sender.ts';

/** A message as the platform delivers it. */
export interface QueueMessage {
  readonly id: string;
  readonly timestamp: Date;
  readonly body: unknown;
  /** Deliveries, this one included. */
  readonly attempts: number;
  ack(): void;
  retry(options: { delaySeconds: number }): void;
}

export interface QueueDelivery {
  readonly queue: string;
  readonly messages: readonly QueueMessage[];
}

export interface ConsumerPorts extends Landing {
  /** Throws invalid `bad-settings`. */
  settings(): QueueSettings;
  deadLetters: SendingQueue;
  /** A 32-bit random number. */
  draw(): number;
  log(event: { event: string; queue: string; [member: string]: unknown }): void;
}

/** One message of a delivery, what it holds, and what stands in its way; null: nothing, it is in the ledger. */
interface Item {
  message: QueueMessage;
  opened: Opened;
  decoded: Decoded | null;
  error: unknown;
}

/**
 * Takes one delivery of a queue: every message for itself, those of one table together in one call to its object. A message
 * is acknowledged once its rows are in the ledger, or its dead letter is in the dead letter queue; else it comes again.
 * Never throws: what is thrown would bring back all of them.
 */
export async function consume({ queue, messages }: QueueDelivery, ports: ConsumerPorts): Promise<void> {
  const items = itemsOf(queue, messages, ports);
  await landAll(items, ports);
  const dead: Item[] = [];
  for (const item of items) {
    if (item.error === null) item.message.ack();
    else if (isFinal(item)) dead.push(item);
    else item.message.retry({ delaySeconds: redeliverySeconds(item.message.attempts, item.error, ports.draw()) });
  }
  reportDeferred(queue, items, dead, ports);
  await bury(queue, dead, ports);
}

function itemsOf(queue: string, messages: readonly QueueMessage[], ports: ConsumerPorts): Item[] {
  let settings: QueueSettings;
  try {
    settings = ports.settings();
  } catch (error) {
    return messages.map((message) => ({ message, opened: asItIs(message, null), decoded: null, error }));
  }
  const bound = settings.bound.get(queue) ?? null;
  return messages.map((message) => {
    const item: Item = { message, opened: asItIs(message, bound), decoded: null, error: null };
    try {
      item.opened = openMessage(message, bound);
      item.decoded = decodeMessage(item.opened);
      const { namespace, table, key } = item.decoded;
      if (!takesMessages(settings, namespace, table)) {
        throw invalid('table-not-queued', `table takes no rows from queues: ${key}`);
      }
    } catch (error) {
      item.error = error;
    }
    return item;
  });
}

function asItIs({ id, body }: QueueMessage, bound: string | null): Opened {
  return { id, batchId: null, bound, body };
}

/** Lands the messages of each table, several tables at a time. Messages of a table keep their order. */
async function landAll(items: readonly Item[], ports: Landing): Promise<void> {
  const groups = [...Map.groupBy(items, ({ decoded, error }) => (error === null ? decoded?.key : undefined))];
  const lane = async () => {
    for (let group = groups.pop(); group !== undefined; group = groups.pop()) {
      const [key, members] = group;
      if (key === undefined) continue;
      const errors = await land(
        members.map(({ decoded }) => decoded as Decoded),
        ports,
      );
      members.forEach((item, index) => {
        item.error = errors[index];
      });
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS_MAX }, lane));
}

/** True when delivering the message again would end no better, or it was tried often enough. */
function isFinal({ error, message }: Item): boolean {
  const isOwn = error instanceof SluiceError;
  if (isOwn && OPERATOR_FAULTS.has(error.type)) return false;
  const isRefusal = isOwn && (error.kind === 'invalid' || error.kind === 'rejected');
  return isRefusal || message.attempts >= QUEUE_DELIVERIES_MAX;
}

/** The service is set up wrongly: no fault of a message, which waits until that is put right. */
const OPERATOR_FAULTS: ReadonlySet<string> = new Set(['bad-settings', 'bad-location']);

/** Sends dead letters; a message whose letter was not taken comes again. */
async function bury(queue: string, dead: readonly Item[], ports: ConsumerPorts): Promise<void> {
  if (dead.length === 0) return;
  const nowMs = ports.now();
  const letters = dead.map((item) => {
    const { attempts, timestamp } = item.message;
    return deadLetterOf({
      ...item.opened,
      queue,
      batchId: batchIdOf(item),
      attempts,
      timestamp,
      error: item.error,
      nowMs,
    });
  });
  const failures = await sendAll(ports.deadLetters, letters);
  dead.forEach((item, index) => {
    const { message, decoded, error } = item;
    if (failures[index] !== null) {
      message.retry({ delaySeconds: redeliverySeconds(message.attempts, error, ports.draw()) });
      return;
    }
    message.ack();
    const about = { message: message.id, batch_id: batchIdOf(item), attempts: message.attempts };
    ports.log({ event: 'dead-letter', queue, table: decoded?.key ?? null, ...about, ...reasonOf(error) });
  });
  const lost = failures.find((failure) => failure !== null);
  if (lost !== undefined) {
    const messages = failures.filter((failure) => failure !== null).length;
    ports.log({ event: 'dead-letters-not-taken', queue, messages, reason: String(lost) });
  }
}

/** A line for each table and reason for which messages come again. */
function reportDeferred(queue: string, items: readonly Item[], dead: readonly Item[], { log }: ConsumerPorts): void {
  const again = items.filter((item) => item.error !== null && !dead.includes(item));
  const groups = Map.groupBy(again, ({ decoded, error }) => `${decoded?.key} ${reasonOf(error).type}`);
  for (const [first, ...rest] of groups.values()) {
    const table = first.decoded?.key ?? null;
    log({ event: 'messages-deferred', queue, table, messages: rest.length + 1, ...reasonOf(first.error) });
  }
}

function batchIdOf({ decoded, opened }: Item): string {
  return decoded?.batchId ?? opened.batchId ?? opened.id;
}

/** For the log. Why a message is refused is in its letter: values of rows are no matter of a log. */
function reasonOf(error: unknown): { type: string; reason?: string } {
  if (error instanceof SluiceError) {
    const { kind, type, message } = error;
    return kind === 'invalid' || kind === 'rejected' ? { type } : { type, reason: message };
  }
  const type = problemOf(error).body.type.split(':').at(-1) ?? 'internal';
  return { type, reason: error instanceof Error ? (error.stack ?? error.message) : String(error) };
}

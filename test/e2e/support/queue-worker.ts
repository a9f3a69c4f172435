import { withBucketAccess } from '../../../scripts/dev-bucket.ts';
import service, { TableObject } from '../../../src/index.ts';
import type { Env } from '../../../src/settings.ts';
import { Rng } from '../../sim/rng.ts';
import { CHAOS_VARIABLE, QUEUE_FACTS_PATH, type QueueChaos, type QueueFacts } from './queue-chaos.ts';

export { TableObject };

/** Deliveries of a message after which nothing more happens to it. */
const FATES_MAX = 4;

const facts: QueueFacts = {
  deliveries: 0,
  deliveriesOf: {},
  settled: {},
  buried: 0,
  acksLost: 0,
  lettersLost: 0,
  letters: [],
};

/** The service as it is, but that deliveries go wrong, and its dead letters are kept for the test. Never deployed. */
const watched = {
  ...service,

  fetch(request: Request, env: Env, context: ExecutionContext): Response | Promise<Response> {
    if (new URL(request.url).pathname === QUEUE_FACTS_PATH) return Response.json(facts);
    return service.fetch(request, env, context);
  },

  async queue(batch: MessageBatch, env: Env): Promise<void> {
    if (batch.queue.endsWith('-dead-letters')) {
      for (const { id, body } of batch.messages) facts.letters.push({ id, body });
      return;
    }
    const chaos = chaosOf(env);
    const messages = batch.messages.map((message) => watchedMessage(message, chaos));
    const { DEAD_LETTERS } = env;
    const deadLetters = {
      sendBatch(letters: Iterable<MessageSendRequest>) {
        const first = messages[0];
        if (first.fate('letter') >= chaos.letterLost) {
          facts.buried += [...letters].length;
          return DEAD_LETTERS.sendBatch(letters);
        }
        facts.lettersLost++;
        return Promise.reject(new Error('queue is overloaded'));
      },
    };
    await service.queue({ queue: batch.queue, messages } as unknown as MessageBatch, {
      ...env,
      DEAD_LETTERS: deadLetters as unknown as Queue,
    });
  },
} satisfies ExportedHandler<Env>;

function chaosOf(env: Env): QueueChaos {
  const given = (env as unknown as Record<string, unknown>)[CHAOS_VARIABLE];
  return typeof given === 'string' ? (JSON.parse(given) as QueueChaos) : { seed: 0, ackLost: 0, letterLost: 0 };
}

function textOf(body: unknown): string {
  if (typeof body === 'string') return body;
  return body instanceof ArrayBuffer ? new TextDecoder().decode(body) : JSON.stringify(body);
}

function watchedMessage(message: Message, { seed, ackLost }: QueueChaos) {
  const { id, body, timestamp, attempts } = message;
  const name = textOf(body).slice(0, 200);
  const fate = (what: string) => (attempts > FATES_MAX ? 1 : new Rng(seed, `${what} ${attempts} ${name}`).float());
  facts.deliveries++;
  const batchId = (body as { batch_id?: string } | null)?.batch_id;
  if (typeof batchId === 'string') facts.deliveriesOf[batchId] = (facts.deliveriesOf[batchId] ?? 0) + 1;
  return {
    ...{ id, body, timestamp, attempts, fate },
    retry: (options: QueueRetryOptions) => message.retry(options),
    ack() {
      if (fate('ack') >= ackLost) {
        facts.settled[textOf(body)] = [...(facts.settled[textOf(body)] ?? []), id];
        return message.ack();
      }
      facts.acksLost++;
      message.retry({ delaySeconds: 0 });
    },
  };
}

export default withBucketAccess(watched, 'LAKE');

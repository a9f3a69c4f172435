/** Where the test asks what happened to messages, and the variable that says what is to happen to them. */
export const QUEUE_FACTS_PATH = '/test/queue';
export const CHAOS_VARIABLE = 'QUEUE_CHAOS';

/** Chances by message and delivery, drawn from the seed: the same messages meet the same fate. */
export interface QueueChaos {
  seed: number;
  /** A message that was acknowledged comes again, as when the acknowledgement is lost. */
  ackLost: number;
  /** The dead letter queue does not take what is sent. */
  letterLost: number;
}

export interface QueueFacts {
  deliveries: number;
  /** Ids of messages that will not come again, by the text of their body. */
  settled: Record<string, string[]>;
  /** By the batch id that a message names. */
  deliveriesOf: Record<string, number>;
  acksLost: number;
  lettersLost: number;
  /** Messages that were sent to the dead letter queue, and those that came out of it. */
  buried: number;
  letters: { id: string; body: unknown }[];
}

import { SluiceError } from '../core/base/errors.ts';
import { QUEUE_RETRY } from '../core/base/limits.ts';
import { backoffMs } from '../core/commit/backoff.ts';

/**
 * Seconds until a message is delivered again after its `attempts`-th delivery: at least half of what the attempts come to,
 * so that a full buffer is not asked at once by all, and not before the error says. `draw` is a 32-bit random number.
 */
export function redeliverySeconds(attempts: number, error: unknown, draw: number): number {
  const { baseMs, capMs } = QUEUE_RETRY;
  const half = { baseMs: baseMs / 2, capMs: capMs / 2 };
  const waitMs = backoffMs(attempts, 2 ** 32, half) + backoffMs(attempts, draw, half);
  const asked = error instanceof SluiceError ? error.detail['retryAfter'] : undefined;
  const askedS = typeof asked === 'number' && asked > 0 ? asked : 0;
  return Math.min(capMs / 1000, Math.ceil(Math.max(waitMs / 1000, askedS)));
}

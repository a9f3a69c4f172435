/**
 * Wait before attempt `attempt` (counted from 1), milliseconds: exponential with full jitter, so that writers that
 * lost the same race do not meet again. `draw` is a 32-bit random number.
 */
export function backoffMs(attempt: number, draw: number, bounds: { baseMs: number; capMs: number }): number {
  const ceiling = Math.min(bounds.capMs, bounds.baseMs * 2 ** Math.min(attempt - 1, 30));
  return Math.floor((draw / 2 ** 32) * ceiling);
}

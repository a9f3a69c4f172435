import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { unavailable } from '../../src/core/base/errors.ts';
import { BATCH_MEMORY_MS, QUEUE_DELIVERIES_MAX, QUEUE_RETRY } from '../../src/core/base/limits.ts';
import { redeliverySeconds } from '../../src/queue/redelivery.ts';

const HIGH = 2 ** 32 - 1;
const DAY_S = 24 * 3600;

describe('delay of the next delivery', () => {
  it('doubles with the deliveries, spread over its upper half, up to a bound', () => {
    expect([1, 2, 3, 4].map((attempts) => redeliverySeconds(attempts, null, HIGH))).toEqual([2, 4, 8, 16]);
    expect([1, 2, 3, 4].map((attempts) => redeliverySeconds(attempts, null, 0))).toEqual([1, 2, 4, 8]);
    for (const draw of [0, HIGH]) expect(redeliverySeconds(99, null, draw)).toBeGreaterThanOrEqual(450);
    expect(redeliverySeconds(99, null, HIGH)).toBe(QUEUE_RETRY.capMs / 1000);
  });

  it('is whole seconds, and not before the error says', () => {
    const busy = unavailable('busy', 'buffer is full', { retryAfter: 5 });
    expect(redeliverySeconds(1, busy, 0)).toBe(5);
    expect(redeliverySeconds(5, busy, 0)).toBe(16);
    expect(redeliverySeconds(1, unavailable('busy', '', { retryAfter: 1e9 }), 0)).toBe(QUEUE_RETRY.capMs / 1000);
    for (let draw = 0; draw < HIGH; draw += 2 ** 28)
      expect(Number.isInteger(redeliverySeconds(3, null, draw))).toBe(true);
  });

  it('all deliveries take about a day: longer than an outage, shorter than a queue keeps messages by default', () => {
    let most = 0;
    for (let attempts = 1; attempts < QUEUE_DELIVERIES_MAX; attempts++) most += redeliverySeconds(attempts, null, HIGH);
    expect(most).toBeGreaterThan(DAY_S / 2);
    expect(most).toBeLessThan(2 * DAY_S);
    expect(BATCH_MEMORY_MS).toBeGreaterThan(14 * DAY_S * 1000);
  });

  it('the consumer gives a message up, with its reason, before the platform does', () => {
    const toml = readFileSync(join(import.meta.dirname, '../../wrangler.toml'), 'utf8');
    const retries = [...toml.matchAll(/^max_retries = ([0-9]+)$/gm)].map((match) => Number(match[1]));
    expect(retries.length).toBeGreaterThan(0);
    for (const most of retries) expect(most + 1).toBeGreaterThan(QUEUE_DELIVERIES_MAX);
  });
});

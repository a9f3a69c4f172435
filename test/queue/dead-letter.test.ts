import { describe, expect, it } from 'vitest';
import { invalid } from '../../src/core/base/errors.ts';
import { DEAD_LETTER_ERRORS_MAX, QUEUE_MESSAGE_BYTES_MAX } from '../../src/core/base/limits.ts';
import { deadLetterOf } from '../../src/queue/dead-letter.ts';
import { decodeMessage, openMessage } from '../../src/queue/message.ts';

const ERROR = invalid('invalid-rows', 'batch has 9 bad rows', {
  errors: Array.from({ length: 9 }, (_, n) => ({ line: n + 1, type: 'wrong-type', field: 'a', message: 'a' })),
  errorCount: 9,
});

function letterOf(body: unknown, error: unknown = ERROR) {
  return deadLetterOf({
    ...{ queue: 'q', bound: null, id: 'm-1', body, batchId: 'b-1', attempts: 3, timestamp: new Date(1000) },
    ...{ error, nowMs: 2000 },
  });
}

describe('dead letters', () => {
  it('tell the message, its deliveries and the reason as a problem, with the first bad rows', () => {
    const body = { table: 'ns/t', rows: [{ a: 'x' }] };
    const [letter, ...rest] = letterOf(body);
    expect(rest).toEqual([]);
    expect(letter.contentType).toBe('json');
    expect(letter.body).toEqual({
      sluice_dead_letter: 1,
      ...{ queue: 'q', message_id: 'm-1', batch_id: 'b-1', bound: null, attempts: 3, sent_ms: 1000, failed_ms: 2000 },
      reason: {
        type: 'urn:sluice:problem:invalid-rows',
        title: expect.any(String),
        status: 422,
        detail: 'batch has 9 bad rows',
        errors: expect.arrayContaining([{ line: 1, type: 'wrong-type', field: 'a', message: 'a' }]),
        error_count: 9,
      },
      body,
    });
    expect((letter.body as { reason: { errors: unknown[] } }).reason.errors).toHaveLength(DEAD_LETTER_ERRORS_MAX);
    expect(letter.bytes).toBe(new TextEncoder().encode(JSON.stringify(letter.body)).length);
  });

  it('are opened to the same message after a trip through JSON', () => {
    const body = { table: 'ns/t', ndjson: '{"a":9007199254740993}' };
    const [letter] = letterOf(body);
    const again = { id: 'm-2', body: JSON.parse(JSON.stringify(letter.body)) };
    expect(openMessage(again, null)).toEqual({ id: 'm-1', batchId: 'b-1', bound: null, body });
    expect(decodeMessage(openMessage(again, null))).toMatchObject({ key: 'ns/t', batchId: 'b-1' });
  });

  it('hold bytes as their text, which are the same rows', () => {
    const [letter, ...rest] = letterOf(new TextEncoder().encode('{"a":"ü"}').buffer);
    expect(rest).toEqual([]);
    expect(letter.body).toMatchObject({ body: '{"a":"ü"}' });
  });

  it('an error that is none of ours is told as one, and no more', () => {
    const [letter] = letterOf({}, new Error('secret'));
    expect(JSON.stringify(letter.body)).not.toContain('secret');
    expect(letter.body).toMatchObject({ reason: { type: 'urn:sluice:problem:internal' } });
  });

  const cyclic: Record<string, unknown> = {};
  cyclic['self'] = cyclic;
  it.each([
    ['too large beside a reason', { table: 'ns/t', ndjson: 'x'.repeat(QUEUE_MESSAGE_BYTES_MAX - 300) }, 'json'],
    ['large text', 'x'.repeat(QUEUE_MESSAGE_BYTES_MAX), 'text'],
    ['bytes that are no text', Uint8Array.of(0xff), 'bytes'],
    ['a bigint', { n: 1n }, 'v8'],
    ['not finite', { n: Number.NaN }, 'v8'],
    ['a Map', new Map(), 'v8'],
    ['a Date', { at: new Date(0) }, 'v8'],
    ['a circle', cyclic, 'v8'],
    ['undefined', undefined, 'v8'],
  ])('a body that does not stand in the letter follows it as it was: %s', (_, body, contentType) => {
    const [letter, follower, ...rest] = letterOf(body);
    expect(rest).toEqual([]);
    expect(letter.body).toMatchObject({ body: null, body_follows: true, batch_id: 'b-1' });
    expect(letter.bytes).toBeLessThan(QUEUE_MESSAGE_BYTES_MAX);
    expect(follower).toMatchObject({ contentType });
    expect(follower.body).toBe(body);
  });
});

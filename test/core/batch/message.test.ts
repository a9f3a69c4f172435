import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { utf8 } from '../../../src/core/base/bytes.ts';
import { BATCH_ID_LENGTH_MAX } from '../../../src/core/base/limits.ts';
import { messageSplitter, splitKeyLengthMax } from '../../../src/core/batch/message.ts';

function split(lines: readonly string[], key = 'k', bytesMax = 200) {
  const splitter = messageSplitter('ns/t', key, bytesMax);
  expect(lines.map((line) => splitter.add(line))).toEqual(lines.map(() => true));
  return splitter.finish();
}

describe('rows into messages', () => {
  it('fill messages in order, with batch ids made of the key', () => {
    const lines = Array.from({ length: 20 }, (_, n) => `{"n":${n}}`);
    const messages = split(lines);
    expect(messages.length).toBeGreaterThan(1);
    expect(messages.map(({ message }) => message.batch_id)).toEqual(messages.map((_, n) => `k/${n}`));
    expect(messages.map(({ message }) => message.ndjson).join('\n')).toBe(lines.join('\n'));
    expect(messages.reduce((sum, { rows }) => sum + rows, 0)).toBe(20);
    expect(split(lines)).toEqual(messages);
    expect(split([])).toEqual([]);
  });

  it('no message is larger than told, whatever is in the rows, and each is filled', () => {
    const line = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 40, size: 'max' }),
      fc.string({ maxLength: 40, size: 'max' }),
    );
    fc.assert(
      fc.property(fc.array(line, { maxLength: 50, size: 'max' }), fc.string({ maxLength: 20 }), (texts, key) => {
        const lines = texts.map((text) => JSON.stringify({ text: text.toWellFormed() }));
        const messages = split(lines, key, 500);
        expect(messages.map(({ message }) => message.ndjson).join('\n')).toBe(lines.join('\n'));
        messages.forEach(({ message, bytes }, n) => {
          const size = utf8(JSON.stringify(message)).length;
          expect(size).toBeLessThanOrEqual(bytes);
          expect(bytes).toBeLessThanOrEqual(500);
          const next = messages[n + 1]?.message.ndjson.split('\n')[0];
          if (next !== undefined) expect(bytes + utf8(JSON.stringify(next)).length).toBeGreaterThan(500);
        });
      }),
    );
  });

  it('a row that fits no message is told, and the rest go on', () => {
    const splitter = messageSplitter('ns/t', 'k', 200);
    expect(splitter.add(`{"a":"${'x'.repeat(200)}"}`)).toBe(false);
    expect(splitter.add('{"a":1}')).toBe(true);
    expect(splitter.finish().map(({ message }) => message.ndjson)).toEqual(['{"a":1}']);
  });

  it('the longest key leaves room for numbers', () => {
    const key = 'k'.repeat(splitKeyLengthMax(BATCH_ID_LENGTH_MAX));
    expect(`${key}/999999`).toHaveLength(BATCH_ID_LENGTH_MAX);
  });
});

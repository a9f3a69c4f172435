import { describe, expect, it } from 'vitest';
import { readArrowStream } from '../../../src/core/arrow/read.ts';
import { decompressZstd } from '../../../src/platform/zlib.ts';
import { loadFixture } from '../../oracle/fixtures/load.ts';

describe('Arrow streams that lie', () => {
  const stream = loadFixture('bodies').get('bodies/replaced.arrows')!;

  /** The stream with the 64-bit number at a place changed, and what becomes of it. */
  function outcome(at: number, value: bigint): string {
    const bytes = stream.slice();
    new DataView(bytes.buffer).setBigInt64(at, value, true);
    try {
      const body = readArrowStream(bytes, decompressZstd);
      for (const _ of body.batches());
      return 'rows';
    } catch (error) {
      return (error as { type: string }).type;
    }
  }

  it('counts and places of all sizes are held against what is there, in no time', () => {
    const outcomes = new Map<string, number>();
    const started = performance.now();
    for (let at = 0; at + 8 <= stream.length; at += 8) {
      for (const value of [-1n, 1n, 2n ** 31n - 1n, 2n ** 53n, 2n ** 62n, -(2n ** 63n)]) {
        const found = outcome(at, value);
        outcomes.set(found, (outcomes.get(found) ?? 0) + 1);
      }
    }
    expect(performance.now() - started).toBeLessThan(5000);
    expect([...outcomes.keys()].sort()).toEqual(['malformed-body', 'rows', 'trailing-data', 'truncated-body']);
    expect(outcomes.get('malformed-body')).toBeGreaterThan(100);
  });

  it('a dictionary that was not sent is missed when an entry of it is named', () => {
    // The schema, then the first record batch, without the dictionary between them.
    const view = new DataView(stream.buffer, stream.byteOffset);
    const messages: [from: number, to: number][] = [];
    for (let at = 0; view.getInt32(at + 4, true) !== 0; ) {
      const metadata = at + 8 + view.getInt32(at + 4, true);
      let next = metadata;
      while (next < stream.length && view.getInt32(next, true) !== -1) next += 8;
      messages.push([at, next]);
      at = next;
    }
    const part = (index: number) => stream.slice(...messages[index]);
    const bytes = new Uint8Array(Buffer.concat([part(0), part(2), Uint8Array.of(255, 255, 255, 255, 0, 0, 0, 0)]));
    const { batches, rows } = readArrowStream(bytes, decompressZstd);
    expect(rows).toBe(3);
    expect(() => [...batches()]).toThrow(
      expect.objectContaining({
        type: 'malformed-body',
        message: expect.stringMatching(/dictionary 0 of column code is missing/),
      }),
    );
  });
});

import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { SluiceError } from '../../src/core/base/errors.ts';
import { gunzip, INFLATE_CHUNK_BYTES } from '../../src/platform/gunzip.ts';

const member = (text: string) => new Uint8Array(gzipSync(text));

async function* pieces(...parts: Uint8Array[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield part;
}

async function inflated(...parts: Uint8Array[]): Promise<string> {
  const out: Uint8Array[] = [];
  for await (const chunk of gunzip(pieces(...parts))) out.push(chunk.slice());
  return Buffer.concat(out).toString();
}

const refused = (...parts: Uint8Array[]) =>
  expect(inflated(...parts)).rejects.toMatchObject({ kind: 'invalid', type: 'malformed-gzip' });

const join = (...parts: Uint8Array[]) => new Uint8Array(Buffer.concat(parts));

describe('gunzip', () => {
  it('B072: all members are inflated, wherever the pieces end', async () => {
    const all = join(member('l1\n'), member('l2\n'), member(''), member('l3\n'));
    for (let cut = 0; cut <= all.length; cut++) {
      expect(await inflated(all.subarray(0, cut), all.subarray(cut))).toBe('l1\nl2\nl3\n');
    }
    expect(await inflated(...Array.from(all, (byte) => Uint8Array.of(byte)))).toBe('l1\nl2\nl3\n');
  });

  it('a cut stream is refused at every length', async () => {
    const whole = member('line one\nline two\n');
    for (let length = 0; length < whole.length; length++) await refused(whole.subarray(0, length));
    await refused(join(whole, member('x').subarray(0, 9)));
  });

  it('what follows the last member is refused, zero bytes too', async () => {
    await refused(join(member('a'), Uint8Array.of(1, 2, 3)));
    await refused(join(member('a'), new Uint8Array(4)));
    await refused(member('a'), new Uint8Array(4));
  });

  it('a wrong checksum and other formats are refused', async () => {
    const broken = member('some text');
    broken[broken.length - 6] ^= 1;
    await refused(broken);
    await refused(new TextEncoder().encode('{"a":1}\n'));
  });

  it('B075: a reader that stops has caused a few chunks more, and the source is let go', async () => {
    const bomb = member('\0'.repeat(50_000_000));
    let given = 0;
    let released = false;
    async function* source() {
      try {
        for (let at = 0; at < bomb.length; at += 512) {
          given += 512;
          yield bomb.subarray(at, at + 512);
        }
      } finally {
        released = true;
      }
    }
    let read = 0;
    for await (const chunk of gunzip(source())) {
      read += chunk.length;
      if (read >= 1_000_000) break;
    }
    await new Promise((resolve) => setImmediate(resolve));
    expect(read).toBeLessThan(1_000_000 + INFLATE_CHUNK_BYTES);
    expect(given).toBeLessThan(bomb.length / 4);
    expect(released).toBe(true);
  });

  it('a failure of the source is passed on as it is', async () => {
    const failure = new SluiceError('invalid', 'body-interrupted', 'body ended');
    async function* source() {
      yield member('abc').subarray(0, 12);
      throw failure;
    }
    const reading = (async () => {
      for await (const _ of gunzip(source())) void _;
    })();
    await expect(reading).rejects.toBe(failure);
  });

  it('a source may write over a piece once the next one is asked for', async () => {
    const all = member(Array.from({ length: 20_000 }, (_, i) => `line ${i * 7919}`).join('\n'));
    const shared = new Uint8Array(1000);
    async function* source() {
      for (let at = 0; at < all.length; at += 1000) {
        const part = all.subarray(at, at + 1000);
        shared.set(part);
        yield shared.subarray(0, part.length);
        shared.fill(0xff);
      }
    }
    let length = 0;
    for await (const chunk of gunzip(source())) length += chunk.length;
    expect(length).toBeGreaterThan(200_000);
  });
});

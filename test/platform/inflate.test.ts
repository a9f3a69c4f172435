import { constants, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { SluiceError } from '../../src/core/base/errors.ts';
import { ZSTD_FRAMES_MAX } from '../../src/core/base/limits.ts';
import { type Coding, INFLATE_CHUNK_BYTES, inflate } from '../../src/platform/inflate.ts';

const member = (text: string) => new Uint8Array(gzipSync(text));

async function* pieces(...parts: Uint8Array[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield part;
}

async function inflatedBy(coding: Coding, ...parts: Uint8Array[]): Promise<string> {
  const out: Uint8Array[] = [];
  for await (const chunk of inflate(pieces(...parts), coding)) out.push(chunk.slice());
  return Buffer.concat(out).toString();
}

const refusedBy = (coding: Coding, ...parts: Uint8Array[]) =>
  expect(inflatedBy(coding, ...parts)).rejects.toMatchObject({ kind: 'invalid', type: `malformed-${coding}` });

const inflated = (...parts: Uint8Array[]) => inflatedBy('gzip', ...parts);
const refused = (...parts: Uint8Array[]) => refusedBy('gzip', ...parts);

const join = (...parts: Uint8Array[]) => new Uint8Array(Buffer.concat(parts));

describe('gzip', () => {
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
    for await (const chunk of inflate(source(), 'gzip')) {
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
      for await (const _ of inflate(source(), 'gzip')) void _;
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
    for await (const chunk of inflate(source(), 'gzip')) length += chunk.length;
    expect(length).toBeGreaterThan(200_000);
  });
});

describe('deflate', () => {
  const text = 'line one\nline two\n'.repeat(50);
  const both = [new Uint8Array(deflateSync(text)), new Uint8Array(deflateRawSync(text))];

  it('the zlib format and a raw stream are inflated, wherever the pieces end', async () => {
    for (const body of both) {
      for (let cut = 0; cut <= body.length; cut++) {
        expect(await inflatedBy('deflate', body.subarray(0, cut), body.subarray(cut))).toBe(text);
      }
    }
  });

  it('raw streams of every level and kind of block are not taken for the zlib format', async () => {
    for (let level = 0; level <= 9; level++) {
      for (const sample of ['', 'a', text, 'x'.repeat(100_000), Buffer.from(text).reverse().toString('base64')]) {
        for (const strategy of [constants.Z_DEFAULT_STRATEGY, constants.Z_FIXED, constants.Z_HUFFMAN_ONLY]) {
          expect(await inflatedBy('deflate', new Uint8Array(deflateRawSync(sample, { level, strategy })))).toBe(sample);
        }
      }
    }
  });

  it('a cut stream, and what follows it, are refused', async () => {
    for (const body of both) {
      for (let length = 0; length < body.length; length++) await refusedBy('deflate', body.subarray(0, length));
      await refusedBy('deflate', join(body, body));
      await refusedBy('deflate', body, new Uint8Array(4));
    }
    const [zlib] = both;
    await refusedBy('deflate', join(zlib.subarray(0, -1), Uint8Array.of(zlib[zlib.length - 1] ^ 1)));
  });
});

describe('zstd', () => {
  const frame = (text: string, params: Record<number, number> = { [constants.ZSTD_c_checksumFlag]: 1 }) =>
    new Uint8Array(zstdCompressSync(text, { params }));
  const skippable = (magic: number, length: number) =>
    join(Uint8Array.of(0x50 + magic, 0x2a, 0x4d, 0x18, length, 0, 0, 0), new Uint8Array(length));

  it('all frames are inflated, wherever the pieces end, and what a frame says to skip is skipped', async () => {
    const all = join(skippable(0, 3), frame('l1\n'), frame(''), skippable(15, 0), frame('l2\n', {}), frame('l3\n'));
    for (let cut = 0; cut <= all.length; cut++) {
      expect(await inflatedBy('zstd', all.subarray(0, cut), all.subarray(cut))).toBe('l1\nl2\nl3\n');
    }
    expect(await inflatedBy('zstd', ...Array.from(all, (byte) => Uint8Array.of(byte)))).toBe('l1\nl2\nl3\n');
  });

  it('frames of many blocks, stored, repeated and compressed, are followed to their end', async () => {
    const noise = Array.from({ length: 40_000 }, (_, i) => String.fromCharCode(33 + ((i * i * 7919) % 93))).join('');
    for (const text of ['x'.repeat(1_000_000), noise.repeat(10), `${noise}${'y'.repeat(300_000)}${noise}`]) {
      for (const level of [1, 3, 19]) {
        const one = frame(text, { [constants.ZSTD_c_compressionLevel]: level });
        expect(await inflatedBy('zstd', join(one, one))).toBe(text + text);
      }
    }
  });

  it('a cut stream is refused at every length', async () => {
    const whole = join(frame('line one\n'), frame('line two\n'));
    for (let length = 0; length < whole.length; length++) {
      if (length !== frame('line one\n').length) await refusedBy('zstd', whole.subarray(0, length));
    }
    await refusedBy('zstd');
  });

  it('what follows the last frame, a wrong checksum and other formats are refused', async () => {
    const whole = frame('some text');
    await refusedBy('zstd', join(whole, Uint8Array.of(1)));
    await refusedBy('zstd', join(whole, new Uint8Array(16)));
    await refusedBy('zstd', join(whole.subarray(0, -1), Uint8Array.of(whole[whole.length - 1] ^ 1)));
    await refusedBy('zstd', member('gzip'));
    await refusedBy('zstd', new TextEncoder().encode('{"a":1}\n'));
  });

  it('a frame that asks for more memory than HTTP allows is refused before it gets any', async () => {
    const far = 'z'.repeat(5000);
    const window = (log: number) => frame(far.repeat(5000), { [constants.ZSTD_c_windowLog]: log });
    expect((await inflatedBy('zstd', window(23))).length).toBe(25_000_000);
    await expect(inflatedBy('zstd', window(24))).rejects.toMatchObject({
      type: 'malformed-zstd',
      message: expect.stringContaining('window of 16777216 bytes'),
    });
    // A single segment of 1 GiB: the window is its content.
    await refusedBy('zstd', Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x40, 1, 0, 0));
  });

  it('frames are counted', async () => {
    const few = join(...Array.from({ length: ZSTD_FRAMES_MAX }, () => frame('a')));
    expect(await inflatedBy('zstd', few)).toBe('a'.repeat(ZSTD_FRAMES_MAX));
    await expect(inflatedBy('zstd', few, frame('a'))).rejects.toMatchObject({
      type: 'malformed-zstd',
      message: expect.stringContaining(`${ZSTD_FRAMES_MAX} frames`),
    });
  });

  it('B075: a reader that stops has caused a few chunks more', async () => {
    const bomb = join(...Array.from({ length: 100 }, () => frame('\0'.repeat(1_000_000))));
    let given = 0;
    async function* source() {
      for (let at = 0; at < bomb.length; at += 64) {
        given += 64;
        yield bomb.subarray(at, at + 64);
      }
    }
    let read = 0;
    for await (const chunk of inflate(source(), 'zstd')) {
      read += chunk.length;
      if (read >= 1_000_000) break;
    }
    await new Promise((resolve) => setImmediate(resolve));
    expect(read).toBeLessThan(1_000_000 + INFLATE_CHUNK_BYTES);
    expect(given).toBeLessThan(bomb.length / 4);
  });
});

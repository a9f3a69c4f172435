import { deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { readWindows } from '../../../src/http/body.ts';

/** The runtime's own byte streams and zlib, which are not those of Node. */
async function linesOf(body: ReadableStream<Uint8Array>, contentEncoding: string | null, bytesMax?: number) {
  let text = '';
  const decoder = new TextDecoder();
  const facts = await readWindows(body, { contentEncoding, bytesMax }, (bytes, last) => {
    text += decoder.decode(bytes.slice(), { stream: !last });
    return bytes.length;
  });
  return { lines: text.trimEnd().split('\n'), bytes: facts.bytes };
}

/** A body whose pieces end where the writer ended them. */
function streamed(...parts: Uint8Array[]): ReadableStream<Uint8Array> {
  const { readable, writable } = new IdentityTransformStream();
  const writer = writable.getWriter();
  const write = async () => {
    for (const part of parts) await writer.write(part);
    await writer.close();
  };
  write().catch(() => {});
  return readable;
}

const LINES = Array.from({ length: 30_000 }, (_, i) => `{"id":${i}}`);
const zipped = (lines: string[]) => new Uint8Array(gzipSync(`${lines.join('\n')}\n`));
const MEMBERS = new Uint8Array([...zipped(LINES.slice(0, 10_000)), ...zipped(LINES.slice(10_000))]);

describe('bodies in the runtime', () => {
  it('byte streams are read whole, in pieces of any size', async () => {
    const bytes = new TextEncoder().encode(LINES.join('\n'));
    const parts = Array.from({ length: 40 }, (_, i) => bytes.slice(i * 10_000, (i + 1) * 10_000));
    const rest = bytes.slice(400_000);
    expect((await linesOf(streamed(...parts, rest), null)).lines).toEqual(LINES);
    expect((await linesOf(new Response(bytes).body!, null)).lines).toEqual(LINES);
  });

  it('B072: all members of a gzip body are inflated, wherever the pieces end', async () => {
    const first = zipped(LINES.slice(0, 10_000)).length;
    for (const cut of [1, 9, first - 1, first, first + 1, MEMBERS.length - 1]) {
      const { lines } = await linesOf(streamed(MEMBERS.slice(0, cut), MEMBERS.slice(cut)), 'gzip');
      expect(lines).toEqual(LINES);
    }
  });

  it('a gzip body that is cut or goes on is refused', async () => {
    for (const body of [MEMBERS.slice(0, -1), new Uint8Array([...MEMBERS, 0]), new Uint8Array([...MEMBERS, 1, 2])]) {
      await expect(linesOf(new Response(body).body!, 'gzip')).rejects.toMatchObject({ type: 'malformed-gzip' });
    }
  });

  it('B075: a small body that inflates to a huge one is refused', async () => {
    const bomb = new Uint8Array(gzipSync('\n'.repeat(20_000_000)));
    await expect(linesOf(new Response(bomb).body!, 'gzip', 100_000)).rejects.toMatchObject({ type: 'body-too-large' });
  });

  it('deflate, with and without the zlib header, and several frames of zstd are inflated', async () => {
    const text = `${LINES.join('\n')}\n`;
    const half = text.indexOf('\n', text.length / 2) + 1;
    const bodies: [string, Uint8Array][] = [
      ['deflate', new Uint8Array(deflateSync(text))],
      ['deflate', new Uint8Array(deflateRawSync(text))],
      ['zstd', new Uint8Array(zstdCompressSync(text))],
      ['zstd', new Uint8Array([...zstdCompressSync(text.slice(0, half)), ...zstdCompressSync(text.slice(half))])],
    ];
    for (const [coding, body] of bodies) {
      for (const cut of [0, 1, 4, body.length >> 1, body.length - 1]) {
        expect((await linesOf(streamed(body.slice(0, cut), body.slice(cut)), coding)).lines).toEqual(LINES);
      }
      for (const bad of [body.slice(0, -1), new Uint8Array([...body, 0]), new Uint8Array(0)]) {
        await expect(linesOf(new Response(bad).body!, coding)).rejects.toMatchObject({ type: `malformed-${coding}` });
      }
      await expect(linesOf(new Response(body).body!, coding, 1000)).rejects.toMatchObject({ type: 'body-too-large' });
    }
  });
});

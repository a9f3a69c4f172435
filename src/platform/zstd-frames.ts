import { invalid, type SluiceError } from '../core/base/errors.ts';
import { ZSTD_FRAMES_MAX, ZSTD_WINDOW_LOG_MAX } from '../core/base/limits.ts';

/**
 * Where the frames of a zstd stream end (RFC 8878 section 3.1). The runtime's decompressor, in Node as in workerd, goes on
 * to a next frame only when it begins with a write of its own: of two frames in one write it silently drops the second.
 * So a body is handed to it in pieces that never reach over the end of a frame.
 */

const FRAME_MAGIC = 0xfd2fb528;
/** Sixteen magic numbers for frames that hold no data of ours. */
const SKIPPABLE_MAGIC = 0x184d2a50;

/** What the next bytes are. */
type Part = 'magic' | 'descriptor' | 'header' | 'block' | 'content' | 'skippable' | 'skipped' | 'checksum';

/** Follows the frames of a stream and checks what the decompressor would not. */
class FrameWalker {
  private part: Part = 'magic';
  /** Bytes of the part that are to come. */
  private left = 4;
  /** Value of the part's bytes so far, little endian, below 2^32; only of parts of up to four bytes. */
  private value = 0;
  private read = 0;
  private descriptor = 0;
  private window = 0;
  private frames = 0;
  private lastBlock = false;

  /** Walks over bytes from `from`; returns where the first frame in them ends, or their length. */
  walk(bytes: Uint8Array, from: number): number {
    let at = from;
    while (at < bytes.length) {
      const step = Math.min(this.left, bytes.length - at);
      if (this.part === 'content' || this.part === 'skipped' || this.part === 'checksum') at += step;
      else for (let i = 0; i < step; i++) this.take(bytes[at++]);
      this.left -= step;
      if (this.left > 0) continue;
      this.next();
      // A part without bytes: an empty block, a skippable frame of nothing.
      while (this.left === 0) this.next();
      if (this.part === 'magic') return at;
    }
    return at;
  }

  /** Fails when the stream ends here and a frame does not. */
  end(): void {
    if (this.part !== 'magic' || this.left !== 4) throw malformed('it ends inside a frame');
  }

  private take(byte: number): void {
    if (this.read < 4) this.value += byte * 2 ** (8 * this.read);
    // The first byte of a header is the window, unless the frame is a single segment.
    if (this.part === 'header' && this.read === 0 && (this.descriptor & 0x20) === 0) {
      const base = 2 ** (10 + (byte >> 3));
      this.window = base + (base / 8) * (byte & 7);
    }
    this.read++;
  }

  private begin(part: Part, bytes: number): void {
    this.part = part;
    this.left = bytes;
    this.value = 0;
    this.read = 0;
  }

  /** Ends the part that has all its bytes and begins the one that follows it. */
  private next(): void {
    const { value } = this;
    switch (this.part) {
      case 'magic':
        this.beginFrame(value);
        break;
      case 'descriptor':
        this.descriptor = value;
        this.window = 0;
        this.begin('header', headerBytes(value));
        break;
      case 'header':
        // A single segment is held whole; its size is told when the decompressor meets it, by the same bound.
        if (this.window > 2 ** ZSTD_WINDOW_LOG_MAX) {
          throw malformed(`a frame asks for a window of ${this.window} bytes; most are ${2 ** ZSTD_WINDOW_LOG_MAX}`);
        }
        this.begin('block', 3);
        break;
      case 'block': {
        this.lastBlock = (value & 1) === 1;
        const type = (value >> 1) & 3;
        if (type === 3) throw malformed('a block is of a reserved type');
        // Type 1 is one byte, repeated.
        this.begin('content', type === 1 ? 1 : value >> 3);
        break;
      }
      case 'content':
        if (!this.lastBlock) this.begin('block', 3);
        else this.begin('checksum', (this.descriptor & 4) === 0 ? 0 : 4);
        break;
      case 'skippable':
        this.begin('skipped', value);
        break;
      case 'checksum':
      case 'skipped':
        this.begin('magic', 4);
        break;
    }
  }

  private beginFrame(magic: number): void {
    if (++this.frames > ZSTD_FRAMES_MAX) throw malformed(`it has more than ${ZSTD_FRAMES_MAX} frames`);
    if (magic === FRAME_MAGIC) this.begin('descriptor', 1);
    else if (magic - (magic % 16) === SKIPPABLE_MAGIC) this.begin('skippable', 4);
    else throw malformed(this.frames === 1 ? 'it is of another format' : 'bytes follow the last frame');
  }
}

/** Bytes behind the descriptor of a frame header: window, dictionary id and content size (section 3.1.1.1.1). */
function headerBytes(descriptor: number): number {
  const isSingle = (descriptor & 0x20) !== 0;
  const sizeFlag = descriptor >> 6;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3];
  const sizeBytes = sizeFlag === 0 ? (isSingle ? 1 : 0) : 2 ** sizeFlag;
  return (isSingle ? 0 : 1) + dictionaryBytes + sizeBytes;
}

/**
 * The same bytes in pieces of which none reaches over the end of a frame.
 *
 * Throws `invalid` `malformed-zstd` for a stream that ends inside a frame, goes on with something else, has more than
 * `ZSTD_FRAMES_MAX` frames or needs a window beyond `ZSTD_WINDOW_LOG_MAX`.
 */
export async function* zstdPieces(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const walker = new FrameWalker();
  for await (const chunk of chunks) {
    let at = 0;
    while (at < chunk.length) {
      const end = walker.walk(chunk, at);
      yield chunk.subarray(at, end);
      at = end;
    }
  }
  walker.end();
}

function malformed(reason: string): SluiceError {
  return invalid('malformed-zstd', `body is not whole zstd: ${reason}`);
}

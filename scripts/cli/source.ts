import { createHash } from 'node:crypto';
import { createReadStream, statSync } from 'node:fs';
import { pipeline, type Readable, Transform } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { EXIT, Failure } from './failure.ts';
import type { Packing } from './formats.ts';

/** A file, or the standard input, as it is read. */
export interface Source {
  /** The bytes, inflated. */
  bytes: AsyncIterable<Uint8Array>;
  /** Bytes read so far, as they are stored. */
  read(): number;
  /** Bytes as they are stored; null: nobody knows. */
  size: number | null;
}

/** Opens a file by name, `-` for the standard input. Throws `Failure` when it cannot be read. */
export function openSource(file: string, packing: Packing, stdin: Readable = process.stdin): Source {
  let read = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _, done) {
      read += chunk.length;
      done(null, chunk);
    },
  });
  const size = file === '-' ? null : sizeOf(file);
  const from = file === '-' ? stdin : createReadStream(file);
  const steps =
    packing === null ? [from, counted] : [from, counted, packing === 'gzip' ? createGunzip() : createZstdDecompress()];
  // A fault of any of them ends the last, whose reader is told.
  const bytes = pipeline(steps as [Readable, Transform], () => undefined) as unknown as Readable;
  return { bytes: readable(bytes, file), read: () => read, size };
}

async function* readable(bytes: AsyncIterable<Uint8Array>, file: string): AsyncGenerator<Uint8Array> {
  try {
    yield* bytes;
  } catch (error) {
    if (error instanceof Failure) throw error;
    const { message } = error as Error;
    throw new Failure(EXIT.refused, `file cannot be read: ${file}: ${message}`, null, error);
  }
}

function sizeOf(file: string): number {
  try {
    const facts = statSync(file);
    if (facts.isFile()) return facts.size;
  } catch (error) {
    throw new Failure(EXIT.usage, `file cannot be read: ${(error as Error).message}`, null, error);
  }
  throw new Failure(EXIT.usage, `not a file: ${file}`);
}

/** Hexadecimal SHA-256 of a file as it is stored. */
export async function digestOf(file: string): Promise<string> {
  sizeOf(file);
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/** The beginning of a source, at least `most` bytes if it has them. The source is let go. */
export async function beginningOf({ bytes }: Source, most: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of bytes) {
    chunks.push(chunk);
    length += chunk.length;
    if (length >= most) break;
  }
  return Buffer.concat(chunks);
}

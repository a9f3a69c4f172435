import type { Frame, Producer } from '../core/batch/frame.ts';

/** A frame as its row's header knows it: everything but the body, whose length it has. */
export type FrameHeader = Omit<Frame, 'body'> & { bytes: number };

/** JSON of a header; the epoch is 64-bit, hence text. */
export function serializeHeader(header: FrameHeader): string {
  return JSON.stringify(header, (_, value) => (typeof value === 'bigint' ? value.toString() : value));
}

export function parseHeader(text: string): FrameHeader {
  return revived(JSON.parse(text));
}

/** JSON of the headers of one group. */
export function serializeHeaders(headers: readonly FrameHeader[]): string {
  return `[${headers.map(serializeHeader).join(',')}]`;
}

export function parseHeaders(text: string): FrameHeader[] {
  return (JSON.parse(text) as StoredHeader[]).map(revived);
}

type StoredHeader = Omit<FrameHeader, 'producer'> & { producer: (Omit<Producer, 'epoch'> & { epoch: string }) | null };

function revived(stored: StoredHeader): FrameHeader {
  const { producer, ...rest } = stored;
  return { ...rest, producer: producer === null ? null : { ...producer, epoch: BigInt(producer.epoch) } };
}

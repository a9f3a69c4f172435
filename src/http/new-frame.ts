import { hex } from '../core/base/bytes.ts';
import { invalid } from '../core/base/errors.ts';
import { BATCH_ID_LENGTH_MAX, BATCH_PARTITIONS_MAX, FRAME_BYTES_MAX } from '../core/base/limits.ts';
import type { NewFrame, Producer } from '../core/batch/frame.ts';
import type { Columns } from '../core/columns/columns.ts';
import { encodeFrameBody } from '../core/columns/frame.ts';
import { partitionRows } from '../core/columns/partition.ts';
import type { IngestView } from '../object/views.ts';

/** How a batch is told from others. */
export interface Named {
  batchId: string | null;
  producer: Producer | null;
}

/**
 * The columns of one batch, at least one row, as a frame for the table of the view.
 *
 * @throws invalid `too-many-partitions`, `too-large`
 */
export function newFrame(columns: Columns, view: IngestView, named: Named, digest: Uint8Array): NewFrame {
  const { tuples } = partitionRows(columns, view.spec, BATCH_PARTITIONS_MAX);
  const body = encodeFrameBody(columns);
  if (body.length > FRAME_BYTES_MAX) {
    throw invalid('too-large', `batch is larger than a flush takes: bytes=${body.length} most=${FRAME_BYTES_MAX}`);
  }
  return {
    ...named,
    digest: hex(digest),
    schemaId: view.schema['schema-id'],
    rows: columns.rows,
    partitions: tuples.length,
    body,
  };
}

/** `Idempotency-Key`, bare or as the quoted string of its draft standard. Throws invalid `malformed`. */
export function batchIdOf(header: string | null): string | null {
  if (header === null) return null;
  const key = /^"(.*)"$/.exec(header)?.[1] ?? header;
  if (key === '' || key.length > BATCH_ID_LENGTH_MAX || !/^[\x20-\x7e]+$/.test(key)) {
    throw invalid('malformed', `idempotency-key is 1 to ${BATCH_ID_LENGTH_MAX} printable ASCII characters`);
  }
  return key;
}

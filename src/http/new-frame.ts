import { hex, utf8 } from '../core/base/bytes.ts';
import { invalid } from '../core/base/errors.ts';
import { BATCH_ID_LENGTH_MAX, BATCH_PARTITIONS_MAX, FRAME_BYTES_MAX, ROW_BLOB_BYTES_MAX } from '../core/base/limits.ts';
import type { NewFrame, Producer } from '../core/batch/frame.ts';
import type { Column, Columns } from '../core/columns/columns.ts';
import { encodeFrameBody } from '../core/columns/frame.ts';
import { partitionRows } from '../core/columns/partition.ts';
import { type Proposal, proposalOf } from '../core/iceberg/proposal.ts';
import type { IngestView } from '../object/views.ts';

/** How a batch is told from others. */
export interface Named {
  batchId: string | null;
  producer: Producer | null;
  /** The branch it is for; main when absent. */
  branch?: string;
}

/**
 * The columns of one batch, at least one row, as a frame for the table of the view. Columns with a value, and types,
 * that the view's schema does not have become a proposal.
 *
 * @throws invalid `too-many-partitions`, `too-large`
 */
export function newFrame(given: Columns, view: IngestView, named: Named, digest: Uint8Array): NewFrame {
  const columns = withoutEmpty(given, view);
  const { tuples } = partitionRows(columns, view.spec, BATCH_PARTITIONS_MAX);
  const proposal = proposalOf(view.schema, columns.schema);
  checkProposal(proposal);
  const body = encodeFrameBody(columns, { proposes: proposal !== null });
  if (body.length > FRAME_BYTES_MAX) {
    throw invalid('too-large', `batch is larger than a flush takes: bytes=${body.length} most=${FRAME_BYTES_MAX}`);
  }
  return {
    ...named,
    // The same body for another branch is another batch: a key that names both is a conflict.
    digest: named.branch === undefined ? hex(digest) : `${hex(digest)} ${named.branch}`,
    schemaId: view.schema['schema-id'],
    ...(proposal === null ? {} : { proposal }),
    rows: columns.rows,
    partitions: tuples.length,
    body,
  };
}

/** The ledger keeps it beside the batch, in a row of its database. */
function checkProposal(proposal: Proposal | null): void {
  const bytes = proposal === null ? 0 : utf8(JSON.stringify(proposal)).length;
  if (bytes <= ROW_BLOB_BYTES_MAX) return;
  throw invalid('too-large', `columns that a batch adds take too much: bytes=${bytes} most=${ROW_BLOB_BYTES_MAX}`);
}

/** The columns without those that the table lacks and the batch has no value for. */
function withoutEmpty(columns: Columns, { schema }: IngestView): Columns {
  const isKept = ({ validity }: Column, i: number) =>
    i < schema.fields.length || validity === null || validity.includes(1);
  const kept = columns.columns.filter(isKept);
  if (kept.length === columns.columns.length) return columns;
  const fields = columns.schema.fields.filter((_, i) => isKept(columns.columns[i], i));
  return { schema: { ...columns.schema, fields }, rows: columns.rows, columns: kept };
}

/** True for what may be the id of a batch. */
export function isBatchId(text: string): boolean {
  return text.length <= BATCH_ID_LENGTH_MAX && /^[\x20-\x7e]+$/.test(text);
}

/** `Idempotency-Key`, bare or as the quoted string of its draft standard. Throws invalid `malformed`. */
export function batchIdOf(header: string | null): string | null {
  if (header === null) return null;
  const key = /^"(.*)"$/.exec(header)?.[1] ?? header;
  if (!isBatchId(key)) {
    throw invalid('malformed', `idempotency-key is 1 to ${BATCH_ID_LENGTH_MAX} printable ASCII characters`);
  }
  return key;
}

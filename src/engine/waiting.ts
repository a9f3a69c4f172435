import { rejected, SluiceError } from '../core/base/errors.ts';
import { INDEX_BYTES_MAX, INDEX_FOLD_BYTES } from '../core/base/index-limits.ts';
import type { Frame } from '../core/batch/frame.ts';
import type { Columns } from '../core/columns/columns.ts';
import { concat } from '../core/columns/concat.ts';
import { gather } from '../core/columns/gather.ts';
import { byteSizeOf } from '../core/columns/row-bytes.ts';
import { evolvedBy } from '../core/commit/evolve.ts';
import { seriesOf } from '../core/commit/last-value.ts';
import { rowsOf } from '../core/commit/make-files.ts';
import { currentSchema } from '../core/iceberg/metadata.ts';
import { proposalBetween, proposedSchema } from '../core/iceberg/proposal.ts';
import { MAIN } from '../core/iceberg/snapshot.ts';
import type { TableMetadata } from '../core/iceberg/types.ts';
import { foldNewest, newestOf } from '../core/lastvalue/fold.ts';
import { tableSettings } from '../core/table/properties.ts';
import type { Ledger } from './ports.ts';

/** Frames decoded at a time: one may hold as many rows as a flush. */
const FRAMES_AT_ONCE = 16;

/**
 * The newest row of each series among rows of main that wait in the buffer, as they would be in the table if they were
 * committed now. Batches that do not fit the table any more are left out, as a commit would leave them. Columns that the table
 * does not have yet are under ids of a proposal: whoever reads the table beside may find that others have given theirs away.
 * Null in tables without a time column.
 *
 * @throws rejected `too-much-to-read`
 */
export function newestWaiting(ledger: Ledger, metadata: TableMetadata, nowMs: number): Columns | null {
  const settings = tableSettings(metadata.properties);
  if (seriesOf(currentSchema(metadata), settings) === null) return null;
  let now = metadata;
  let parts: Columns[] = [];
  let bytes = 0;
  const fold = () => {
    const schema = currentSchema(now);
    const series = seriesOf(schema, settings);
    parts = series === null ? [] : [foldNewest(parts, schema, series)];
    bytes = 0;
    if (parts.some((part) => byteSizeOf(part) > INDEX_BYTES_MAX)) throw tooLarge();
  };
  for (const frame of framesOfMain(ledger)) {
    try {
      const evolved = evolvedBy([frame], now).metadata;
      const rows = rowsOf([frame], evolved, nowMs);
      const series = seriesOf(rows.schema, settings);
      if (series === null) continue;
      const newest = gather(rows, newestOf(rows, series));
      now = evolved;
      parts.push(newest);
      bytes += byteSizeOf(newest);
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error;
      continue;
    }
    if (bytes >= INDEX_FOLD_BYTES) fold();
  }
  fold();
  const columns = parts[0] ?? concat([], currentSchema(now));
  const current = currentSchema(metadata);
  const proposal = proposalBetween(current, columns.schema, metadata['last-column-id']);
  return { ...columns, schema: proposedSchema(current, proposal ?? undefined) };
}

/** More than an index may have: the object merges them in its memory, and hands them on in one call. */
function tooLarge(): SluiceError {
  const message = `newest rows of the buffer have more than ${INDEX_BYTES_MAX / 1024 / 1024} MiB of values: flush first`;
  return rejected('too-much-to-read', message, { bytesMax: INDEX_BYTES_MAX });
}

function* framesOfMain(ledger: Ledger): Generator<Frame> {
  const { lastSequence, buffer } = ledger.state();
  const range = buffer.frames === 0 ? null : ledger.next({ rowsMax: 0, bytesMax: 0, partitionsMax: 0 });
  if (range === null) return;
  for (let first = range.first; first <= lastSequence; first += FRAMES_AT_ONCE) {
    for (const frame of ledger.frames(first, Math.min(lastSequence, first + FRAMES_AT_ONCE - 1))) {
      if ((frame.branch ?? MAIN) === MAIN && frame.rows > 0) yield frame;
    }
  }
}

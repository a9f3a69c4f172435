import { SluiceError } from '../base/errors.ts';

/** What can be wrong with a table's files. None of it is mended by deleting something. */
export type FaultKind =
  | 'missing-data-file'
  | 'corrupt-data-file'
  | 'missing-manifest'
  | 'corrupt-manifest'
  | 'missing-manifest-list'
  | 'corrupt-metadata'
  | 'foreign-location'
  | 'foreign-delete-files';

/** One fault: its kind, and which file it is about, below the table's folder; where no file is known, what was found. */
export interface TableFault {
  kind: FaultKind;
  what: string;
}

const KINDS: ReadonlyMap<string, FaultKind> = new Map([
  ['data-file-missing', 'missing-data-file'],
  ['parquet-corrupt', 'corrupt-data-file'],
  ['zstd-corrupt', 'corrupt-data-file'],
  ['manifest-missing', 'missing-manifest'],
  ['manifest-corrupt', 'corrupt-manifest'],
  ['avro-corrupt', 'corrupt-manifest'],
  ['avro-codec-unsupported', 'corrupt-manifest'],
  ['deflate-corrupt', 'corrupt-manifest'],
  ['manifest-list-missing', 'missing-manifest-list'],
  ['bad-metadata', 'corrupt-metadata'],
  ['metadata-corrupt', 'corrupt-metadata'],
  ['epochs-corrupt', 'corrupt-metadata'],
  ['versions-vanish', 'corrupt-metadata'],
  ['foreign-location', 'foreign-location'],
]);

/** The fault of the table that an error tells of; null: it is of the store, of a request, or of somebody else's doing. */
export function faultOf(error: unknown): TableFault | null {
  if (!(error instanceof SluiceError) || error.kind !== 'corrupt') return null;
  const kind = KINDS.get(error.type);
  if (kind === undefined) return null;
  // Whoever stumbles over a file says it in other words: the file is what they have in common.
  const path = /(?:^|[\s/])((?:data|metadata)\/\S+)$/.exec(error.message)?.[1];
  return { kind, what: path ?? error.message };
}

import { release } from '../base/release.ts';
import type { ByteStrings, Column, Columns } from './columns.ts';

/** Gives the memory of columns back (see `release`): nobody reads them, or views of them, any more. */
export function releaseColumns({ columns }: Columns): void {
  for (const column of columns) releaseColumn(column);
}

export function releaseColumn(column: Column): void {
  if (column.validity !== null) release(column.validity);
  switch (column.kind) {
    case 'dictionary':
      release(column.codes);
      releaseStrings(column.dictionary);
      break;
    case 'bytes':
      releaseStrings(column.values);
      break;
    case 'nested':
      break;
    default:
      release(column.values);
  }
}

export function releaseStrings({ bytes, offsets }: ByteStrings): void {
  release(bytes);
  release(offsets);
}

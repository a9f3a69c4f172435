import type { Compress } from '../base/codecs.ts';
import type { Columns } from '../columns/columns.ts';
import type { Schema } from '../iceberg/types.ts';
import type { FileFacts, ParquetOptions } from './facts.ts';
export class NestedWriter {
  constructor(_schema: Schema, _options: ParquetOptions, _compress: Compress) {}
  append(_columns: Columns, _from: number, _to: number): void {}
  takeChunks(): Uint8Array[] {
    return [];
  }
  get byteLength(): number {
    return 0;
  }
  finish(_keyValues: readonly (readonly [string, string])[]): FileFacts {
    throw new Error('x');
  }
}

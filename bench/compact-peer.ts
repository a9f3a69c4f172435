import { parquetReadObjects } from 'hyparquet';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { parseFooter } from '../src/core/parquet/reader.ts';
import { compressZstd, decompressZstd } from '../src/platform/zlib.ts';

/** The merge with libraries, as one would write it: all rows, sorted, written again. Milliseconds of CPU. */
export async function libraryMerge(inputs: readonly Uint8Array[]): Promise<number> {
  const codecs = {
    compressors: { ZSTD: (bytes: Uint8Array, length: number) => decompressZstd(bytes, length) },
    written: { ZSTD: (bytes: Uint8Array) => compressZstd(bytes) },
  };
  const before = process.cpuUsage();
  const rows: Record<string, unknown>[] = [];
  for (const bytes of inputs) {
    const file = bytes.slice().buffer;
    const read = await parquetReadObjects({ file, compressors: codecs.compressors } as never);
    for (const row of read) rows.push(row);
  }
  const keyOf = (row: Record<string, unknown>): [string, number] => [
    String(row['device_id']),
    (row['time'] as Date).getTime(),
  ];
  rows.sort((a, b) => {
    const [[seriesA, timeA], [seriesB, timeB]] = [keyOf(a), keyOf(b)];
    return seriesA < seriesB ? -1 : seriesA > seriesB ? 1 : timeA - timeB;
  });
  const types: Record<string, string> = {
    time: 'TIMESTAMP',
    device_id: 'STRING',
    site: 'STRING',
    temperature: 'DOUBLE',
    humidity: 'DOUBLE',
    pressure: 'DOUBLE',
    voltage: 'DOUBLE',
    counter: 'INT64',
    status: 'STRING',
    _ingest_ts: 'TIMESTAMP',
  };
  const perFile = Math.ceil(rows.length / 3);
  for (let from = 0; from < rows.length; from += perFile) {
    const part = rows.slice(from, from + perFile);
    const columnData = Object.entries(types).map(([name, type]) => ({
      name,
      type,
      data: part.map((row) => row[name]),
    }));
    const written = parquetWriteBuffer({
      columnData,
      codec: 'ZSTD',
      compressors: codecs.written,
      rowGroupSize: 65_536,
    } as never);
    if (parseFooter(new Uint8Array(written), written.byteLength).rows !== part.length)
      throw new Error('rows are missing');
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

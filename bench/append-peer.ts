/**
 * The yardstick: the same append with libraries alone. The whole body as text, one `JSON.parse`, rows sorted as objects'
 * positions, hyparquet-writer with zstd. It keeps no promise the service keeps; it writes the same rows in the same order.
 */
import { parquetWriteBuffer } from 'hyparquet-writer';
import { compressZstd } from '../src/platform/zlib.ts';
import type { SensorRow } from './append-rows.ts';

export class LibraryAppend {
  #rows: SensorRow[] = [];
  #order: Uint32Array = new Uint32Array(0);

  async parse(body: ReadableStream<Uint8Array>): Promise<number> {
    const text = (await new Response(body as never).text()).trimEnd();
    this.#rows = JSON.parse(`[${text.replaceAll('\n', ',')}]`) as SensorRow[];
    return this.#rows.length;
  }

  sort(): number {
    const rows = this.#rows;
    const times = Float64Array.from(rows, (row) => Date.parse(row.time));
    const devices = [...new Set(rows.map((row) => row.device_id))].sort();
    const ranks = new Map(devices.map((device, rank) => [device, rank]));
    const rankOf = Int32Array.from(rows, (row) => ranks.get(row.device_id) ?? 0);
    this.#order = Uint32Array.from(rows, (_, i) => i).sort((a, b) => rankOf[a] - rankOf[b] || times[a] - times[b]);
    return this.#order.length;
  }

  encode(): number {
    const ordered = Array.from(this.#order, (place) => this.#rows[place]);
    this.#rows = [];
    const column = (name: keyof SensorRow, type: 'STRING' | 'DOUBLE') => ({
      name,
      type,
      nullable: true,
      data: ordered.map((row) => row[name]),
    });
    const file = parquetWriteBuffer({
      columnData: [
        { name: 'time', type: 'TIMESTAMP', nullable: false, data: ordered.map((row) => new Date(row.time)) },
        column('device_id', 'STRING'),
        column('site', 'STRING'),
        column('temperature', 'DOUBLE'),
        column('humidity', 'DOUBLE'),
        column('pressure', 'DOUBLE'),
        column('voltage', 'DOUBLE'),
        {
          name: 'counter',
          type: 'INT64',
          nullable: true,
          data: ordered.map(({ counter }) => (counter === null ? null : BigInt(counter))),
        },
        column('status', 'STRING'),
        { name: '_ingest_ts', type: 'TIMESTAMP', nullable: false, data: ordered.map(() => new Date(0)) },
      ],
      codec: 'ZSTD',
      compressors: { ZSTD: compressZstd },
      pageSize: 32_768,
    });
    return file.byteLength;
  }
}

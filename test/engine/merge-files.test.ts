import { expect, test } from 'vitest';
import { COMPACT_RUN_FILES_MAX, COMPACT_WINDOW_BYTES, COMPACT_WINDOW_ROWS } from '../../src/core/base/limits.ts';
import { makeFiles } from '../../src/core/commit/make-files.ts';
import { currentSchema } from '../../src/core/iceberg/metadata.ts';
import type { DataFile, TableMetadata } from '../../src/core/iceberg/types.ts';
import { rowBytesGuessed } from '../../src/core/maintain/row-guess.ts';
import { codecs } from '../../src/engine/codecs.ts';
import { FileWindows } from '../../src/engine/file-windows.ts';
import { newIdentity } from '../../src/engine/identity.ts';
import { mergeFiles, runFilesMax, windowRows } from '../../src/engine/merge-files.ts';
import { PART_BYTES_MIN } from '../../src/store/store.ts';
import { columnsOf, rowsOf, schemaOf } from '../core/columns/rows.ts';
import { newWorld } from '../sim/scenario.ts';
import { PLACE, Service } from '../sim/service.ts';
import { SimLedger } from '../sim/sim-ledger.ts';

const ROWS = 9_000;
const DAY = BigInt(Date.UTC(2026, 0, 1)) * 1000n;

/** A table of wide rows, three files of which are more than a part of an upload together. */
async function prepared() {
  const world = newWorld();
  const service = new Service(world, new SimLedger('00000000000000aa'));
  const field = (id: number, name: string, type: string) => ({ id, name, required: name === 'time', type });
  await world.clock.until(
    service.admin.create({
      schema: {
        type: 'struct',
        'schema-id': 0,
        fields: [
          field(1, 'time', 'timestamptz'),
          field(2, 'device', 'string'),
          field(3, 'x', 'double'),
          field(4, 'blob', 'binary'),
        ],
      },
      timeColumn: 'time',
      seriesKey: ['device'],
      chunk: 'day',
      dedup: null,
      properties: {},
    } as never),
  );
  const metadata = service.table.base?.metadata as TableMetadata;
  return { world, service, metadata };
}

/** Bytes that no compression shrinks: stretches of one noise, further apart than a page. */
const NOISE = (() => {
  let state = 1;
  return Uint8Array.from({ length: 1 << 20 }, () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return state >>> 24;
  });
})();

function noise(seed: number): Uint8Array {
  const from = (seed * 7919) % (NOISE.length - 220);
  return NOISE.subarray(from, from + 220);
}

test('B209 merge files: row groups, windows, parts and target size; every row once, the later of a key', {
  timeout: 60_000,
}, async () => {
  const { world, service, metadata } = await prepared();
  const schema = currentSchema(metadata);
  const wanted = new Map<string, unknown>();
  const inputs: { key: string; file: DataFile }[] = [];
  for (let n = 0; n < 3; n++) {
    const identity = newIdentity(world, metadata);
    const rows = Array.from({ length: ROWS }, (_, i) => {
      // One row in nine has a key of the file before.
      const at = i % 9 === 0 ? i : n * ROWS + i;
      const device = ['', 'a', '\uffff', '😀', null][at % 5];
      const x = [Number.NaN, -0, at / 7, null][at % 4];
      const row = [DAY + BigInt(at) * 1_000_000n, device, x, noise(n * ROWS + i), DAY + BigInt(n)];
      wanted.set(`${device} ${row[0]}`, row);
      return row;
    });
    const made = makeFiles(columnsOf(schema, rows), { identity, metadata, place: PLACE, ...codecs });
    for (const { key, bytes } of made.uploads) await world.memory.putIfAbsent(key, bytes);
    for (const { dataFile } of made.entries) {
      inputs.push({ key: PLACE.prefix + dataFile.filePath.slice(PLACE.location.length), file: dataFile });
    }
  }
  expect(inputs.map(({ file }) => file.splitOffsets?.length)).toEqual([2, 2, 2]);
  const created: string[] = [];
  const begun: string[] = [];
  const ended: string[] = [];
  // While the merge waits, requests and flushes get in between.
  let turns = 0;
  const clock = {
    now: () => world.clock.now(),
    sleep: (ms: number) => {
      turns++;
      return world.clock.sleep(ms);
    },
  };
  const merging = mergeFiles({ ...world, clock, store: service.store, ...codecs }, inputs, {
    identity: newIdentity(world, metadata),
    metadata,
    place: PLACE,
    tuple: inputs[0].file.partition,
    inputs: inputs.map(({ file }) => file.filePath),
    targetBytes: PART_BYTES_MIN + 100_000,
    creates: (key) => created.push(key),
    begins: (_, uploadId) => begun.push(uploadId),
    ends: (uploadId) => ended.push(uploadId),
  });
  const merged = await world.clock.until(merging);
  expect(turns).toBeGreaterThan(1);
  expect(merged.duplicates).toBe(3 * ROWS - wanted.size);
  expect(merged.outputs.length).toBeGreaterThan(0);
  expect(created).toEqual(merged.outputs.map(({ filePath }) => PLACE.prefix + filePath.slice(PLACE.location.length)));
  expect(service.store.log.some(({ operation }) => operation === 'complete')).toBe(true);
  expect(begun.length).toBeGreaterThan(0);
  expect([ended, world.memory.openUploads]).toEqual([begun, 0]);
  const found: unknown[][] = [];
  for (const [i, file] of merged.outputs.entries()) {
    const stored = world.memory.peek(created[i]);
    expect(BigInt(stored?.bytes.length ?? 0)).toBe(file.fileSizeInBytes);
    const windows = await FileWindows.open({ ...world, store: service.store, ...codecs }, created[i], file, schema, 1);
    for (let isLast = false; !isLast; ) {
      const next = await windows.next(4096);
      isLast = next.isLast;
      found.push(...rowsOf(next.window));
    }
  }
  const key = (row: unknown[]) => [row[1] === null ? [] : [...Buffer.from(row[1] as string)].map((b) => b + 1), row[0]];
  const inOrder = [...(wanted.values() as Iterable<unknown[]>)].sort((a, b) => {
    const [[textA, timeA], [textB, timeB]] = [key(a), key(b)] as [[number[], bigint], [number[], bigint]];
    if ((a[1] === null) !== (b[1] === null)) return a[1] === null ? -1 : 1;
    const order = Buffer.compare(Buffer.from(textA), Buffer.from(textB));
    return order !== 0 ? order : timeA < timeB ? -1 : 1;
  });
  expect(found.length).toBe(inOrder.length);
  for (let i = 0; i < found.length; i += 97) expect(found[i]).toEqual(inOrder[i]);
  expect(found.map((row) => `${row[1]} ${row[0]} ${Object.is(row[2], -0)} ${row[4]}`)).toEqual(
    inOrder.map((row) => `${row[1]} ${row[0]} ${Object.is(row[2], -0)} ${row[4]}`),
  );
});

test('windows: what they hold together is bounded, whatever the rows and files', () => {
  for (const rowBytes of [1, 82, 400, 4_000, 100_000]) {
    for (const files of [2, 8, COMPACT_RUN_FILES_MAX]) {
      const rows = windowRows(files, rowBytes);
      expect(rows).toBeGreaterThanOrEqual(COMPACT_WINDOW_ROWS.min);
      expect(rows).toBeLessThanOrEqual(COMPACT_WINDOW_ROWS.max);
      expect(Math.log2(rows) % 1).toBe(0);
      if (rows > COMPACT_WINDOW_ROWS.min) expect(rows * rowBytes * files).toBeLessThanOrEqual(COMPACT_WINDOW_BYTES);
    }
  }
  const narrow = schemaOf([['a', 'long']]);
  const wide = schemaOf(Array.from({ length: 1000 }, (_, i) => [`c${i}`, 'string']));
  expect(runFilesMax(narrow)).toBe(COMPACT_RUN_FILES_MAX);
  expect(runFilesMax(wide)).toBe(2);
  expect(rowBytesGuessed(narrow)).toBe(9);
});

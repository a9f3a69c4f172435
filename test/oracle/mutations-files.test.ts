import { describe } from 'vitest';
import { dataFileOf, editFooter, editManifest, listKeys, manifestKeys } from './mutate.ts';
import { bound, chunk, element, encoder, metric, type Pair, pageIndex, parquetKey, put, testPlants } from './plant.ts';
import { items, sub, type ThriftStruct } from './thrift.ts';

/** A big-endian number with one byte of its sign in front. */
const widened = (bytes: Uint8Array) => Uint8Array.of(bytes[0] > 127 ? 255 : 0, ...bytes);

describe('validator: one fault planted in bounds and files of a valid table', () => {
  testPlants([
    // bounds
    ['a lower bound too high', 'paged', 'B1', metric('lower_bounds', 4, bound('long', (2n ** 61n) as never))],
    ['a lower bound looser than it is', 'paged', 'B1', metric('lower_bounds', 4, bound('long', 0n as never))],
    ['an upper bound too low', 'paged', 'B1', metric('upper_bounds', 3, bound('double', 1 as never))],
    ['a bound of the wrong width', 'paged', 'B2', metric('lower_bounds', 4, bound('int', 0 as never))],
    [
      'a time bound in milliseconds',
      'paged',
      'B1',
      metric('upper_bounds', 1, bound('long', 1_764_003_600_000n as never)),
    ],
    ['a bound that is NaN', 'paged', 'B7', metric('upper_bounds', 3, bound('double', Number.NaN as never))],
    [
      'a lower bound of positive zero',
      'types',
      'B8',
      (objects) =>
        editManifest(
          objects,
          'types',
          (manifest) => {
            for (const [i] of manifest.records.entries())
              for (const pair of dataFileOf(manifest, i).lower_bounds as Pair[])
                if (pair.key === 4) pair.value = new Uint8Array(4);
          },
          manifestKeys(objects, 'types', 0)[0],
        ),
    ],
    [
      'a lower bound of zero below a greater value',
      'paged',
      'B1',
      metric('lower_bounds', 3, bound('double', 0 as never)),
    ],
    ['a missing bound', 'paged', 'E18', metric('upper_bounds', 2, undefined)],
    ['a string bound that is not cut', 'paged', 'B9', metric('lower_bounds', 2, encoder.encode('device-number-0000'))],
    ['a string bound cut too short', 'paged', 'B10', metric('lower_bounds', 2, encoder.encode('device'))],
    [
      'a string bound cut inside a character',
      'paged',
      'B10',
      metric('lower_bounds', 2, Uint8Array.of(0x64, 0xf0, 0x9f)),
    ],
    [
      'an upper bound cut and not rounded up',
      'paged',
      'B11',
      metric('upper_bounds', 2, encoder.encode('device-number-00')),
    ],
    ['an upper bound rounded up too far', 'paged', 'B11', metric('upper_bounds', 2, encoder.encode('e'))],
    ['a bound of a column without values', 'types', 'E15', metric('lower_bounds', 16, encoder.encode('a'), 'types')],
    ['a bound inside a list', 'types', 'E17', metric('lower_bounds', 22, encoder.encode('a'), 'types')],
    ['a bound of a list', 'types', 'B18', metric('lower_bounds', 18, encoder.encode('a'), 'types')],
    [
      'a decimal bound in more bytes than it needs',
      'types',
      'B3',
      (objects) =>
        editManifest(
          objects,
          'types',
          (manifest) => {
            for (const [i] of manifest.records.entries())
              for (const pair of dataFileOf(manifest, i).upper_bounds as Pair[])
                if (pair.key === 7) pair.value = widened(pair.value as Uint8Array);
          },
          manifestKeys(objects, 'types', 0)[0],
        ),
    ],
    // missing objects
    ['a missing data file', 'paged', 'I3', (objects) => objects.delete(parquetKey(objects, 'paged/data/'))],
    ['a missing manifest', 'paged', 'I3 S8', (objects) => objects.delete(manifestKeys(objects, 'paged')[0])],
    ['a missing manifest list', 'paged', 'I3', (objects) => objects.delete(listKeys(objects, 'paged')[0])],
    [
      'a missing last-value index',
      'engine',
      'I3',
      (objects) => objects.delete(parquetKey(objects, 'engine/metadata/')),
    ],
    // Parquet
    ['a column without its field id', 'paged', 'B18 E19 P1', element(2, (node) => put(node, 9, 44))],
    [
      'milliseconds said of microseconds',
      'paged',
      'P6',
      element(0, (node) => {
        const unit = sub(sub(sub(node, 10), 8), 2) as ThriftStruct;
        const [[, micros]] = unit;
        unit.clear();
        unit.set(1, micros);
      }),
    ],
    ['a wrong null count in the footer', 'paged', 'P12', chunk(2, (meta) => put(sub(meta, 12), 3, 1n))],
    ['a wrong minimum in the footer', 'paged', 'P12', chunk(3, (meta) => put(sub(meta, 12), 6, new Uint8Array(8)))],
    [
      'a wrong maximum in the footer',
      'paged',
      'B14 P12',
      chunk(1, (meta) => put(sub(meta, 12), 5, encoder.encode('device-number-0003'))),
    ],
    ['a wrong number of values', 'paged', 'E15', chunk(3, (meta) => put(meta, 5, 239n))],
    [
      'sorting columns the other way',
      'paged',
      'E13',
      (objects) =>
        editFooter(objects, parquetKey(objects, 'paged/data/'), (footer) => {
          const sorting = items<ThriftStruct>(items<ThriftStruct>(footer, 4)?.[0], 4)?.[0];
          put(sorting, 2, true);
        }),
    ],
    [
      'a wrong null count of a page',
      'paged',
      'P13',
      pageIndex(2, 'columnIndex', (index) => {
        (items<bigint>(index, 5) as bigint[])[0]++;
      }),
    ],
    [
      'a wrong minimum of a page',
      'paged',
      'P13',
      pageIndex(0, 'columnIndex', (index) => {
        (items<Uint8Array>(index, 2) as Uint8Array[])[1][0] ^= 1;
      }),
    ],
    [
      'a wrong maximum of a page',
      'paged',
      'P13',
      pageIndex(2, 'columnIndex', (index) => {
        (items<Uint8Array>(index, 3) as Uint8Array[])[0].fill(0);
      }),
    ],
    [
      'a page called null',
      'paged',
      'P13',
      pageIndex(2, 'columnIndex', (index) => {
        (items<boolean>(index, 1) as boolean[])[0] = true;
      }),
    ],
    ['a wrong boundary order', 'paged', 'P13', pageIndex(0, 'columnIndex', (index) => put(index, 4, 2))],
    [
      'a page that begins at another row',
      'paged',
      'P13',
      pageIndex(0, 'offsetIndex', (index) => put((items<ThriftStruct>(index, 1) as ThriftStruct[])[1], 3, 61n)),
    ],
    [
      'a page at another offset',
      'paged',
      'P13',
      pageIndex(0, 'offsetIndex', (index) => {
        const page = (items<ThriftStruct>(index, 1) as ThriftStruct[])[1];
        put(page, 1, (page.get(1)?.value as bigint) + 1n);
      }),
    ],
    [
      'a file cut short',
      'paged',
      'E9 P4',
      (objects) => {
        const key = parquetKey(objects, 'paged/data/');
        objects.set(key, (objects.get(key) as Uint8Array).slice(0, -4));
      },
    ],
  ]);
});

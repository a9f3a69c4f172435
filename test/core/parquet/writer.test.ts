import { describe, expect, test } from 'vitest';
import { writeParquet } from '../../../src/core/parquet/writer.ts';
import { compressZstd } from '../../../src/platform/zlib.ts';
import {
  asHyparquet,
  duckdbForm,
  firstDifference,
  queryDuckdb,
  readOwn,
  readPlanned,
  readWithHyparquet,
} from './readers.ts';
import { columnsOf, edgesOf, OPTIONS, schemaOf, someValues, TYPES, valuesOf } from './values.ts';

const LAYOUTS = [
  { name: 'one page', rows: 500, rowGroupRows: 65_536 },
  { name: 'many pages', rows: 4700, rowGroupRows: 65_536 },
  { name: 'many row groups', rows: 4700, rowGroupRows: 2100 },
];

describe('writer: every type is read back as written', () => {
  for (const layout of LAYOUTS) {
    for (const nulls of ['none', 'some', 'all'] as const) {
      for (const [encodings, dictionary] of [
        ['auto', true],
        ['compatible', false],
      ] as const) {
        test(`${layout.name}, ${nulls} null, ${encodings}`, async () => {
          const schema = schemaOf(TYPES, nulls === 'none');
          const seed = encodings === 'auto' ? 1 : 2;
          const values = TYPES.map((type) => someValues(type, layout.rows, nulls, seed));
          const columns = columnsOf(schema, values, dictionary);
          const options = { ...OPTIONS, rowGroupRows: layout.rowGroupRows, encodings };
          const { bytes: file, facts } = writeParquet(columns, options, compressZstd);
          expect(facts.recordCount).toBe(layout.rows);
          expect(facts.fileSizeInBytes).toBe(file.length);

          const own = readOwn(file, schema);
          expect(own.length).toBe(Math.ceil(layout.rows / layout.rowGroupRows));
          const rows = await readWithHyparquet(file);
          const forms = TYPES.map((type, i) => duckdbForm(type, `c${i + 1}`));
          const found = await queryDuckdb(
            file,
            `select ${forms.map((form) => form.sql).join(', ')} from read_parquet($file)`,
          );
          TYPES.forEach((type, c) => {
            const wanted = values[c];
            const byOwn = own.flatMap((group) => valuesOf(group.columns[c], type));
            expect(firstDifference(byOwn, wanted), `${type} by own reader`).toBeNull();
            const byHyparquet = rows.map((row) => row[`c${c + 1}`] ?? null);
            const asWanted = wanted.map((value) => asHyparquet(type, value));
            expect(firstDifference(byHyparquet, asWanted), `${type} by hyparquet`).toBeNull();
            const byDuckdb = found.map((row) => row[c]);
            const ofWanted = wanted.map((value) => (value === null ? null : forms[c].of(value)));
            expect(firstDifference(byDuckdb, ofWanted), `${type} by duckdb`).toBeNull();
          });
        });
      }
    }
  }
});

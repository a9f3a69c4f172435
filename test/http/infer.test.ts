import { gzipSync } from 'node:zlib';
import { Float64, Int32, Table, TimestampMicrosecond, tableToIPC, Utf8, vectorFromArray } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { INFER_BYTES_MAX, INFER_ROWS_MAX } from '../../src/core/base/limits.ts';
import { checkProperties, tableSettings } from '../../src/core/table/properties.ts';
import { createApp } from '../../src/http/app.ts';
import type { InferView } from '../../src/http/infer/infer.ts';
import { loadFixture } from '../oracle/fixtures/load.ts';
import { bytesOf, NDJSON, schemaOf, send, streamOf, tableOf } from './bodies.ts';

const CSV = 'text/csv';
const POINTS = 'text/plain';

async function ask(body: string | Uint8Array, type = NDJSON, query = '', headers: Record<string, string> = {}) {
  const unasked = () => Promise.reject(new Error('not asked'));
  const app = createApp(() => ({
    tokens: null,
    object: unasked as never,
    tables: unasked,
    latest: unasked,
    names: unasked,
    rows: unasked,
    queue: unasked as never,
    now: () => 0,
    sleep: async () => undefined,
  }));
  const stream = streamOf(typeof body === 'string' ? bytesOf(body) : body);
  const init = { method: 'POST', headers: { 'content-type': type, ...headers }, body: stream, duplex: 'half' };
  const response = await app.request(`/v1/infer${query}`, init);
  return { status: response.status, body: (await response.json()) as InferView & Record<string, unknown> };
}

async function infer(...given: Parameters<typeof ask>): Promise<InferView> {
  const { status, body } = await ask(...given);
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
}

/** name → type. */
function types({ definition }: InferView): Record<string, unknown> {
  return Object.fromEntries(definition.schema.fields.map(({ name, type }) => [name, type]));
}

const reason = ({ reasons }: InferView, choice: string) =>
  reasons
    .filter((one) => one.choice === choice)
    .map((one) => one.because)
    .join();

describe('infer: types', () => {
  it('JSON: by all values of the sample', async () => {
    const view = await infer(
      [
        '{"b":true,"n":1,"x":1,"s":"7","d":"2026-01-03","t":"2026-01-03T10:00:00+01:00","l":[1],"o":{"a":1,"b":null}}',
        '{"n":9223372036854775807,"x":0.5,"s":"a","d":"1969-12-31","t":"2026-01-03T09:00:00Z","l":[null,0.5],"nothing":null}',
        '{"mix":1}\n{"mix":"a"}',
      ].join('\n'),
    );
    expect(types(view)).toEqual({
      b: 'boolean',
      n: 'long',
      x: 'double',
      s: 'string',
      d: 'date',
      t: 'timestamptz',
      l: { type: 'list', element: 'double', 'element-required': false },
      o: { type: 'struct', fields: [{ name: 'a', required: false, type: 'long' }] },
      nothing: 'string',
      mix: 'string',
    });
    expect(reason(view, 'type of nothing')).toContain('no value');
    expect(reason(view, 'type of mix')).toContain('several types');
    expect(view.definition.schema.fields.every(({ required }) => !required)).toBe(true);
  });

  it('CSV: text that is a number, a truth value, a time throughout is one; zeros in front are text', async () => {
    const view = await infer(
      'b,n,x,z,t,e,s\ntrue,1,0.5,007,2026-01-03 10:00,,x\nFalse,-2,1e3,42,2026-01-03T10:00:00.5,,""',
      CSV,
    );
    expect(types(view)).toEqual({
      b: 'boolean',
      n: 'long',
      x: 'double',
      z: 'string',
      t: 'timestamp',
      e: 'string',
      s: 'string',
    });
  });

  it('B040: numbers with more digits than a double holds are decimals', async () => {
    expect(types(await infer('{"p":12345678901234567.89}\n{"p":-1.5}'))).toEqual({ p: 'decimal(38, 2)' });
    expect(types(await infer('p\n12345678901234567.89\n1.125', CSV))).toEqual({ p: 'decimal(38, 3)' });
    expect(types(await infer('{"n":9223372036854775808}'))).toEqual({ n: 'decimal(38, 0)' });
    expect(types(await infer('n\n100000000000000000000', CSV))).toEqual({ n: 'decimal(38, 0)' });
  });

  it('the seventeen digits in which programs write a double are a double', async () => {
    const values = [0.1 + 0.2, Math.PI, Math.sin(1), -1 / 3, 1e20, 123456789.12345679, 5e-7];
    const lines = values.map((v) => JSON.stringify({ v }));
    expect(types(await infer(lines.join('\n')))).toEqual({ v: 'double' });
    expect(types(await infer(lines.slice(0, 4).join('\n')))).toEqual({ v: 'double' });
    expect(types(await infer(`v\n${values.slice(0, 4).join('\n')}\n1.50`, CSV))).toEqual({ v: 'double' });
  });

  it('B082: numbers are times by name and by one unit that fits all; the unit is a property of the column', async () => {
    for (const [scale, unit] of [
      [1n, 's'],
      [1000n, 'ms'],
      [1_000_000n, 'us'],
      [1_000_000_000n, 'ns'],
    ] as const) {
      const at = (seconds: bigint) => (seconds * scale).toString();
      const view = await infer(`{"ts":${at(1_700_000_000n)},"n":${at(1_700_000_000n)}}\n{"ts":${at(1_700_000_060n)}}`);
      expect(types(view)).toEqual({ ts: 'timestamptz', n: 'long' });
      expect(view.definition.properties).toEqual({ 'sluice.epoch-unit.ts': unit });
      expect(view.definition.time_column).toBe('ts');
      // The rows of the sample then are what they said.
      const { epochUnit, epochUnits } = tableSettings(checkProperties(view.definition.properties));
      const read = await send(schemaOf({ ts: 'timestamptz' }), `{"ts":${at(1_700_000_000n)}}`, {
        options: { epochUnit, epochUnits },
      });
      expect(tableOf(read)).toEqual([[1_700_000_000_000_000n]]);
    }
    expect(types(await infer('{"time":1700000000}\n{"time":1700000000000}'))).toEqual({ time: 'long' });
    expect(types(await infer('{"time":3}'))).toEqual({ time: 'long' });
  });

  it('Arrow and Parquet: their own types; what no column is made of is left out and told', async () => {
    const table = new Table({
      at: vectorFromArray([new Date(0), new Date(1000)], new TimestampMicrosecond('UTC')),
      host: vectorFromArray(['a', 'a'], new Utf8()),
      n: vectorFromArray([1, 2], new Int32()),
      x: vectorFromArray([0.5, null], new Float64()),
    });
    const view = await infer(tableToIPC(table, 'stream'), 'application/vnd.apache.arrow.stream');
    expect(types(view)).toEqual({ at: 'timestamptz', host: 'string', n: 'int', x: 'double' });
    expect(view.definition).toMatchObject({ time_column: 'at', series_key: [] });
    const parquet = await infer(loadFixture('bodies').get('bodies/snappy.parquet')!, 'application/vnd.apache.parquet');
    expect(types(parquet)).toMatchObject({
      i64: 'long',
      dec9: 'decimal(9, 2)',
      local_us: 'timestamp',
      place: { type: 'struct' },
    });
    expect(JSON.stringify(parquet.definition)).not.toContain('"id"');
  });
});

describe('infer: layout', () => {
  const rows = (make: (i: number) => object, count = 100) =>
    Array.from({ length: count }, (_, i) => JSON.stringify(make(i))).join('\n');
  const minute = (i: number) => new Date(Date.UTC(2026, 0, 1, 0, i)).toISOString();

  it('a time in every row, and what tells rows of one time apart', async () => {
    const view = await infer(
      rows((i) => ({ created: minute(i), time: minute(i >> 2), device: `d${i % 4}`, site: 'x', v: i })),
    );
    expect(view.definition).toMatchObject({ time_column: 'time', series_key: ['device'], chunk: 'day', dedup: true });
    expect(view.definition.schema.fields[1]).toEqual({ name: 'time', type: 'timestamptz', required: true });
    expect(reason(view, 'time_column')).toContain('so are created');
    expect(reason(view, 'series_key')).toContain('tell all rows');
  });

  it('where nothing tells rows apart dedup is off: no row may be lost by a guess', async () => {
    const view = await infer(rows((i) => ({ time: minute(0), device: `d${i % 4}`, v: i })));
    expect(view.definition).toMatchObject({ series_key: ['device'], dedup: false });
    expect(reason(view, 'dedup')).toContain('kept');
  });

  it('without a time there is no series, and a time with gaps is none', async () => {
    const view = await infer('{"name":"a","time":null}\n{"name":"b","time":"2026-01-03T00:00:00Z"}');
    expect(view.definition).toMatchObject({ time_column: null, series_key: [], chunk: null, dedup: null });
    expect(reason(view, 'time_column')).toContain('no time is in every row');
  });

  it('many days make partitions of months', async () => {
    const view = await infer(rows((i) => ({ time: new Date(Date.UTC(2026, 0, 1 + i)).toISOString() }), 300));
    expect(view.definition.chunk).toBe('month');
  });

  it('points: tags are the series, fields are typed by their letter, other measurements are told', async () => {
    const body =
      'cpu,host=a,core=1 usage=1,n=2i,up=t 1700000000\nmem used=1i 1700000000\ncpu,host=a,core=2 usage=2,note="x" 1700000000';
    const view = await infer(body, POINTS, '?precision=s');
    expect(types(view)).toEqual({
      host: 'string',
      core: 'string',
      usage: 'double',
      n: 'long',
      up: 'boolean',
      note: 'string',
      time: 'timestamptz',
    });
    expect(view.definition).toMatchObject({ time_column: 'time', series_key: ['host', 'core'], dedup: true });
    expect(view.notes.join()).toContain('mem');
    expect(types(await infer(body, POINTS, '?measurement=mem&precision=s'))).toEqual({
      used: 'long',
      time: 'timestamptz',
    });
  });
});

describe('infer: samples', () => {
  it('a sample that was cut is one, lines that are no rows are told', async () => {
    const cut = await infer('{"a":1}\n{"a":2}\nnope\n{"a":');
    expect(cut.sample).toEqual({ format: 'ndjson', rows: 2, whole: true });
    expect(cut.notes.join()).toMatch(/2 lines are no rows: line 3: /);
    const array = await infer('[{"a":1},{"a":2},{"a":', 'application/json');
    expect(array.sample).toEqual({ format: 'json', rows: 2, whole: false });
    expect(array.notes.join()).toContain('ends');
    expect((await infer('a\n1\n"x', CSV)).sample.rows).toBe(1);
  });

  it('is bounded by rows and by bytes; compressed ones are taken', async () => {
    const line = '{"a":1}\n';
    const many = await infer(gzipSync(line.repeat(2 * INFER_ROWS_MAX)), NDJSON, '', { 'content-encoding': 'gzip' });
    expect(many.sample).toEqual({ format: 'ndjson', rows: INFER_ROWS_MAX, whole: false });
    const wide = `{"a":"${'x'.repeat(100_000)}"}\n`;
    const long = await infer(wide.repeat(150));
    expect(long.sample.whole).toBe(false);
    expect(long.sample.rows).toBeLessThan((INFER_BYTES_MAX + 300_000) / wide.length);
  });

  it('refusals: no rows, no format, names that no table can have', async () => {
    expect(await ask('', NDJSON)).toMatchObject({ status: 400, body: { type: 'urn:sluice:problem:empty-body' } });
    expect(await ask('nope', NDJSON)).toMatchObject({ status: 400, body: { type: 'urn:sluice:problem:empty-body' } });
    expect(await ask('{}', 'image/png')).toMatchObject({ status: 415 });
    expect(await ask('{"a":1}', NDJSON, '?precision=m')).toMatchObject({ status: 400 });
    for (const body of ['{"Id":1,"id":2}', '{"_file":1}']) {
      expect(await ask(body)).toMatchObject({ status: 400, body: { type: 'urn:sluice:problem:bad-column-name' } });
    }
  });
});

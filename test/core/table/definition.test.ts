import { describe, expect, test } from 'vitest';
import { newTableMetadata } from '../../../src/core/iceberg/metadata.ts';
import { layOut, layoutDifferences, type TableDefinition } from '../../../src/core/table/definition.ts';

const field = (name: string, type: unknown, required = false) => ({ name, type, required });

function definition(options: Partial<TableDefinition> = {}): TableDefinition {
  return {
    schema: { type: 'struct', fields: [field('time', 'timestamptz'), field('device', 'string'), field('v', 'double')] },
    timeColumn: 'time',
    seriesKey: ['device'],
    chunk: null,
    dedup: null,
    properties: {},
    ...options,
  };
}

describe('definition: a time-series table', () => {
  test('layout: as the engine makes it, ids in order, the ingest time last', () => {
    const layout = layOut(definition());
    expect(layout.schema.fields.map((one) => [one.id, one.name, one.type, one.required])).toEqual([
      [1, 'time', 'timestamptz', true],
      [2, 'device', 'string', false],
      [3, 'v', 'double', false],
      [4, '_ingest_ts', 'timestamptz', true],
    ]);
    expect(layout.spec).toEqual({
      'spec-id': 0,
      fields: [{ 'source-id': 1, 'field-id': 1000, name: 'time_day', transform: 'day' }],
    });
    expect(layout.sortOrder['order-id']).toBe(1);
    expect(layout.sortOrder.fields.map((one) => [one['source-id'], one.direction, one['null-order']])).toEqual([
      [2, 'asc', 'nulls-first'],
      [1, 'asc', 'nulls-first'],
    ]);
    expect(layout.properties).toMatchObject({
      'timelake.format-version': '0.3.0',
      'timelake.time-column': 'time',
      'timelake.series-key': 'device',
      'timelake.chunk-interval': 'day',
      'timelake.dedup': 'true',
      'timelake.ingest-time-column': '_ingest_ts',
      'timelake.snapshot-retention': '1h',
      'sluice.format-version': '1',
    });
  });

  test('layout: nested ids come after all top-level ones, the ingest time included', () => {
    const list = { type: 'list', element: 'string' };
    const layout = layOut(
      definition({
        schema: { type: 'struct', fields: [field('time', 'timestamp'), field('tags', list)] },
        seriesKey: [],
      }),
    );
    expect(layout.schema.fields.map((one) => one.id)).toEqual([1, 2, 3]);
    expect(layout.schema.fields[1].type).toMatchObject({ 'element-id': 4, 'element-required': false });
    expect(layout.properties['timelake.dedup']).toBe('false');
    expect(layout.properties['timelake.series-key']).toBeUndefined();
  });

  test('layout: a plain table has no partition, no order, no ingest time', () => {
    const schema = { type: 'struct', fields: [field('a', 'long')] };
    const layout = layOut(definition({ schema, timeColumn: null, seriesKey: [] }));
    expect(layout.spec.fields).toEqual([]);
    expect(layout.sortOrder).toEqual({ 'order-id': 0, fields: [] });
    expect(layout.schema.fields).toHaveLength(1);
    expect(Object.keys(layout.properties).filter((key) => /time-column|chunk|dedup|ingest/.test(key))).toEqual([]);
  });

  test('layout: ids that were given are made anew, a mixture is refused', () => {
    const given = {
      type: 'struct',
      'schema-id': 3,
      fields: [{ id: 7, name: 'time', required: true, type: 'timestamptz' }],
    };
    expect(layOut(definition({ schema: given, seriesKey: [] })).schema.fields[0].id).toBe(1);
    const mixed = { type: 'struct', fields: [...given.fields, field('b', 'int')] };
    expect(() => layOut(definition({ schema: mixed, seriesKey: [] }))).toThrow();
  });
});

describe('definition: what is refused', () => {
  const structOf = (...fields: unknown[]) => ({ type: 'struct', fields });
  const time = field('time', 'timestamptz');
  const cases: [string, Partial<TableDefinition>, string][] = [
    ['no columns', { schema: structOf(), timeColumn: null, seriesKey: [] }, 'bad-schema'],
    ['a time column that is not there', { timeColumn: 'when' }, 'bad-definition'],
    ['a time column that is no timestamp', { timeColumn: 'v' }, 'bad-definition'],
    ['a series key without a time column', { timeColumn: null }, 'bad-definition'],
    ['a chunk without a time column', { timeColumn: null, seriesKey: [], chunk: 'day' }, 'bad-definition'],
    ['dedup without a time column', { timeColumn: null, seriesKey: [], dedup: true }, 'bad-definition'],
    ['a series key that is not there (B090)', { seriesKey: ['Device'] }, 'bad-definition'],
    ['a series key named twice', { seriesKey: ['device', 'device'] }, 'bad-definition'],
    ['the time as series key', { seriesKey: ['time'] }, 'bad-definition'],
    [
      'a series key with a comma',
      { schema: structOf(time, field('a,b', 'string')), seriesKey: ['a,b'] },
      'bad-definition',
    ],
    [
      'a nested series key',
      { schema: structOf(time, field('a', { type: 'list', element: 'int' })), seriesKey: ['a'] },
      'bad-definition',
    ],
    [
      'a column named as the partition',
      { schema: structOf(time, field('time_day', 'int')), seriesKey: [] },
      'bad-definition',
    ],
    [
      'an ingest time of another type',
      { schema: structOf(time, field('_ingest_ts', 'long')), seriesKey: [] },
      'bad-definition',
    ],
    [
      'columns that differ by case (B087)',
      { schema: structOf(time, field('Id', 'int'), field('id', 'int')), seriesKey: [] },
      'bad-column-name',
    ],
    ['a column twice', { schema: structOf(time, field('a', 'int'), field('a', 'int')), seriesKey: [] }, 'bad-schema'],
    ['a reserved column name', { schema: structOf(time, field('_file', 'string')), seriesKey: [] }, 'bad-column-name'],
    ['an empty column name', { schema: structOf(time, field('', 'string')), seriesKey: [] }, 'bad-column-name'],
    ['an unknown type', { schema: structOf(time, field('a', 'text')), seriesKey: [] }, 'unknown-type'],
    ['a schema that is no struct', { schema: { type: 'list' } }, 'malformed'],
    ['a managed property', { properties: { 'timelake.dedup': 'true' } }, 'bad-property'],
    ['B176 a null property', { properties: { owner: null } }, 'bad-property'],
  ];
  for (const [title, options, type] of cases) {
    test(`definition: ${title}`, () => {
      let thrown: unknown = null;
      try {
        layOut(definition(options));
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toMatchObject({ kind: 'invalid', type });
    });
  }
});

describe('definition: asked for again', () => {
  const metadataOf = (options: Partial<TableDefinition> = {}) =>
    newTableMetadata({
      uuid: '01890a5d-ac96-774b-bcce-b302099a8057',
      location: 's3://bucket/w/n/t',
      ...layOut(definition(options)),
      nowMs: 1,
    });

  test('same: other properties do not count, layout does', () => {
    expect(layoutDifferences(metadataOf({ properties: { owner: 'a' } }), layOut(definition()))).toEqual([]);
    const other = (options: Partial<TableDefinition>) => layoutDifferences(metadataOf(), layOut(definition(options)));
    expect(other({ chunk: 'hour' })).toEqual(['chunk is day, not hour']);
    expect(other({ seriesKey: [], dedup: false })).toEqual([
      'series_key is device, not none',
      'dedup is true, not false',
    ]);
    const columns = (...fields: unknown[]) =>
      other({ schema: { type: 'struct', fields: [field('time', 'timestamptz'), ...fields] } });
    const [device, v] = [field('device', 'string'), field('v', 'double')];
    expect(columns(device)).toEqual(['table has a column v besides']);
    expect(columns(device, v, field('x', 'int'))).toEqual(['column x is not in the table']);
    expect(columns(device, field('v', 'float', true))).toEqual([
      'column v is an optional double, not a required float',
    ]);
    expect(columns(device, { ...v, doc: 'volts' })).toEqual(['column v is of other parts, or has another doc']);
    expect(columns(v, device)).toEqual(['columns stand in another order, or others of them identify a row']);
  });
});

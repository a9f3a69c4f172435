import { describe, expect, it } from 'vitest';
import { fromHex } from '../../../src/core/base/bytes.ts';
import {
  checkNewSpec,
  checkSpec,
  highestPartitionId,
  parsePartitionSpec,
  partitionLabel,
  partitionPath,
  partitionTupleType,
  rebindSpec,
  sameSpec,
  tupleOf,
} from '../../../src/core/iceberg/partition-spec.ts';
import { startOfOrdinal } from '../../../src/core/iceberg/transform.ts';
import type { PartitionField, PartitionSpec, Schema } from '../../../src/core/iceberg/types.ts';
import { field } from './fixtures.ts';

const schema: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [
    field(1, 'time', 'timestamptz', true),
    field(2, 'seat#', 'string'),
    field(3, 'price.€', 'decimal(9, 2)'),
    field(4, 'tags', { type: 'list', 'element-id': 5, element: 'string', 'element-required': false }),
    field(6, 'at', { type: 'struct', fields: [field(7, 'day', 'date')] }),
    field(8, 'x', 'double'),
  ],
};
const part = (source: number, id: number, name: string, transform: string): PartitionField => ({
  'source-id': source,
  'field-id': id,
  name,
  transform,
});
const spec = (...fields: PartitionField[]): PartitionSpec => ({ 'spec-id': 0, fields });
const day = spec(part(1, 1000, 'time_day', 'day'));

describe('checkSpec', () => {
  const refuses = (wrong: PartitionSpec) =>
    expect(() => checkSpec(wrong, schema)).toThrow(expect.objectContaining({ kind: 'invalid', type: 'bad-spec' }));

  it('accepts transforms over columns and over fields of structs', () => {
    checkSpec(
      spec(part(1, 1000, 'time_day', 'day'), part(7, 1001, 'm', 'month'), part(2, 1002, 'seat#', 'identity')),
      schema,
    );
    checkSpec(spec(), schema);
  });
  it('T7: a name may equal a column only as identity over it', () => {
    refuses(spec(part(1, 1000, 'seat#', 'day')));
    refuses(spec(part(2, 1000, 'seat#', 'bucket[4]')));
    refuses(spec(part(2, 1000, 'x', 'identity')));
    checkSpec(spec(part(2, 1000, 'seat#', 'void')), schema);
  });
  it('refuses sources that are missing, repeated or of the wrong type', () => {
    refuses(spec(part(99, 1000, 'a', 'identity')));
    refuses(spec(part(5, 1000, 'a', 'identity')));
    refuses(spec(part(4, 1000, 'a', 'identity')));
    refuses(spec(part(8, 1000, 'a', 'bucket[4]')));
    checkSpec(spec(part(99, 1000, 'a', 'void')), schema);
  });
  it('refuses fields that repeat a name, an id or a statement', () => {
    refuses(spec(part(1, 1000, 'a', 'day'), part(2, 1001, 'a', 'identity')));
    refuses(spec(part(1, 1000, 'a', 'day'), part(2, 1000, 'b', 'identity')));
    refuses(spec(part(1, 1000, 'a', 'day'), part(1, 1001, 'b', 'day')));
  });
  it('M25b, B205: a new spec has no field called partition, and ids from 1000', () => {
    expect(() => checkNewSpec(spec(part(1, 1000, 'Partition', 'day')), schema)).toThrow(/reserved/);
    expect(() => checkNewSpec(spec(part(1, 999, 'd', 'day')), schema)).toThrow(/1000/);
    checkNewSpec(day, schema);
  });
});

describe('parsePartitionSpec', () => {
  it('numbers fields from 1000 when none has an id, and refuses a mixture', () => {
    const bare = (id?: number) => ({ 'source-id': 1, name: `n${id}`, transform: 'day', 'field-id': id });
    expect(highestPartitionId(parsePartitionSpec({ 'spec-id': 0, fields: [bare(), { ...bare(), name: 'b' }] }))).toBe(
      1001,
    );
    expect(() => parsePartitionSpec({ 'spec-id': 0, fields: [bare(1000), bare()] })).toThrow(
      expect.objectContaining({ type: 'malformed' }),
    );
    expect(highestPartitionId(spec())).toBe(999);
  });
  it('refuses a transform nobody knows', () => {
    expect(() => parsePartitionSpec({ 'spec-id': 0, fields: [part(1, 1000, 'a', 'zorder')] })).toThrow(
      expect.objectContaining({ type: 'unknown-transform' }),
    );
  });
});

describe('partition tuples', () => {
  it('A11, T6: have one optional field of the result type per field of the spec', () => {
    const wide = spec(
      part(1, 1000, 'time_hour', 'hour'),
      part(3, 1001, 'p', 'truncate[10]'),
      part(1, 1002, 'd', 'day'),
    );
    expect(partitionTupleType(wide, [schema]).fields).toEqual([
      { id: 1000, name: 'time_hour', required: false, type: 'int' },
      { id: 1001, name: 'p', required: false, type: 'decimal(9, 2)' },
      { id: 1002, name: 'd', required: false, type: 'date' },
    ]);
  });
  it('find the type of a dropped source in an older schema', () => {
    const newer: Schema = { ...schema, 'schema-id': 1, fields: schema.fields.slice(0, 1) };
    const old = spec(part(2, 1000, 's', 'truncate[2]'));
    expect(partitionTupleType(old, [newer, schema]).fields[0].type).toBe('string');
    expect(() => partitionTupleType(old, [newer])).toThrow(expect.objectContaining({ type: 'bad-spec' }));
    expect(partitionTupleType(spec(part(2, 1000, 's', 'void')), [newer]).fields[0].type).toBe('int');
  });
  it('apply every transform of the spec', () => {
    const tuple = tupleOf(spec(part(1, 1000, 'd', 'day'), part(2, 1001, 't', 'truncate[2]')), schema);
    expect(tuple([-1n, 'abc'])).toEqual([-1, 'ab']);
    expect(tuple([null, null])).toEqual([null, null]);
  });
});

describe('partitionPath', () => {
  const label = (transform: string, type: string, iso: string) => {
    const ms = Date.parse(iso);
    const unit = { hour: 3_600_000, day: 86_400_000 }[transform];
    const date = new Date(ms);
    const months = (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth();
    const value =
      unit !== undefined ? Math.floor(ms / unit) : transform === 'month' ? months : date.getUTCFullYear() - 1970;
    return partitionLabel(transform, type, value);
  };

  it('labels time partitions as the engine does', () => {
    expect(partitionPath(day, [schema], [20456])).toBe('time_day=2026-01-03');
    expect(label('hour', 'int', '2026-01-03T14:59:59Z')).toBe('2026-01-03-14');
    expect(label('month', 'int', '2026-01-31T00:00:00Z')).toBe('2026-01');
    expect(label('year', 'int', '2026-12-31T00:00:00Z')).toBe('2026');
  });
  it('T1: labels times before 1970', () => {
    expect(partitionLabel('hour', 'int', -1)).toBe('1969-12-31-23');
    expect(partitionLabel('month', 'int', -1)).toBe('1969-12');
    expect(partitionLabel('year', 'int', -1)).toBe('1969');
    expect(partitionLabel('day', 'date', -1)).toBe('1969-12-31');
    expect(label('year', 'int', '0001-06-01T00:00:00Z')).toBe('0001');
  });
  it('writes what no four-digit year holds as the plain number', () => {
    expect(partitionLabel('day', 'date', 2932897)).toBe('2932897');
    expect(partitionLabel('year', 'int', 8030)).toBe('8030');
    expect(partitionLabel('year', 'int', -1970)).toBe('-1970');
    const hour = Number(startOfOrdinal('year', 8030) / 3_600_000_000n);
    expect(partitionLabel('hour', 'int', hour)).toBe(String(hour));
    expect(partitionLabel('hour', 'int', hour - 1)).toBe('9999-12-31-23');
  });
  it('T11, B091, B093, B182, B207: holds safe characters only, and different values stay apart', () => {
    const text = spec(part(2, 1000, 'seat#', 'identity'));
    const paths = ['a/b%c', 'a_b_c', 'order date', '😎', '', '../..', 'x'.repeat(300), `${'x'.repeat(299)}y`].map(
      (value) => partitionPath(text, [schema], [value]),
    );
    for (const path of paths) {
      expect(path).toMatch(/^[A-Za-z0-9_=.-]+$/);
      expect(path.length).toBeLessThan(110);
    }
    expect(new Set(paths).size).toBe(paths.length);
  });
  it('joins several fields and writes null as null', () => {
    const two = spec(part(1, 1000, 'time_day', 'day'), part(3, 1001, 'p', 'bucket[4]'));
    expect(partitionPath(two, [schema], [20456, null])).toBe('time_day=2026-01-03/p=null');
    expect(partitionPath(spec(), [schema], [])).toBe('');
  });
  it('writes bytes as hexadecimal', () => {
    expect(partitionLabel('identity', 'binary', fromHex('00ff'))).toBe('00ff');
    expect(partitionLabel('identity', 'uuid', fromHex('f79c3e09677c4bbda4793f349cb785e7'))).toBe(
      'f79c3e09-677c-4bbd-a479-3f349cb785e7',
    );
  });
});

describe('rebindSpec and sameSpec', () => {
  it('move sources to fresh ids and number fields from 1000', () => {
    const moved = rebindSpec(spec(part(1, 1007, 'd', 'day')), new Map([[1, 5]]));
    expect(moved.fields).toEqual([part(5, 1000, 'd', 'day')]);
    expect(() => rebindSpec(day, new Map())).toThrow(expect.objectContaining({ type: 'bad-spec' }));
    expect(sameSpec(moved, { ...moved, 'spec-id': 9 })).toBe(true);
    expect(sameSpec(moved, day)).toBe(false);
  });
});

import { describe, expect, it } from 'vitest';
import { checkEvolution } from '../../../src/core/iceberg/evolution.ts';
import type { NestedField, Schema, Type } from '../../../src/core/iceberg/types.ts';
import { field } from './fixtures.ts';

const schema = (...fields: NestedField[]): Schema => ({ type: 'struct', 'schema-id': 0, fields });
const struct = (...fields: NestedField[]): Type => ({ type: 'struct', fields });
const list = (id: number, element: Type): Type => ({
  type: 'list',
  'element-id': id,
  element,
  'element-required': false,
});

const current = schema(
  field(1, 'a', 'int', true),
  field(2, 's', struct(field(3, 'x', 'float'), field(4, 'y', 'int'))),
  field(5, 'l', list(6, 'int')),
);
const check = (next: Schema, options: { hasRows?: boolean; lastColumnId?: number; known?: Schema[] } = {}) =>
  checkEvolution({ current, known: [current], next, lastColumnId: 6, hasRows: true, ...options });
const refuses = (next: Schema, options: object = {}) =>
  expect(() => check(next, options)).toThrow(expect.objectContaining({ kind: 'invalid', type: 'bad-evolution' }));

describe('checkEvolution', () => {
  it('allows additions, drops, renames, order and widening at any depth', () => {
    check(
      schema(
        field(5, 'list', list(6, 'long')),
        field(1, 'b', 'long', false),
        field(2, 's', struct(field(3, 'x', 'double'), field(7, 'z', 'string'))),
        field(8, 'new', struct(field(9, 'must', 'int', true))),
      ),
    );
  });

  it('M23: refuses a change of kind or type at any depth', () => {
    refuses(schema(field(2, 's', struct(field(3, 'x', 'int')))));
    refuses(schema(field(2, 's', 'string')));
    refuses(schema(field(5, 'l', list(6, struct(field(7, 'q', 'int'))))));
    refuses(schema(field(1, 'a', list(7, 'int'), true)));
  });

  it('M24: refuses new required fields beside rows, also inside an old struct', () => {
    refuses(schema(field(2, 's', struct(field(7, 'must', 'int', true)))));
    check(schema(field(2, 's', struct(field(7, 'must', 'int', true)))), { hasRows: false });
    refuses(schema(field(2, 's', struct(field(3, 'x', 'float', true)))));
  });

  it('M21: refuses an id that moved, or that another column had', () => {
    refuses(schema(field(3, 'x', 'float')));
    refuses(schema(field(4, 'y', 'int')));
    refuses(schema(field(5, 'l', list(7, 'int')), field(6, 'element', 'int')));
    refuses(schema(field(6, 'w', 'int')), { lastColumnId: 9, known: [] });
    refuses(schema(field(8, 'w', 'int')), { lastColumnId: 9 });
  });

  it('a column of an older schema may come back, optional and as it was', () => {
    const older = schema(field(7, 'old', 'int', true));
    const options = { lastColumnId: 9, known: [current, older] };
    check(schema(field(7, 'old', 'int')), options);
    refuses(schema(field(7, 'old', 'int', true)), options);
    refuses(schema(field(7, 'old', 'string')), options);
  });
});

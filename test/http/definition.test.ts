import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { checked } from '../../src/http/definition.ts';

const Body = v.strictObject({
  of: v.strictObject({ name: v.string() }),
  days: v.optional(v.number()),
});

describe('bodies: what is wrong is said in plain words', () => {
  it.each<[why: string, body: unknown, path: string, message: string]>([
    [
      'a member is unknown',
      { of: { name: 'a' }, dry_run: true },
      'dry_run',
      'body has no member of this name: dry_run',
    ],
    ['one of a member is', { of: { name: 'a', nam: 'b' } }, 'of.nam', 'body has no member of this name: of.nam'],
    ['one is missing', {}, 'of', 'of is missing'],
    ['one of a member is missing', { of: {} }, 'of.name', 'of.name is missing'],
    [
      'a value is of another type',
      { of: { name: 5 } },
      'of.name',
      'of.name: Invalid type: Expected string but received 5',
    ],
    ['there is no body', null, '', 'body: Invalid type: Expected Object but received null'],
    ['the body is a list', [], '', 'body is not an object: it is a list'],
  ])('%s', (_, body, path, message) => {
    expect(() => checked(Body, body)).toThrow(
      expect.objectContaining({ type: 'malformed', message, detail: expect.objectContaining({ path }) }),
    );
  });
});

import { describe, expect, it } from 'vitest';
import { SluiceError } from '../../src/core/base/errors.ts';
import { BATCH_ID_LENGTH_MAX } from '../../src/core/base/limits.ts';
import { DEAD_LETTER_MARK } from '../../src/queue/dead-letter.ts';
import { decodeMessage, openMessage } from '../../src/queue/message.ts';

const encoder = new TextEncoder();
// A byte order mark is to be seen.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** What a message comes to; rows that were text as their text. */
function decoded(body: unknown, bound: string | null = null) {
  const { rows, ...rest } = decodeMessage(openMessage({ id: 'm-1', body }, bound));
  return { ...rest, rows: rows instanceof Uint8Array ? decoder.decode(rows) : rows };
}

function refusalOf(body: unknown, bound: string | null = null): string {
  try {
    decoded(body, bound);
  } catch (error) {
    if (error instanceof SluiceError) return `${error.kind} ${error.type}: ${error.message}`;
    throw error;
  }
  return 'none';
}

describe('messages that name their table', () => {
  const about = { namespace: 'ns', table: 't', key: 'ns/t', batchId: 'm-1' };

  it.each([
    ['a row', { row: { a: 1 } }, [{ a: 1 }]],
    ['rows', { rows: [{ a: 1 }, { a: 2 }] }, [{ a: 1 }, { a: 2 }]],
    ['no rows', { rows: [] }, []],
    ['ndjson', { ndjson: '{"a":1}\n{"a":2}' }, '{"a":1}\n{"a":2}'],
    ['values of a structured clone', { rows: [{ a: 12n, b: undefined }] }, [{ a: 12n, b: undefined }]],
  ])('%s', (_, body, rows) => {
    expect(decoded({ table: 'ns/t', ...body })).toEqual({ ...about, rows });
    expect(decoded({ table: 'ns/t', batch_id: 'b', ...body })).toEqual({ ...about, batchId: 'b', rows });
  });

  it('B066: a byte order mark before text or bytes is left out, as it is in a body', () => {
    const text = '\ufeff{"table":"ns/t","rows":[{"a":1}]}';
    for (const body of [text, encoder.encode(text)]) expect(decoded(body)).toEqual({ ...about, rows: [{ a: 1 }] });
    const line = '\ufeff{"a":1}';
    for (const body of [line, encoder.encode(line)]) expect(decoded(body, 'ns/t').rows).toBe('{"a":1}');
    expect(decoded({ table: 'ns/t', ndjson: line }).rows).toBe('{"a":1}');
  });

  it('as JSON text or its bytes, numbers with all their digits', () => {
    const text = '{"table":"ns/t","rows":[{"a":9007199254740993,"b":0.12345678901234567890}]}';
    const rows = [{ a: '\udc009007199254740993', b: '\udc000.12345678901234567890' }];
    expect(decoded(text)).toEqual({ ...about, rows });
    expect(decoded(encoder.encode(text))).toEqual({ ...about, rows });
    expect(decoded(encoder.encode(text).buffer)).toEqual({ ...about, rows });
  });

  it.each([
    ['nothing', undefined, /^invalid malformed-message: message must be an object/],
    ['null', null, /message must be an object.*: null$/],
    ['a list', [{ table: 'ns/t', row: {} }], /message must be an object/],
    ['text that is no JSON', '{"table":', /^invalid malformed-message: message is JSON cut short/],
    ['bytes that are no text', Uint8Array.of(0xff, 0xfe), /^invalid malformed-message: message is not UTF-8/],
    ['text with a lone surrogate', '"\ud800"', /^invalid lone-surrogate/],
    ['no table', { row: {} }, /names no table/],
    ['a table that is no text', { table: 7, row: {} }, /names no table/],
    ['half a table', { table: 'ns', row: {} }, /table must be "namespace\/name": "ns"/],
    ['a table too deep', { table: 'a/b/c', row: {} }, /^invalid malformed-message: table must be/],
    ['a name that is none', { table: 'a.b/c', row: {} }, /^invalid bad-name/],
    ['no rows', { table: 'ns/t' }, /must have one of/],
    ['rows twice', { table: 'ns/t', row: {}, ndjson: '{}' }, /must have one of/],
    ['rows that are no list', { table: 'ns/t', rows: {} }, /rows must be a list/],
    ['ndjson that is no text', { table: 'ns/t', ndjson: {} }, /ndjson must be text/],
    ['ndjson with a lone surrogate', { table: 'ns/t', ndjson: '{"a":"\ud800"}' }, /^invalid lone-surrogate/],
    ['a misspelt member', { table: 'ns/t', row: {}, batchId: 'x' }, /member besides .*: "batchId"/],
    ['an empty batch_id', { table: 'ns/t', row: {}, batch_id: '' }, /batch_id must be/],
    ['a batch_id that is a number', { table: 'ns/t', row: {}, batch_id: 7 }, /batch_id must be/],
    ['a long batch_id', { table: 'ns/t', row: {}, batch_id: 'x'.repeat(BATCH_ID_LENGTH_MAX + 1) }, /batch_id must be/],
    ['a Map for a row', { table: 'ns/t', row: new Map([['a', 1]]) }, /a value that JSON does not have/],
    ['a Date in a row', { table: 'ns/t', row: { at: new Date(0) } }, /a value that JSON does not have/],
  ])('refused: %s', (_, body, message) => {
    expect(refusalOf(body)).toMatch(message);
  });

  it('refused: rows nested without end', () => {
    const row: Record<string, unknown> = {};
    row['self'] = row;
    expect(refusalOf({ table: 'ns/t', row })).toMatch(/nested too deeply/);
  });
});

describe('messages of a queue that is bound to a table', () => {
  it.each([
    ['an object', { a: 1 }, [{ a: 1 }]],
    ['one that looks like a message', { table: 'x/y', row: { a: 1 } }, [{ table: 'x/y', row: { a: 1 } }]],
    ['a list', [{ a: 1 }, { a: 2 }], [{ a: 1 }, { a: 2 }]],
    ['text', '{"a":1}\n{"a":2}\n', '{"a":1}\n{"a":2}\n'],
    ['bytes', encoder.encode('{"a":9007199254740993}'), '{"a":9007199254740993}'],
  ])('%s is rows', (_, body, rows) => {
    expect(decoded(body, 'ns/t')).toEqual({ namespace: 'ns', table: 't', key: 'ns/t', batchId: 'm-1', rows });
  });

  it('a value that is no row is left to the columns, which name it', () => {
    expect(decoded(7, 'ns/t').rows).toEqual([7]);
  });
});

describe('dead letters that are sent again', () => {
  const letter = {
    [DEAD_LETTER_MARK]: 1,
    queue: 'q',
    message_id: 'first',
    batch_id: 'first',
    bound: null,
    reason: {},
    body: { table: 'ns/t', row: { a: 1 } },
  };

  it('are the message that they are about, under its id', () => {
    const rows = [{ a: 1 }];
    expect(decoded(letter)).toMatchObject({ key: 'ns/t', batchId: 'first', rows });
    expect(decoded(JSON.stringify(letter))).toMatchObject({ key: 'ns/t', batchId: 'first', rows });
    expect(decoded(encoder.encode(JSON.stringify(letter)))).toMatchObject({ key: 'ns/t', batchId: 'first', rows });
  });

  it('keep the table that their queue was bound to, whichever queue they are sent to', () => {
    const raw = { ...letter, bound: 'ns/t', body: '{"a":1}' };
    expect(decoded(raw)).toMatchObject({ key: 'ns/t', batchId: 'first', rows: '{"a":1}' });
    expect(decoded(raw, 'other/t')).toMatchObject({ key: 'ns/t' });
    expect(decoded(letter, 'other/t')).toMatchObject({ key: 'ns/t', rows: [{ a: 1 }] });
    expect(decoded(JSON.stringify(letter), 'other/t')).toMatchObject({ key: 'ns/t', rows: [{ a: 1 }] });
  });

  it('are opened once: a letter within a letter is a message like any other', () => {
    expect(refusalOf({ ...letter, body: letter })).toMatch(/member besides/);
  });

  it.each([
    ['no batch_id', { ...letter, batch_id: undefined }],
    ['a batch_id that is none', { ...letter, batch_id: '' }],
    ['no message_id', { ...letter, message_id: 7 }],
    ['a binding that is none', { ...letter, bound: 7 }],
    ['a body that follows', { ...letter, body: null, body_follows: true }],
  ])('refused: %s', (_, body) => {
    expect(refusalOf(body)).toBe('invalid malformed-message: dead letter does not hold its message');
  });
});

import { describe, expect, it } from 'vitest';
import { parseTokens, tokenOf } from '../../../src/core/access/tokens.ts';
import { TOKENS_MAX } from '../../../src/core/base/limits.ts';
import { tokenFor } from './token-for.ts';

const SECRET = 'ab'.repeat(32);
const ENTRY = { name: 'telegraf', sha256: SECRET, scopes: ['append'], tables: ['iot/*'] };

describe('tokens: configuration', () => {
  it('a list of tokens is read', () => {
    const entries = [
      ENTRY,
      {
        ...ENTRY,
        sha256: SECRET.toUpperCase(),
        scopes: ['read', 'admin'],
        tables: ['*', 'a/b'],
        expires: '2027-01-31',
      },
      { ...ENTRY, expires: '2027-01-31T12:00:00+01:00' },
      { ...ENTRY, expires: null },
    ];
    const digest = new Uint8Array(32).fill(0xab);
    const read = { name: 'telegraf', digest, scopes: ['append'], tables: ['iot/*'] };
    expect(parseTokens(JSON.stringify(entries), 'X')).toEqual([
      { ...read, expiresMs: null },
      { ...read, scopes: ['read', 'admin'], tables: ['*', 'a/b'], expiresMs: Date.UTC(2027, 0, 31) },
      { ...read, expiresMs: Date.UTC(2027, 0, 31, 11) },
      { ...read, expiresMs: null },
    ]);
  });

  it('what is wrong is named by its place, and no value of it is repeated', () => {
    const wrong: [value: unknown, said: string][] = [
      ['{"not', 'is not JSON'],
      [SECRET, 'is not JSON'],
      [{ ...ENTRY }, 'is not a list'],
      [Array(TOKENS_MAX + 1).fill(ENTRY), 'more than'],
      [[ENTRY, SECRET], '[1] is not an object'],
      [[{ ...ENTRY, [SECRET]: 1 }], '[0] has a member besides'],
      [[{ ...ENTRY, table: ['a/b'] }], '[0] has a member besides'],
      [[{ ...ENTRY, name: '' }], 'name'],
      [[{ ...ENTRY, name: `${SECRET} x` }], 'name'],
      [[{ ...ENTRY, sha256: `${SECRET}x` }], 'sha256'],
      [[{ ...ENTRY, sha256: `x${SECRET.slice(1)}` }], 'sha256'],
      [[{ ...ENTRY, scopes: [] }], 'scopes'],
      [[{ ...ENTRY, scopes: 'append' }], 'scopes'],
      [[{ ...ENTRY, scopes: ['append', SECRET] }], 'scopes'],
      [[{ ...ENTRY, tables: [] }], 'tables'],
      [[{ ...ENTRY, tables: undefined }], 'tables'],
      [[{ ...ENTRY, tables: [SECRET] }], 'tables'],
      [[{ ...ENTRY, expires: '31.1.2027' }], 'expires'],
      [[{ ...ENTRY, expires: '2027-01-31T12:00' }], 'expires'],
      [[{ ...ENTRY, expires: '2027-13-31' }], 'expires'],
      [[{ ...ENTRY, expires: 1_800_000_000 }], 'expires'],
    ];
    for (const [value, said] of wrong) {
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      let message = '';
      try {
        parseTokens(text, 'API_TOKENS');
      } catch (error) {
        message = (error as Error).message;
        expect((error as { type: string }).type).toBe('bad-settings');
      }
      expect(message, text).toContain('API_TOKENS');
      expect(message, text).toContain(said);
      expect(message.toLowerCase()).not.toContain(SECRET.slice(0, 8));
    }
  });
});

describe('tokens: comparison', () => {
  const nowMs = Date.UTC(2027, 0, 1);
  const { digest } = tokenFor('right');

  it('a token is found wherever it stands, and no other', () => {
    const others = ['a', 'b', 'c'].map((text) => tokenFor(text));
    for (let at = 0; at <= others.length; at++) {
      const own = tokenFor('right', { name: 'own' });
      expect(tokenOf([...others.slice(0, at), own, ...others.slice(at)], digest, nowMs)).toBe(own);
    }
    expect(tokenOf(others, digest, nowMs)).toBeNull();
    expect(tokenOf([], digest, nowMs)).toBeNull();
  });

  it('a difference of one bit, in any byte, is one', () => {
    for (let at = 0; at < 32; at++) {
      const other = digest.slice();
      other[at] ^= 1 << (at % 8);
      expect(tokenOf([tokenFor('right')], other, nowMs), `byte ${at}`).toBeNull();
    }
  });

  it('every token is compared to its last byte, before and behind the one that is found', () => {
    const looked: string[] = [];
    const watched = (name: string, text: string) => {
      const bytes = tokenFor(text).digest;
      const seen = new Proxy(bytes, {
        get(target, key) {
          if (typeof key === 'string' && /^\d+$/.test(key)) looked.push(`${name}${key}`);
          return Reflect.get(target, key, target) as unknown;
        },
      });
      return tokenFor(text, { digest: seen });
    };
    tokenOf([watched('a', 'x'), watched('b', 'right'), watched('c', 'y')], digest, nowMs);
    expect(looked).toEqual(['a', 'b', 'c'].flatMap((name) => Array.from({ length: 32 }, (_, at) => `${name}${at}`)));
  });

  it('two tokens of one holder are valid at once, and one ends when it expires', () => {
    const old = tokenFor('old', { expiresMs: nowMs });
    const fresh = tokenFor('new');
    expect(tokenOf([old, fresh], old.digest, nowMs - 1)).toBe(old);
    expect(tokenOf([old, fresh], fresh.digest, nowMs - 1)).toBe(fresh);
    expect(tokenOf([old, fresh], old.digest, nowMs)).toBeNull();
    expect(tokenOf([old, fresh], fresh.digest, nowMs)).toBe(fresh);
  });
});

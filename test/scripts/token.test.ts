import { expect, test } from 'vitest';
import { makeToken } from '../../scripts/token.ts';
import { parseTokens, tokenOf } from '../../src/core/access/tokens.ts';
import { utf8 } from '../../src/core/base/bytes.ts';
import { sha256 } from '../../src/platform/hash.ts';

const OPTIONS = { name: 'telegraf', scopes: ['append'], tables: ['iot/*'] };

test('token: the service knows the token by the entry that is made with it', () => {
  const { token, entry } = makeToken({ ...OPTIONS, expires: '2027-01-31' });
  expect(entry).not.toContain(token);
  const tokens = parseTokens(`[${makeToken(OPTIONS).entry},${entry}]`, 'API_TOKENS');
  const found = tokenOf(tokens, sha256([utf8(token)]), 0);
  expect(found).toMatchObject({ ...OPTIONS, expiresMs: Date.UTC(2027, 0, 31) });
  expect(token).toMatch(/^sluice_[\w-]{43}$/);
  expect(makeToken(OPTIONS).token).not.toBe(token);
});

test('token: what the service would not take is refused', () => {
  for (const wrong of [{ scopes: ['write'] }, { tables: ['iot'] }, { name: '' }, { expires: 'soon' }]) {
    expect(() => makeToken({ ...OPTIONS, ...wrong }), JSON.stringify(wrong)).toThrow(/token/);
  }
});

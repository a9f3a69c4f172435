import { describe, expect, it } from 'vitest';
import { sha256 } from '../src/platform/hash.ts';
import { type Env, originsOf, settingsOf, tokensOf } from '../src/settings.ts';
import { tokenFor } from './core/access/token-for.ts';

const envOf = (variables: Record<string, string | undefined>): Env =>
  ({ LAKE_LOCATION: 's3://lake/w', ACCESS: 'token', ...variables }) as unknown as Env;
const listOf = (name: string): string =>
  JSON.stringify([{ name, sha256: '00'.repeat(32), scopes: ['read'], tables: ['a/b'] }]);

describe('settings: tokens', () => {
  it('the single token is one for everything', () => {
    expect(tokensOf(envOf({ API_TOKEN: 'secret' }), sha256)).toEqual([tokenFor('secret', { name: 'api-token' })]);
  });

  it('lists of tokens stand beside it, in as many variables as they take', () => {
    const env = envOf({
      API_TOKEN: 'secret',
      API_TOKENS: listOf('one'),
      API_TOKENS_2: listOf('two'),
      API_TOKENSX: 'x',
    });
    expect(tokensOf(env, sha256)?.map(({ name }) => name)).toEqual(['api-token', 'one', 'two']);
    expect(tokensOf(envOf({ API_TOKENS: listOf('one') }), sha256)).toHaveLength(1);
  });

  it('without any nobody is let in; a wrong list says so', () => {
    for (const given of [{}, { API_TOKEN: '' }, { API_TOKENS: '[]' }, { API_TOKENS: '' }, { API_TOKENS: 'secret' }]) {
      expect(() => tokensOf(envOf(given), sha256), JSON.stringify(given)).toThrow(/API_TOKEN/);
    }
    expect(tokensOf(envOf({ ACCESS: 'local', API_TOKENS: 'wrong' }), sha256)).toBeNull();
  });

  it('an object needs none: it goes on with what it has taken', () => {
    expect(settingsOf(envOf({ API_TOKENS: 'wrong' })).lake.bucket).toBe('lake');
  });
});

describe('settings: origins', () => {
  it('origins are separated by commas and spaces', () => {
    expect(originsOf(envOf({}))).toEqual([]);
    expect(originsOf(envOf({ CORS_ORIGINS: ' https://a.example,http://localhost:3000  * ' }))).toEqual([
      'https://a.example',
      'http://localhost:3000',
      '*',
    ]);
  });

  it('what browsers never send is refused', () => {
    for (const given of ['a.example', 'https://a.example/', 'https://a.example/x', 'ftp://a', 'https://']) {
      expect(() => originsOf(envOf({ CORS_ORIGINS: given })), given).toThrow(/CORS_ORIGINS/);
    }
  });
});

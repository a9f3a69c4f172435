import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { conflict, corrupt, invalid, rejected, unavailable, unknown } from '../../src/core/base/errors.ts';
import { problemOf, problemResponse } from '../../src/http/problem.ts';
import { PROBLEM_TYPES } from '../../src/http/problem-types.ts';

const SRC = join(import.meta.dirname, '../../src');

/** Slugs given to the makers of errors, or to a `SluiceError`, anywhere in the source. */
function slugsInSource(): Map<string, string> {
  const found = new Map<string, string>();
  for (const file of readdirSync(SRC, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts')) continue;
    const text = readFileSync(join(SRC, file), 'utf8');
    const maker =
      /\b(?:invalid|rejected|conflict|unavailable|unknown|corrupt|SluiceError)\(\s*(?:'[a-z]+',\s*)?'([a-z0-9-]+)'/g;
    for (const match of text.matchAll(maker)) found.set(match[1], file);
  }
  return found;
}

describe('problem types', () => {
  it('every slug in the source is documented', () => {
    const missing = [...slugsInSource()].filter(([slug]) => !Object.hasOwn(PROBLEM_TYPES, slug));
    expect(missing).toEqual([]);
  });

  it('the search for slugs finds them', () => {
    const slugs = slugsInSource();
    for (const slug of ['body-too-large', 'malformed-gzip', 'empty-body', 'invalid-rows'])
      expect(slugs.has(slug)).toBe(true);
  });

  it('slugs are kebab case, titles are one line, statuses are errors', () => {
    for (const [slug, { title, status = 400 }] of Object.entries(PROBLEM_TYPES)) {
      expect(slug).toMatch(/^[a-z]+(-[a-z0-9]+)*$/);
      expect(title).toMatch(/^[A-Z][^\n.]{5,100}$/);
      expect(status >= 400 && status < 600).toBe(true);
    }
  });
});

describe('problem bodies', () => {
  it.each([
    [invalid('bad-schema', 'schema is wrong'), 400],
    [invalid('unknown-table', 'table is unknown: a.b'), 404],
    [invalid('body-too-large', 'body is too large'), 413],
    [invalid('unsupported-encoding', 'br'), 415],
    [invalid('invalid-rows', 'batch has bad rows'), 422],
    [rejected('too-many-apps', 'table is full of apps'), 422],
    [conflict('commit-conflict', 'lost ten times'), 409],
    [unavailable('store-unavailable', 'store is down'), 503],
    [unavailable('busy', 'buffer is full'), 429],
    [unknown('commit-unknown', 'no answer'), 504],
    [corrupt('manifest-corrupt', 'manifest is corrupt'), 500],
    [invalid('of-no-table', 'anything'), 400],
  ])('%s is answered with %i', (error, status) => {
    const problem = problemOf(error);
    expect(problem.status).toBe(status);
    expect(problem.body).toMatchObject({ type: `urn:sluice:problem:${error.type}`, status, detail: error.message });
  });

  it('members of the detail stand beside the standard ones and never replace them', () => {
    const error = invalid('line-too-long', 'line 7 is too long', {
      line: 7,
      bytesMax: 8,
      status: 200,
      type: 'x',
      title: 'y',
      detail: 'z',
    });
    expect(problemOf(error).body).toEqual({
      type: 'urn:sluice:problem:line-too-long',
      title: 'One row is larger than a row may be',
      status: 413,
      detail: 'line 7 is too long',
      line: 7,
      bytes_max: 8,
    });
  });

  it('retry-after is told where a client shall come again', () => {
    expect(problemOf(unavailable('busy', 'full', { retryAfter: 4.2 })).headers['retry-after']).toBe('5');
    expect(problemOf(unavailable('store-unavailable', 'down')).headers['retry-after']).toBe('1');
    expect(problemOf(invalid('bad-schema', 'x')).headers['retry-after']).toBeUndefined();
  });

  it('what is no error of ours is told as internal, and nothing of it leaks', async () => {
    for (const error of [new TypeError('secret of the house'), 'secret', null, { type: 'secret' }]) {
      const response = problemResponse(error);
      expect(response.status).toBe(500);
      expect(response.headers.get('content-type')).toBe('application/problem+json');
      const text = await response.text();
      expect(text).not.toContain('secret');
      expect(JSON.parse(text)).toMatchObject({ type: 'urn:sluice:problem:internal', status: 500 });
    }
  });
});

describe('problem: faults of the platform', () => {
  const flagged = (flags: object) =>
    Object.assign(new Error('Durable Object reset because its code was updated.'), flags);

  for (const flags of [{ durableObjectReset: true }, { retryable: true }, { overloaded: true }]) {
    it(`problem: a call that failed with ${Object.keys(flags)} is 503, to be sent again under its key`, () => {
      const { status, headers, body } = problemOf(flagged(flags));
      expect([status, body.type]).toEqual([503, 'urn:sluice:problem:object-unavailable']);
      expect(headers['retry-after']).toBe('1');
    });
  }

  it('problem: told by flags, never by text', () => {
    expect(problemOf(flagged({ remote: true })).status).toBe(500);
  });
});

import { expect, test } from 'vitest';
import { release } from '../../../src/core/base/release.ts';

test('release: a whole buffer is gone at once; a view of a part, and a small array, stay', () => {
  const whole = new Float64Array(1000);
  release(whole);
  expect(whole.length).toBe(0);
  release(whole);
  const part = new Uint8Array(4096).subarray(0, 2048);
  release(part);
  expect(part.length).toBe(2048);
  const small = Uint8Array.of(1, 2, 3);
  release(small);
  expect([...small]).toEqual([1, 2, 3]);
});

import { expect, it } from 'vitest';
import { hex, utf8 } from '../../src/core/base/bytes.ts';
import { incrementalSha256, sha256 } from '../../src/platform/hash.ts';

const ABC = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';

it('sha256: the parts are one message, wherever they end', () => {
  expect(hex(sha256([utf8('abc')]))).toBe(ABC);
  expect(hex(sha256([utf8('a'), utf8(''), utf8('bc')]))).toBe(ABC);
  expect(hex(sha256([]))).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
});

it('incremental sha256: piece by piece it is the same', () => {
  const digest = incrementalSha256();
  for (const letter of 'abc') digest.update(utf8(letter));
  expect(hex(digest.finish())).toBe(ABC);
});

import { describe, expect, it } from 'vitest';
import { checkedProperties, metadataLogMax } from '../../../src/core/iceberg/properties.ts';

describe('metadataLogMax', () => {
  it('B177, B149: follows the property within bounds, and falls back on nonsense', () => {
    const max = (value: string) => metadataLogMax({ 'write.metadata.previous-versions-max': value });
    expect(metadataLogMax({})).toBe(100);
    expect(max('20')).toBe(20);
    expect(max(' 7 ')).toBe(7);
    expect(max('0')).toBe(1);
    expect(max('999999')).toBe(1000);
    for (const text of ['x', '', '-3', '1e3', '3.5', '99999999999999']) expect(max(text)).toBe(100);
  });
});

describe('checkedProperties', () => {
  it('B177: lets through what engines can read and refuses what would stop them', () => {
    const fine = { 'commit.retry.num-retries': '4', 'gc.enabled': 'TRUE', 'write.x': 'anything', mine: '' };
    expect(checkedProperties(fine)).toEqual(fine);
    for (const [key, value] of [
      ['commit.retry.num-retries', 'x'],
      ['history.expire.max-snapshot-age-ms', '1d'],
      ['gc.enabled', 'yes'],
      ['write.metadata.path', 's3://elsewhere'],
      ['', 'x'],
      ['a', '\uD83D'],
    ]) {
      expect(() => checkedProperties({ [key]: value }), key).toThrow(
        expect.objectContaining({ kind: 'invalid', type: 'bad-property' }),
      );
    }
  });
});

import { describe, expect, test } from 'vitest';
import { checkProperties, checkWritable, SETTINGS, tableSettings } from '../../../src/core/table/properties.ts';

describe('properties: what a client may set', () => {
  test('properties: settings are checked and written in the contract’s normal form', () => {
    expect(
      checkProperties({
        'timelake.retention': '36 hours',
        'TIMELAKE.Compact_Min_Files': ' 12 ',
        'sluice.flush-interval': '5s',
        'sluice.epoch-unit': 'NS',
        owner: 'me',
      }),
    ).toEqual({
      'timelake.retention': '36h',
      'timelake.compact-min-files': '12',
      'sluice.flush-interval': '5s',
      'sluice.epoch-unit': 'ns',
      owner: 'me',
    });
  });

  const refused: [string, unknown][] = [
    ['timelake.retention', 'soon'],
    ['timelake.max-snapshots', 'many'],
    ['timelake.unheard-of', '1'],
    ['sluice.unheard-of', '1'],
    ['sluice.flush-interval', '500ms'],
    ['sluice.flush-interval', '0s'],
    ['sluice.flush-interval', '2h'],
    ['sluice.flush-rows', '100001'],
    ['sluice.flush-bytes', '0'],
    ['timelake.format-version', '0.3.0'],
    ['timelake.chunk-interval', 'day'],
    ['sluice.dropped', 'true'],
    ['write.metadata.path', 's3://b/x'],
    ['write.parquet.compression-codec', 'gzip'],
    ['commit.retry.num-retries', 'x'],
    ['owner', null],
    ['owner', 7],
    ['', 'x'],
  ];
  for (const [key, value] of refused) {
    test(`properties: refused ${key}=${String(value)}`, () => {
      expect(() => checkProperties({ [key]: value })).toThrow(/property/);
      try {
        checkProperties({ [key]: value });
      } catch (error) {
        expect(error).toMatchObject({ kind: 'invalid', type: 'bad-property' });
      }
    });
  }

  test('properties: too many are refused', () => {
    const many = Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`p${index}`, 'x']));
    expect(() => checkProperties(many)).toThrow('too many');
  });

  test('properties: every setting has a meaning for people', () => {
    for (const [key, setting] of SETTINGS) expect(setting.meaning, key).toMatch(/\w+ \w+/);
  });

  test('settings: whoever gives a bad value is told what a good one looks like', () => {
    for (const [key, { check }] of SETTINGS) {
      const message = `property has a bad value "?", not ${check.form}: ${key}`;
      expect(() => checkProperties({ [key]: '?' }), key).toThrow(message);
    }
    expect(SETTINGS.get('sluice.flush-interval')?.check.form).toBe('a duration from 1s to 1h');
  });
});

describe('properties: what is read', () => {
  test('settings: defaults of a plain table', () => {
    expect(tableSettings({})).toEqual({
      timeColumn: null,
      seriesKey: [],
      chunk: null,
      dedup: false,
      ingestTimeColumn: null,
      targetFileBytes: 268435456,
      encodings: 'auto',
      epochUnit: 'ms',
      epochUnits: new Map(),
      maintain: { isAuto: true, minFiles: 8, coldAfterMs: 3_600_000 },
      retentionMs: null,
      sweep: { intervalMs: null, graceMs: 3 * 86_400_000 },
      rowGroupRows: 1_048_576,
      schemaEvolution: 'off',
      flush: { intervalMs: 10_000, rows: 100_000, bytes: 16 * 1024 * 1024 },
      lastValueSeriesMax: 100_000,
      dropped: false,
      served: false,
    });
  });

  test('settings: a column has a unit of its own, under its name as it is written', () => {
    const given = checkProperties({ 'Sluice.Epoch_Unit.Seen_At': ' NS ', 'sluice.epoch-unit': 's' });
    expect(given).toEqual({ 'sluice.epoch-unit.Seen_At': 'ns', 'sluice.epoch-unit': 's' });
    expect(tableSettings(given)).toMatchObject({ epochUnit: 's', epochUnits: new Map([['Seen_At', 'ns']]) });
    expect(tableSettings({ 'sluice.epoch-unit.a': 'fortnight' }).epochUnits.size).toBe(0);
    for (const bad of [{ 'sluice.epoch-unit.a': 'm' }, { 'sluice.epoch-unit.': 's' }]) {
      expect(() => checkProperties(bad)).toThrow('property');
    }
  });

  test('settings: B177 a bad value of ours falls back to the default and bricks nothing', () => {
    const settings = tableSettings({
      'sluice.flush-interval': 'never',
      'sluice.flush-rows': '-1',
      'sluice.epoch-unit': 'fortnight',
      'timelake.target-file-size-bytes': 'big',
    });
    expect(settings.flush).toEqual({ intervalMs: 10_000, rows: 100_000, bytes: 16 * 1024 * 1024 });
    expect([settings.epochUnit, settings.targetFileBytes]).toEqual(['ms', 268435456]);
  });

  test('settings: dedup is on where it says so, and names of the series key are trimmed, as the engine reads them', () => {
    expect(tableSettings({ 'timelake.series-key': 'a, b' })).toMatchObject({ seriesKey: ['a', 'b'], dedup: false });
    expect(tableSettings({ 'timelake.series-key': 'a', 'timelake.dedup': 'true' }).dedup).toBe(true);
  });

  test('writable: format versions as the engine reads them', () => {
    for (const version of ['0.3.0', '0.3.9', '0.2.0', '3', '2']) {
      checkWritable({ 'timelake.format-version': version });
    }
    for (const version of ['0.4.0', '1.0.0', '4', 'x']) {
      expect(() => checkWritable({ 'timelake.format-version': version }), version).toThrow('newer engine');
    }
    expect(() => checkWritable({ 'sluice.format-version': '2' })).toThrow('newer service');
    checkWritable({});
  });
});

import { describe, expect, it } from 'vitest';
import {
  checkLocation,
  checkName,
  dataFilePath,
  indexName,
  isWithin,
  keyOf,
  locationOf,
  manifestListName,
  manifestName,
  metadataKey,
  parseLake,
  parseVersionHint,
  tableKey,
  tableLocation,
  versionHintKey,
  versionHintText,
  versionOfMetadata,
  versionPrefix,
} from '../../../src/core/iceberg/locations.ts';

const lake = parseLake('s3://lake/wh');
const uuid = '017f22e2-79b0-7cc3-98c4-dc0c0c07398f';

describe('locations', () => {
  it('name every file of a table, by key and by location alike', () => {
    const location = tableLocation(lake, 'iot', 't-1');
    const key = tableKey(lake, 'iot', 't-1');
    expect(location).toBe('s3://lake/wh/iot/t-1');
    expect(key).toBe('wh/iot/t-1');
    expect(metadataKey(key, 12)).toBe('wh/iot/t-1/metadata/v12.metadata.json');
    expect(keyOf(lake, metadataKey(location, 12))).toBe(metadataKey(key, 12));
    expect(versionHintKey(key)).toBe('wh/iot/t-1/metadata/version-hint.text');
    expect(metadataKey(key, 7).startsWith(versionPrefix(key))).toBe(true);
    expect(manifestListName(9007199254740993n, uuid)).toBe(`snap-9007199254740993-${uuid}.avro`);
    expect(manifestName('merged', uuid)).toBe(`${uuid}-merged-m.avro`);
    expect(indexName(5n, uuid)).toBe(`lvi-5-${uuid}.parquet`);
    expect(dataFilePath('time_day=2026-01-03', uuid)).toBe(`data/time_day=2026-01-03/${uuid}.parquet`);
    expect(dataFilePath('', uuid)).toBe(`data/${uuid}.parquet`);
  });

  it('a lake may be the whole bucket', () => {
    const whole = parseLake('s3://lake');
    expect(tableLocation(whole, 'iot', 't')).toBe('s3://lake/iot/t');
    expect(keyOf(whole, 's3://lake/iot/t/x')).toBe('iot/t/x');
  });

  it('keys and locations turn into each other', () => {
    expect(keyOf(lake, locationOf(lake, 'wh/a/b c.parquet'))).toBe('wh/a/b c.parquet');
  });

  it('L3, B145: another scheme, bucket or place is not guessed to be the same', () => {
    const others = [
      's3a://lake/wh/iot/t/x',
      's3://lake2/wh/iot/t/x',
      's3://lake/wh2/iot/t/x',
      's3://lake/wh',
      'https://lake/wh/iot',
      'wh/iot/t',
      's3://lake/wh/../secret',
      's3://lake/wh//iot',
      '',
    ];
    for (const location of others) {
      expect(() => keyOf(lake, location), location).toThrow(expect.objectContaining({ type: 'outside-lake' }));
    }
  });

  it('L2, B162: a location that is not canonical is refused, never repaired', () => {
    const bad = [
      's3://bucket//t',
      's3://bucket/t/',
      's3://bucket/',
      's3://bucket/a/../b',
      's3://bucket/./a',
      's3://bucket/a b',
    ];
    bad.push(
      's3://bucket/a%20b',
      's3a://bucket/t',
      's3://B/t',
      '/t',
      '',
      's3://bucket/é',
      `s3://bucket/${'x'.repeat(1000)}`,
    );
    for (const location of bad) {
      expect(() => checkLocation(location), location).toThrow(expect.objectContaining({ type: 'bad-location' }));
    }
    expect(checkLocation('s3://bucket/a_b/c-d=e.f')).toBe('s3://bucket/a_b/c-d=e.f');
  });

  it('a table is not inside another whose name it begins with', () => {
    expect(isWithin('s3://lake/wh/iot/t', 's3://lake/wh/iot/t/data/x')).toBe(true);
    expect(isWithin('s3://lake/wh/iot/t', 's3://lake/wh/iot/t2/data/x')).toBe(false);
  });
});

describe('names', () => {
  it('B161: hold nothing that needs escaping', () => {
    for (const name of ['t', 'T_1', '_x', '9', 'a-b', 'x'.repeat(128)]) expect(checkName(name, 'table')).toBe(name);
    for (const name of ['', '-a', 'a b', 'a.b', 'a/b', 'é', 'a%', '..', 'x'.repeat(129), 'a\n']) {
      expect(() => checkName(name, 'table'), name).toThrow(expect.objectContaining({ type: 'bad-name' }));
    }
  });

  it('H13: are not the folders at which readers cut a moved path', () => {
    for (const name of ['data', 'metadata', 'Metadata']) {
      expect(() => tableLocation(lake, 'iot', name)).toThrow(expect.objectContaining({ type: 'bad-name' }));
      expect(() => tableLocation(lake, name, 't')).toThrow(expect.objectContaining({ type: 'bad-name' }));
    }
  });
});

describe('versions', () => {
  it('H2, H10: only plain, unpadded names are versions', () => {
    expect(versionOfMetadata('v1.metadata.json')).toBe(1);
    expect(versionOfMetadata('wh/iot/t/metadata/v120.metadata.json')).toBe(120);
    const others = [
      'v0.metadata.json',
      'v01.metadata.json',
      'v1.gz.metadata.json',
      'v1.metadata.json.gz',
      '1.metadata.json',
    ];
    others.push(
      'v-1.metadata.json',
      'v.metadata.json',
      'xv1.metadata.json',
      'v1.metadata.json.tmp',
      `00001-${uuid}.metadata.json`,
    );
    for (const name of others) expect(versionOfMetadata(name), name).toBe(null);
  });

  it('H16, B157: a version beyond int32 is a version, beyond 2^53 an error', () => {
    expect(versionOfMetadata('v7742398473293847.metadata.json')).toBe(7742398473293847);
    expect(parseVersionHint('7742398473293847')).toBe(7742398473293847);
    expect(() => versionOfMetadata('v9007199254740993.metadata.json')).toThrow(
      expect.objectContaining({ kind: 'corrupt', type: 'version-too-large' }),
    );
  });

  it('H5: the hint is written bare and read with white space', () => {
    expect(versionHintText(12)).toBe('12');
    expect(parseVersionHint('12\n')).toBe(12);
    for (const text of ['', 'x', '1 2', '-1', '0', '1.5', '99999999999999999999', '0x10']) {
      expect(parseVersionHint(text), text).toBe(null);
    }
  });
});

import { describe, expect, test } from 'vitest';
import {
  decodeAwsChunked,
  element,
  elementTexts,
  parseRange,
  parseTarget,
  S3Error,
  urlEncodeKey,
  xmlDocument,
} from '../../scripts/s3-wire.ts';

function codeOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof S3Error) return `${error.status} ${error.code}`;
    throw error;
  }
  return 'no error';
}

describe('target', () => {
  test('target: a plus is itself in a key and a blank in a query', () => {
    const address = parseTarget('/lake/a+b%20c/d%3D1?prefix=x+y%2Fz&delete');
    expect(address.bucket).toBe('lake');
    expect(address.key).toBe('a+b c/d=1');
    expect([...address.query]).toEqual([
      ['prefix', 'x y/z'],
      ['delete', ''],
    ]);
  });

  test('target: dots and double slashes of a key are kept, not resolved', () => {
    expect(parseTarget('/lake/a/../b//c').key).toBe('a/../b//c');
  });

  test('target: a query value keeps its own equals signs', () => {
    expect(parseTarget('/lake?continuation-token=YQ==').query.get('continuation-token')).toBe('YQ==');
  });

  test('target: a broken escape is a client error', () => {
    expect(codeOf(() => parseTarget('/lake/%E0%A4'))).toBe('400 InvalidURI');
  });
});

describe('range', () => {
  test.each([
    ['bytes=0-0', { offset: 0, length: 1 }],
    ['bytes=2-5', { offset: 2, length: 4 }],
    ['bytes=7-', { offset: 7 }],
    ['bytes=-3', { suffix: 3 }],
    ['bytes=-0', { suffix: 0 }],
  ])('range: %s', (header, range) => {
    expect(parseRange(header)).toEqual(range);
  });

  test.each([undefined, 'bytes=-', 'bytes=5-2', 'bytes=0-1,3-4', 'lines=1-2'])(
    'range: %s asks for the whole',
    (header) => {
      expect(parseRange(header)).toBeNull();
    },
  );
});

describe('aws-chunked', () => {
  test('aws-chunked: signed chunks and a trailer give the payload alone', () => {
    const body =
      '5;chunk-signature=ab\r\nhello\r\n3;chunk-signature=cd\r\n\r\n!\r\n0\r\nx-amz-checksum-crc32:AAAA\r\n\r\n';
    expect(decodeAwsChunked(Buffer.from(body)).toString()).toBe('hello\r\n!');
  });

  test('aws-chunked: an empty payload', () => {
    expect(decodeAwsChunked(Buffer.from('0\r\n\r\n'))).toHaveLength(0);
  });

  test.each(['5\r\nhel', 'zz\r\nhello\r\n0\r\n', '5\r\nhelloXX0\r\n\r\n', ''])('aws-chunked: %j is refused', (body) => {
    expect(codeOf(() => decodeAwsChunked(Buffer.from(body)))).toBe('400 IncompleteBody');
  });
});

describe('xml', () => {
  test('xml: text is escaped and read back as it was', () => {
    const key = 'a&b<c>"d\'\u0001é😀';
    const xml = xmlDocument(element('Delete', element('Object', element('Key', key))));
    expect(xml).toContain('<Key>a&amp;b&lt;c&gt;');
    expect(xml).not.toContain('\u0001');
    expect(elementTexts(xml, 'Key')).toEqual([key]);
  });

  test('xml: decimal references and unknown entities', () => {
    expect(elementTexts('<Key>&#65;&apos;&zz;</Key>', 'Key')).toEqual(["A'&zz;"]);
  });

  test('xml: the root alone carries the namespace', () => {
    expect(xmlDocument(element('A', element('B')))).toMatch(/\n<A xmlns="[^"]+"><B><\/B><\/A>$/);
  });

  test('xml: url encoding leaves slashes alone', () => {
    expect(urlEncodeKey("a/b c=é'")).toBe('a/b%20c%3D%C3%A9%27');
  });
});

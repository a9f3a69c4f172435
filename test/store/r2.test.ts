import { describe, expect, test } from 'vitest';
import { utf8 } from '../../src/core/base/bytes.ts';
import { r2Store } from '../../src/store/r2.ts';
import { StoreError } from '../../src/store/store.ts';

/** A bucket that answers as told. What R2 really does is shown in test/workerd/store.test.ts. */
function bucketOf(methods: { [name in keyof R2Bucket]?: unknown }): R2Bucket {
  return methods as unknown as R2Bucket;
}

function failing(message: string): R2Bucket {
  const fail = async (): Promise<never> => {
    throw new Error(message);
  };
  return bucketOf({ get: fail, head: fail, put: fail, delete: fail, list: fail, createMultipartUpload: fail });
}

async function errorOf(request: Promise<unknown>): Promise<StoreError> {
  const error = await request.then(
    () => null,
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(StoreError);
  return error as StoreError;
}

async function drain(items: AsyncIterable<unknown>): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const item of items) all.push(item);
  return all;
}

describe('r2: errors', () => {
  const doubtful = [
    'put: We encountered an internal error. Please try again. (10001)',
    'put: Unspecified error (0)',
    'put: Service is temporarily unavailable. (10043)',
    'put: Client disconnected. (10054)',
    'put: Reduce your concurrent request rate for the same object. (10058)',
    'put: Access denied. (10003)',
    'put: The specified bucket does not exist. (10006)',
    'put: The Content-MD5 you specified did not match what we received. (10037)',
    'put: Incomplete body. (10013)',
    'put: Object is locked. (10069)',
    'put: The specified multipart upload does not exist. (10024)',
    'put: Some code not known when this was written (19999)',
    'Network connection lost.',
    'Durable Object reset because its code was updated.',
    '(10012) is mentioned, but not at the end',
    '429 Too Many Requests',
  ];
  for (const message of doubtful) {
    test(`mutation: "${message}" may have been applied`, async () => {
      const store = r2Store(failing(message));
      for (const request of [
        () => store.putIfAbsent('k', utf8('1')),
        () => store.putIf('k', utf8('1'), 'etag'),
        () => store.delete(['k']),
        () => store.multipart('k'),
      ]) {
        const error = await errorOf(request());
        expect(error.applied).toBe('maybe');
        expect(error.key).toBe('k');
        expect(error.message).toContain(message);
      }
    });
  }

  for (const code of [10005, 10012, 10014, 10020, 10022, 10033, 100100]) {
    test(`mutation: code ${code} follows from the request alone and was not applied`, async () => {
      const store = r2Store(failing(`put: refused (${code})`));
      expect((await errorOf(store.putIfAbsent('k', utf8('1')))).applied).toBe('no');
      expect((await errorOf(store.delete(['k']))).applied).toBe('no');
    });
  }

  test('read: whatever the error, nothing was changed, and it is never taken for a missing object', async () => {
    for (const message of [...doubtful, 'get: The specified key does not exist. (10007)']) {
      const store = r2Store(failing(message));
      for (const request of [
        () => store.get('k'),
        () => store.head('k'),
        () => store.getRange('k', 0, 5),
        () => drain(store.list('k/')),
        () => drain(store.listFolders('k/')),
      ]) {
        expect((await errorOf(request())).applied).toBe('no');
      }
    }
  });

  test('conditional put: a failed condition said as an error means the same as null', async () => {
    const store = r2Store(failing('put: At least one of the pre-conditions you specified did not hold. (10031)'));
    expect(await store.putIfAbsent('k', utf8('1'))).toEqual({ outcome: 'exists' });
    expect(await store.putIf('k', utf8('1'), 'etag')).toEqual({ outcome: 'changed' });
  });

  test('nothing is retried: one call, one request', async () => {
    let calls = 0;
    const bucket = bucketOf({
      put: async () => {
        calls += 1;
        throw new Error('put: internal (10001)');
      },
    });
    await errorOf(r2Store(bucket).putIfAbsent('k', utf8('1')));
    expect(calls).toBe(1);
  });
});

describe('r2: put', () => {
  test('putIfAbsent: sends the bare wildcard', async () => {
    const seen: unknown[] = [];
    const bucket = bucketOf({
      put: async (...args: unknown[]) => {
        seen.push(args[2]);
        return { etag: 'e' };
      },
    });
    expect(await r2Store(bucket).putIfAbsent('k', utf8('1'))).toEqual({ outcome: 'created', etag: 'e' });
    expect(seen).toEqual([{ onlyIf: { etagDoesNotMatch: '*' } }]);
  });

  test('putIf: an etag that R2 would take for a wildcard or a quoted one is a programming error', async () => {
    const store = r2Store(failing('never sent'));
    for (const etag of ['*', '', '"abc"']) {
      await expect(store.putIf('k', utf8('1'), etag)).rejects.toThrow(/etag is the bare one/);
    }
  });
});

describe('r2: get', () => {
  const object = (bytes: Uint8Array, size: number): unknown => ({
    etag: 'e',
    size,
    arrayBuffer: async () => bytes.slice().buffer,
  });

  test('a body shorter than the object is an error, not a short file', async () => {
    const store = r2Store(bucketOf({ get: async () => object(utf8('12345'), 9) }));
    expect((await errorOf(store.get('k'))).message).toContain('body has 5 of 9 bytes');
    expect((await errorOf(store.getRange('k', 2, 6))).message).toContain('body has 5 of 6 bytes');
  });

  test('a body that breaks off is an error', async () => {
    const broken = {
      etag: 'e',
      size: 5,
      arrayBuffer: async () => {
        throw new Error('Network connection lost.');
      },
    };
    const store = r2Store(bucketOf({ get: async () => broken }));
    expect((await errorOf(store.get('k'))).applied).toBe('no');
    expect((await errorOf(store.getRange('k', 0, 5))).applied).toBe('no');
  });

  test('getRange: an unsatisfiable range is empty', async () => {
    const store = r2Store(failing('get: The requested range is not satisfiable (10039)'));
    expect(await store.getRange('k', 10, 5)).toEqual(new Uint8Array(0));
  });

  test('getRange: an unspecified error is believed only if the object really ends before', async () => {
    const bucket = (size: number | null): R2Bucket =>
      bucketOf({
        get: async () => {
          throw new Error('get: Unspecified error (0)');
        },
        head: async () => (size === null ? null : { size }),
      });
    expect(await r2Store(bucket(10)).getRange('k', 10, 5)).toEqual(new Uint8Array(0));
    expect((await errorOf(r2Store(bucket(11)).getRange('k', 10, 5))).message).toContain('Unspecified');
    await errorOf(r2Store(bucket(null)).getRange('k', 10, 5));
  });
});

describe('r2: list', () => {
  const entry = (key: string): unknown => ({ key, size: 1, etag: 'e', uploaded: new Date(1000) });

  test('goes on through short and empty pages until R2 says it is the last', async () => {
    const requests: R2ListOptions[] = [];
    const pages = [
      { objects: [entry('t/b')], delimitedPrefixes: [], truncated: true, cursor: 'c1' },
      { objects: [], delimitedPrefixes: [], truncated: true, cursor: 'c2' },
      { objects: [entry('t/c')], delimitedPrefixes: [], truncated: false },
    ];
    const bucket = bucketOf({
      list: async (options: R2ListOptions) => {
        requests.push(options);
        return pages[requests.length - 1];
      },
    });
    const listed = await drain(r2Store(bucket).list('t/', 't/a'));
    expect(listed).toEqual([
      { key: 't/b', size: 1, etag: 'e', uploadedMs: 1000 },
      { key: 't/c', size: 1, etag: 'e', uploadedMs: 1000 },
    ]);
    expect(requests[0]).toEqual({ prefix: 't/', startAfter: 't/a' });
    expect(requests[1]).toEqual({ prefix: 't/', startAfter: undefined, cursor: 'c1' });
    expect(requests[2].cursor).toBe('c2');
  });

  test('a cursor that does not advance is an error, not an endless loop', async () => {
    const bucket = bucketOf({
      list: async () => ({ objects: [], delimitedPrefixes: [], truncated: true, cursor: 'same' }),
    });
    expect((await errorOf(drain(r2Store(bucket).list('t/')))).message).toContain('does not advance');
  });

  test('an error on a later page reaches the reader', async () => {
    let calls = 0;
    const bucket = bucketOf({
      list: async () => {
        calls += 1;
        if (calls === 2) throw new Error('list: internal (10001)');
        return { objects: [entry('t/a')], delimitedPrefixes: [], truncated: true, cursor: 'c' };
      },
    });
    await errorOf(drain(r2Store(bucket).list('t/')));
  });

  test('listFolders: a folder named on two pages is given once', async () => {
    const pages = [
      { objects: [], delimitedPrefixes: ['t/a/', 't/b/'], truncated: true, cursor: 'c' },
      { objects: [], delimitedPrefixes: ['t/b/', 't/c/'], truncated: false },
    ];
    const bucket = bucketOf({ list: async () => pages.shift() });
    expect(await drain(r2Store(bucket).listFolders('t/'))).toEqual(['a', 'b', 'c']);
  });
});

describe('r2: delete', () => {
  const keys = Array.from({ length: 2001 }, (_, i) => `k${i}`);

  test('a thousand at a time, and no request for none', async () => {
    const sizes: number[] = [];
    const store = r2Store(bucketOf({ delete: async (chunk: string[]) => sizes.push(chunk.length) }));
    await store.delete([]);
    await store.delete(keys);
    expect(sizes).toEqual([1000, 1000, 1]);
  });

  test('a refusal after the first thousand says maybe: some are gone', async () => {
    let calls = 0;
    const bucket = bucketOf({
      delete: async () => {
        calls += 1;
        if (calls === 2) throw new Error('delete: bad name (10020)');
      },
    });
    expect((await errorOf(r2Store(bucket).delete(keys))).applied).toBe('maybe');
  });
});

describe('r2: multipart', () => {
  const upload = (over: Record<string, unknown>): R2Bucket =>
    bucketOf({
      createMultipartUpload: async () => ({
        key: 'k',
        uploadId: 'u',
        uploadPart: async (partNumber: number) => ({ partNumber, etag: `e${partNumber}` }),
        complete: async (parts: unknown[]) => ({ etag: 'whole', size: parts.length }),
        abort: async () => undefined,
        ...over,
      }),
    });

  test('a part may be sent again after an error; complete demands that all arrived', async () => {
    let calls = 0;
    const bucket = upload({
      uploadPart: async (partNumber: number) => {
        calls += 1;
        if (calls === 1) throw new Error('Network connection lost.');
        return { partNumber, etag: 'e' };
      },
    });
    const parts = await r2Store(bucket).multipart('k');
    expect((await errorOf(parts.part(1, utf8('1')))).applied).toBe('maybe');
    await expect(parts.complete()).rejects.toThrow(/part was uploaded: 1/);
    await expect(parts.part(1, utf8('12'))).rejects.toThrow(/part sent again has its first length/);
    await parts.part(1, utf8('1'));
    expect(await parts.complete()).toEqual({ etag: 'whole', size: 1 });
  });

  test('complete: that the upload is gone is doubtful, since it may have been completed', async () => {
    const parts = await r2Store(
      upload({
        complete: async () => {
          throw new Error('completeMultipartUpload: The specified multipart upload does not exist. (10024)');
        },
      }),
    ).multipart('k');
    await parts.part(1, utf8('1'));
    expect((await errorOf(parts.complete())).applied).toBe('maybe');
  });

  test('abort: an upload that is gone is fine, another error is not', async () => {
    const aborting = (message: string): R2Bucket =>
      upload({
        abort: async () => {
          throw new Error(message);
        },
      });
    await (await r2Store(aborting('abort: gone (10024)')).multipart('k')).abort();
    await errorOf((await r2Store(aborting('abort: internal (10001)')).multipart('k')).abort());
  });
});

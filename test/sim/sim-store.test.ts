import { describe, expect, test } from 'vitest';
import { utf8 } from '../../src/core/base/bytes.ts';
import { MemoryStore } from '../../src/store/memory.ts';
import { StoreError } from '../../src/store/store.ts';
import { storeSuite } from '../suites/store.ts';
import { type FaultRates, SimStore } from './sim-store.ts';

const now = (): number => Date.UTC(2026, 0, 1);

function make(): { memory: MemoryStore; store: SimStore } {
  const memory = new MemoryStore({ now, partBytesMin: 2 });
  return { memory, store: new SimStore(memory) };
}

async function errorOf(request: Promise<unknown>): Promise<StoreError> {
  const error = await request.then(
    () => null,
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(StoreError);
  return error as StoreError;
}

storeSuite('sim without faults', () => new SimStore(new MemoryStore({ now })));

describe('sim store: one fault', () => {
  test('refused: nothing happens and the caller is told', async () => {
    const { memory, store } = make();
    store.faults.next('putIfAbsent', /v\d+\.metadata/, 'refused');
    expect((await errorOf(store.putIfAbsent('t/v1.metadata.json', utf8('1')))).applied).toBe('no');
    expect(memory.peek('t/v1.metadata.json')).toBeNull();
    expect((await store.putIfAbsent('t/v1.metadata.json', utf8('1'))).outcome).toBe('created');
  });

  test('request-lost and throttled: nothing happens and the caller cannot know', async () => {
    const { memory, store } = make();
    store.faults.next('putIfAbsent', null, 'request-lost');
    store.faults.next('putIfAbsent', null, 'throttled');
    expect((await errorOf(store.putIfAbsent('k', utf8('1')))).applied).toBe('maybe');
    const throttled = await errorOf(store.putIfAbsent('k', utf8('1')));
    expect(throttled.applied).toBe('maybe');
    expect(throttled.message).toContain('(10058)');
    expect(memory.peek('k')).toBeNull();
  });

  test('response-lost: it happens and the caller cannot know', async () => {
    const { memory, store } = make();
    store.faults.next('putIfAbsent', 'k', 'response-lost');
    expect((await errorOf(store.putIfAbsent('k', utf8('1')))).applied).toBe('maybe');
    expect(memory.peek('k')?.bytes).toEqual(utf8('1'));
    expect(await store.putIfAbsent('k', utf8('1'))).toEqual({ outcome: 'exists' });
    expect(store.faults.hits('response-lost')).toBe(1);
    expect(store.faults.hits('putIfAbsent:response-lost')).toBe(1);
  });

  test('late: it happens when the test says, with the bytes of the call', async () => {
    const { memory, store } = make();
    const fault = store.faults.next('putIfAbsent', 'k', 'late');
    const bytes = utf8('early');
    expect((await errorOf(store.putIfAbsent('k', bytes))).applied).toBe('maybe');
    bytes.fill(0);
    expect(memory.peek('k')).toBeNull();
    expect(await fault.land()).toMatchObject([{ outcome: 'created' }]);
    expect(memory.peek('k')?.bytes).toEqual(utf8('early'));
    expect(store.faults.hits('putIfAbsent:landed')).toBe(1);
    expect(store.log[0].outcome).toBe('landed');
    expect(await fault.land()).toEqual([]);
  });

  test('late: another writer may have come between', async () => {
    const { memory, store } = make();
    const other = new SimStore(memory);
    store.faults.next('putIfAbsent', 'k', 'late');
    await errorOf(store.putIfAbsent('k', utf8('mine')));
    expect((await other.putIfAbsent('k', utf8('theirs'))).outcome).toBe('created');
    expect(await store.faults.land()).toEqual({ outcome: 'exists' });
    expect(memory.peek('k')?.bytes).toEqual(utf8('theirs'));
    await expect(store.faults.land()).rejects.toThrow(/no late effect/);
  });

  test('late: a delete that lands after the name was created again takes the new object', async () => {
    const { memory, store } = make();
    memory.plant('k', utf8('old'));
    store.faults.next('delete', 'k', 'late');
    await errorOf(store.delete(['j', 'k']));
    memory.plant('k', utf8('new'));
    await store.faults.landAll();
    expect(memory.peek('k')).toBeNull();
  });

  test('late: a read that nobody waits for does nothing later', async () => {
    const { store } = make();
    store.faults.next('get', 'k', 'late');
    expect((await errorOf(store.get('k'))).applied).toBe('no');
    expect(store.faults.waiting).toHaveLength(0);
  });

  test('slow: the window stays open until released, and others see the state before', async () => {
    const { memory, store } = make();
    const other = new SimStore(memory);
    const fault = store.faults.next('putIfAbsent', 'k', 'slow');
    const pending = store.putIfAbsent('k', utf8('mine'));
    await fault.reached;
    expect(memory.peek('k')).toBeNull();
    await other.putIfAbsent('k', utf8('theirs'));
    fault.release();
    expect(await pending).toEqual({ outcome: 'exists' });
  });

  test('slow-response: others see the effect while the caller waits', async () => {
    const { memory, store } = make();
    const fault = store.faults.next('putIfAbsent', 'k', 'slow-response');
    const pending = store.putIfAbsent('k', utf8('mine'));
    await fault.reached;
    expect(memory.peek('k')?.bytes).toEqual(utf8('mine'));
    fault.release();
    expect((await pending).outcome).toBe('created');
  });

  test('slow: released before it was reached, it holds nothing', async () => {
    const { store } = make();
    store.faults.next('get', null, 'slow').release();
    expect(await store.get('k')).toBeNull();
  });

  test('unreadable: every read fails until cleared, and is never a missing object', async () => {
    const { memory, store } = make();
    memory.plant('t/v1', utf8('1'));
    const fault = store.faults.always('*', /^t\//, 'unreadable');
    expect((await errorOf(store.get('t/v1'))).applied).toBe('no');
    expect((await errorOf(store.getRange('t/v1', 0, 1))).applied).toBe('no');
    expect((await errorOf(store.head('t/v1'))).applied).toBe('no');
    expect((await errorOf(drain(store.list('t/')))).applied).toBe('no');
    expect(await store.get('u/v1')).toBeNull();
    expect(fault.hits).toBe(4);
    fault.clear();
    expect((await store.get('t/v1'))?.bytes).toEqual(utf8('1'));
  });

  test('half-applied: a delete removes the first half', async () => {
    const { memory, store } = make();
    for (const key of ['a', 'b', 'c', 'd']) memory.plant(key, utf8('1'));
    store.faults.next('delete', null, 'half-applied');
    expect((await errorOf(store.delete(['a', 'b', 'c', 'd']))).applied).toBe('maybe');
    expect(memory.keys()).toEqual(['c', 'd']);
  });

  test('list: response-lost fails after the last entry, another fault before the first', async () => {
    const { memory, store } = make();
    for (const key of ['t/a', 't/b']) memory.plant(key, utf8('1'));
    const seen: string[] = [];
    const read = async (): Promise<void> => {
      for await (const entry of store.list('t/')) seen.push(entry.key);
    };
    store.faults.next('list', 't/', 'response-lost');
    await errorOf(read());
    expect(seen).toEqual(['t/a', 't/b']);
    store.faults.next('list', 't/', 'request-lost');
    await errorOf(read());
    expect(seen).toHaveLength(2);
  });

  test('multipart: each request of an upload can fail', async () => {
    const { memory, store } = make();
    const upload = await store.multipart('m');
    store.faults.next('part', 'm', 'request-lost');
    await errorOf(upload.part(1, utf8('12')));
    await upload.part(1, utf8('12'));
    store.faults.next('complete', 'm', 'response-lost');
    expect((await errorOf(upload.complete())).applied).toBe('maybe');
    expect(memory.peek('m')?.bytes).toEqual(utf8('12'));
  });
});

describe('sim store: planting', () => {
  test('skip: lets the first calls through, counting only those that match', async () => {
    const { store } = make();
    store.faults.next('putIfAbsent', /^v/, 'refused', { skip: 2 });
    await store.putIfAbsent('v1', utf8('1'));
    await store.putIfAbsent('data', utf8('1'));
    await store.putIfAbsent('v2', utf8('1'));
    await errorOf(store.putIfAbsent('v3', utf8('1')));
    await store.putIfAbsent('v4', utf8('1'));
  });

  test('two faults for one key hit two calls, in order', async () => {
    const { store } = make();
    store.faults.next('get', 'k', 'request-lost');
    store.faults.next('get', 'k', 'unreadable');
    await errorOf(store.get('k'));
    await errorOf(store.get('k'));
    expect(store.log.map((call) => call.fault)).toEqual(['request-lost', 'unreadable']);
  });

  test('a pattern with the global flag does not remember its last place', async () => {
    const { store } = make();
    store.faults.always('get', /k/g, 'unreadable');
    for (let i = 0; i < 3; i++) await errorOf(store.get('k'));
  });

  test('unhit: names what no call has met', async () => {
    const { store } = make();
    store.faults.next('get', 'k', 'unreadable');
    store.faults.next('putIf', /hint/, 'late');
    await errorOf(store.get('k'));
    expect(store.faults.unhit()).toEqual(['putIf /hint/ late']);
    expect(store.faults.hits('late')).toBe(0);
    store.faults.stop();
    expect(store.faults.unhit()).toEqual([]);
  });
});

describe('sim store: hooks and log', () => {
  test('before and after: a promise holds the call, on either side of the effect', async () => {
    const { memory, store } = make();
    const seen: string[] = [];
    const gate = Promise.withResolvers<void>();
    const gone = store.onBefore((call) => {
      seen.push(`before ${call.operation} ${memory.peek('k') === null ? 'missing' : 'there'}`);
      return gate.promise;
    });
    store.onAfter((call) => {
      seen.push(`after ${call.operation} ${memory.peek('k') === null ? 'missing' : 'there'}`);
    });
    const pending = store.putIfAbsent('k', utf8('1'));
    expect(memory.peek('k')).toBeNull();
    gate.resolve();
    await pending;
    gone();
    await store.get('k');
    expect(seen).toEqual(['before putIfAbsent missing', 'after putIfAbsent there', 'after get there']);
  });

  test('a hook that throws stands for a crash: before the effect there is none, after it there is', async () => {
    const { memory, store } = make();
    const gone = store.onBefore(() => {
      throw new Error('killed');
    });
    await expect(store.putIfAbsent('a', utf8('1'))).rejects.toThrow('killed');
    gone();
    store.onAfter(() => {
      throw new Error('killed');
    });
    await expect(store.putIfAbsent('b', utf8('1'))).rejects.toThrow('killed');
    expect(memory.keys()).toEqual(['b']);
  });

  test('log: every call in the order made, with its fault and outcome', async () => {
    const { store } = make();
    store.faults.next('get', 'k', 'unreadable');
    await store.putIfAbsent('k', utf8('1'));
    await store.putIfAbsent('k', utf8('1'));
    await errorOf(store.get('k'));
    await store.get('none');
    await store.delete(['k', 'l']);
    await store.delete([]);
    for await (const _ of store.list('')) break;
    expect(
      store.log.map((call) => `${call.number} ${call.operation} ${call.keys.join('+')} ${call.fault} ${call.outcome}`),
    ).toEqual([
      '0 putIfAbsent k null created',
      '1 putIfAbsent k null exists',
      '2 get k unreadable error',
      '3 get none null missing',
      '4 delete k+l null ok',
      '5 list  null ok',
    ]);
  });
});

describe('sim store: drawn faults', () => {
  const rates: FaultRates = { 'request-lost': 0.2, 'response-lost': 0.2, late: 0.2, slow: 0.1, throttled: 0.1 };

  /** A generator of its own kind: splitmix32 over a seed. */
  function seeded(seed: number): () => number {
    let state = seed;
    return () => {
      state = (state + 0x9e3779b9) | 0;
      let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
      mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
      return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
    };
  }

  async function run(seed: number, planted: boolean): Promise<string[]> {
    const { memory, store } = make();
    store.faults.draw(seeded(seed), rates);
    if (planted) store.faults.next('putIfAbsent', 'k/7', 'refused');
    for (let i = 0; i < 60; i++) {
      const request = store.putIfAbsent(`k/${i}`, utf8(String(i)));
      // Two turns bring a call to its hold or its end.
      await Promise.resolve();
      await Promise.resolve();
      store.faults.releaseAll();
      await request.catch((error: unknown) => expect(error).toBeInstanceOf(StoreError));
      if (store.faults.waiting.length > 3) await store.faults.land(1);
    }
    store.faults.stop();
    await store.faults.landAll();
    return [...store.log.map((call) => `${call.key} ${call.fault} ${call.outcome}`), ...memory.keys()];
  }

  test('the same seed gives the same run, another seed another', async () => {
    const first = await run(7, false);
    expect(await run(7, false)).toEqual(first);
    expect(await run(8, false)).not.toEqual(first);
    for (const fault of Object.keys(rates)) expect(first.some((line) => line.includes(` ${fault} `))).toBe(true);
  });

  test('a planted fault does not shift what is drawn for later calls', async () => {
    const without = await run(7, false);
    const withOne = await run(7, true);
    expect(withOne[7]).toBe('k/7 refused error');
    expect(withOne.slice(8, 60)).toEqual(without.slice(8, 60));
  });

  test('rates above one are refused', () => {
    const { store } = make();
    expect(() => store.faults.draw(() => 0, { late: 0.6, slow: 0.6 })).toThrow(/fault rates sum to at most 1/);
  });
});

async function drain(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items) {
    // Only the end matters.
  }
}

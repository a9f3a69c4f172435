import { describe, expect, test } from 'vitest';
import type { NewFrame } from '../../src/core/batch/frame.ts';
import type { Intent } from '../../src/core/batch/intent.ts';
import type { Ledger, Settlement } from '../../src/engine/ports.ts';

/** Makes a ledger, and opens the same one again as the next incarnation would. */
export interface LedgerHost {
  open(): Ledger;
}

function frame(rows: number, options: Partial<NewFrame> = {}): NewFrame {
  return {
    digest: `d${rows}`,
    batchId: null,
    producer: null,
    schemaId: 0,
    rows,
    partitions: 1,
    body: new Uint8Array(rows * 10).fill(rows),
    ...options,
  };
}

function intent(first: number, last: number, options: Partial<Intent> = {}): Intent {
  return {
    form: 1,
    operation: 'append',
    commitId: '0123456789abcdef0123456789abcdef',
    snapshotId: 9007199254740991n,
    timeMs: 1000,
    ledgerId: '00000000000000aa',
    first,
    last,
    rows: 1,
    tableUuid: 'u-1',
    retire: [],
    ...options,
  };
}

function committed(options: Partial<Extract<Settlement, { outcome: 'committed' }>> = {}): Settlement {
  return {
    outcome: 'committed',
    snapshotId: 9007199254740991n,
    version: 2,
    tableUuid: 'u-1',
    committedMs: 5000,
    rows: 3,
    ...options,
  };
}

const WIDE = { rowsMax: 1000, bytesMax: 1_000_000, partitionsMax: 1000 };

/** What every ledger does. `run` gives the body a host of its own. */
export function ledgerSuite(name: string, run: (body: (host: LedgerHost) => void) => Promise<void>): void {
  const it = (title: string, body: (host: LedgerHost) => void) => test(title, () => run(body));

  describe(`${name}: accepting`, () => {
    it('proposals: what buffered frames ask of the schema, in every incarnation, until they are settled', (host) => {
      const ledger = host.open();
      const field = { id: 2_000_000_000, name: 'x', required: false, type: 'long' };
      const proposal = { added: [field], widened: [{ id: 3, type: 'long' }] };
      ledger.accept([frame(1), frame(2, { proposal }), frame(3, { proposal: structuredClone(proposal) })], 100);
      const other = { added: [], widened: [{ id: 3, type: 'long' }] };
      ledger.accept([frame(4, { proposal: other })], 100);
      expect(ledger.proposals()).toEqual([proposal, other]);
      const again = host.open();
      expect(again.proposals()).toEqual([proposal, other]);
      expect(again.frames(2, 3).map((one) => one.proposal)).toEqual([proposal, proposal]);
      again.seal(intent(1, 3), 2);
      again.settle(committed());
      expect(again.proposals()).toEqual([other]);
    });

    it('accept: frames get consecutive sequences from 1, across groups and incarnations', (host) => {
      const ledger = host.open();
      expect(ledger.state().lastSequence).toBe(0);
      expect(ledger.accept([frame(1), frame(2)], 100)).toBe(1);
      expect(ledger.accept([frame(3)], 200)).toBe(3);
      const again = host.open();
      expect(again.state()).toMatchObject({
        ledgerId: ledger.state().ledgerId,
        lastSequence: 3,
        buffer: { frames: 3, rows: 6, bytes: 60, oldestMs: 100 },
      });
      expect(again.frames(2, 3).map(({ sequence, rows, body }) => [sequence, rows, body.length, body[0]])).toEqual([
        [2, 2, 20, 2],
        [3, 3, 30, 3],
      ]);
    });

    it('accept: a body larger than a row comes back whole, among small ones', (host) => {
      const large = new Uint8Array(2_500_000).map((_, index) => index % 251);
      host.open().accept([frame(1), frame(2, { body: large }), frame(3)], 100);
      const found = host.open().frames(1, 3);
      expect(found.map((one) => one.body.length)).toEqual([10, 2_500_000, 30]);
      expect(found[1].body[2_499_999]).toBe(2_499_999 % 251);
      expect(found[2].body[0]).toBe(3);
    });

    it('accept: a batch id is found with its digest, also by the next incarnation', (host) => {
      host.open().accept([frame(1, { batchId: 'b-1', digest: 'x' })], 100);
      expect(host.open().batch('b-1')).toEqual({ sequence: 1, digest: 'x' });
      expect(host.open().batch('b-2')).toBeNull();
    });
  });

  describe(`${name}: choosing`, () => {
    it('next: the longest range within the bounds, from the oldest', (host) => {
      const ledger = host.open();
      expect(ledger.next(WIDE)).toBeNull();
      ledger.accept([frame(5), frame(4), frame(3)], 100);
      expect(ledger.next(WIDE)).toEqual({ branch: 'main', first: 1, last: 3, rows: 12, bytes: 120 });
      expect(ledger.next({ ...WIDE, rowsMax: 9 })).toMatchObject({ first: 1, last: 2 });
      expect(ledger.next({ ...WIDE, bytesMax: 50 })).toMatchObject({ first: 1, last: 1 });
      expect(ledger.next({ ...WIDE, partitionsMax: 2 })).toMatchObject({ first: 1, last: 2 });
    });

    it('next: frames of one branch, also for the next incarnation', (host) => {
      const ledger = host.open();
      ledger.accept([frame(1, { branch: 'b' }), frame(2, { branch: 'b' }), frame(3), frame(4, { branch: 'c' })], 100);
      const again = host.open();
      expect(again.next(WIDE)).toEqual({ branch: 'b', first: 1, last: 2, rows: 3, bytes: 30 });
      expect(again.frames(1, 4).map((one) => one.branch)).toEqual(['b', 'b', undefined, 'c']);
      again.seal(intent(1, 2, { form: 2, branch: 'b' }), null);
      expect(host.open().state().intent?.intent).toMatchObject({ form: 2, branch: 'b' });
      host.open().settle(committed());
      expect(host.open().next(WIDE)).toMatchObject({ branch: 'main', first: 3, last: 3 });
    });

    it('next: at least one frame, however large', (host) => {
      const ledger = host.open();
      ledger.accept([frame(5)], 100);
      expect(ledger.next({ rowsMax: 1, bytesMax: 1, partitionsMax: 0 })).toEqual({
        branch: 'main',
        first: 1,
        last: 1,
        rows: 5,
        bytes: 50,
      });
    });
  });

  describe(`${name}: intents`, () => {
    it('seal: the intent is there for the next incarnation, 64-bit id and all', (host) => {
      const ledger = host.open();
      ledger.accept([frame(1)], 100);
      ledger.seal(intent(1, 1), 7);
      ledger.noteTarget(8);
      ledger.noteTarget(8);
      ledger.defer(9000, { type: 'commit-unknown', message: 'm', atMs: 10 });
      const state = host.open().state();
      expect(state.intent).toEqual({ intent: intent(1, 1), targets: [7, 8], failures: 1, retryMs: 9000 });
      expect(state.lastTimeMs).toBe(1000);
      expect(state.lastError).toEqual({ type: 'commit-unknown', message: 'm', atMs: 10 });
    });

    it('seal: a second intent beside an open one is a mistake', (host) => {
      const ledger = host.open();
      ledger.accept([frame(1)], 100);
      ledger.seal(intent(1, 1), null);
      expect(() => ledger.seal(intent(1, 1), null)).toThrow('one append intent');
    });

    it('settle: frames leave, later ones stay, receipts tell, numbering goes on', (host) => {
      const ledger = host.open();
      ledger.accept([frame(1), frame(2)], 100);
      ledger.accept([frame(3)], 200);
      ledger.seal(intent(1, 2), 2);
      ledger.settle(committed());
      const again = host.open();
      expect(again.state()).toMatchObject({
        intent: null,
        lastTimeMs: 1000,
        lastSequence: 3,
        buffer: { frames: 1, rows: 3, oldestMs: 200 },
        table: { uuid: 'u-1', version: 2 },
        lastCommit: { snapshotId: '9007199254740991', version: 2, committedMs: 5000, rows: 3 },
      });
      expect(again.receipt(1)).toEqual({
        state: 'committed',
        snapshotId: '9007199254740991',
        version: 2,
        committedMs: 5000,
      });
      expect(again.receipt(2)).toEqual(again.receipt(1));
      expect(again.receipt(3)).toEqual({ state: 'buffered' });
      expect(again.receipt(4)).toBeNull();
      expect(again.accept([frame(1)], 300)).toBe(4);
    });

    it('settle: a range that ends inside a group leaves the rest of it, bodies intact', (host) => {
      const ledger = host.open();
      ledger.accept([frame(1), frame(2), frame(3)], 100);
      ledger.accept([frame(4)], 200);
      ledger.seal(intent(1, 2), 2);
      ledger.settle(committed());
      const again = host.open();
      expect(again.frames(1, 9).map((one) => [one.sequence, one.body.length, one.body[0]])).toEqual([
        [3, 30, 3],
        [4, 40, 4],
      ]);
      again.seal(intent(3, 4), 3);
      again.settle(committed({ version: 3 }));
      expect(host.open().state().buffer).toEqual({ frames: 0, rows: 0, bytes: 0, oldestMs: null });
      expect(host.open().accept([frame(1)], 300)).toBe(5);
    });

    it('settle: refused frames keep a readable reason', (host) => {
      const ledger = host.open();
      ledger.accept([frame(1)], 100);
      ledger.seal(intent(1, 1), 2);
      ledger.settle({ outcome: 'refused', type: 'table-dropped', message: 'gone', atMs: 70 });
      expect(host.open().receipt(1)).toEqual({ state: 'refused', type: 'table-dropped', message: 'gone', atMs: 70 });
      expect(host.open().state()).toMatchObject({ intent: null, lastError: { type: 'table-dropped' } });
    });
  });

  describe(`${name}: apps`, () => {
    const of = (app: string, epoch: bigint, rows = 1) => frame(rows, { producer: { app, epoch, sparse: false } });
    const parked = { outcome: 'parked' as const, type: 'incompatible-type', message: 'm', atMs: 50 };

    it('app: recent epochs and what waits, newest first, 64-bit, a bounded window', (host) => {
      const ledger = host.open();
      expect(ledger.app('a')).toEqual({ waiting: null, bytes: 0, recent: [], parked: null, retiring: false });
      ledger.accept([of('a', 9007199254740993n), of('b', 1n)], 100);
      for (let epoch = 1n; epoch <= 70n; epoch++) ledger.accept([of('a', 9007199254740993n + epoch)], 100);
      const state = host.open().app('a');
      expect(state.waiting).toBe(9007199254741063n);
      expect(state.recent).toHaveLength(64);
      expect(state.recent[0]).toEqual({ epoch: 9007199254741063n, digest: 'd1', sequence: 72 });
      expect(state.bytes).toBe(710);
    });

    it('settle: exceptions have receipts of their own, parked frames are kept out of the buffer', (host) => {
      const ledger = host.open();
      ledger.accept([of('a', 1n), of('b', 5n), of('b', 6n), of('a', 2n)], 100);
      ledger.seal(intent(1, 4), 2);
      ledger.settle(committed(), [
        { sequence: 2, settlement: parked },
        { sequence: 3, settlement: { ...parked, type: 'app-parked' } },
      ]);
      const again = host.open();
      expect([1, 2, 3, 4].map((sequence) => again.receipt(sequence)?.state)).toEqual([
        'committed',
        'parked',
        'parked',
        'committed',
      ]);
      expect(again.receipt(2)).toEqual({ state: 'parked', type: 'incompatible-type', message: 'm', atMs: 50 });
      expect(again.state().buffer.frames).toBe(0);
      expect(again.heldApps()).toEqual(['b']);
      expect(again.appNames().sort()).toEqual(['a', 'b']);
      expect(again.app('b')).toMatchObject({
        parked: { epoch: 5n, type: 'incompatible-type', sequence: 2, behind: 1 },
        bytes: 20,
        waiting: null,
      });
    });

    it('unpark: the replacement takes its place, those behind follow and their receipts with them', (host) => {
      const ledger = host.open();
      ledger.accept([of('b', 5n, 1), of('b', 6n, 2)], 100);
      ledger.seal(intent(1, 2), 2);
      ledger.settle(committed(), [
        { sequence: 1, settlement: parked },
        { sequence: 2, settlement: parked },
      ]);
      const verdict = { outcome: 'refused' as const, type: 'skipped', message: 's', atMs: 60 };
      const skip = frame(0, { producer: { app: 'b', epoch: 5n, sparse: false } });
      expect(host.open().unpark('b', skip, verdict, 300)).toBe(3);
      const again = host.open();
      expect(again.app('b')).toMatchObject({ parked: null, waiting: 6n });
      expect(again.frames(3, 4).map((one) => [one.producer?.epoch, one.rows, one.body.length])).toEqual([
        [5n, 0, 0],
        [6n, 2, 20],
      ]);
      expect(again.receipt(1)).toMatchObject({ state: 'refused', type: 'skipped' });
      expect(again.receipt(2)).toEqual({ state: 'buffered' });
      again.seal(intent(3, 4), 3);
      again.settle(committed({ version: 3 }));
      expect(host.open().receipt(2)).toMatchObject({ state: 'committed', version: 3 });
    });

    it('retire: marked until a commit that says so', (host) => {
      const ledger = host.open();
      ledger.accept([of('a', 1n)], 100);
      ledger.retire('a', true);
      expect(host.open().heldApps()).toEqual(['a']);
      ledger.seal(intent(1, 1, { retire: ['a'] }), 2);
      ledger.settle(committed());
      expect(host.open().app('a')).toEqual({ waiting: null, bytes: 0, recent: [], parked: null, retiring: false });
    });

    it('discard: parked frames go with the table, and say why', (host) => {
      const ledger = host.open();
      ledger.accept([of('b', 5n, 4)], 100);
      ledger.seal(intent(1, 1), 2);
      ledger.settle(committed(), [{ sequence: 1, settlement: parked }]);
      ledger.accept([frame(2)], 200);
      expect(ledger.discard({ outcome: 'refused', type: 'table-dropped', message: 'm', atMs: 5 })).toBe(6);
      const again = host.open();
      expect(again.heldApps()).toEqual([]);
      expect(again.receipt(1)).toMatchObject({ state: 'refused', type: 'table-dropped' });
    });

    it('discard: what the table has already leaves; parked frames, apps and batch ids stay', (host) => {
      const ledger = host.open();
      ledger.accept([of('b', 5n, 4)], 100);
      ledger.seal(intent(1, 1), 2);
      ledger.settle(committed(), [{ sequence: 1, settlement: parked }]);
      ledger.accept([frame(2, { batchId: 'k' })], 200);
      expect(ledger.discard(committed({ snapshotId: null, version: 3 }))).toBe(2);
      const again = host.open();
      expect(again.state()).toMatchObject({ intent: null, buffer: { frames: 0 } });
      expect(again.heldApps()).toEqual(['b']);
      expect(again.receipt(1)).toMatchObject({ state: 'parked' });
      expect(again.receipt(2)).toMatchObject({ state: 'committed', version: 3 });
      expect(again.batch('k')).toMatchObject({ sequence: 2 });
    });
  });

  describe(`${name}: letting go`, () => {
    it('discard: buffer and intent are gone, the rows are counted, the receipts say why', (host) => {
      const ledger = host.open();
      ledger.accept([frame(1), frame(2)], 100);
      ledger.seal(intent(1, 1), 2);
      expect(ledger.discard({ outcome: 'refused', type: 't', message: 'm', atMs: 5 })).toBe(3);
      const again = host.open();
      expect(again.state()).toMatchObject({ intent: null, buffer: { frames: 0 }, lastSequence: 2 });
      expect(again.receipt(2)).toMatchObject({ state: 'refused', type: 't' });
    });

    it('discard: batch ids are forgotten, those of committed batches too: they are the gone table’s', (host) => {
      const ledger = host.open();
      ledger.accept([frame(1, { batchId: 'k' })], 100);
      ledger.seal(intent(1, 1), 2);
      ledger.settle(committed());
      ledger.accept([frame(2, { batchId: 'l' })], 200);
      expect(ledger.batch('k')).toEqual({ sequence: 1, digest: 'd1' });
      ledger.discard({ outcome: 'refused', type: 'table-dropped', message: 'm', atMs: 5 });
      const again = host.open();
      expect([again.batch('k'), again.batch('l')]).toEqual([null, null]);
      expect(again.receipt(1)).toMatchObject({ state: 'committed' });
    });

    it('forget: frames that the table already holds leave without an intent', (host) => {
      const ledger = host.open();
      ledger.accept([frame(1), frame(2), frame(3)], 100);
      ledger.forget(2, committed({ snapshotId: null }));
      const again = host.open();
      expect(again.state().buffer.frames).toBe(1);
      expect(again.receipt(2)).toMatchObject({ state: 'committed', snapshotId: null });
    });

    it('B192 prune: old batch ids and receipts are forgotten, at most so many at a time', (host) => {
      const ledger = host.open();
      ledger.accept([frame(1, { batchId: 'old' }), frame(1, { batchId: 'older' })], 100);
      ledger.seal(intent(1, 2), 2);
      ledger.settle(committed({ committedMs: 150 }));
      ledger.accept([frame(1, { batchId: 'new' })], 900);
      expect(ledger.prune(500, 1)).toBeGreaterThan(0);
      // One of the two is still there: the pass was bounded.
      expect([ledger.batch('old'), ledger.batch('older')].filter((batch) => batch !== null)).toHaveLength(1);
      for (let pass = 0; pass < 5; pass++) ledger.prune(500, 1);
      const again = host.open();
      expect([again.batch('old'), again.batch('older')]).toEqual([null, null]);
      expect(again.batch('new')).not.toBeNull();
      expect(again.receipt(1)).toBeNull();
    });

    it('doom: keys wait for their time, come oldest first and leave once, across incarnations', (host) => {
      const ledger = host.open();
      expect(ledger.state().doomed).toEqual({ keys: 0, dueMs: null });
      ledger.doom(['late-1', 'late-2'], 900);
      ledger.doom(['a', 'b', 'c'], 500);
      expect(host.open().state().doomed).toEqual({ keys: 5, dueMs: 500 });
      expect(host.open().doomed(499, 10)).toEqual([]);
      expect(host.open().doomed(500, 10)).toEqual(['a', 'b', 'c']);
      expect(host.open().doomed(900, 4)).toEqual(['a', 'b', 'c', 'late-1']);
      const again = host.open();
      again.erased(['b', 'late-1', 'never-queued']);
      expect(again.doomed(900, 10)).toEqual(['a', 'c', 'late-2']);
      again.erased(['a', 'c']);
      expect(host.open().state().doomed).toEqual({ keys: 1, dueMs: 900 });
      again.erased(['late-2']);
      expect(host.open().state().doomed).toEqual({ keys: 0, dueMs: null });
    });

    it('B192 doom: thousands of keys come back whole, a bounded number at a time', (host) => {
      const keys = Array.from({ length: 2_500 }, (_, index) => `warehouse/ns/t/data/${index}.parquet`);
      host.open().doom(keys, 500);
      const found: string[] = [];
      for (let pass = 0; pass < 3; pass++) {
        const ledger = host.open();
        const due = ledger.doomed(500, 1000);
        found.push(...due);
        ledger.erased(due);
      }
      expect(found).toEqual(keys);
      expect(host.open().doomed(500, 1000)).toEqual([]);
    });

    it('uploads: begun ones wait for their end, oldest first, across incarnations', (host) => {
      const ledger = host.open();
      expect(ledger.state().uploads).toEqual({ open: 0, oldestMs: null });
      const [a, b] = [
        { uploadId: 'u-a', key: 'data/a', begunMs: 500 },
        { uploadId: 'u-b', key: 'data/b', begunMs: 300 },
      ];
      ledger.uploadBegan(a);
      ledger.uploadBegan(b);
      expect(host.open().state().uploads).toEqual({ open: 2, oldestMs: 300 });
      expect(host.open().openUploads(499, 10)).toEqual([b]);
      expect(ledger.openUploads(500, 10)).toEqual([b, a]);
      expect(ledger.openUploads(500, 1)).toEqual([b]);
      ledger.uploadEnded('u-b');
      ledger.uploadEnded('never-begun');
      expect(host.open().openUploads(1000, 10)).toEqual([a]);
      expect(ledger.state().uploads).toEqual({ open: 1, oldestMs: 500 });
    });

    it('keepDue, swept: when upkeep is due is known before the table is', (host) => {
      const ledger = host.open();
      expect(ledger.state()).toMatchObject({ choresDueMs: null, sweptMs: null });
      ledger.keepDue(900);
      ledger.swept(100);
      expect(ledger.state()).toMatchObject({ choresDueMs: 900, sweptMs: 100 });
      expect(host.open().state()).toMatchObject({ choresDueMs: 900, sweptMs: 100 });
      ledger.keepDue(null);
      expect(host.open().state().choresDueMs).toBeNull();
    });

    it('gave: a number belongs to the identity that gave it, also after that was given up', (host) => {
      const ledger = host.open();
      const before = ledger.state().ledgerId;
      ledger.accept([frame(1), frame(1)], 100);
      ledger.renew('00000000000000ff');
      ledger.accept([frame(1)], 200);
      const again = host.open();
      const gave = (id: string) => [0, 1, 2, 3, 4].map((sequence) => again.gave(id, sequence));
      expect(gave(before)).toEqual([false, true, true, false, false]);
      expect(gave('00000000000000ff')).toEqual([false, false, false, true, false]);
      expect(gave('00000000000000ee')).toEqual([false, false, false, false, false]);
    });

    it('renew, know, hinted: small facts outlive the incarnation', (host) => {
      const ledger = host.open();
      ledger.renew('00000000000000ff');
      ledger.know({ uuid: 'u-9', version: 4 });
      ledger.hinted(4);
      expect(host.open().state()).toMatchObject({
        ledgerId: '00000000000000ff',
        table: { uuid: 'u-9', version: 4 },
        hintedVersion: 4,
      });
      ledger.know(null);
      expect(host.open().state().table).toBeNull();
    });
  });
}

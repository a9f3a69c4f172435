import { beforeEach, describe, expect, test } from 'vitest';
import { ALARM_AHEAD_MAX_MS, ALARM_LATE_MS } from '../../src/core/base/limits.ts';
import { Schedule } from '../../src/object/schedule.ts';

let set: number[];
let stored: number | null;
let nowMs: number;
let schedule: Schedule;

beforeEach(() => {
  set = [];
  stored = null;
  nowMs = 10_000;
  const storage = {
    setAlarm: async (time: number | Date) => {
      stored = Number(time);
      set.push(stored);
    },
    getAlarm: async () => stored,
  };
  schedule = new Schedule(storage, { now: () => nowMs });
});

describe('schedule', () => {
  test('alarm: set to the earliest, and not again for what is later', () => {
    schedule.arm(20_000);
    schedule.arm(30_000);
    schedule.arm(15_000);
    schedule.arm(null);
    expect(set).toEqual([20_000, 15_000]);
  });

  test('alarm: what is due already is due in the next millisecond, and is set once', () => {
    schedule.arm(0);
    schedule.arm(0);
    schedule.arm(9_000);
    expect(set).toEqual([10_001]);
  });

  test('alarm: what is due in a thousand years is set as far ahead as the platform takes, and asked for again then', () => {
    const dueMs = Date.UTC(3026, 0, 1);
    schedule.arm(dueMs);
    expect(set).toEqual([10_000 + ALARM_AHEAD_MAX_MS]);
    expect(set[0]).toBeLessThan(Date.UTC(2189, 0, 1));
    nowMs = set[0];
    schedule.fired(nowMs);
    schedule.handled();
    schedule.arm(dueMs);
    expect(set).toHaveLength(2);
  });

  test('alarm: one that has gone off is never set to its own time again', () => {
    schedule.arm(10_001);
    schedule.fired(10_001); // a moment early
    schedule.handled();
    schedule.arm(10_001);
    expect(set).toEqual([10_001, 10_002]);
    nowMs = 10_002;
    schedule.fired(10_002); // in its very millisecond
    schedule.handled();
    schedule.arm(0);
    expect(set).toEqual([10_001, 10_002, 10_003]);
  });

  test('alarm: not set while one is handled, which the platform repeats when the handler is cut off', () => {
    schedule.arm(10_001);
    schedule.fired(10_001);
    schedule.arm(0);
    schedule.arm(20_000);
    expect(set).toEqual([10_001]);
    schedule.handled();
    schedule.arm(20_000);
    expect(set).toEqual([10_001, 20_000]);
  });

  test('repair: sets what the platform has lost, and leaves alone what is only late', async () => {
    schedule.arm(20_000);
    nowMs = 20_000 + ALARM_LATE_MS - 1;
    await schedule.repair(() => 20_000);
    expect(set).toEqual([20_000]);
    nowMs++;
    await schedule.repair(() => 20_000);
    expect(set).toEqual([20_000, nowMs + 1]);
    stored = null;
    await schedule.repair(() => 20_000);
    expect(set).toEqual([20_000, nowMs + 1, nowMs + 1]);
    stored = null;
    await schedule.repair(() => null);
    expect(set).toHaveLength(3);
  });

  test('repair: an incarnation that has just begun writes nothing where the alarm stands, and later ones count from there', async () => {
    stored = 20_000;
    await schedule.repair(() => 20_000);
    schedule.arm(25_000);
    expect(set).toEqual([]);
    schedule.arm(15_000);
    expect(set).toEqual([15_000]);
  });

  test('repair: what is due before the alarm that is set has it set anew', async () => {
    stored = 20_000;
    await schedule.repair(() => 15_000);
    expect(set).toEqual([15_000]);
  });

  test('repair: nothing is set while an alarm is handled, nor forgotten of what its handler sets', async () => {
    schedule.arm(10_001);
    schedule.fired(10_001);
    stored = null;
    await schedule.repair(() => 30_000);
    schedule.handled();
    schedule.arm(20_000);
    expect(set).toEqual([10_001, 20_000]);
  });

  test('repair: what is due is asked for after the wait, in which a handler may have ended', async () => {
    let dueMs = 30_000;
    const repaired = schedule.repair(() => dueMs);
    dueMs = 20_000;
    schedule.arm(dueMs);
    await repaired;
    expect(stored).toBe(20_000);
  });

  test('repair: the alarm that is about to be handled is not set a second time', async () => {
    stored = nowMs;
    await schedule.repair(() => 0);
    expect(set).toEqual([]);
  });
});

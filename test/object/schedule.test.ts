import { beforeEach, describe, expect, test } from 'vitest';
import { Schedule } from '../../src/object/schedule.ts';

let set: number[];
let schedule: Schedule;

beforeEach(() => {
  set = [];
  const storage = {
    setAlarm: async (time: number | Date) => void set.push(Number(time)),
    getAlarm: async () => set.at(-1) ?? null,
  };
  schedule = new Schedule(storage);
});

describe('schedule', () => {
  test('alarm: set to the earliest, and not again for what is later', () => {
    schedule.arm(20_000);
    schedule.arm(30_000);
    schedule.arm(15_000);
    schedule.arm(null);
    expect(set).toEqual([20_000, 15_000]);
  });

  test('alarm: what is long due goes off at the beginning of time, which the platform takes', () => {
    schedule.arm(0);
    expect(set).toEqual([1]);
  });

  test('alarm: one that went off a moment early is not set to its own time again', () => {
    schedule.arm(10_001);
    schedule.fired();
    schedule.arm(10_001);
    expect(set).toEqual([10_001, 10_002]);
  });
});

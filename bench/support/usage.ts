import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

/** What the kernel knows of a process (Linux). */

/**
 * CPU time of all threads of a process, in milliseconds with the resolution of the scheduler: JavaScript, garbage
 * collection, compilation and I/O alike.
 */
export function cpuMsOf(pid: number): number {
  let nanoseconds = 0n;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    try {
      nanoseconds += BigInt(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
    } catch {
      // A thread that ended in between.
    }
  }
  return Number(nanoseconds) / 1e6;
}

/** Resident memory in bytes: now, and at its highest since `resetPeak`. */
export function residentOf(pid: number): { now: number; peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kib = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0);
  return { now: 1024 * kib('VmRSS'), peak: 1024 * kib('VmHWM') };
}

export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

import { readFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';

/** What every report begins with: figures mean nothing without it. */
export interface Setting {
  bench: string;
  date: string;
  machine: { cpu: string; cores: number; memoryBytes: number; loadAtStart: number };
  versions: Record<string, string>;
}

export function setting(bench: string, packages: readonly string[]): Setting {
  const versionOf = (name: string): string => {
    const path = new URL(`../node_modules/${name}/package.json`, import.meta.url).pathname;
    return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
  };
  return {
    bench,
    date: new Date().toISOString(),
    machine: {
      cpu: cpus()[0]?.model ?? 'unknown',
      cores: cpus().length,
      memoryBytes: totalmem(),
      loadAtStart: Math.round(loadavg()[0] * 100) / 100,
    },
    versions: { node: process.versions.node, ...Object.fromEntries(packages.map((name) => [name, versionOf(name)])) },
  };
}

/** Of several runs. On a busy machine the least is the one to compare. */
export interface Spread {
  median: number;
  min: number;
  max: number;
}

export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const rounded = (value: number): number => Math.round(value * 100) / 100;
  return {
    median: rounded(sorted[sorted.length >> 1]),
    min: rounded(sorted[0]),
    max: rounded(sorted[sorted.length - 1]),
  };
}

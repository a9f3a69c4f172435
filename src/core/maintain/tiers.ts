/**
 * Which files of a table to merge next. The rules are the engine's (docs/timelake-contract.md, section 10): a file is
 * small below three quarters of the target; tiers grow fourfold; enough small files of one tier are merged into one that
 * lands in a higher tier; a cold partition, one that newer data has left behind, is rewritten once it has two. One rule is our
 * own: late rows that keep coming do not have a large file rewritten each time (`worthIt`).
 */

/** A live data file, as far as choosing goes. */
export interface TierFile {
  path: string;
  bytes: number;
  rows: number;
  /** Data sequence number. */
  sequenceNumber: bigint;
  /** Which partition, told by `tupleKey`. */
  partition: string;
  specId: number;
  /** First instant after the partition, UTC microseconds; null when the table is not partitioned by time. */
  endMicros: bigint | null;
  /** Memory that it takes while it is merged, besides its windows. */
  heldBytes: number;
  /** False for a file that this service leaves alone. With dedup no run goes past it. */
  isUsable: boolean;
}

export interface TierPolicy {
  targetBytes: number;
  /** Small files of one tier that are merged. */
  minFiles: number;
  /** Later rows win over older ones of the same key: a run must be contiguous in data sequence number. */
  dedup: boolean;
  /** Partitions that end at or before this instant are cold; null: none is. */
  coldMicros: bigint | null;
  /** Every partition with two small files is rewritten, cold or not. */
  full: boolean;
  /** Bounds of one run. */
  runBytesMax: number;
  runRowsMax: number;
  runFilesMax: number;
  runHeldBytesMax: number;
}

/** Files of one partition to be merged, in order of data sequence number. */
export interface TierRun {
  partition: string;
  reason: 'tier' | 'cold' | 'full';
  files: TierFile[];
}

export interface Picked {
  /** Runs that do not touch each other, those that free most files first. */
  runs: TierRun[];
  /** With fewer files than this added to the table, no tier can be full. At least one. */
  filesToNext: number;
}

/** Files of tier 0 are smaller than four times this (the engine's base). */
const TIER_BASE_BYTES = 64 * 1024;
const TIER_GROWTH = 4;

/** A file of a cold partition is rewritten for files that are not less than this part of it. */
const COLD_SHARE = 1 / 16;

export function tierOf(bytes: number): number {
  let tier = 0;
  for (let top = TIER_BASE_BYTES * TIER_GROWTH; bytes >= top; top *= TIER_GROWTH) tier++;
  return tier;
}

/** Bytes that files of a tier are below. */
export function tierTop(tier: number): number {
  return TIER_BASE_BYTES * TIER_GROWTH ** (tier + 1);
}

/** A file beyond one run's bytes could never be merged with anything: so no target is above that. */
export function smallBelow({ targetBytes, runBytesMax }: Pick<TierPolicy, 'targetBytes' | 'runBytesMax'>): number {
  return (3 / 4) * Math.min(targetBytes, runBytesMax);
}

/** Chooses runs; a pure function of files and policy, whatever order the files come in. */
export function pick(files: readonly TierFile[], policy: TierPolicy): Picked {
  const partitions = new Map<string, TierFile[]>();
  for (const file of files) {
    const list = partitions.get(file.partition);
    if (list === undefined) partitions.set(file.partition, [file]);
    else list.push(file);
  }
  const beyond = new Map<number, bigint[]>();
  const runs: TierRun[] = [];
  let filesToNext = policy.minFiles;
  for (const list of partitions.values()) {
    list.sort(bySequence);
    const { endMicros, specId } = list[0];
    if (policy.dedup && !beyond.has(specId)) beyond.set(specId, numbersBeyond(files, specId));
    const between = beyond.get(specId) ?? null;
    const isCold = policy.coldMicros !== null && endMicros !== null && endMicros <= policy.coldMicros;
    if (policy.full || isCold) {
      const whole = wholeRun(list, between, policy);
      const files = whole === null || policy.full ? whole : worthIt(whole);
      if (files !== null) runs.push({ partition: list[0].partition, reason: policy.full ? 'full' : 'cold', files });
      continue;
    }
    const { run, longest } = tierRun(list, between, policy);
    if (run !== null) runs.push(run);
    filesToNext = Math.min(filesToNext, policy.minFiles - longest);
  }
  runs.sort((a, b) => b.files.length - a.files.length || (a.partition < b.partition ? -1 : 1));
  return { runs, filesToNext: Math.max(1, filesToNext) };
}

/** Data sequence numbers that no run with dedup goes past, ascending; null without dedup. */
type Between = readonly bigint[] | null;

/** Those of files under other partition specs: whose keys they share, no partition tells. */
function numbersBeyond(files: readonly TierFile[], specId: number): bigint[] {
  const others = files.filter((file) => file.specId !== specId);
  return others.sort(bySequence).map(({ sequenceNumber }) => sequenceNumber);
}

/** Data sequence number, then path: an order that does not depend on that of the manifests. */
function bySequence(a: TierFile, b: TierFile): number {
  if (a.sequenceNumber !== b.sequenceNumber) return a.sequenceNumber < b.sequenceNumber ? -1 : 1;
  return a.path < b.path ? -1 : 1;
}

/** Small also by its rows: one that fills a run could never be merged with anything either. */
function isSmallFile({ isUsable, bytes, rows }: TierFile, policy: TierPolicy): boolean {
  return isUsable && bytes < smallBelow(policy) && rows < (3 / 4) * policy.runRowsMax;
}

/** The whole partition while that is one run of less than two targets; else its small files. Null with less than two. */
function wholeRun(list: readonly TierFile[], between: Between, policy: TierPolicy): TierFile[] | null {
  const isSmall = (file: TierFile) => isSmallFile(file, policy);
  if (list.filter(isSmall).length < 2) return null;
  const bytes = list.reduce((sum, file) => sum + file.bytes, 0);
  const fitsOne = bytes < 2 * policy.targetBytes && fitsRun(list, policy);
  const isWhole = list.every(({ isUsable }) => isUsable) && segmentsOf(list, () => true, between).length === 1;
  return fitsOne && isWhole ? [...list] : firstRun(list, isSmall, between, policy, 2);
}

/**
 * Of a run, what is behind the last file that is much larger than all the rest: a few late rows are merged with each other,
 * and with that file once they have come to a share of it. So what is written for them stays a multiple of what they are,
 * and such files stay few, as their sizes are far apart. What is less than a file of the lowest tier is merged whatever its parts.
 */
function worthIt(run: readonly TierFile[]): TierFile[] | null {
  let rest = [...run];
  while (rest.length >= 2) {
    const bytes = rest.reduce((sum, file) => sum + file.bytes, 0);
    const largest = rest.reduce((most, file) => (file.bytes > most.bytes ? file : most));
    if (bytes < tierTop(0) || bytes - largest.bytes >= COLD_SHARE * largest.bytes) return rest;
    rest = rest.slice(rest.indexOf(largest) + 1);
  }
  return null;
}

function tierRun(
  list: readonly TierFile[],
  between: Between,
  policy: TierPolicy,
): { run: TierRun | null; longest: number } {
  const small = list.filter((file) => isSmallFile(file, policy));
  let longest = 0;
  for (const tier of new Set(small.map(({ bytes }) => tierOf(bytes)))) {
    const isOf = (file: TierFile) => isSmallFile(file, policy) && tierOf(file.bytes) === tier;
    const files = firstRun(list, isOf, between, policy, policy.minFiles);
    if (files !== null) return { run: { partition: list[0].partition, reason: 'tier', files }, longest: 0 };
    // What is appended goes behind the last file: only a run that ends there can grow.
    const last = segmentsOf(list, isOf, between).at(-1)?.flat().length ?? 0;
    // One that is long enough, and has no two files within the bounds of a run, waits for nothing.
    if (last < policy.minFiles) longest = Math.max(longest, last);
  }
  return { run: null, longest };
}

/** The first segment of at least `filesMin` files that has a run within the bounds: the run. */
function firstRun(
  list: readonly TierFile[],
  isWanted: (file: TierFile) => boolean,
  between: Between,
  policy: TierPolicy,
  filesMin: number,
): TierFile[] | null {
  for (const segment of segmentsOf(list, isWanted, between)) {
    if (segment.flat().length < filesMin) continue;
    for (let from = 0; from < segment.length; from++) {
      const run = cut(segment.slice(from), policy);
      if (run.length >= 2) return run;
    }
  }
  return null;
}

/**
 * Wanted files that may be merged with each other, as groups that only go together. With dedup a group is a data sequence
 * number and a segment has no other file between; files beside those of its lowest number are harmless, since files of one
 * commit share no key. Without dedup any files may be merged.
 */
function segmentsOf(
  list: readonly TierFile[],
  isWanted: (file: TierFile) => boolean,
  between: Between,
): TierFile[][][] {
  if (between === null) {
    const wanted = list.filter(isWanted).map((file) => [file]);
    return wanted.length === 0 ? [] : [wanted];
  }
  const segments: TierFile[][][] = [];
  let open: TierFile[][] = [];
  const close = () => {
    if (open.length > 0) segments.push(open);
    open = [];
  };
  let passed = 0;
  for (let from = 0; from < list.length; ) {
    const first = passed;
    while (passed < between.length && between[passed] <= list[from].sequenceNumber) passed++;
    if (passed > first) close();
    let to = from + 1;
    while (to < list.length && list[to].sequenceNumber === list[from].sequenceNumber) to++;
    const group = list.slice(from, to);
    const wanted = group.filter(isWanted);
    if (wanted.length < group.length) close();
    if (wanted.length > 0) open.push(wanted);
    from = to;
  }
  close();
  return segments;
}

function fitsRun(files: readonly TierFile[], policy: TierPolicy): boolean {
  const sum = (of: (file: TierFile) => number) => files.reduce((all, file) => all + of(file), 0);
  return (
    files.length <= policy.runFilesMax &&
    sum(({ bytes }) => bytes) <= policy.runBytesMax &&
    sum(({ rows }) => rows) <= policy.runRowsMax &&
    sum(({ heldBytes }) => heldBytes) <= policy.runHeldBytesMax
  );
}

/** As many of the oldest as fit one run. A group is cut only when nothing follows it: see `segmentsOf`. */
function cut(groups: readonly (readonly TierFile[])[], policy: TierPolicy): TierFile[] {
  const run: TierFile[] = [];
  const fits = (more: readonly TierFile[]) => fitsRun([...run, ...more], policy);
  const take = (more: readonly TierFile[]) => {
    run.push(...more);
  };
  const [first, ...rest] = groups;
  for (const file of first) if (fits([file])) take([file]);
  if (run.length < first.length) return run;
  for (const group of rest) {
    if (!fits(group)) break;
    take(group);
  }
  return run;
}

const UNIT_SECONDS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800, y: 31_536_000 };
const WORDS: Record<string, string> = {
  second: 's',
  seconds: 's',
  sec: 's',
  secs: 's',
  minute: 'm',
  minutes: 'm',
  min: 'm',
  mins: 'm',
  hour: 'h',
  hours: 'h',
  day: 'd',
  days: 'd',
  week: 'w',
  weeks: 'w',
  year: 'y',
  years: 'y',
};

/** Seconds of a duration such as `90d`, `36 h`, `1 day` (a year is 365 days), or null when it is none. */
export function parseDuration(text: string): number | null {
  const match = /^\s*([0-9]{1,12})\s*([a-z]+)\s*$/i.exec(text);
  if (match === null) return null;
  const word = match[2].toLowerCase();
  const unit = UNIT_SECONDS[word] ?? UNIT_SECONDS[WORDS[word] ?? ''];
  return unit === undefined ? null : Number(match[1]) * unit;
}

/** Whole seconds in the largest exact unit of d, h, m, else s: the contract's normal form. */
export function formatDuration(seconds: number): string {
  for (const unit of ['d', 'h', 'm'] as const) {
    if (seconds > 0 && seconds % UNIT_SECONDS[unit] === 0) return `${seconds / UNIT_SECONDS[unit]}${unit}`;
  }
  return `${seconds}s`;
}

/** One difference between what a table says and what is so. */
export interface Finding {
  /** The demand's number and its word, e.g. `E9 file_size_in_bytes`. */
  demand: string;
  /** The object in which the fault lies. */
  key: string;
  expected: string;
  found: string;
}

/** Notes a finding. */
export type Report = (demand: string, key: string, expected: unknown, found: unknown) => void;

/** Text of any value in a finding: bigints as digits, bytes as hexadecimal, cut where it grows long. */
export function show(value: unknown): string {
  const text = wholeText(value);
  return text.length > 400 ? `${text.slice(0, 400)}…` : text;
}

/** As `show`, never cut: for comparisons. */
export function wholeText(value: unknown): string {
  if (value === undefined) return 'absent';
  if (typeof value === 'bigint') return value.toString();
  if (Object.is(value, -0)) return '-0';
  if (typeof value === 'string') return value;
  if (value instanceof Uint8Array) return `0x${Array.from(value, (b) => b.toString(16).padStart(2, '0')).join('')}`;
  if (value instanceof Map) return `{${[...value].map(([k, v]) => `${wholeText(k)}: ${wholeText(v)}`).join(', ')}}`;
  if (value instanceof Set) return `{${[...value].map(wholeText).join(', ')}}`;
  if (Array.isArray(value)) return `[${value.map(wholeText).join(', ')}]`;
  if (value !== null && typeof value === 'object')
    return `{${Object.entries(value)
      .map(([k, v]) => `${k}: ${wholeText(v)}`)
      .join(', ')}}`;
  return String(value);
}

/** A list that collects findings, and the function that adds to it. */
export function collector(): { findings: Finding[]; report: Report } {
  const findings: Finding[] = [];
  return {
    findings,
    report: (demand, key, expected, found) =>
      findings.push({ demand, key, expected: show(expected), found: show(found) }),
  };
}

/** One line a finding, for messages of failed tests. */
export function describeFindings(findings: readonly Finding[]): string {
  return findings.map((f) => `${f.demand}\n  at ${f.key}\n  expected ${f.expected}\n  found    ${f.found}`).join('\n');
}

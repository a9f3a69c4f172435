import { lineOf, type Source, scan } from '../../scripts/scan.ts';
import { importFinding } from './imports.ts';

export interface Finding {
  path: string;
  line: number;
  message: string;
}

interface Ban {
  /** Matched against code without comments and texts. Global. */
  pattern: RegExp;
  name: string;
  instead: string;
}

/** Under src/core: no waiting, no clock, no randomness, no platform, nothing that depends on where the machine stands. */
const CORE_BANS: readonly Ban[] = [
  {
    pattern: /(?<![.\w$])async\b/g,
    name: 'async',
    instead: 'compute; what has to be awaited is fetched by engine/ and passed in',
  },
  { pattern: /(?<![.\w$])await\b/g, name: 'await', instead: 'take the awaited value as an argument' },
  { pattern: /\bPromise\b/g, name: 'Promise', instead: 'return the value; waiting belongs to engine/' },
  { pattern: /\bDate\s*\.\s*now\b/g, name: 'Date.now', instead: 'take the time as an argument, as `nowMs: number`' },
  {
    pattern: /\bnew\s+Date\b(?!\s*\(\s*[^\s)])|(?<![.\w$]|new\s)Date\s*\(/g,
    name: 'new Date()',
    instead: 'take the time as an argument, as `nowMs: number`',
  },
  {
    pattern: /\bperformance\s*\./g,
    name: 'performance',
    instead: 'measure in bench/, or take the time as an argument',
  },
  {
    pattern: /\bMath\s*\.\s*random\b/g,
    name: 'Math.random',
    instead: 'take the random bytes or number as an argument',
  },
  {
    pattern: /(?<![.\w$])crypto\b/g,
    name: 'crypto',
    instead: 'take a `Digest` (core/base/codecs.ts) or random bytes as an argument',
  },
  {
    pattern: /(?<![.\w$])fetch\s*\(/g,
    name: 'fetch',
    instead: 'let engine/ read through the Store and pass the bytes in',
  },
  {
    pattern: /(?<![.\w$])(?:setTimeout|setInterval|queueMicrotask|setImmediate)\b/g,
    name: 'setTimeout',
    instead: 'return when it is due; object/schedule.ts keeps the alarm',
  },
  {
    pattern: /(?<![.\w$])process\s*\./g,
    name: 'process',
    instead: 'take the setting as an argument; src/settings.ts reads it',
  },
  { pattern: /(?<![.\w$])Buffer\b/g, name: 'Buffer', instead: 'use Uint8Array and core/base/bytes.ts' },
  { pattern: /(?<![.\w$])console\s*\./g, name: 'console', instead: 'return what there is to say' },
  {
    pattern: /\b(?:R2[A-Z]\w*|DurableObject\w*|ExecutionContext|SqlStorage)\b/g,
    name: 'a platform type',
    instead: 'name the shape that is needed, in core/',
  },
  {
    pattern:
      /\.(?:getHours|getDate|getDay|getMonth|getFullYear|getMinutes|getTimezoneOffset|setHours|setDate|setMonth|setFullYear)\s*\(/g,
    name: 'local time',
    instead: 'use the getUTC and setUTC forms: days begin at midnight UTC on every machine',
  },
  {
    pattern:
      /\.(?:localeCompare|toLocaleString|toLocaleDateString|toLocaleTimeString|toLocaleUpperCase|toLocaleLowerCase)\s*\(/g,
    name: 'the locale',
    instead: 'compare bytes with compareBytes (core/base/bytes.ts), or spell the text out',
  },
];

/** Anywhere under src. */
const SOURCE_BANS: readonly Ban[] = [
  {
    pattern: /(?<![\w$])eval\b(?!\s*:)/g,
    name: 'eval',
    instead: 'interpret: the platform refuses generated code at run time',
  },
  {
    pattern: /\bnew\s+Function\b|(?<![.\w$])Function\s*\(|\.constructor\s*\(/g,
    name: 'new Function',
    instead: 'build closures: the platform refuses generated code at run time',
  },
  { pattern: /(?<![.\w$])any\b(?!\s*[:(])/g, name: 'any', instead: 'use unknown and narrow it, or name the shape' },
];

/** Beyond this a file holds a second thing that wants a name of its own. */
export const LINES_MAX = 500;

/** Findings of one TypeScript file of the project. `longFiles` are the paths allowed to be long. */
export function checkFile(path: string, text: string, longFiles: ReadonlySet<string> = new Set()): Finding[] {
  const findings: Finding[] = [];
  const lines = text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
  if (lines > LINES_MAX && !longFiles.has(path)) {
    findings.push({
      path,
      line: LINES_MAX,
      message: `${lines} lines: look for the second noun in it and give that a file`,
    });
  }
  if (!path.startsWith('src/')) return findings;
  const source = scan(path, text);
  for (const ban of SOURCE_BANS) findings.push(...banned(source, ban));
  if (path.startsWith('src/core/')) for (const ban of CORE_BANS) findings.push(...banned(source, ban));
  for (const imported of source.imports) {
    const message = importFinding(source, imported);
    if (message !== null) findings.push({ path, line: lineOf(text, imported.offset), message });
  }
  findings.push(...slugFindings(source));
  return findings;
}

function banned(source: Source, ban: Ban): Finding[] {
  return [...source.code.matchAll(ban.pattern)].map((match) => ({
    path: source.path,
    line: lineOf(source.text, match.index),
    message: `${ban.name} is not used here: ${ban.instead}`,
  }));
}

const RAISERS = ['invalid', 'rejected', 'conflict', 'unavailable', 'unknown', 'corrupt'];

/** Slugs are part of the interface: clients match on them. `raise('kind')` itself is defined in errors.ts. */
function slugFindings(source: Source): Finding[] {
  if (source.path === 'src/core/base/errors.ts') return [];
  if (!source.imports.some((imported) => imported.specifier?.endsWith('/errors.ts') === true)) return [];
  const findings: Finding[] = [];
  const calls = [
    ...source.code.matchAll(new RegExp(`(?<![.\\w$])(?:${RAISERS.join('|')})\\(\\s*(?=['"\`])`, 'g')),
    ...source.code.matchAll(/\bnew\s+SluiceError\(\s*['"][^'"]*['"]\s*,\s*(?=['"`])/g),
  ];
  for (const call of calls) {
    const slug = source.strings.get(call.index + call[0].length) ?? null;
    if (slug !== null && /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(slug)) continue;
    const said = slug === null ? 'a template' : `'${slug}'`;
    findings.push({
      path: source.path,
      line: lineOf(source.text, call.index),
      message: `error type ${said} is not a fixed kebab-case slug: put what varies into the message and the detail`,
    });
  }
  return findings;
}

/** Paths of the machine that a file was written on. */
export function pathFindings(path: string, text: string): Finding[] {
  return [...text.matchAll(/(?<![\w.\-/])\/(?:work|root|tmp)\//g)].map((match) => ({
    path,
    line: lineOf(text, match.index),
    message: `path of one machine (${match[0]}): take a relative path, or the system's folder from node:os`,
  }));
}

export function format(findings: readonly Finding[]): string {
  return findings.map((finding) => `${finding.path}:${finding.line} ${finding.message}`).join('\n');
}

import { mask } from './scan.ts';

/**
 * What a bundle says about code generation.
 *
 * The platform refuses `eval` and `new Function` at run time, and a library may carry such a site although nothing we call
 * leads there. The bundler's own tree shaking cannot tell: it keeps what a statement run at load may refer to. So a graph is
 * drawn over the top-level declarations of the bundle, and a site is an error when the graph leads to it from our own code.
 *
 * The graph is drawn by names, and errs towards finding a path: a class refers to everything that any of its methods
 * mentions, and a local name is taken for the global one that is spelled alike. What it cannot see is a function stored
 * under a computed name and called through it. Two things therefore stand beside it: `test/e2e` runs the bundle where code
 * generation is refused, and `KNOWN_SITES` lists the sites by name, so that a new one is looked at by a person.
 */
export interface BundleReport {
  bytes: number;
  /** Bytes by package, or `src` for our own, largest first. */
  parts: { name: string; bytes: number }[];
  sites: Site[];
}

export interface Site {
  /** 1-based line in the bundle. */
  line: number;
  /** Path of the module as the bundler writes it. */
  module: string;
  /** The top-level declaration that holds it; empty for a statement. */
  declaration: string;
  text: string;
  /** From our code to the site, or null when there is no path. */
  path: string[] | null;
}

interface Chunk {
  module: string;
  own: boolean;
  from: number;
  to: number;
  names: string[];
  code: string;
  references: Set<string>;
  /** `A.b.c = …` at top level: part of what `A` is. With a lone name as the value, in use only where `c` is named. */
  assigned: { object: string; property: string | null } | null;
}

const SITE = /\bnew\s+Function\b|(?<![.\w$])Function\s*\(|(?<![\w$])eval\s*\(|\(\s*0\s*,\s*eval\s*\)/g;
const DECLARATION = /^(?:export\s+)?(?:async\s+)?(?:function\*?|class|var|let|const)\s+([\w$]+)/;
const ASSIGNMENT = /^([\w$]+)(?:\.[\w$]+|\[[^\]=]*\])+\s*=(?!=)/;
const REGISTRATION = /^[\w$]+(?:\.([\w$]+)|\[\s*["']([^"']*)["']\s*\])\s*=\s*[\w$]+;?\s*$/;
/** Written by the bundler about names and exports; they call nothing of ours. */
const BOOKKEEPING = /^(?:__name|__export|__publicField|__reExport|export\s*\{|import\b)/;

/** Reads a bundle of unminified ES modules as esbuild writes it: a comment with the path before each module. */
export function inspectBundle(text: string): BundleReport {
  const { code } = mask(text);
  const chunks = chunksOf(text, code);
  const paths = reach(chunks);
  const sites: Site[] = [];
  const lines = lineStarts(text);
  for (const chunk of chunks) {
    for (const match of chunk.code.matchAll(SITE)) {
      const offset = chunk.from + match.index;
      const line = lineAt(lines, offset);
      sites.push({
        line,
        module: chunk.module,
        declaration: chunk.names[0] ?? '',
        text: text.slice(lines[line - 1], lines[line] ?? text.length).trim(),
        path: paths.get(chunk) ?? null,
      });
    }
  }
  const bytes = new Map<string, number>();
  for (const chunk of chunks) {
    const name = partOf(chunk.module);
    bytes.set(name, (bytes.get(name) ?? 0) + Buffer.byteLength(text.slice(chunk.from, chunk.to)));
  }
  const parts = [...bytes].map(([name, size]) => ({ name, bytes: size })).sort((a, b) => b.bytes - a.bytes);
  return { bytes: Buffer.byteLength(text), parts, sites };
}

/** `apache-arrow` for node_modules/apache-arrow/table.mjs, `src` for our own, `runtime` for what the bundler adds. */
function partOf(module: string): string {
  const match = /(?:^|.*\/)node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(module);
  if (match !== null) return match[1];
  return isOwn(module) ? 'src' : 'runtime';
}

function isOwn(module: string): boolean {
  return (
    module !== '' && !module.includes('node_modules/') && /\.(?:ts|js|mjs|sql)$/.test(module) && !module.includes(':')
  );
}

/** Top-level statements: outside all brackets, a line that does not begin with a space or a closing bracket begins one. */
function chunksOf(text: string, code: string): Chunk[] {
  const chunks: Chunk[] = [];
  let module = '';
  let from = 0;
  const close = (to: number): void => {
    if (to > from) chunks.push(chunkOf(module, text, code, from, to));
    from = to;
  };
  let depth = 0;
  let at = 0;
  while (at < text.length) {
    const newline = text.indexOf('\n', at);
    const next = newline < 0 ? text.length : newline + 1;
    const marker = /^\/\/ ([\w@.][^\s]*\.[a-z]+|[\w-]+:[^\s]+)\s*$/.exec(text.slice(at, next).trimEnd());
    if (marker !== null) {
      close(at);
      module = marker[1];
      depth = 0;
    } else if (depth === 0 && /[\w$([!+-]/.test(code[at])) close(at);
    for (let i = at; i < next; i++) {
      const c = code[i];
      if (c === '{' || c === '(' || c === '[') depth += 1;
      else if (c === '}' || c === ')' || c === ']') depth -= 1;
    }
    at = next;
  }
  close(text.length);
  return chunks;
}

function chunkOf(module: string, text: string, code: string, from: number, to: number): Chunk {
  const masked = code.slice(from, to);
  const body = masked.trimStart();
  const declared = DECLARATION.exec(body);
  const statement = text.slice(from, to).trim();
  const assignment = ASSIGNMENT.exec(statement);
  const registered = REGISTRATION.exec(statement);
  const property = registered === null ? null : (registered[1] ?? registered[2]);
  return {
    module,
    own: isOwn(module),
    from,
    to,
    names: declared === null ? [] : [declared[1]],
    code: masked,
    references: BOOKKEEPING.test(body) ? new Set() : new Set(masked.match(/[A-Za-z_$][\w$]*/g) ?? []),
    assigned: assignment === null ? null : { object: assignment[1], property },
  };
}

/** For each chunk that our code can lead to: the names on a shortest way there. */
function reach(chunks: readonly Chunk[]): Map<Chunk, string[]> {
  const byName = new Map<string, Chunk[]>();
  for (const chunk of chunks) for (const name of chunk.names) byName.set(name, [...(byName.get(name) ?? []), chunk]);
  const paths = new Map<Chunk, string[]>();
  const queue: Chunk[] = [];
  const visit = (chunk: Chunk, path: string[]): void => {
    if (paths.has(chunk)) return;
    paths.set(chunk, path);
    queue.push(chunk);
  };
  const label = (chunk: Chunk): string => chunk.names[0] ?? `statement in ${chunk.module}`;
  for (const chunk of chunks) {
    // What a package runs at load has run before the first request, and may have handed a function on.
    const acts = chunk.names.length === 0 && (chunk.assigned === null || !byName.has(chunk.assigned.object));
    if (chunk.own || acts) visit(chunk, [label(chunk)]);
  }
  const spread = (): void => {
    for (let chunk = queue.shift(); chunk !== undefined; chunk = queue.shift()) {
      const path = paths.get(chunk)!;
      for (const name of chunk.references)
        for (const next of byName.get(name) ?? []) visit(next, [...path, label(next)]);
    }
  };
  spread();
  for (let grew = true; grew; ) {
    grew = false;
    for (const chunk of chunks) {
      if (chunk.assigned === null || paths.has(chunk)) continue;
      const { object, property } = chunk.assigned;
      const holder = byName.get(object)?.find((candidate) => paths.has(candidate));
      if (holder === undefined) continue;
      // The class itself may mention what is stored on it, as a placeholder; that is no use of it.
      const used = (reached: Chunk): boolean => reached !== holder && reached.references.has(property!);
      if (property !== null && ![...paths.keys()].some(used)) continue;
      visit(chunk, [...paths.get(holder)!, property === null ? 'a member' : property]);
      grew = true;
    }
    spread();
  }
  return paths;
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

function lineAt(starts: readonly number[], offset: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle] <= offset) low = middle;
    else high = middle - 1;
  }
  return low + 1;
}

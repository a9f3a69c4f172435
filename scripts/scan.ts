/**
 * Reads TypeScript well enough to tell code from comments, strings and patterns, and to find what a file imports. It is no
 * parser: it has no notion of a statement. A rule that matches `code` cannot be set off by a word in a comment or a text.
 */
export interface Source {
  /** From the root of the project, with slashes. */
  path: string;
  text: string;
  /** The text, as long as before, with the inside of comments, strings, templates and patterns blanked. */
  code: string;
  /** What the string literal that begins at this offset says, without quotes. */
  strings: Map<number, string>;
  imports: Import[];
}

export interface Import {
  offset: number;
  /** Null when it is not a literal. */
  specifier: string | null;
  /** `import type` and `export type`: gone before the program runs. */
  typeOnly: boolean;
}

export function scan(path: string, text: string): Source {
  const { code, strings } = mask(text);
  return { path, text, code, strings, imports: findImports(code, strings) };
}

/** 1-based line of an offset. */
export function lineOf(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf('\n'); at >= 0 && at < offset; at = text.indexOf('\n', at + 1)) line += 1;
  return line;
}

/** A slash after one of these begins a pattern; after anything else it divides. */
const PATTERN_AFTER =
  /(?:^|[(,=:[!&|?{;+\-*%^~<>]|=>|\b(?:return|typeof|case|in|of|new|delete|void|throw|else|yield|await))$/;

/** The code without the inside of comments, strings, templates and patterns, and the strings by offset. */
export function mask(text: string): { code: string; strings: Map<number, string> } {
  const out = text.split('');
  const strings = new Map<number, string>();
  /** For each template that is open: how many braces are open inside its current expression. */
  const templates: number[] = [];
  const blank = (from: number, to: number): void => {
    for (let i = from; i < to; i++) if (out[i] !== '\n') out[i] = ' ';
  };
  let at = 0;

  /** From behind the backtick or the closing brace of an expression to the next expression or the end. */
  const template = (): void => {
    const from = at;
    while (at < text.length) {
      if (text[at] === '\\') at += 2;
      else if (text[at] === '`') {
        blank(from, at);
        at += 1;
        return;
      } else if (text.startsWith('${', at)) {
        blank(from, at);
        at += 2;
        templates.push(0);
        return;
      } else at += 1;
    }
    blank(from, text.length);
  };

  while (at < text.length) {
    const c = text[at];
    if (text.startsWith('//', at)) {
      const end = endOr(text.indexOf('\n', at), text.length);
      blank(at, end);
      at = end;
    } else if (text.startsWith('/*', at)) {
      const end = endOr(text.indexOf('*/', at + 2), text.length - 2) + 2;
      blank(at, end);
      at = end;
    } else if (c === "'" || c === '"') {
      const from = at;
      at += 1;
      while (at < text.length && text[at] !== c && text[at] !== '\n') at += text[at] === '\\' ? 2 : 1;
      strings.set(from, text.slice(from + 1, at));
      blank(from + 1, at);
      at += 1;
    } else if (c === '`') {
      at += 1;
      template();
    } else if (c === '{' && templates.length > 0) {
      templates[templates.length - 1] += 1;
      at += 1;
    } else if (c === '}' && templates.length > 0) {
      at += 1;
      if (templates[templates.length - 1] === 0) {
        templates.pop();
        template();
      } else templates[templates.length - 1] -= 1;
    } else if (
      c === '/' &&
      PATTERN_AFTER.test(
        out
          .slice(Math.max(0, at - 200), at)
          .join('')
          .trimEnd(),
      )
    ) {
      const from = at;
      at += 1;
      let inClass = false;
      while (at < text.length && text[at] !== '\n' && (inClass || text[at] !== '/')) {
        if (text[at] === '[') inClass = true;
        else if (text[at] === ']') inClass = false;
        at += text[at] === '\\' ? 2 : 1;
      }
      blank(from + 1, Math.min(at, text.length));
      at += 1;
    } else at += 1;
  }
  return { code: out.join(''), strings };
}

function endOr(found: number, otherwise: number): number {
  return found < 0 ? otherwise : found;
}

function findImports(code: string, strings: Map<number, string>): Import[] {
  const found: Import[] = [];
  const add = (match: RegExpExecArray, typeOnly: boolean): void => {
    const quote = match.index + match[0].length - 1;
    found.push({ offset: match.index, specifier: strings.get(quote) ?? null, typeOnly });
  };
  for (const match of code.matchAll(/\b(?:import|export)\s+(type\b\s*)?[\w$\s{},*]*?\bfrom\s*['"]/g)) {
    add(match, match[1] !== undefined);
  }
  for (const match of code.matchAll(/\bimport\s*['"]/g)) add(match, false);
  for (const match of code.matchAll(/(?<![.\w$])(?:import|require)\s*\(\s*(?:['"]|[^\s'"])/g)) add(match, false);
  return found;
}

/** Rows for people: columns under each other, numbers to the right. */

/** Characters of a cell; the rest of a longer one is left out. */
const CELL_CHARS_MAX = 60;

/** Values as JSON has them, by the names of their columns. */
export function tableText(names: readonly string[], rows: readonly Readonly<Record<string, unknown>>[]): string {
  const columns = names.map((name) => {
    const values = rows.map((row) => row[name] ?? null);
    const cells = [cut(printable(name)), ...values.map(cellText)];
    const width = Math.max(...cells.map(lengthOf));
    return { cells, width, isNumeric: values.some((value) => value !== null) && values.every(isNumeric) };
  });
  const lines = Array.from({ length: rows.length + 1 }, (_, line) =>
    columns
      .map(({ cells, width, isNumeric: isRight }) => {
        const space = ' '.repeat(width - lengthOf(cells[line]));
        return isRight ? space + cells[line] : cells[line] + space;
      })
      .join('  ')
      .trimEnd(),
  );
  return lines.join('\n');
}

function isNumeric(value: unknown): boolean {
  return (
    value === null ||
    typeof value === 'number' ||
    (typeof value === 'string' && /^-?[0-9][0-9,]*(\.[0-9]+)?$/.test(value))
  );
}

function cellText(value: unknown): string {
  if (typeof value === 'string') return cut(printable(value));
  return cut(Object.is(value, -0) ? '-0' : printable(JSON.stringify(value)));
}

/** What would move the cursor or change the terminal is spelled out. */
function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (found) => {
    const code = found.codePointAt(0) ?? 0;
    const known = { 9: '\\t', 10: '\\n', 13: '\\r' }[code];
    return known ?? `\\u{${code.toString(16)}}`;
  });
}

function cut(text: string): string {
  const points = Array.from(text);
  return points.length <= CELL_CHARS_MAX ? text : `${points.slice(0, CELL_CHARS_MAX - 1).join('')}…`;
}

function lengthOf(text: string): number {
  return Array.from(text).length;
}

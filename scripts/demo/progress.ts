/** Lines for people: a bar that redraws itself on a terminal, a plain line every two seconds elsewhere. */

export interface Terminal {
  isTTY?: boolean;
  columns?: number;
  write(text: string): unknown;
}

const PLAIN_INTERVAL_MS = 2_000;
const REDRAW_INTERVAL_MS = 100;
const BAR_WIDTH = 24;

export class Progress {
  readonly #terminal: Terminal;
  readonly #now: () => number;
  #shownMs: number;
  #drawn = false;

  constructor(terminal: Terminal = process.stdout, now: () => number = () => performance.now()) {
    this.#terminal = terminal;
    this.#now = now;
    this.#shownMs = now();
  }

  /** Shows where things stand, if it is time to. `share` is from 0 to 1; null: nobody knows how long it takes. */
  show(label: string, share: number | null, facts: readonly string[]): void {
    const nowMs = this.#now();
    const isTerminal = this.#terminal.isTTY === true;
    if (nowMs - this.#shownMs < (isTerminal ? REDRAW_INTERVAL_MS : PLAIN_INTERVAL_MS)) return;
    this.#shownMs = nowMs;
    const percent = share === null ? '' : `${String(Math.floor(share * 100)).padStart(3)}%`;
    const parts = [label.padEnd(11), ...(isTerminal && share !== null ? [bar(share)] : []), percent, ...facts];
    const line = `  ${parts.filter((part) => part !== '').join('  ')}`;
    if (isTerminal) this.#terminal.write(`\r\x1b[2K${line.slice(0, (this.#terminal.columns ?? 80) - 1)}`);
    else this.#terminal.write(`${line}\n`);
    this.#drawn = isTerminal;
  }

  /** Ends the bar with a line that stays. */
  say(line: string): void {
    this.#terminal.write(`${this.#drawn ? '\r\x1b[2K' : ''}${line}\n`);
    this.#drawn = false;
    this.#shownMs = this.#now();
  }

  /** Shows that something is under way until it is done. */
  async during<T>(label: string, work: Promise<T>): Promise<T> {
    const startMs = this.#now();
    const tick = setInterval(() => this.show(label, null, [seconds(this.#now() - startMs)]), REDRAW_INTERVAL_MS);
    try {
      return await work;
    } finally {
      clearInterval(tick);
    }
  }
}

function bar(share: number): string {
  const full = Math.round(Math.min(1, share) * BAR_WIDTH);
  return `[${'#'.repeat(full)}${'.'.repeat(BAR_WIDTH - full)}]`;
}

/** 1234567 as 1,234,567. */
export function count(value: number | bigint): string {
  return value.toLocaleString('en-US');
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

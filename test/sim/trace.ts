/**
 * What happened, in order: a digest of all of it, and its last lines for whoever wants to read them. Two runs of one
 * seed must have one digest.
 */
export class Trace {
  readonly #linesMax: number;
  #lines: string[] = [];
  #a = 0x811c9dc5;
  #b = 0x9747b28c;
  #count = 0;

  /** Keeps at most about `linesMax` lines; all of them with `Infinity`. */
  constructor(linesMax = 0) {
    this.#linesMax = linesMax;
  }

  note(nowMs: number, text: string): void {
    this.#count++;
    this.#feed(nowMs);
    for (let i = 0; i < text.length; i++) this.#feed(text.charCodeAt(i));
    if (this.#linesMax === 0) return;
    this.#lines.push(`${String(nowMs).padStart(8)} ${text}`);
    if (this.#lines.length > 2 * this.#linesMax) this.#lines = this.#lines.slice(-this.#linesMax);
  }

  get count(): number {
    return this.#count;
  }

  get digest(): string {
    const part = (x: number): string => (x >>> 0).toString(16).padStart(8, '0');
    return `${part(this.#a)}${part(this.#b)}-${this.#count}`;
  }

  get lines(): readonly string[] {
    return this.#lines;
  }

  #feed(value: number): void {
    this.#a = Math.imul(this.#a ^ value, 0x01000193);
    this.#b = Math.imul(this.#b + value, 0x85ebca6b) ^ (this.#b >>> 15);
  }
}

/** Numbers distinct pairs of int32 0, 1, 2, ... in order of first appearance, up to a limit: an open hash table. */
export class PairInterner {
  size = 0;
  private readonly entriesMax: number;
  private readonly firsts: Int32Array;
  private readonly seconds: Int32Array;
  /** Entry + 1; 0 is free. At most half full. */
  private readonly table: Int32Array;
  private last = -1;

  constructor(entriesMax: number) {
    this.entriesMax = entriesMax;
    this.firsts = new Int32Array(entriesMax);
    this.seconds = new Int32Array(entriesMax);
    this.table = new Int32Array(2 ** Math.ceil(Math.log2(2 * entriesMax + 2)));
  }

  /** Number of the pair; -1 when it is new and the interner is full. */
  intern(first: number, second: number): number {
    // Neighbours are often alike.
    if (this.last >= 0 && this.firsts[this.last] === first && this.seconds[this.last] === second) return this.last;
    const mask = this.table.length - 1;
    let slot = hashOf(first, second) & mask;
    for (; this.table[slot] !== 0; slot = (slot + 1) & mask) {
      const found = this.table[slot] - 1;
      if (this.firsts[found] === first && this.seconds[found] === second) {
        this.last = found;
        return found;
      }
    }
    if (this.size === this.entriesMax) return -1;
    this.firsts[this.size] = first;
    this.seconds[this.size] = second;
    this.last = this.size++;
    this.table[slot] = this.size;
    return this.last;
  }
}

function hashOf(first: number, second: number): number {
  let hash = Math.imul(first, 0x9e3779b1) ^ Math.imul(second, 0x85ebca77 | 0);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return hash ^ (hash >>> 13);
}

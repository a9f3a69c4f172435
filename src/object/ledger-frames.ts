import { concat, utf8 } from '../core/base/bytes.ts';
import { GROUP_BYTES_MAX, ROW_BLOB_BYTES_MAX } from '../core/base/limits.ts';
import type { Frame, NewFrame } from '../core/batch/frame.ts';
import type { Proposal } from '../core/iceberg/proposal.ts';
import type { BufferState } from '../engine/ports.ts';
import { type FrameHeader, parseHeaders, serializeHeader, serializeHeaders } from './frame-header.ts';

/** One group as remembered in memory: headers, not bodies. */
export interface Group {
  position: number;
  parts: number;
  acceptedMs: number;
  frames: FrameHeader[];
}

/** What a removal leaves of the groups: nothing of some, the end of at most one. */
export interface Removal {
  kept: Group[];
  /** Groups up to here leave the table. */
  below: number;
  rest: { group: Group; body: Uint8Array } | null;
}

/**
 * The buffered frames: rows of groups, headers mirrored in memory. Writing and remembering are apart: what a transaction
 * wrote is remembered once it went through.
 */
export class LedgerFrames {
  readonly #sql: SqlStorage;
  #groups: Group[] = [];
  #totals = { frames: 0, rows: 0, bytes: 0 };
  /** By its JSON: batches mostly ask for the same, and there may be tens of thousands of them. */
  #proposals = new Map<string, Proposal>();

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    const rows = sql.exec<GroupRow>('SELECT position, part, accepted_ms, frames FROM frame_groups ORDER BY position');
    for (const { position, part, accepted_ms, frames } of rows) {
      if (part > 0) this.#groups[this.#groups.length - 1].parts++;
      else
        this.#groups.push({ position, parts: 1, acceptedMs: accepted_ms, frames: this.#shared(parseHeaders(frames)) });
    }
    this.#count();
  }

  get buffer(): BufferState {
    return { ...this.#totals, oldestMs: this.#groups[0]?.acceptedMs ?? null };
  }

  /** What frames ask of the table's schema: each once, in the order in which it was asked for first. */
  get proposals(): Proposal[] {
    return [...this.#proposals.values()];
  }

  /** Oldest and newest sequence; null while there are no frames. */
  get range(): { first: number; last: number } | null {
    const last = this.#groups[this.#groups.length - 1];
    if (last === undefined) return null;
    return { first: this.#groups[0].frames[0].sequence, last: last.frames[last.frames.length - 1].sequence };
  }

  *headers(): Generator<FrameHeader> {
    for (const group of this.#groups) yield* group.frames;
  }

  /** Frames of a range, in order. */
  read(first: number, last: number): Frame[] {
    const frames: Frame[] = [];
    for (const group of this.#groups) {
      const from = group.frames[0].sequence;
      const to = group.frames[group.frames.length - 1].sequence;
      if (to < first || from > last) continue;
      const body = this.#body(group);
      let at = 0;
      for (const { bytes, ...header } of group.frames) {
        if (header.sequence >= first && header.sequence <= last) {
          frames.push({ ...header, body: body.subarray(at, at + bytes) });
        }
        at += bytes;
      }
    }
    return frames;
  }

  /** Writes frames, numbered from `first`: as one group, or as several where their headers do not fit one row. */
  insert(frames: readonly NewFrame[], first: number, nowMs: number): Group[] {
    const written: Group[] = [];
    let last = this.#groups[this.#groups.length - 1];
    for (const { headers, bodies } of inGroups(frames, first)) {
      const position = last === undefined ? 1 : last.position + last.parts;
      const body = bodies.length === 1 ? bodies[0] : concat(bodies);
      last = this.#write({ position, parts: 0, acceptedMs: nowMs, frames: headers }, body);
      written.push(last);
    }
    return written;
  }

  remember(groups: readonly Group[]): void {
    for (const group of groups) {
      this.#groups.push({ ...group, frames: this.#shared(group.frames) });
      for (const header of group.frames) this.#add(header);
    }
  }

  /** What goes and what stays when every frame up to `last` leaves. Reads the body of a group that is cut in two. */
  removal(last: number): Removal {
    const removal: Removal = { kept: [], below: 0, rest: null };
    for (const group of this.#groups) {
      const keep = group.frames.filter((frame) => frame.sequence > last);
      if (keep.length === group.frames.length) {
        removal.kept.push(group);
        continue;
      }
      removal.below = group.position + group.parts;
      if (keep.length === 0) continue;
      const body = this.#body(group);
      const bytes = keep.reduce((sum, frame) => sum + frame.bytes, 0);
      removal.rest = { group: { ...group, frames: keep }, body: body.subarray(body.length - bytes) };
    }
    return removal;
  }

  /** Groups leave from the oldest on, so one range delete does it; the rest of a cut group is written again. */
  remove({ below, rest }: Removal): Group | null {
    this.#sql.exec('DELETE FROM frame_groups WHERE position < ?', below);
    return rest === null ? null : this.#write(rest.group, rest.body);
  }

  forget({ kept }: Removal, rest: Group | null): void {
    this.#proposals.clear();
    const groups = rest === null ? kept : [rest, ...kept];
    this.#groups = groups.map((group) => ({ ...group, frames: this.#shared(group.frames) }));
    this.#count();
  }

  #write(group: Group, body: Uint8Array): Group {
    const parts = Math.max(1, Math.ceil(body.length / ROW_BLOB_BYTES_MAX));
    for (let part = 0; part < parts; part++) {
      this.#sql.exec(
        'INSERT INTO frame_groups (position, part, accepted_ms, frames, body) VALUES (?, ?, ?, ?, ?)',
        group.position + part,
        part,
        group.acceptedMs,
        part === 0 ? serializeHeaders(group.frames) : '',
        body.subarray(part * ROW_BLOB_BYTES_MAX, (part + 1) * ROW_BLOB_BYTES_MAX),
      );
    }
    return { ...group, parts };
  }

  #body({ position, parts }: Group): Uint8Array {
    const rows = this.#sql
      .exec<{ body: ArrayBuffer }>(
        'SELECT body FROM frame_groups WHERE position >= ? AND position < ? ORDER BY position',
        position,
        position + parts,
      )
      .toArray();
    return rows.length === 1 ? new Uint8Array(rows[0].body) : concat(rows.map((row) => new Uint8Array(row.body)));
  }

  #shared(frames: FrameHeader[]): FrameHeader[] {
    return frames.map((header) => {
      if (header.proposal === undefined) return header;
      const text = JSON.stringify(header.proposal);
      const proposal = this.#proposals.get(text) ?? header.proposal;
      this.#proposals.set(text, proposal);
      return { ...header, proposal };
    });
  }

  #count(): void {
    this.#totals = { frames: 0, rows: 0, bytes: 0 };
    for (const header of this.headers()) this.#add(header);
  }

  #add(header: FrameHeader): void {
    this.#totals.frames++;
    this.#totals.rows += header.rows;
    this.#totals.bytes += header.bytes;
  }
}

/** Frames by groups: as many together as their headers, and what is read of their bodies at a time, allow. */
function* inGroups(
  frames: readonly NewFrame[],
  first: number,
): Generator<{ headers: FrameHeader[]; bodies: Uint8Array[] }> {
  let headers: FrameHeader[] = [];
  let bodies: Uint8Array[] = [];
  let headerBytes = 0;
  let bodyBytes = 0;
  for (const [index, { body, ...given }] of frames.entries()) {
    const header = { ...given, sequence: first + index, bytes: body.length };
    const own = utf8(serializeHeader(header)).length + 2;
    const fits = headerBytes + own <= ROW_BLOB_BYTES_MAX && bodyBytes < GROUP_BYTES_MAX;
    if (headers.length > 0 && !fits) {
      yield { headers, bodies };
      [headers, bodies, headerBytes, bodyBytes] = [[], [], 0, 0];
    }
    headers.push(header);
    bodies.push(body);
    headerBytes += own;
    bodyBytes += body.length;
  }
  yield { headers, bodies };
}

type GroupRow = { position: number; part: number; accepted_ms: number; frames: string };

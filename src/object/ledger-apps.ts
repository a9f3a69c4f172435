import { concat } from '../core/base/bytes.ts';
import { EPOCH_WINDOW, ROW_BLOB_BYTES_MAX } from '../core/base/limits.ts';
import type { Frame } from '../core/batch/frame.ts';
import type { AppState, ErrorRecord, ParkedState, RecentEpoch } from '../engine/ports.ts';
import { type FrameHeader, parseHeader, serializeHeader } from './frame-header.ts';

interface App {
  recent: RecentEpoch[];
  parked: ({ epoch: bigint } & ErrorRecord) | null;
  retiring: boolean;
}

interface Parked {
  position: number;
  parts: number;
  header: FrameHeader;
}

const UNKNOWN: App = { recent: [], parked: null, retiring: false };

/**
 * The producers' part of the ledger: recent epochs of each app and the batches of parked ones. Every method runs inside the
 * caller's transaction; memory is loaded anew when that fails.
 */
export class LedgerApps {
  readonly #sql: SqlStorage;
  #apps = new Map<string, App>();
  #parked: Parked[] = [];

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.load();
  }

  load(): void {
    this.#apps = new Map();
    for (const row of this.#sql.exec<AppRow>('SELECT app, recent, parked, retiring FROM apps')) {
      const parked = row.parked === null ? null : JSON.parse(row.parked);
      this.#apps.set(row.app, {
        recent: (JSON.parse(row.recent) as [string, string, number][]).map(([epoch, digest, sequence]) => ({
          epoch: BigInt(epoch),
          digest,
          sequence,
        })),
        parked: parked === null ? null : { ...parked, epoch: BigInt(parked.epoch) },
        retiring: row.retiring === 1,
      });
    }
    this.#parked = [];
    const rows = this.#sql.exec<ParkedRow>('SELECT position, part, frame FROM parked_frames ORDER BY position');
    for (const row of rows) {
      const last = this.#parked[this.#parked.length - 1];
      if (row.part > 0) last.parts++;
      else this.#parked.push({ position: row.position, parts: 1, header: parseHeader(row.frame) });
    }
  }

  /** The app without what the buffer knows of it. */
  state(app: string): Omit<AppState, 'waiting'> {
    const { recent, parked, retiring } = this.#apps.get(app) ?? UNKNOWN;
    const held = this.#of(app);
    const bytes = held.reduce((sum, { header }) => sum + header.bytes, 0);
    const state: ParkedState | null =
      parked === null
        ? null
        : { ...parked, sequence: held[0]?.header.sequence ?? 0, behind: Math.max(0, held.length - 1) };
    return { recent, parked: state, retiring, bytes };
  }

  names(): string[] {
    return [...this.#apps.keys()];
  }

  held(): string[] {
    return [...this.#apps].filter(([, app]) => app.parked !== null || app.retiring).map(([name]) => name);
  }

  /** Remembers the epochs of accepted frames, newest first: one row an app. */
  accepted(headers: readonly FrameHeader[]): void {
    const touched = new Set<string>();
    for (const { producer, digest, sequence } of headers) {
      if (producer === null) continue;
      const app = this.#apps.get(producer.app) ?? UNKNOWN;
      const others = app.recent.filter(({ epoch }) => epoch !== producer.epoch);
      const recent = [{ epoch: producer.epoch, digest, sequence }, ...others].slice(0, EPOCH_WINDOW);
      this.#apps.set(producer.app, { ...app, recent });
      touched.add(producer.app);
    }
    for (const app of touched) this.#write(app);
  }

  /** Keeps a frame out of the buffer; the first of an app is the one that was refused. */
  park(frame: Frame, error: ErrorRecord): void {
    const { body, ...rest } = frame;
    if (frame.producer === null) return;
    const { app: name, epoch } = frame.producer;
    const header = { ...rest, bytes: body.length };
    const last = this.#parked[this.#parked.length - 1];
    const position = last === undefined ? 1 : last.position + last.parts;
    const parts = Math.max(1, Math.ceil(body.length / ROW_BLOB_BYTES_MAX));
    for (let part = 0; part < parts; part++) {
      this.#sql.exec(
        'INSERT INTO parked_frames (position, part, frame, body) VALUES (?, ?, ?, ?)',
        position + part,
        part,
        part === 0 ? serializeHeader(header) : '',
        body.subarray(part * ROW_BLOB_BYTES_MAX, (part + 1) * ROW_BLOB_BYTES_MAX),
      );
    }
    this.#parked.push({ position, parts, header });
    const app = this.#apps.get(name) ?? UNKNOWN;
    if (app.parked !== null) return;
    this.#apps.set(name, { ...app, parked: { epoch, ...error } });
    this.#write(name);
  }

  /** Takes all frames of a parked app out, in order, and lets it go on. */
  unpark(name: string): Frame[] {
    const frames = this.#of(name).map(({ position, parts, header }): Frame => {
      const rows = this.#sql
        .exec<{ body: ArrayBuffer }>(
          'SELECT body FROM parked_frames WHERE position >= ? AND position < ? ORDER BY position',
          position,
          position + parts,
        )
        .toArray();
      this.#sql.exec('DELETE FROM parked_frames WHERE position >= ? AND position < ?', position, position + parts);
      const { bytes: _, ...rest } = header;
      return { ...rest, body: concat(rows.map((row) => new Uint8Array(row.body))) };
    });
    this.#parked = this.#parked.filter(({ header }) => header.producer?.app !== name);
    const app = this.#apps.get(name);
    if (app !== undefined) {
      this.#apps.set(name, { ...app, parked: null });
      this.#write(name);
    }
    return frames;
  }

  /** Forgets all apps and their parked frames; returns the frames' headers. */
  clear(): FrameHeader[] {
    const headers = this.#parked.map(({ header }) => header);
    if (this.#apps.size > 0) this.#sql.exec('DELETE FROM apps');
    if (headers.length > 0) this.#sql.exec('DELETE FROM parked_frames');
    this.#apps = new Map();
    this.#parked = [];
    return headers;
  }

  retire(name: string, retiring: boolean): void {
    this.#apps.set(name, { ...(this.#apps.get(name) ?? UNKNOWN), retiring });
    this.#write(name);
  }

  /** Forgets apps that left with a commit. */
  left(names: readonly string[]): void {
    for (const name of names) {
      this.#apps.delete(name);
      this.#sql.exec('DELETE FROM apps WHERE app = ?', name);
    }
  }

  #of(app: string): Parked[] {
    return this.#parked.filter(({ header }) => header.producer?.app === app);
  }

  #write(name: string): void {
    const { recent, parked, retiring } = this.#apps.get(name) ?? UNKNOWN;
    this.#sql.exec(
      'INSERT OR REPLACE INTO apps (app, recent, parked, retiring) VALUES (?, ?, ?, ?)',
      name,
      JSON.stringify(recent.map(({ epoch, digest, sequence }) => [epoch.toString(), digest, sequence])),
      parked === null ? null : JSON.stringify({ ...parked, epoch: parked.epoch.toString() }),
      retiring ? 1 : 0,
    );
  }
}

type AppRow = { app: string; recent: string; parked: string | null; retiring: number };
type ParkedRow = { position: number; part: number; frame: string };

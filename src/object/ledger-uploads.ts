import type { OpenUpload } from '../engine/ports.ts';

/** Uploads in parts that were begun and not ended: few at a time, hence mirrored whole. Each change is one row. */
export class LedgerUploads {
  readonly #sql: SqlStorage;
  #open: OpenUpload[];

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.#open = sql
      .exec<UploadRow>('SELECT upload_id, key, begun_ms FROM uploads ORDER BY begun_ms, upload_id')
      .toArray()
      .map(({ upload_id, key, begun_ms }) => ({ uploadId: upload_id, key, begunMs: begun_ms }));
  }

  get state(): { open: number; oldestMs: number | null } {
    return { open: this.#open.length, oldestMs: this.#open[0]?.begunMs ?? null };
  }

  began({ uploadId, key, begunMs }: OpenUpload): void {
    this.#sql.exec(
      'INSERT OR REPLACE INTO uploads (upload_id, key, begun_ms) VALUES (?, ?, ?)',
      uploadId,
      key,
      begunMs,
    );
    this.#open = [...this.#open.filter((other) => other.uploadId !== uploadId), { uploadId, key, begunMs }];
    this.#open.sort((a, b) => a.begunMs - b.begunMs);
  }

  ended(uploadId: string): void {
    if (!this.#open.some((upload) => upload.uploadId === uploadId)) return;
    this.#sql.exec('DELETE FROM uploads WHERE upload_id = ?', uploadId);
    this.#open = this.#open.filter((upload) => upload.uploadId !== uploadId);
  }

  before(beforeMs: number, most: number): OpenUpload[] {
    return this.#open.filter(({ begunMs }) => begunMs <= beforeMs).slice(0, most);
  }
}

type UploadRow = { upload_id: string; key: string; begun_ms: number };

import type { StatusView, TableView } from '../../../src/object/views.ts';

/** A request to a running service by path. */
export type Send = (path: string, init?: RequestInit) => Promise<Response>;

/** An answer that was not the expected one. */
export class UnexpectedAnswer extends Error {
  readonly status: number;
  readonly body: string;

  constructor(request: string, status: number, body: string) {
    super(`${request}: ${status} ${body.slice(0, 500)}`);
    this.status = status;
    this.body = body;
  }
}

/** A definition as the interface takes it (`PUT /v1/tables/{ns}/{table}`). */
export interface DefinitionBody {
  schema: { type: 'struct'; fields: { name: string; type: string; required?: boolean }[] };
  time_column?: string | null;
  series_key?: string[];
  chunk?: 'hour' | 'day' | 'month' | null;
  dedup?: boolean | null;
  properties?: Record<string, string>;
}

export interface AcceptedBody {
  receipt: string;
  state: 'buffered' | 'committed';
  rows: number;
  duplicate?: boolean;
  version?: number;
  snapshot_id?: string | null;
}

export interface FlushedBody {
  flushed: boolean;
  version: number;
  snapshot: TableView['snapshot'];
  status: StatusView;
}

/** Calls on one table over HTTP; whatever is not a success is thrown as `UnexpectedAnswer`. */
export class TableClient {
  readonly path: string;
  readonly #send: Send;

  constructor(send: Send, namespace: string, table: string) {
    this.#send = send;
    this.path = `/v1/tables/${namespace}/${table}`;
  }

  create(definition: DefinitionBody): Promise<TableView & { created: boolean }> {
    return this.#json('PUT', '', { 'content-type': 'application/json' }, JSON.stringify(definition));
  }

  describe(): Promise<TableView & { status: StatusView }> {
    return this.#json('GET', '');
  }

  flush(): Promise<FlushedBody> {
    return this.#json('POST', '/flush');
  }

  /** Posts rows as NDJSON. `batchId` goes as Idempotency-Key, `waitSeconds` as Prefer. */
  post(rows: readonly object[], options: { batchId?: string; waitSeconds?: number } = {}): Promise<AcceptedBody> {
    const headers: Record<string, string> = { 'content-type': 'application/x-ndjson' };
    if (options.batchId !== undefined) headers['idempotency-key'] = options.batchId;
    if (options.waitSeconds !== undefined) headers['prefer'] = `wait=${options.waitSeconds}`;
    return this.#json('POST', '/rows', headers, rows.map((row) => JSON.stringify(row)).join('\n'));
  }

  async #json<T>(method: string, path: string, headers: Record<string, string> = {}, body?: string): Promise<T> {
    const response = await this.#send(this.path + path, { method, headers, ...(body === undefined ? {} : { body }) });
    const text = await response.text();
    if (!response.ok) throw new UnexpectedAnswer(`${method} ${this.path}${path}`, response.status, text);
    return JSON.parse(text) as T;
  }
}

import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

/** The service over HTTP, as any program would use it. */

/** Tries at one request; with the waits below, some two minutes. */
const TRIES_MAX = 30;
const WAIT_DEFAULT_MS = 1_000;
const WAIT_MAX_MS = 10_000;
const TIMEOUT_MS = 120_000;

export interface Batch {
  /** `Idempotency-Key`: the batch is taken once, however often it is sent. */
  key: string;
  rows: number;
  body: Uint8Array<ArrayBuffer>;
}

export interface Sent {
  status: number;
  receipt: string;
  rows: number;
  /** Tries beyond the first. */
  retries: number;
}

export interface TableState {
  version: number;
  buffer: { batches: number; rows: number };
  /** A flush is under way. */
  flushing: boolean;
  /** Readers that go by the version hint see the newest version. */
  pointed: boolean;
  snapshots: number;
  lastError: { type: string; message: string } | null;
}

export interface Receipt {
  state: 'buffered' | 'committed' | 'refused';
  snapshot_id?: string | null;
  message?: string;
}

const compress = promisify(gzip);

/** Lines as the compressed body of one request. The fastest level: the net is this machine. */
export async function batchOf(key: string, lines: readonly string[]): Promise<Batch> {
  return { key, rows: lines.length, body: new Uint8Array(await compress(`${lines.join('\n')}\n`, { level: 1 })) };
}

/** One table of the service. Methods throw an Error that says what the service answered. */
export class TableClient {
  readonly #url: string;
  readonly #fetch: typeof fetch;
  readonly #sleep: (ms: number) => Promise<unknown>;

  constructor(url: string, ports: { fetch?: typeof fetch; sleep?: (ms: number) => Promise<unknown> } = {}) {
    this.#url = url;
    this.#fetch = ports.fetch ?? fetch;
    this.#sleep = ports.sleep ?? sleep;
  }

  async create(definition: object): Promise<void> {
    await this.#ask('PUT', '', { 'content-type': 'application/json' }, JSON.stringify(definition));
  }

  /** Sends a batch until the service has it: again under the same key when the answer was lost or was "later". */
  async send(batch: Batch): Promise<Sent> {
    const headers = {
      'content-type': 'application/x-ndjson',
      'content-encoding': 'gzip',
      'idempotency-key': batch.key,
    };
    const { status, json, retries } = await this.#ask('POST', '/rows', headers, batch.body);
    const { receipt, rows } = json as { receipt: string; rows: number };
    if (rows !== batch.rows) throw new Error(`service counted ${rows} of ${batch.rows} rows in batch ${batch.key}`);
    return { status, receipt, rows, retries };
  }

  async flush(): Promise<void> {
    await this.#ask('POST', '/flush');
  }

  async receipt(id: string): Promise<Receipt> {
    return (await this.#ask('GET', `/receipts/${id}`)).json as Receipt;
  }

  async state(): Promise<TableState> {
    const { version, status } = (await this.#ask('GET', '')).json as {
      version: number;
      status: {
        buffer: TableState['buffer'];
        intent: object | null;
        last_error: TableState['lastError'];
        hinted_version: number;
      };
    };
    // The first version is the empty table; each later one is a flush.
    const { buffer, intent, last_error: lastError, hinted_version: hinted } = status;
    return {
      version,
      buffer,
      flushing: intent !== null,
      pointed: hinted >= version,
      snapshots: version - 1,
      lastError,
    };
  }

  async #ask(
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body?: string | Uint8Array<ArrayBuffer>,
  ): Promise<{ status: number; json: unknown; retries: number }> {
    for (let retries = 0; ; retries++) {
      const last = retries + 1 >= TRIES_MAX;
      let response: Response;
      let text: string;
      try {
        const signal = AbortSignal.timeout(TIMEOUT_MS);
        response = await this.#fetch(this.#url + path, { method, headers, body: body ?? null, signal });
        text = await response.text();
      } catch (error) {
        if (last) throw new Error(`no answer to ${method} ${this.#url}${path}`, { cause: error });
        await this.#sleep(WAIT_DEFAULT_MS);
        continue;
      }
      if (response.ok) return { status: response.status, json: JSON.parse(text), retries };
      const later = response.status === 429 || response.status >= 500;
      if (!later || last)
        throw new Error(`${method} ${this.#url}${path} answered ${response.status}: ${detailOf(text)}`);
      await this.#sleep(waitMs(response.headers.get('retry-after')));
    }
  }
}

/** `Retry-After` in seconds as milliseconds, within bounds. */
function waitMs(header: string | null): number {
  const seconds = Number(header ?? '');
  return seconds > 0 ? Math.min(seconds * 1000, WAIT_MAX_MS) : WAIT_DEFAULT_MS;
}

function detailOf(text: string): string {
  try {
    const problem = JSON.parse(text) as { title?: string; detail?: string };
    return problem.detail ?? problem.title ?? text;
  } catch {
    return text.slice(0, 200);
  }
}

import { setTimeout as wait } from 'node:timers/promises';
import { EXIT, Failure } from './failure.ts';

/** The service over HTTP, as any program would use it. */

export interface Asked {
  headers?: Record<string, string>;
  body?: string | Uint8Array<ArrayBuffer>;
  /**
   * May be sent again when no answer came: it changes nothing, or it is known by a key. What may not is given up at once,
   * since it may have been carried out.
   */
  again: boolean;
}

export interface Answer {
  status: number;
  headers: Headers;
  bytes: Uint8Array;
  text(): string;
  /** The body as JSON; null when it is none. */
  json: Record<string, unknown> | null;
}

export type Ask = (method: string, path: string, asked: Asked) => Promise<Answer>;

export interface ApiOptions {
  url: string;
  /** Bearer token; null: none is sent. */
  token: string | null;
  /** Told before each wait. */
  waiting?: (why: string) => void;
  fetch?: typeof fetch;
  sleep?: (ms: number) => Promise<unknown>;
}

/** Tries at one request; with the waits between them a few minutes, so that a restart of the service is outlived. */
const TRIES_MAX = 20;
/** Tries while no answer ever came: then it is rather the address that is wrong. */
const FIRST_TRIES_MAX = 4;
const WAIT_MIN_MS = 500;
const WAIT_MAX_MS = 15_000;
const TIMEOUT_MS = 120_000;

/**
 * Asks until there is an answer that is not "later": 429 and 503 after `Retry-After`, lost answers and other faults of a
 * server where the request may be repeated, and 409 `table-changed`, which asks for just that.
 *
 * Throws `Failure`.
 */
export function api({ url, token, waiting, fetch: send = fetch, sleep = wait }: ApiOptions): Ask {
  const base = url.replace(/\/+$/, '');
  const authorization: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };

  let isReached = false;

  async function once(method: string, path: string, { headers, body }: Asked): Promise<Response | Error> {
    try {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const all = { 'user-agent': 'sluice-cli', ...authorization, ...headers };
      return await send(base + path, { method, headers: all, body: body ?? null, signal });
    } catch (error) {
      return error as Error;
    }
  }

  return async (method, path, asked) => {
    for (let tries = 1; ; tries++) {
      const response = await once(method, path, asked);
      const fault = response instanceof Error ? response : null;
      const bytes = response instanceof Error ? null : await bytesOf(response);
      let failure: Failure;
      let retryAfter: string | null = null;
      if (response instanceof Error || bytes === null) {
        const reason = (fault?.cause as Error | undefined)?.message ?? fault?.message ?? 'the answer broke off';
        failure = new Failure(EXIT.unavailable, `no answer from ${base}: ${reason}`, null, fault ?? undefined);
        if (!asked.again) throw failure;
      } else {
        isReached = true;
        const { status, headers } = response;
        const text = () => new TextDecoder().decode(bytes);
        const isJson = /\bjson\b/.test(headers.get('content-type') ?? '') || !response.ok;
        const json = isJson ? jsonOf(text()) : null;
        if (response.ok) return { status, headers, bytes, text, json };
        failure = failureOf(status, json, text());
        if (!isLater(response.status, json, asked.again)) throw failure;
        retryAfter = response.headers.get('retry-after');
      }
      if (tries >= (isReached ? TRIES_MAX : FIRST_TRIES_MAX)) throw failure;
      waiting?.(failure.message);
      await sleep(waitMs(retryAfter, tries));
    }
  };
}

/** Null when the answer broke off. */
async function bytesOf(response: Response): Promise<Uint8Array | null> {
  return response.arrayBuffer().then(
    (buffer) => new Uint8Array(buffer),
    () => null,
  );
}

function isLater(status: number, json: Answer['json'], again: boolean): boolean {
  if (status === 429) return true;
  if (status === 409) return again && slugOf(json) === 'table-changed';
  return again && status >= 500;
}

function failureOf(status: number, json: Answer['json'], text: string): Failure {
  const told = json?.['detail'] ?? json?.['message'] ?? json?.['title'];
  const message = typeof told === 'string' ? told : text.slice(0, 200) || 'no reason was given';
  const exit = status === 429 || status >= 500 ? EXIT.unavailable : EXIT.refused;
  return new Failure(exit, `service answered ${status}: ${message}`, json);
}

/** The last segment of a problem's type. */
export function slugOf(problem: Record<string, unknown> | null): string {
  return (
    String(problem?.['type'] ?? '')
      .split(':')
      .at(-1) ?? ''
  );
}

function jsonOf(text: string): Answer['json'] {
  try {
    const json: unknown = JSON.parse(text);
    return typeof json === 'object' && json !== null ? (json as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** As long as the service says, else longer with each try, within bounds. */
function waitMs(retryAfter: string | null, tries: number): number {
  const asked = Number(retryAfter ?? '') * 1000;
  return Math.min(WAIT_MAX_MS, asked > 0 ? asked : WAIT_MIN_MS * 2 ** (tries - 1));
}

import { gunzipSync } from 'node:zlib';
import { cli } from '../../../scripts/cli.ts';

/** What the service was asked, with bodies inflated. */
export interface Seen {
  method: string;
  path: string;
  headers: Headers;
  body: string;
}

/** A service that keeps batches by their key, as the real one does. */
export class FakeService {
  readonly seen: Seen[] = [];
  readonly batches = new Map<string, string>();
  readonly waits: number[] = [];
  /** Answers to the next requests for rows; `lost`: they are taken, and the answer is lost. */
  readonly next: (Response | 'taken' | 'lost')[] = [];
  readonly answers: Record<string, (body: string) => unknown> = {
    'POST /v1/tables/a/t/flush': () => ({
      flushed: true,
      version: 7,
      status: { buffer: { rows: 0 }, last_error: null },
    }),
  };

  readonly fetch = (async (url: string, init: RequestInit): Promise<Response> => {
    const { pathname, search } = new URL(url);
    const headers = new Headers(init.headers);
    const sent = init.body === null ? Buffer.alloc(0) : Buffer.from(init.body as string);
    const body = (headers.get('content-encoding') === 'gzip' ? gunzipSync(sent) : sent).toString();
    const method = init.method ?? '';
    this.seen.push({ method, path: pathname + search, headers, body });
    const answer = this.answers[`${method} ${pathname}`];
    if (answer !== undefined) {
      const given = answer(body);
      return given instanceof Response ? given : Response.json(given);
    }
    if (!pathname.endsWith('/rows') && !pathname.endsWith('/write'))
      return problem(404, 'unknown-table', 'no such table');
    const planned = this.next.shift() ?? 'taken';
    if (planned instanceof Response) return planned;
    const taken = this.take(headers, body);
    if (planned === 'taken') return taken;
    throw new TypeError('fetch failed');
  }) as unknown as typeof fetch;

  private take(headers: Headers, body: string): Response {
    const key = headers.get('idempotency-key') ?? '';
    const known = this.batches.get(key);
    if (known !== undefined && known !== body) return problem(422, 'idempotency-conflict', 'another body');
    this.batches.set(key, body);
    const rows = body.trim().split('\n').length - (headers.get('content-type') === 'text/csv' ? 1 : 0);
    return Response.json(
      { receipt: 'r', rows, ...(known === undefined ? {} : { duplicate: true }) },
      { status: known === undefined ? 202 : 200 },
    );
  }
}

export function problem(
  status: number,
  slug: string,
  detail: string,
  more: object = {},
  headers: Record<string, string> = {},
): Response {
  return Response.json(
    { type: `urn:sluice:problem:${slug}`, title: 't', status, detail, ...more },
    { status, headers },
  );
}

/** Runs a command against the service, and what it printed. */
export async function runCli(service: FakeService, args: readonly string[]) {
  const out: string[] = [];
  let err = '';
  const exit = await cli(args, {
    env: { SLUICE_TOKEN: 'secret', SLUICE_URL: 'http://service/' },
    out: (text) => out.push(text),
    err: {
      write: (text) => {
        err += text;
        return true;
      },
    },
    fetch: service.fetch,
    sleep: async (ms) => service.waits.push(ms),
  });
  return { exit, out: out.join('\n'), err, json: () => JSON.parse(out.join('\n')) };
}

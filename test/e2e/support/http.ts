import { expect } from 'vitest';
import type { Send } from './client.ts';

/** A response as it came, read whole. */
export interface Answered<Body = Record<string, unknown>> {
  status: number;
  headers: Headers;
  text: string;
  /** The text as JSON; null when there is none. */
  body: Body;
}

/** One bad row in a problem body. */
export interface RowErrorBody {
  line: number;
  field: string | null;
  type: string;
  message: string;
  value?: string;
}

export interface ProblemBody {
  type: string;
  title: string;
  status: number;
  detail: string;
  errors?: RowErrorBody[];
  error_count?: number;
  [member: string]: unknown;
}

export interface Asked {
  headers?: Record<string, string>;
  body?: string | Uint8Array;
}

/** Sends a request and reads the answer, whatever its status. */
export async function ask<Body = Record<string, unknown>>(
  send: Send,
  method: string,
  path: string,
  { headers = {}, body }: Asked = {},
): Promise<Answered<Body>> {
  const init = { method, headers, ...(body === undefined ? {} : { body: body as BodyInit }) };
  const response = await send(path, init);
  const text = await response.text();
  const isJson = /^application\/(problem\+)?json\b/.test(response.headers.get('content-type') ?? '');
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: (isJson && text !== '' ? JSON.parse(text) : null) as Body,
  };
}

export const NDJSON = { 'content-type': 'application/x-ndjson' };
export const JSON_TYPE = { 'content-type': 'application/json' };

/** Holds an answer against the form that every refusal has, and returns its body. */
export function expectProblem(answer: Answered<unknown>, status: number, slug: string): ProblemBody {
  const body = answer.body as ProblemBody;
  expect(body?.type, answer.text.slice(-500)).toBe(`urn:sluice:problem:${slug}`);
  expect(answer.headers.get('content-type')).toBe('application/problem+json');
  expect(answer.headers.get('x-request-id') ?? '').not.toBe('');
  expect({ status: answer.status, type: body.type, ownStatus: body.status }).toEqual({
    status,
    type: `urn:sluice:problem:${slug}`,
    ownStatus: status,
  });
  expect(body.title).not.toBe('');
  expect(body.detail).not.toBe('');
  return body;
}

import { type Detail, type ErrorKind, invalid, SluiceError } from '../core/base/errors.ts';
import { PROBLEM_TYPES } from './problem-types.ts';

/** Beginning of every problem type: a name, not an address, so that it outlives any host. The slug follows. */
export const PROBLEM_URN = 'urn:sluice:problem:';

/** A problem body (RFC 9457): its own members and those of the error's detail. */
export interface ProblemBody {
  type: string;
  title: string;
  status: number;
  detail: string;
  [member: string]: Detail;
}

export interface Problem {
  status: number;
  headers: Record<string, string>;
  body: ProblemBody;
}

/**
 * Status of a kind whose slug has none of its own in `PROBLEM_TYPES`.
 *
 * `unknown` is 504: the catalog protocol's clients take 500, 502 and 504 of a commit for "state unknown" and delete
 * nothing, and 504 keeps it apart from errors that are ours (500) and from "later, as it is" (503).
 */
const STATUS: Readonly<Record<ErrorKind, number>> = {
  invalid: 400,
  rejected: 422,
  conflict: 409,
  unavailable: 503,
  unknown: 504,
  corrupt: 500,
};

/** Seconds to wait where an error does not say: the shortest flush interval. */
const RETRY_AFTER_DEFAULT_S = 1;

/**
 * The answer to an error. Anything that is no `SluiceError` is told as `internal` and nothing more: its message may hold
 * what is not the client's. `detail.retryAfter` (seconds) becomes `Retry-After` on 429 and 503.
 */
export function problemOf(error: unknown): Problem {
  if (!(error instanceof SluiceError)) {
    if (isObjectFault(error)) {
      const message = 'the table’s object was restarted or is overloaded; the request may have been carried out';
      return problem(503, 'object-unavailable', message, {});
    }
    return problem(500, 'internal', 'the service met an error it did not expect', {});
  }
  const status = PROBLEM_TYPES[error.type]?.status ?? STATUS[error.kind];
  return problem(status, error.type, error.message, error.detail);
}

/**
 * The platform's own failures of a call to an object, told by flags and never by text: a deployment or a crash reset it, or
 * too many calls wait. Whether the call was carried out is not known.
 */
function isObjectFault(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  const { durableObjectReset, retryable, overloaded } = error as Record<string, unknown>;
  return durableObjectReset === true || retryable === true || overloaded === true;
}

/** The answer to an error, as a response. */
export function problemResponse(error: unknown): Response {
  const { status, headers, body } = problemOf(error);
  return new Response(JSON.stringify(body), { status, headers });
}

/** The answer to a known address with another method: 405 with those that it takes (RFC 9110 section 15.5.6). */
export function methodNotAllowed(method: string, allowed: string): Response {
  const response = problemResponse(invalid('method-not-allowed', `method is not one of ${allowed}: ${method}`));
  response.headers.set('allow', allowed);
  return response;
}

function problem(status: number, slug: string, detail: string, members: Record<string, Detail>): Problem {
  const headers: Record<string, string> = { 'content-type': 'application/problem+json' };
  if (status === 429 || status === 503) {
    const given = members['retryAfter'];
    const seconds = typeof given === 'number' && given > 0 ? Math.ceil(given) : RETRY_AFTER_DEFAULT_S;
    headers['retry-after'] = String(seconds);
  }
  if (status === 401) headers['www-authenticate'] = 'Bearer';
  if (slug === 'forbidden') headers['www-authenticate'] = 'Bearer error="insufficient_scope"';
  const title = PROBLEM_TYPES[slug]?.title ?? slug.replaceAll('-', ' ');
  const own = { type: PROBLEM_URN + slug, title, status, detail: detail.toWellFormed() };
  const shown = Object.fromEntries(Object.entries(members).map(([name, value]) => [memberName(name), value]));
  return { status, headers, body: { ...shown, ...own } };
}

/** Members are named as those of every other answer. */
function memberName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

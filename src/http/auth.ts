import { utf8 } from '../core/base/bytes.ts';
import { invalid } from '../core/base/errors.ts';
import { sha256 } from '../platform/hash.ts';

/**
 * Refuses a request without the token. Digests are compared, byte by byte without an early end, so that neither length
 * nor content of the token shows in the time it takes.
 *
 * @throws invalid `unauthorized`, the same for a missing and a wrong token
 */
export function authorize(header: string | null, token: string | null): void {
  if (token === null) return;
  // `Token` is what clients of InfluxDB say.
  const match = /^(?:Bearer|Token) +([^ ]+) *$/i.exec(header ?? '');
  const given = sha256([utf8(match?.[1] ?? '')]);
  const wanted = sha256([utf8(token)]);
  let difference = match === null ? 1 : 0;
  for (let i = 0; i < wanted.length; i++) difference |= given[i] ^ wanted[i];
  if (difference !== 0) throw invalid('unauthorized', 'request carries no valid bearer token');
}

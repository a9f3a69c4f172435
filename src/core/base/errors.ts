/**
 * Errors that carry what to do next. A new kind is justified only where the caller would act differently:
 *
 * - `invalid`: the request is wrong; fix it, do not repeat it.
 * - `rejected`: the request is well formed, a rule of the table refused it.
 * - `conflict`: another change came first; look again and repeat.
 * - `unavailable`: repeat later as it is.
 * - `unknown`: it may have happened; wait and ask, delete nothing.
 * - `corrupt`: stored state contradicts itself; stop, a person must look.
 */
export type ErrorKind = 'invalid' | 'rejected' | 'conflict' | 'unavailable' | 'unknown' | 'corrupt';

/** Values that survive JSON and RPC. 64-bit integers are given as decimal text. */
export type Detail = string | number | boolean | null | Detail[] | { [key: string]: Detail };

/**
 * The one error class of the project.
 *
 * `type` is a stable kebab-case slug, the last segment of the problem type a client sees (`unknown-column`).
 * `message` is lower case, subject first, offending value last. `detail` holds the members a client may act on
 * (`line`, `field`, `expected`, ...).
 */
export class SluiceError extends Error {
  readonly kind: ErrorKind;
  readonly type: string;
  readonly detail: Record<string, Detail>;

  constructor(kind: ErrorKind, type: string, message: string, detail: Record<string, Detail> = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'SluiceError';
    this.kind = kind;
    this.type = type;
    this.detail = detail;
  }
}

type Raise = (type: string, message: string, detail?: Record<string, Detail>, cause?: unknown) => SluiceError;
const raise =
  (kind: ErrorKind): Raise =>
  (type, message, detail, cause) =>
    new SluiceError(kind, type, message, detail, cause);

export const invalid = raise('invalid');
export const rejected = raise('rejected');
export const conflict = raise('conflict');
export const unavailable = raise('unavailable');
export const unknown = raise('unknown');
export const corrupt = raise('corrupt');

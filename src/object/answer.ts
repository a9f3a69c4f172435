import { type Detail, type ErrorKind, SluiceError } from '../core/base/errors.ts';
import { StoreError } from '../store/store.ts';

/** An error as data: classes and their fields do not survive a call between objects. */
export interface Problem {
  kind: ErrorKind;
  type: string;
  message: string;
  detail: Record<string, Detail>;
}

/** What a method of the object answers. Anything thrown instead is a fault of the platform or of the code. */
export type Answer<T> = { ok: true; value: T } | { ok: false; problem: Problem };

/** Runs a method's body; known errors become data, others go on as they are. */
export async function answer<T>(body: () => T | Promise<T>): Promise<Answer<T>> {
  try {
    return { ok: true, value: await body() };
  } catch (error) {
    if (error instanceof StoreError) {
      return {
        ok: false,
        problem: { kind: 'unavailable', type: 'store-unavailable', message: error.message, detail: {} },
      };
    }
    if (!(error instanceof SluiceError)) throw error;
    const { kind, type, message, detail } = error;
    return { ok: false, problem: { kind, type, message, detail } };
  }
}

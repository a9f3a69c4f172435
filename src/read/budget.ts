import { rejected, type SluiceError } from '../core/base/errors.ts';
import {
  ROWS_ANSWER_BYTES_MAX,
  ROWS_FOUND_BYTES_MAX,
  ROWS_READ_BYTES_MAX,
  ROWS_READ_FILES_MAX,
  ROWS_READ_REQUESTS_MAX,
  ROWS_WORK_BYTES_MAX,
} from '../core/base/read-limits.ts';

/** What one request reads of the store, and the bound of it. */
export class ReadBudget {
  bytes = 0;
  files = 0;
  #requests = 0;
  #held = 0;
  readonly #waiting: (() => void)[] = [];

  /** Asked for each request, before bytes are read where it is known how many. Throws rejected `too-much-to-read`. */
  spend(bytes: number): void {
    this.bytes += bytes;
    if (++this.#requests > ROWS_READ_REQUESTS_MAX) throw tooMuch(`more than ${ROWS_READ_REQUESTS_MAX} parts of files`);
    if (this.bytes > ROWS_READ_BYTES_MAX) throw tooMuch(`more than ${mib(ROWS_READ_BYTES_MAX)} of files`);
  }

  /** Work that takes so much memory, once there is room for it beside other work; what needs more than all of it goes alone. */
  async holding<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    while (this.#held > 0 && this.#held + bytes > ROWS_WORK_BYTES_MAX) {
      await new Promise<void>((go) => this.#waiting.push(go));
    }
    this.#held += bytes;
    try {
      return await work();
    } finally {
      this.#held -= bytes;
      for (const go of this.#waiting.splice(0)) go();
    }
  }

  /** Asked before a data file is opened. Throws rejected `too-much-to-read`. */
  open(): void {
    if (++this.files > ROWS_READ_FILES_MAX) throw tooMuch(`more than ${ROWS_READ_FILES_MAX} data files`);
  }
}

/** The rows of an answer are more than fit the memory. */
export function answerTooLarge(): SluiceError {
  return tooLarge('answer has', ROWS_ANSWER_BYTES_MAX, 'ask for fewer columns or rows');
}

/** Time and series of so many rows are more than fit the memory. */
export function foundTooLarge(): SluiceError {
  return tooLarge('time and series of the rows have', ROWS_FOUND_BYTES_MAX, 'ask for fewer rows');
}

function tooLarge(what: string, bytesMax: number, instead: string): SluiceError {
  return rejected('too-much-to-read', `${what} more than ${mib(bytesMax)} of values: ${instead}`, { bytesMax });
}

function tooMuch(what: string): SluiceError {
  const message = `${what} would have to be read: ask for a shorter time range, a series, or fewer columns`;
  return rejected('too-much-to-read', message, { bytesMax: ROWS_READ_BYTES_MAX, filesMax: ROWS_READ_FILES_MAX });
}

function mib(bytes: number): string {
  return `${bytes / 1024 / 1024} MiB`;
}

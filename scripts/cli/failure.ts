/** What the process ends with. */
export const EXIT = {
  done: 0,
  /** The service refused, or a file is not what it should be. */
  refused: 1,
  /** The command line is wrong. */
  usage: 2,
  /** The service gave no answer, or was busy for too long: the same command again goes on where this one ended. */
  unavailable: 3,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Why a command failed, told in a line; `problem` is what the service said. */
export class Failure extends Error {
  readonly exit: ExitCode;
  readonly problem: Record<string, unknown> | null;

  constructor(exit: ExitCode, message: string, problem: Record<string, unknown> | null = null, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'Failure';
    this.exit = exit;
    this.problem = problem;
  }
}

export function usage(message: string): Failure {
  return new Failure(EXIT.usage, message);
}

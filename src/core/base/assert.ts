/** Programming errors: a state the code promises cannot be. Stays on in production. */
export class AssertionError extends Error {
  override readonly name = 'AssertionError';
}

/** Throws when `condition` is false. The message names the broken promise. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

/** Marks the branch of a `switch` that the compiler proves empty. */
export function unreachable(value: never): never {
  throw new AssertionError(`unreachable value: ${String(value)}`);
}

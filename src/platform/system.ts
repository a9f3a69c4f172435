/** The platform's clock: milliseconds since 1970. It stands still between I/O. */
export const systemClock = {
  now: (): number => Date.now(),
  sleep: (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms)),
};

/** The platform's source of unpredictable bytes. */
export const systemRandom = {
  bytes: (length: number): Uint8Array => crypto.getRandomValues(new Uint8Array(length)),
};

/** Bytes of an isolate, as its inspector tells them. */
export interface HeapUsage {
  /** JavaScript objects, garbage not yet collected included. */
  used: number;
  /** What the heap has taken for them. */
  total: number;
  /** Contents of array buffers, which lie outside of the heap. */
  buffers: number;
}

/**
 * Asks the inspector of a runtime. It answers while the isolate stands still, so what a synchronous stretch needs at its
 * highest is not seen.
 */
export class Inspector {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();
  #next = 1;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => {
      const { id, result, error } = JSON.parse(String(data)) as { id?: number; result: unknown; error?: object };
      const asked = id === undefined ? undefined : this.#waiting.get(id);
      if (id === undefined || asked === undefined) return;
      this.#waiting.delete(id);
      if (error === undefined) asked.resolve(result);
      else asked.reject(new Error(`inspector refused: ${JSON.stringify(error)}`));
    });
  }

  static async connect(port: number): Promise<Inspector> {
    const targets = (await (await fetch(`http://127.0.0.1:${port}/json`)).json()) as { webSocketDebuggerUrl: string }[];
    const socket = new WebSocket(targets[0].webSocketDebuggerUrl);
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener('open', () => resolve(), { once: true });
      socket.addEventListener('error', () => reject(new Error('inspector does not answer')), { once: true });
    });
    return new Inspector(socket);
  }

  async heap(): Promise<HeapUsage> {
    const usage = await this.#ask<{ usedSize: number; totalSize: number; backingStorageSize?: number }>(
      'Runtime.getHeapUsage',
    );
    return { used: usage.usedSize, total: usage.totalSize, buffers: usage.backingStorageSize ?? 0 };
  }

  /**
   * `nudge` is any request to the Worker: the runtime takes the command up together with the next one, which may be under way
   * before the command has come.
   */
  async collectGarbage(nudge: () => Promise<unknown>): Promise<void> {
    let isCollected = false;
    const collected = this.#ask('HeapProfiler.collectGarbage').then(() => {
      isCollected = true;
    });
    while (!isCollected) {
      await nudge();
      await Promise.race([collected, new Promise((resolve) => setTimeout(resolve, 100))]);
    }
  }

  /** Profile of what runs while `work` is awaited, in the form of a `.cpuprofile` file. */
  async profile(work: () => Promise<unknown>, intervalMicros = 200): Promise<unknown> {
    await this.#ask('Profiler.enable');
    await this.#ask('Profiler.setSamplingInterval', { interval: intervalMicros });
    await this.#ask('Profiler.start');
    await work();
    const { profile } = await this.#ask<{ profile: unknown }>('Profiler.stop');
    await this.#ask('Profiler.disable');
    return profile;
  }

  close(): void {
    this.#socket.close();
  }

  #ask<T>(method: string, params: object = {}): Promise<T> {
    const id = this.#next++;
    const answered = new Promise<unknown>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    this.#socket.send(JSON.stringify({ id, method, params }));
    return answered as Promise<T>;
  }
}

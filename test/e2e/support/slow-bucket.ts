/**
 * A bucket whose chosen operations take longer, before or after their effect. Held before: nothing of it is there when
 * the process dies. Held after: it is there, and nobody was told. Which of them are held, and for how long, comes from
 * a seed.
 */
export interface SlowRule {
  operation: 'put' | 'get' | 'head' | 'list';
  /** Source of a regular expression that the key (of a list: the prefix) must match. */
  key: string;
  side: 'before' | 'after';
  /** Share of the matching calls that is held, 0 to 1. */
  chance: number;
  /** Least and most milliseconds of a hold. */
  ms: [number, number];
}

export interface SlowPlan {
  seed: number;
  rules: SlowRule[];
}

/** Name of the variable that holds the plan as JSON; without it nothing is held. */
export const PLAN_VARIABLE = 'SLOW_PLAN';

/** Where the Worker tries to generate code and answers what came of it: the runtime of a test is to refuse it. */
export const CODE_GENERATION_PATH = '/test/code-generation';

/** Key of a version's file: the conditional write of every commit. */
export const VERSION_KEY = '/metadata/v[0-9]+\\.metadata\\.json$';

export function slowBucket(bucket: R2Bucket, { seed, rules }: SlowPlan): R2Bucket {
  const random = seededRandom(seed);
  const hold = async (operation: string, key: string, side: SlowRule['side']): Promise<void> => {
    for (const rule of rules) {
      if (rule.operation !== operation || rule.side !== side || !new RegExp(rule.key).test(key)) continue;
      if (random() >= rule.chance) continue;
      const [least, most] = rule.ms;
      const ms = least + random() * (most - least);
      await new Promise((resolve) => setTimeout(resolve, ms));
    }
  };
  return new Proxy(bucket, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return async (...args: unknown[]) => {
        const first = args[0];
        const key = typeof first === 'string' ? first : ((first as R2ListOptions | undefined)?.prefix ?? '');
        await hold(String(name), key, 'before');
        const answer: unknown = await Reflect.apply(member, target, args);
        await hold(String(name), key, 'after');
        return answer;
      };
    },
  });
}

/** Numbers from 0 to below 1 (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

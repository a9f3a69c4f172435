import { createApp, type TableCalls } from './http/app.ts';
import { LakeTables } from './lake/lake.ts';
import { sweep } from './lake/sweep.ts';
import { sha256 } from './platform/hash.ts';
import { systemClock, systemRandom } from './platform/system.ts';
import { type Env, originsOf, settingsOf, tokensOf } from './settings.ts';

export { TableObject } from './object/table-object.ts';

const app = createApp<Env>((env) => {
  const { lake } = settingsOf(env);
  const tables = new LakeTables(env.LAKE, lake, { clock: systemClock, random: systemRandom });
  return {
    tokens: tokensOf(env, sha256),
    // The stub's own type maps every value through the RPC rules, which the recursive schema type is too deep for.
    object: (namespace, table) => env.TABLES.getByName(`${namespace}/${table}`) as unknown as TableCalls,
    tables: (after, limit, visible) => tables.page(after, limit, visible),
    now: systemClock.now,
  };
}, originsOf);

export default {
  fetch: app.fetch,

  async scheduled(_controller, env) {
    const { lake } = settingsOf(env);
    const tables = new LakeTables(env.LAKE, lake, { clock: systemClock, random: systemRandom });
    const report = await sweep(tables, (namespace, table) => env.TABLES.getByName(`${namespace}/${table}`).wake());
    console.log(JSON.stringify({ event: 'sweep', ...report }));
  },
} satisfies ExportedHandler<Env>;

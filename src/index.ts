import { createApp, type TableCalls } from './http/app.ts';
import { LakeTables } from './lake/lake.ts';
import { sweep } from './lake/sweep.ts';
import { sha256 } from './platform/hash.ts';
import { systemClock, systemRandom } from './platform/system.ts';
import { consume } from './queue/consumer.ts';
import { rowsQueue } from './queue/rows-queue.ts';
import { readLatest } from './read/latest.ts';
import { readPorts } from './read/ports.ts';
import { readRows } from './read/rows.ts';
import { type Env, originsOf, queueSettingsOf, settingsOf, tokensOf } from './settings.ts';

export { TableObject } from './object/table-object.ts';

const app = createApp<Env>((env) => {
  const { lake } = settingsOf(env);
  const ports = { clock: systemClock, random: systemRandom };
  const tables = new LakeTables(env.LAKE, lake, ports);
  const reading = readPorts(env.LAKE, ports);
  return {
    tokens: tokensOf(env, sha256),
    object: objectsOf(env),
    tables: (after, limit, visible) => tables.page(after, limit, visible),
    queue: () => rowsQueue(env.ROWS, queueSettingsOf(env)),
    latest: (namespace, table, query, waiting) => readLatest(reading, tables.place(namespace, table), query, waiting),
    names: (after, most, visible) => tables.names(after, most, visible),
    rows: (namespace, table, query) => readRows(reading, tables.place(namespace, table), query),
    ...systemClock,
  };
}, originsOf);

/** The stub's own type maps every value through the RPC rules, which the recursive schema type is too deep for. */
function objectsOf(env: Env) {
  return (namespace: string, table: string) => env.TABLES.getByName(`${namespace}/${table}`) as unknown as TableCalls;
}

/** 32 random bits. */
function draw(): number {
  return new DataView(systemRandom.bytes(4).buffer).getUint32(0);
}

export default {
  fetch: app.fetch,

  async scheduled(_controller, env) {
    const { lake } = settingsOf(env);
    const tables = new LakeTables(env.LAKE, lake, { clock: systemClock, random: systemRandom });
    const wake = (namespace: string, table: string) => env.TABLES.getByName(`${namespace}/${table}`).wake();
    const report = await sweep(tables, wake, draw());
    console.log(JSON.stringify({ event: 'sweep', ...report }));
  },

  async queue(batch, env) {
    await consume(batch, {
      settings: () => queueSettingsOf(env),
      object: objectsOf(env),
      deadLetters: env.DEAD_LETTERS,
      now: systemClock.now,
      draw,
      log: (event) => console.log(JSON.stringify(event)),
    });
  },
} satisfies ExportedHandler<Env>;

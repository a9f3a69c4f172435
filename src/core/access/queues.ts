import { invalid } from '../base/errors.ts';
import { QUEUE_SETTINGS_MAX } from '../base/limits.ts';
import { coversTable, isPattern } from './grant.ts';

/** Which tables take rows from queues, and which queues are bound to a table. */
export interface QueueSettings {
  /** Patterns of the tables that messages may name. */
  tables: readonly string[];
  /** Table by queue: `namespace/table`. */
  bound: ReadonlyMap<string, string>;
}

/**
 * The settings out of two variables, entries separated by spaces, commas or newlines: `QUEUE_TABLES`, patterns of tables,
 * none when absent; `QUEUE_TABLE`, `queue=namespace/table`, by which a queue is bound to a table.
 *
 * @throws invalid `bad-settings`
 */
export function parseQueueSettings(tables: string, bound: string): QueueSettings {
  const patterns = entriesOf(tables, 'QUEUE_TABLES');
  for (const pattern of patterns) {
    if (!isPattern(pattern)) {
      throw invalid('bad-settings', `QUEUE_TABLES is made of namespace/table, namespace/* and *: ${pattern}`);
    }
  }
  const pairs = entriesOf(bound, 'QUEUE_TABLE').map((entry): [string, string] => {
    const [queue, table, ...rest] = entry.split('=');
    const isPair = rest.length === 0 && queue !== '' && table !== undefined;
    if (!isPair || table.includes('*') || !isPattern(table)) {
      throw invalid('bad-settings', `QUEUE_TABLE is made of queue=namespace/table: ${entry}`);
    }
    return [queue, table];
  });
  const byQueue = new Map(pairs);
  if (byQueue.size < pairs.length) throw invalid('bad-settings', 'QUEUE_TABLE binds a queue twice');
  return { tables: patterns, bound: byQueue };
}

/** True when the table may take rows from queues: messages may name it, or a queue is bound to it. */
export function takesMessages({ tables, bound }: QueueSettings, namespace: string, table: string): boolean {
  return coversTable({ tables }, namespace, table) || [...bound.values()].includes(`${namespace}/${table}`);
}

function entriesOf(text: string, variable: string): string[] {
  const entries = text.split(/[\s,]+/).filter((entry) => entry !== '');
  if (entries.length <= QUEUE_SETTINGS_MAX) return entries;
  throw invalid('bad-settings', `${variable} has more than ${QUEUE_SETTINGS_MAX} entries`);
}

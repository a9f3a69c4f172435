import { INGEST_VIEW_MS, INGEST_VIEWS_MAX } from '../core/base/limits.ts';
import type { IngestView } from '../object/views.ts';
import type { TableCalls } from './app.ts';
import { unwrap } from './table-context.ts';

/** What this isolate knows of tables it ingests into. Short-lived: the object refuses what was made for another table. */
const views = new Map<string, { view: IngestView; untilMs: number }>();

/** What is asked of the world around: objects of tables, and the time. */
interface ViewPorts {
  object(namespace: string, table: string): Pick<TableCalls, 'ingest'>;
  now(): number;
}

/** The table as the door needs it, from memory or from its object. Throws the problem that the object answers with. */
export async function ingestViewOf(ports: ViewPorts, namespace: string, table: string): Promise<IngestView> {
  const key = `${namespace}/${table}`;
  const nowMs = ports.now();
  const known = views.get(key);
  if (known !== undefined && known.untilMs > nowMs) return known.view;
  views.delete(key);
  const view = unwrap(await ports.object(namespace, table).ingest());
  if (views.size >= INGEST_VIEWS_MAX) views.delete(views.keys().next().value ?? '');
  views.set(key, { view, untilMs: nowMs + INGEST_VIEW_MS });
  return view;
}

/** Asks the object again at the next batch. */
export function forgetViewOf(namespace: string, table: string): void {
  views.delete(`${namespace}/${table}`);
}

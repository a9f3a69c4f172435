import { invalid, unavailable } from '../core/base/errors.ts';
import { CONNECTIONS_MAX, METRICS_TABLES_MAX } from '../core/base/limits.ts';
import type { Visible } from '../lake/lake.ts';
import { lakeMetricsText, METRICS_TYPE, metricsText, type TableMetrics } from './metrics-text.ts';
import { type Ctx, nameOf, objectOf, unwrap } from './table-context.ts';

/** Where a page of tables begins, and how many it may hold. */
export interface Page {
  after: string | null;
  limit: number;
}

/** Metrics of one table. Of an object that knows of none, the table is asked for, and is missing or not served. */
export async function tableMetrics(context: Ctx): Promise<Response> {
  const { namespace, table } = nameOf(context);
  const object = objectOf(context);
  let view = await object.metrics();
  if (view === null) {
    unwrap(await object.ingest());
    view = await object.metrics();
  }
  if (view === null) throw invalid('unknown-table', `table does not exist: ${namespace}.${table}`);
  return textResponse(metricsText([{ namespace, table, view }]));
}

/** Metrics of the tables that the caller may read, a page at a time; `Link` leads to the next. */
export async function lakeMetrics(context: Ctx, visible: Visible, { after, limit }: Page): Promise<Response> {
  const { ports } = context.var;
  const most = Math.min(limit, METRICS_TABLES_MAX);
  const names = await ports.names(after, most + 1, visible).catch((error) => {
    throw unavailable('store-unavailable', 'the lake cannot be listed now', {}, error);
  });
  const shown = names.slice(0, most);
  const found = new Array<TableMetrics | null>(shown.length).fill(null);
  let unanswered = 0;
  let next = 0;
  const lane = async () => {
    while (next < shown.length) {
      const at = next++;
      const { namespace, table } = shown[at];
      try {
        const view = await ports.object(namespace, table).metrics();
        if (view !== null) found[at] = { namespace, table, view };
      } catch {
        // One object that is down hides no other.
        unanswered++;
      }
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS_MAX }, lane));
  const more = names.length > most;
  const response = textResponse(lakeMetricsText({ tables: found.filter((one) => one !== null), unanswered, more }));
  const last = shown.at(-1);
  if (more && last !== undefined) {
    const position = `${encodeURIComponent(last.namespace)}/${encodeURIComponent(last.table)}`;
    response.headers.set('link', `<?after=${position}&limit=${most}>; rel="next"`);
  }
  return response;
}

function textResponse(text: string): Response {
  return new Response(text, { headers: { 'content-type': METRICS_TYPE } });
}

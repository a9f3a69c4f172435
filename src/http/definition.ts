import * as v from 'valibot';
import { textOf } from '../core/base/bytes.ts';
import { invalid } from '../core/base/errors.ts';
import { parseJson } from '../core/base/int64-json.ts';
import { DEFINITION_BYTES_MAX } from '../core/base/limits.ts';
import type { TableDefinition } from '../core/table/definition.ts';
import { readWhole } from './column-body.ts';

/** Bodies as they are checked, and as the description of the interface shows them. */
export const Definition = v.strictObject({
  /** Checked deeply by the core, which knows the format. */
  schema: v.pipe(
    v.looseObject({}),
    v.description('schema of the Iceberg REST protocol; ids may be left out, and so may required: false'),
  ),
  time_column: v.optional(v.nullable(v.string())),
  series_key: v.optional(v.array(v.string())),
  chunk: v.optional(v.nullable(v.picklist(['hour', 'day', 'month']))),
  dedup: v.optional(v.nullable(v.boolean())),
  properties: v.optional(v.record(v.string(), v.unknown())),
});

export const Attachment = v.strictObject({ metadata_location: v.optional(v.nullable(v.string())) });

/** A table's definition out of a request's body. Throws invalid `malformed-json`, `malformed`, `body-too-large`. */
export async function readDefinition(request: Request): Promise<TableDefinition> {
  const body = checked(Definition, await readJson(request));
  return {
    schema: body.schema,
    timeColumn: body.time_column ?? null,
    seriesKey: body.series_key ?? [],
    chunk: body.chunk ?? null,
    dedup: body.dedup ?? null,
    properties: body.properties ?? {},
  };
}

/** What to attach; an empty body means the table's own newest metadata. */
export async function readAttachment(request: Request): Promise<{ metadataLocation: string | null }> {
  const body = checked(Attachment, (await readJson(request)) ?? {});
  return { metadataLocation: body.metadata_location ?? null };
}

/**
 * The body as JSON, integers exact; null for an empty one. Read no further than it may be long: who sends it need not say how
 * long it is.
 *
 * @throws invalid `malformed-json`, `malformed-utf8`, and what `readWhole` throws
 */
export async function readJson({ body, headers }: Request): Promise<unknown> {
  const contentEncoding = headers.get('content-encoding');
  const { whole } = await readWhole(body, { contentEncoding, bytesMax: DEFINITION_BYTES_MAX });
  const text = textIn(whole);
  if (text.trim() === '') return null;
  try {
    return parseJson(text);
  } catch (error) {
    throw invalid('malformed-json', `body is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function textIn(bytes: Uint8Array): string {
  try {
    return textOf(bytes);
  } catch (cause) {
    throw invalid('malformed-utf8', 'body is not UTF-8', {}, cause);
  }
}

/** The value, an object, as the schema has it. Throws invalid `malformed` with the path of the first fault. */
export function checked<S extends v.GenericSchema>(schema: S, value: unknown): v.InferOutput<S> {
  // To valibot a list is an object.
  if (Array.isArray(value)) throw invalid('malformed', 'body is not an object: it is a list', { path: '' });
  const result = v.safeParse(schema, value);
  if (result.success) return result.output;
  const issue = result.issues[0];
  const path = v.getDotPath(issue) ?? '';
  throw invalid('malformed', faultOf(issue, path), { path });
}

/** What is wrong with a body, in our words where the checker's are about its own types. */
function faultOf({ type, expected, message }: v.BaseIssue<unknown>, path: string): string {
  if (type === 'strict_object' && path !== '') {
    return expected === 'never' ? `body has no member of this name: ${path}` : `${path} is missing`;
  }
  return `${path === '' ? 'body' : path}: ${message}`;
}

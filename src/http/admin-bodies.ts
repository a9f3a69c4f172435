import * as v from 'valibot';
import { invalid } from '../core/base/errors.ts';
import { parseJson } from '../core/base/int64-json.ts';
import { type FileFilter, parseFileFilter } from '../core/commit/file-filter.ts';
import type { RefChange } from '../core/commit/plan-refs.ts';
import { parseSchemaChanges } from '../core/commit/plan-schema.ts';
import { parseSpecChanges, type SpecChange } from '../core/commit/plan-spec.ts';
import type { SchemaChange } from '../core/iceberg/schema-change.ts';
import { type MaintenancePlan, STEPS, STEPS_DEFAULT } from '../core/maintain/steps.ts';
import { checked, readJson } from './definition.ts';

/** Bodies of the administrators' requests. Each reader throws invalid `malformed-json`, `malformed`, `body-too-large`. */

const INT64_MAX = 2n ** 63n - 1n;

/** A 64-bit id as text: numbers of JSON are rounded by most clients. */
const Id = v.pipe(
  v.string('a snapshot id is text, so that no client rounds it'),
  v.regex(/^[0-9]{1,19}$/, 'a snapshot id is a number from 0 to 2^63-1'),
  v.transform((text) => BigInt(text)),
  v.check((id) => id <= INT64_MAX, 'a snapshot id is a number from 0 to 2^63-1'),
);
const Limit = v.optional(v.nullable(v.pipe(v.number(), v.safeInteger(), v.minValue(1))));
const SchemaId = v.optional(v.nullable(v.pipe(v.number(), v.integer(), v.minValue(0))));

export const Properties = v.strictObject({
  set: v.optional(v.record(v.string(), v.string()), {}),
  remove: v.optional(v.array(v.string()), []),
});
export const SchemaChanges = v.strictObject({
  /** Checked deeply by the core, which knows the format. */
  changes: v.array(
    v.pipe(
      v.looseObject({}),
      v.description(
        '{"add": name, "type": …}, {"rename": name, "to": …}, {"drop": name}, {"promote": name, "type": …} or {"optional": name}',
      ),
    ),
  ),
  expect_schema_id: SchemaId,
});
export const SpecChanges = v.strictObject({
  /** Checked deeply by the core, as those of columns are. */
  changes: v.array(
    v.pipe(
      v.looseObject({}),
      v.description('{"add": column, "transform": "identity", "bucket[16]", … , "name": …} or {"remove": field}'),
    ),
  ),
  expect_spec_id: SchemaId,
});
export const Ref = v.strictObject({
  type: v.optional(v.nullable(v.picklist(['branch', 'tag']))),
  snapshot_id: v.optional(v.nullable(Id)),
  expect_snapshot_id: v.optional(v.nullable(Id)),
  min_snapshots_to_keep: Limit,
  max_snapshot_age_ms: Limit,
  max_ref_age_ms: Limit,
});
export const FastForward = v.strictObject({ to: v.pipe(v.string(), v.nonEmpty()) });
export const Rollback = v.strictObject({ snapshot_id: Id, expect_snapshot_id: v.optional(v.nullable(Id)) });
export const Expire = v.strictObject({ dry_run: v.optional(v.boolean(), false) });
const Asked = v.pipe(v.optional(v.boolean()), v.description('true: only steps that are named run; false: all but it'));
export const Maintain = v.strictObject({
  retention: Asked,
  compact: Asked,
  index: Asked,
  expire: Asked,
  erase: Asked,
  sweep: v.pipe(
    v.optional(v.boolean()),
    v.description('looks for files that nothing refers to; only when it is named'),
  ),
  sweep_after: v.pipe(v.optional(v.string()), v.description('`next` of the sweep before, where a folder is large')),
  full: v.pipe(
    v.optional(v.boolean(), true),
    v.description('every partition with two small files; false: only what maintenance after appends would do now'),
  ),
  dry_run: v.optional(v.boolean(), false),
});
export const Delete = v.strictObject({
  filter: v.pipe(
    v.looseObject({}),
    v.description(
      'one of {"all": true}, {"partitions": [{name: label}]}, {"time_range": {"from", "to"}}, {"paths": [location]}',
    ),
  ),
});
export const Nothing = v.strictObject({});

export async function readProperties(request: Request): Promise<{ set: Record<string, string>; remove: string[] }> {
  return checked(Properties, await readJson(request));
}

export async function readSchemaChanges(request: Request): Promise<{
  changes: SchemaChange[];
  expected: number | null;
}> {
  const body = checked(SchemaChanges, await readJson(request));
  return { changes: parseSchemaChanges(body.changes), expected: body.expect_schema_id ?? null };
}

export async function readSpecChanges(request: Request): Promise<{ changes: SpecChange[]; expected: number | null }> {
  const body = checked(SpecChanges, await readJson(request));
  return { changes: parseSpecChanges(body.changes), expected: body.expect_spec_id ?? null };
}

/** Null takes a limit away; a member that is left out stays as it is. */
export async function readRef(request: Request, name: string): Promise<RefChange> {
  const body = checked(Ref, (await readJson(request)) ?? {});
  return {
    name,
    type: body.type ?? null,
    snapshotId: body.snapshot_id ?? null,
    expected: body.expect_snapshot_id,
    minSnapshotsToKeep: body.min_snapshots_to_keep,
    maxSnapshotAgeMs: body.max_snapshot_age_ms,
    maxRefAgeMs: body.max_ref_age_ms,
  };
}

export async function readFastForward(request: Request): Promise<{ to: string }> {
  return checked(FastForward, await readJson(request));
}

export async function readRollback(request: Request): Promise<{ snapshotId: bigint; expected?: bigint | null }> {
  const body = checked(Rollback, await readJson(request));
  return { snapshotId: body.snapshot_id, expected: body.expect_snapshot_id };
}

/** `dryRun`: said in the query, beside what the body says. */
export async function readExpire(request: Request, dryRun: string | undefined): Promise<{ dryRun: boolean }> {
  const isDry = isDryRun(dryRun);
  const body = checked(Expire, (await readJson(request)) ?? {});
  return { dryRun: body.dry_run || isDry };
}

/** `dryRun`: said in the query, beside what the body says. */
export async function readMaintain(request: Request, dryRun: string | undefined): Promise<MaintenancePlan> {
  const isDry = isDryRun(dryRun);
  const body = checked(Maintain, (await readJson(request)) ?? {});
  const named = STEPS.filter((step) => body[step] === true);
  const steps = named.length > 0 ? named : STEPS_DEFAULT.filter((step) => body[step] !== false);
  if (steps.length === 0) throw invalid('malformed', 'no step of maintenance is left');
  const sweepAfter = body.sweep_after ?? null;
  if (sweepAfter !== null && !steps.includes('sweep')) throw invalid('malformed', 'sweep_after is for a sweep');
  return { steps, full: body.full, sweepAfter, dryRun: body.dry_run || isDry };
}

function isDryRun(query: string | undefined): boolean {
  if (query === undefined || query === 'false') return false;
  if (query === 'true') return true;
  throw invalid('malformed', `dry_run is neither true nor false: ${query}`);
}

export async function readDelete(request: Request): Promise<FileFilter> {
  const body = checked(Delete, await readJson(request));
  return parseFileFilter(body.filter);
}

/** For requests that say all by their address: a body that asks for more is not silently passed over. */
export async function readNothing(request: Request): Promise<void> {
  checked(Nothing, (await readJson(request)) ?? {});
}

/** The filter of a request whose body is rows: the same JSON, in the query. */
export function filterOf(query: string | undefined): FileFilter {
  if (query === undefined) throw invalid('malformed', 'filter is missing: say which files the rows take the place of');
  return parseFileFilter(parseJson(query));
}

/** A snapshot id in the query; undefined when it is left out, null for the word `none`. */
export function idOf(query: string | undefined, name: string): bigint | null | undefined {
  if (query === undefined) return undefined;
  if (query === 'none') return null;
  const result = v.safeParse(Id, query);
  if (!result.success) throw invalid('malformed', `${name}: ${result.issues[0].message}`, { path: name });
  return result.output;
}

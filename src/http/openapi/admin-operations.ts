import * as bodies from '../admin-bodies.ts';
import { CONTENT_ENCODING, type Operation, query, ROW_PARAMETERS, whole } from './operation.ts';
import * as views from './views.ts';

const COMMIT = { 409: ['commit-conflict', 'requirement-failed'], 504: ['commit-unknown'] };
const DRY_RUN = query('dry_run', 'true: tells what would be done; as in the body', { type: 'boolean', default: false });
const EXPECTED = query('expect_snapshot_id', 'snapshot that the ref must stand at; none: it must not be there');

/** Changes of a table that are not rows, and its history. */
export const ADMIN_OPERATIONS: Readonly<Record<string, Operation>> = {
  'GET /v1/tables/{namespace}/{table}/properties': {
    id: 'readProperties',
    tag: 'changes',
    summary: 'Properties of the table',
    answers: { 200: { description: 'all of them', content: views.Properties } },
  },
  'PATCH /v1/tables/{namespace}/{table}/properties': {
    id: 'changeProperties',
    tag: 'changes',
    summary: 'Sets and removes properties',
    body: { kind: 'json', schema: bodies.Properties, required: true },
    answers: { 200: { description: 'a report', content: views.ChangedProperties } },
    problems: { 400: ['bad-property'], 422: ['too-many-properties'], ...COMMIT },
  },
  'POST /v1/tables/{namespace}/{table}/upgrade': {
    id: 'upgradeTable',
    tag: 'changes',
    summary: 'Adds format properties that the table lacks, or has of an older format',
    body: { kind: 'json', schema: bodies.Nothing, required: false },
    answers: { 200: { description: 'a report', content: views.ChangedProperties } },
    problems: COMMIT,
  },
  'POST /v1/tables/{namespace}/{table}/schema': {
    id: 'changeSchema',
    tag: 'changes',
    summary: 'Adds, renames, drops, promotes columns, or makes them optional, in one commit',
    body: { kind: 'json', schema: bodies.SchemaChanges, required: true },
    answers: { 200: { description: 'a report', content: views.ChangedSchema } },
    problems: { 400: ['bad-evolution', 'bad-column-name', 'unknown-type'], 422: ['column-in-use'], ...COMMIT },
  },
  'POST /v1/tables/{namespace}/{table}/partition-spec': {
    id: 'changePartitionSpec',
    tag: 'changes',
    summary: 'Adds and removes partition fields; new rows are written by the new spec, files keep theirs',
    body: { kind: 'json', schema: bodies.SpecChanges, required: true },
    answers: { 200: { description: 'a report', content: views.ChangedSpec } },
    problems: {
      400: ['bad-spec', 'bad-transform', 'unknown-transform', 'unknown-partition-field'],
      422: ['spec-fixed', 'too-many-specs'],
      ...COMMIT,
    },
  },
  'GET /v1/tables/{namespace}/{table}/files': {
    id: 'listFiles',
    tag: 'history',
    summary: 'Live data files counted, whole and by partition: sizes, small files, tiers',
    parameters: [
      query('limit', 'partitions of the page', { ...whole, default: 100 }),
      query('offset', 'number of the partition at which the page begins', { type: 'integer', minimum: 0, default: 0 }),
    ],
    answers: { 200: { description: 'one page', content: views.FileList } },
    problems: { 422: ['too-many-manifests'] },
  },
  'GET /v1/tables/{namespace}/{table}/snapshots': {
    id: 'listSnapshots',
    tag: 'history',
    summary: 'Retained snapshots, newest first',
    parameters: [
      query('limit', 'entries of the page', { ...whole, default: 100 }),
      query('before', 'sequence number below which the page begins', { type: 'string', pattern: '^[0-9]{1,19}$' }),
    ],
    answers: { 200: { description: 'one page', content: views.Snapshots } },
  },
  'GET /v1/tables/{namespace}/{table}/refs': {
    id: 'listRefs',
    tag: 'history',
    summary: 'Branches and tags',
    answers: { 200: { description: 'all of them', content: views.Refs } },
  },
  'GET /v1/tables/{namespace}/{table}/refs/{ref}': {
    id: 'readRef',
    tag: 'history',
    summary: 'One branch or tag',
    answers: { 200: { description: 'the ref', content: views.Ref } },
    problems: { 404: ['unknown-ref'] },
  },
  'PUT /v1/tables/{namespace}/{table}/refs/{ref}': {
    id: 'setRef',
    tag: 'history',
    summary: 'Creates a branch or tag, or changes it',
    body: { kind: 'json', schema: bodies.Ref, required: false },
    answers: {
      201: { description: 'created', content: views.SetRef },
      200: { description: 'changed, or as asked already', content: views.SetRef },
    },
    problems: {
      400: ['bad-ref'],
      409: [...COMMIT[409], 'unknown-snapshot'],
      422: ['main-fixed', 'no-snapshot', 'too-many-refs'],
      504: COMMIT[504],
    },
  },
  'DELETE /v1/tables/{namespace}/{table}/refs/{ref}': {
    id: 'dropRef',
    tag: 'history',
    summary: 'Drops a branch or tag',
    parameters: [EXPECTED],
    answers: { 200: { description: 'a report', content: views.Changed } },
    problems: { 404: ['unknown-ref'], 422: ['main-fixed'], ...COMMIT },
  },
  'POST /v1/tables/{namespace}/{table}/refs/{ref}/fast-forward': {
    id: 'fastForward',
    tag: 'history',
    summary: 'Moves a branch to another ref that descends from it',
    body: { kind: 'json', schema: bodies.FastForward, required: true },
    answers: { 200: { description: 'a report', content: views.ChangedRef } },
    problems: { 404: ['unknown-ref'], 409: [...COMMIT[409], 'not-fast-forward'], 504: COMMIT[504] },
  },
  'POST /v1/tables/{namespace}/{table}/rollback': {
    id: 'rollback',
    tag: 'history',
    summary: 'Takes rows and progress back to a snapshot',
    body: { kind: 'json', schema: bodies.Rollback, required: true },
    answers: { 200: { description: 'a report', content: views.RolledBack } },
    problems: { 409: [...COMMIT[409], 'unknown-snapshot'], 504: COMMIT[504] },
  },
  'POST /v1/tables/{namespace}/{table}/expire': {
    id: 'expire',
    tag: 'history',
    summary: 'Removes snapshots and refs past their time',
    parameters: [DRY_RUN],
    body: { kind: 'json', schema: bodies.Expire, required: false },
    answers: { 200: { description: 'a report', content: views.Expired } },
    problems: COMMIT,
  },
  'POST /v1/tables/{namespace}/{table}/maintain': {
    id: 'maintain',
    tag: 'changes',
    summary: 'Upkeep: retention, compaction, expiry, deletion of what is due, and sweeps of orphans',
    parameters: [DRY_RUN],
    body: { kind: 'json', schema: bodies.Maintain, required: false },
    answers: { 200: { description: 'a report', content: views.Maintained } },
    problems: { 422: ['gc-disabled', 'too-many-manifests'], ...COMMIT },
  },
  'POST /v1/tables/{namespace}/{table}/delete': {
    id: 'deleteFiles',
    tag: 'changes',
    summary: 'Deletes whole files that a filter covers',
    body: { kind: 'json', schema: bodies.Delete, required: true },
    answers: { 200: { description: 'a report', content: views.ChangedFiles } },
    problems: COMMIT,
  },
  'POST /v1/tables/{namespace}/{table}/overwrite': {
    id: 'overwriteFiles',
    tag: 'changes',
    summary: 'Puts the rows of the body in the place of files that a filter covers, in one commit',
    parameters: [
      { ...query('filter', 'JSON, as in the body of delete'), required: true },
      ...ROW_PARAMETERS,
      CONTENT_ENCODING,
    ],
    body: { kind: 'rows' },
    answers: { 200: { description: 'a report', content: views.OverwrittenFiles } },
    problems: { 400: ['empty-body'], 422: ['invalid-rows', 'schema-mismatch'], ...COMMIT },
  },
  'POST /v1/tables/{namespace}/{table}/rewrite-manifests': {
    id: 'rewriteManifests',
    tag: 'changes',
    summary: 'Lists the same files in fewer manifests',
    body: { kind: 'json', schema: bodies.Nothing, required: false },
    answers: { 200: { description: 'a report', content: views.ChangedFiles } },
    problems: COMMIT,
  },
};

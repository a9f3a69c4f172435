import { METRICS_TABLES_MAX } from '../../core/base/limits.ts';
import { ROWS_LIMIT } from '../../core/base/read-limits.ts';
import { Attachment, Definition } from '../definition.ts';
import { JSON_MEDIA_TYPES } from '../rows.ts';
import { ROWS_ANSWER_TYPES } from '../rows-answer.ts';
import {
  CONTENT_ENCODING,
  DELIMITER,
  IDEMPOTENCY_KEY,
  type Operation,
  PREFER,
  query,
  ROW_PARAMETERS,
  whole,
} from './operation.ts';
import * as views from './views.ts';

/** Slugs by which a body of rows is refused, besides those of its table. */
const ROW_PROBLEMS: Readonly<Record<number, readonly string[]>> = {
  400: [
    'empty-body',
    'malformed-body',
    'malformed-json',
    'malformed-utf8',
    'malformed-gzip',
    'malformed-deflate',
    'malformed-zstd',
    'truncated-body',
    'trailing-data',
    'body-interrupted',
  ],
  413: ['body-too-large', 'line-too-long', 'too-many-rows', 'too-large', 'column-too-large'],
  415: ['unsupported-media-type', 'unsupported-encoding', 'unsupported-compression'],
  422: ['invalid-rows', 'schema-mismatch', 'too-many-partitions'],
};

/** Tables as such, and rows. Paths as routes have them, with parameters in braces. */
export const TABLE_OPERATIONS: Readonly<Record<string, Operation>> = {
  'GET /health': {
    id: 'health',
    tag: 'service',
    summary: 'Tells that the service runs',
    answers: { 200: { description: 'it does', content: views.Health } },
  },
  'GET /ping': {
    id: 'ping',
    tag: 'service',
    summary: 'What clients of InfluxDB ask before they write',
    answers: { 204: { description: 'the service runs', content: null } },
  },
  'GET /openapi.json': {
    id: 'describeInterface',
    tag: 'service',
    summary: 'This document',
    answers: { 200: { description: 'the document', content: 'application/json' } },
  },
  'GET /v1/tables': {
    id: 'listTables',
    tag: 'tables',
    summary: 'Lists the tables of the lake that the token may read, a page at a time',
    parameters: [
      query('after', 'namespace/table behind which the page begins'),
      query('limit', 'entries of the page', { ...whole, default: 100 }),
    ],
    answers: { 200: { description: 'one page', content: views.Tables } },
    problems: { 400: ['malformed'], 503: ['store-unavailable'] },
  },
  'POST /v1/infer': {
    id: 'inferDefinition',
    tag: 'tables',
    summary: 'Proposes a definition for a table that takes rows like those of a sample',
    description: 'Points are taken as text/plain. Nothing is made or kept.',
    parameters: [
      DELIMITER,
      query('precision', 'what times of points count', { enum: ['ns', 'us', 'ms', 's'], default: 'ns' }),
      query('measurement', 'of points: the one to look at; the first when left out'),
      CONTENT_ENCODING,
    ],
    body: { kind: 'rows' },
    answers: {
      200: { description: 'a definition that can be put as it is, and why it is so', content: views.Inferred },
    },
    problems: { ...ROW_PROBLEMS, 400: [...ROW_PROBLEMS[400], 'bad-column-name', 'bad-definition', 'bad-schema'] },
  },
  'GET /v1/metrics': {
    id: 'readLakeMetrics',
    tag: 'service',
    summary: 'Metrics of the tables that the token may read, in the text format of Prometheus',
    parameters: [
      query('after', 'namespace/table behind which the page begins'),
      query('limit', 'tables of the page', { ...whole, maximum: METRICS_TABLES_MAX, default: METRICS_TABLES_MAX }),
    ],
    answers: { 200: { description: 'one page; Link leads to the next', content: 'text/plain' } },
    problems: { 400: ['malformed'], 503: ['store-unavailable'] },
  },
  'GET /v1/tables/{namespace}/{table}/metrics': {
    id: 'readMetrics',
    tag: 'service',
    summary: 'Metrics of one table, in the text format of Prometheus',
    answers: { 200: { description: 'what its object counts and holds', content: 'text/plain' } },
  },
  'PUT /v1/tables/{namespace}/{table}': {
    id: 'createTable',
    tag: 'tables',
    summary: 'Creates a table',
    body: { kind: 'json', schema: Definition, required: true },
    answers: {
      201: { description: 'created', content: views.CreatedTable },
      200: { description: 'the same columns and layout were there', content: views.CreatedTable },
    },
    problems: {
      400: ['bad-definition', 'bad-schema', 'bad-column-name', 'bad-property', 'unknown-type', 'unsupported-type'],
      409: ['table-exists', 'commit-conflict'],
      504: ['commit-unknown'],
    },
  },
  'GET /v1/tables/{namespace}/{table}': {
    id: 'describeTable',
    tag: 'tables',
    summary: 'Schema, layout and snapshot of a table, and the status of its buffer',
    answers: { 200: { description: 'the table', content: views.DescribedTable } },
  },
  'DELETE /v1/tables/{namespace}/{table}': {
    id: 'dropTable',
    tag: 'tables',
    summary: 'Drops a table, and the rows that wait for it',
    answers: { 200: { description: 'dropped', content: views.DroppedTable } },
    problems: { 409: ['commit-conflict'], 504: ['commit-unknown'] },
  },
  'POST /v1/tables/{namespace}/{table}/attach': {
    id: 'attachTable',
    tag: 'tables',
    summary: 'Takes over a table that another writer made',
    body: { kind: 'json', schema: Attachment, required: false },
    answers: { 200: { description: 'served from now on', content: views.AttachedTable } },
    problems: {
      400: ['not-attachable', 'ambiguous-metadata'],
      409: ['commit-conflict'],
      422: ['unsupported-format-version'],
      504: ['commit-unknown'],
    },
  },
  'GET /v1/tables/{namespace}/{table}/rows': {
    id: 'readRows',
    tag: 'rows',
    summary: 'Rows of a table by time and series, oldest or newest first',
    description:
      'Every other parameter is a column and a value that it has; given more than once, any of them. For looking at what is in the table: rows that wait in the buffer are not in it.',
    parameters: [
      query('from', 'time from which rows are asked for, ISO 8601; a date is its midnight in UTC'),
      query('to', 'time up to which, itself not among them'),
      query('columns', 'names of the columns to answer, separated by commas; all when left out'),
      query('limit', 'rows at most', { ...whole, maximum: ROWS_LIMIT.max, default: ROWS_LIMIT.default }),
      query('order', 'by time', { enum: ['asc', 'desc'], default: 'asc' }),
      query('snapshot_id', 'a snapshot to read instead of the newest', { type: 'string', pattern: '^[0-9]{1,19}$' }),
      query('ref', 'a branch or tag to read instead of main'),
      query('is_null', 'a column that rows have no value of'),
    ],
    columns: true,
    answers: {
      200: {
        description: 'the rows; what is told beside them stands in headers x-sluice-… too',
        content: views.Rows,
        also: ROWS_ANSWER_TYPES.filter((type) => type !== 'application/json'),
      },
    },
    problems: {
      400: ['malformed', 'no-time-column', 'unknown-snapshot'],
      404: ['unknown-ref'],
      406: ['not-acceptable'],
      422: ['too-much-to-read', 'too-many-manifests', 'delete-files', 'unsupported-file'],
    },
  },
  'POST /v1/tables/{namespace}/{table}/rows': {
    id: 'appendRows',
    tag: 'rows',
    summary: 'Takes the rows of the body, all or none, as one batch',
    parameters: [
      ...ROW_PARAMETERS,
      query('app', 'name of a producer that counts its batches; with epoch'),
      query('epoch', 'number of the batch, the last one plus 1', { type: 'string', pattern: '^[0-9]{1,19}$' }),
      query('epochs', 'sparse: any higher epoch may be the next', { enum: ['dense', 'sparse'], default: 'dense' }),
      query('branch', 'branch to append to, without app and epoch', { type: 'string', default: 'main' }),
      CONTENT_ENCODING,
      IDEMPOTENCY_KEY,
      PREFER,
    ],
    body: { kind: 'rows' },
    answers: {
      202: { description: 'buffered durably; Location is the receipt', content: views.Accepted },
      201: { description: 'committed, when it was waited for', content: views.Accepted },
      200: { description: 'taken before, or without rows', content: views.AcceptedOrEmpty },
    },
    problems: {
      ...ROW_PROBLEMS,
      400: [...ROW_PROBLEMS[400], 'bad-ref'],
      404: ['unknown-ref'],
      409: ['table-changed', 'epoch-gap', 'epoch-behind', 'app-parked', 'app-retiring'],
      422: [...ROW_PROBLEMS[422], 'idempotency-conflict', 'epoch-conflict', 'too-many-apps', 'commit-refused'],
      429: ['busy'],
    },
  },
  'GET /v1/tables/{namespace}/{table}/latest': {
    id: 'readLatest',
    tag: 'rows',
    summary: 'The newest row of each series',
    description:
      'Every other parameter is a column of the series key and a value that it has; given more than once, any of them. The newest row has the latest time, of those the latest ingest time, of those the one that was committed last.',
    parameters: [
      query('buffered', 'rows that wait in the buffer count too', { type: 'boolean', default: false }),
      query('is_null', 'a column of the series key that rows have no value of'),
    ],
    columns: true,
    answers: {
      200: {
        description: 'one row a series; what is told beside them stands in headers x-sluice-… too',
        content: views.Latest,
        also: ROWS_ANSWER_TYPES.filter((type) => type !== 'application/json'),
      },
    },
    problems: {
      400: ['malformed', 'no-time-column'],
      406: ['not-acceptable'],
      422: ['no-last-value-index', 'too-many-manifests', 'too-much-to-read'],
    },
  },
  'POST /v1/tables/{namespace}/{table}/enqueue': {
    id: 'enqueueRows',
    tag: 'rows',
    summary: 'Puts the rows of the body, NDJSON or JSON, into the queue',
    description: 'Neither the table nor its object is asked; rows that do not fit the table become dead letters.',
    parameters: [CONTENT_ENCODING, IDEMPOTENCY_KEY],
    body: { kind: 'rows', types: JSON_MEDIA_TYPES },
    unasked: true,
    answers: {
      202: { description: 'in the queue durably', content: views.Queued },
      200: { description: 'without rows', content: views.NoneQueued },
    },
    problems: {
      ...ROW_PROBLEMS,
      403: ['table-not-queued'],
      413: ['body-too-large', 'line-too-long', 'too-many-rows'],
      415: ['unsupported-media-type', 'unsupported-encoding'],
      422: ['invalid-rows'],
      503: ['queue-unavailable'],
    },
  },
  'POST /v1/tables/{namespace}/{table}/flush': {
    id: 'flush',
    tag: 'rows',
    summary: 'Commits what is buffered now',
    answers: {
      200: { description: 'committed', content: views.Flushed },
      202: { description: 'it could not be committed and will be tried again', content: views.Flushed },
    },
  },
  'GET /v1/tables/{namespace}/{table}/receipts/{id}': {
    id: 'readReceipt',
    tag: 'rows',
    summary: 'What became of a batch',
    answers: { 200: { description: 'the receipt', content: views.Receipt } },
    problems: { 404: ['unknown-receipt'] },
  },
  'POST /api/v2/write': {
    id: 'writePoints',
    tag: 'rows',
    summary: 'Takes points in line protocol, as clients of InfluxDB 2 send them',
    description: 'Errors are JSON with code and message of InfluxDB beside the members of a problem.',
    parameters: [
      { ...query('bucket', 'namespace of the tables that measurements name'), required: true },
      query('precision', 'what a time counts', { enum: ['ns', 'us', 'ms', 's'], default: 'ns' }),
      query('org', 'not looked at'),
      ROW_PARAMETERS[0],
      CONTENT_ENCODING,
      IDEMPOTENCY_KEY,
    ],
    body: { kind: 'points' },
    answers: { 204: { description: 'buffered durably', content: null } },
    problems: {
      400: ['partial-write', 'malformed-line', 'malformed', 'bad-name', 'malformed-gzip', 'body-interrupted'],
      413: ['body-too-large', 'too-many-rows', 'too-many-tables'],
      415: ['unsupported-encoding'],
      429: ['busy'],
      503: ['table-changed'],
    },
  },
  'GET /v1/tables/{namespace}/{table}/apps/{app}': {
    id: 'readApp',
    tag: 'producers',
    summary: 'Progress of a producer',
    answers: { 200: { description: 'its epochs', content: views.App } },
    problems: { 404: ['unknown-app'] },
  },
  'POST /v1/tables/{namespace}/{table}/apps/{app}/skip': {
    id: 'skipEpoch',
    tag: 'producers',
    summary: 'Gives a refused epoch up',
    parameters: [{ ...query('epoch', 'the refused epoch'), required: true }],
    answers: { 202: { description: 'what waited behind it follows', content: views.Receipt } },
    problems: { 409: ['app-not-parked', 'app-busy'] },
  },
  'POST /v1/tables/{namespace}/{table}/apps/{app}/replace': {
    id: 'replaceEpoch',
    tag: 'producers',
    summary: 'Puts other rows in the place of a refused epoch',
    parameters: [{ ...query('epoch', 'the refused epoch'), required: true }, ...ROW_PARAMETERS, CONTENT_ENCODING],
    body: { kind: 'rows' },
    answers: { 202: { description: 'buffered, and what waited behind it follows', content: views.Receipt } },
    problems: { ...ROW_PROBLEMS, 409: ['app-not-parked', 'app-busy', 'table-changed'] },
  },
  'POST /v1/tables/{namespace}/{table}/apps/{app}/retire': {
    id: 'retireApp',
    tag: 'producers',
    summary: 'Lets a producer leave the table with the next commit',
    answers: { 202: { description: 'its progress', content: views.App } },
    problems: { 404: ['unknown-app'], 409: ['app-busy'] },
  },
};

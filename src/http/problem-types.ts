/** What a slug means, and the status where the kind's own does not fit. */
export interface ProblemType {
  /** One line for people; the same for every occurrence. */
  title: string;
  status?: number;
}

/**
 * Every problem type of the service: the last segment of `type` in a problem body, and `type` of a `SluiceError`. The
 * slugs are stable; a client may act on them. A test holds this table against the source.
 */
export const PROBLEM_TYPES: Readonly<Record<string, ProblemType>> = {
  // The request as such.
  'not-found': { title: 'There is nothing at this address', status: 404 },
  'method-not-allowed': { title: 'The address does not take this method', status: 405 },
  unauthorized: { title: 'A valid bearer token is needed', status: 401 },
  forbidden: { title: 'The token does not allow this', status: 403 },
  malformed: { title: 'A value of the request has another shape than asked' },
  internal: { title: 'The service met an error it did not expect', status: 500 },

  // The body of a batch.
  'unsupported-media-type': { title: 'The format of the body is not known', status: 415 },
  'unsupported-encoding': { title: 'The content encoding of the body is not known', status: 415 },
  'empty-body': { title: 'The body is empty' },
  'malformed-body': { title: 'The body is not what its content type says' },
  'malformed-json': { title: 'The text is not JSON' },
  'malformed-utf8': { title: 'The text is not UTF-8' },
  'malformed-gzip': { title: 'The body is not whole gzip' },
  'truncated-body': { title: 'The body ends too early; nothing of it was taken' },
  'trailing-data': { title: 'The body goes on behind its end' },
  'body-interrupted': { title: 'The connection ended before the body was whole' },
  'body-too-large': { title: 'The inflated body is larger than a batch may be', status: 413 },
  'line-too-long': { title: 'One row is larger than a row may be', status: 413 },
  'too-many-rows': { title: 'The batch has more rows than a flush takes', status: 413 },
  'too-large': { title: 'The batch is larger than a flush takes', status: 413 },
  'column-too-large': { title: 'One column of the batch is larger than a column may be', status: 413 },
  'invalid-rows': { title: 'Rows do not fit the table; none of the batch was taken', status: 422 },
  'lone-surrogate': { title: 'A text holds a lone surrogate, which has no UTF-8 form', status: 422 },
  'wrong-type': { title: 'A value has another type than its column', status: 422 },
  'bad-value': { title: 'A value does not fit its type', status: 422 },
  'decimal-overflow': { title: 'A decimal has more digits than its column', status: 422 },
  'null-in-required-column': { title: 'A required column holds a null', status: 422 },
  'incompatible-type': { title: 'A column cannot be read as the type asked for' },

  // Batches, epochs and flushes.
  'idempotency-conflict': { title: 'The idempotency key stands for another body', status: 422 },
  'too-many-apps': { title: 'The table tracks as many apps as it can' },
  'commit-refused': { title: 'The batch was refused when it was to be committed', status: 422 },
  'unknown-receipt': { title: 'The receipt is not known, or not any more', status: 404 },
  'too-many-partitions': { title: 'The rows of the batch lie in too many partitions', status: 422 },
  busy: { title: 'The buffer of the table is full; send the batch again later', status: 429 },

  // Tables and their definitions.
  'unknown-table': { title: 'There is no such table', status: 404 },
  'not-attached': { title: 'The table is not served here', status: 404 },
  'not-attachable': { title: 'The table cannot be served' },
  'table-exists': { title: 'The name is taken' },
  'table-changed': { title: 'The table was changed or made again meanwhile' },
  'table-newer': { title: 'The table was written by newer software' },
  'table-unreadable': { title: 'The table cannot be read at the moment' },
  'ambiguous-metadata': { title: 'There is more than one answer to what the current metadata is' },
  'table-gone': { title: 'The table was removed', status: 404 },
  'table-dropped': { title: 'The table was dropped before the batch was in it', status: 404 },
  'table-replaced': { title: 'Another table took the place of the one the batch was for', status: 409 },
  'bad-definition': { title: 'The definition of the table is wrong' },
  'bad-schema': { title: 'The schema is wrong' },
  'bad-column-name': { title: 'The name of a column is not allowed' },
  'bad-name': { title: 'The name of a namespace or table is not allowed' },
  'bad-location': { title: 'The location is not usable' },
  'outside-lake': { title: 'The location lies outside of the lake' },
  'bad-property': { title: 'A table property has a value that is not allowed' },
  'bad-spec': { title: 'The partition spec is wrong' },
  'bad-transform': { title: 'A transform does not fit its column' },
  'bad-sort-order': { title: 'The sort order is wrong' },
  'bad-metadata': { title: 'The table metadata is not valid' },
  'bad-evolution': { title: 'The schema cannot be changed in this way' },
  'bad-update': { title: 'An update of the table metadata is wrong' },
  'unsupported-update': { title: 'The update needs a later format version' },
  'unsupported-requirement': { title: 'The requirement is not known' },
  'location-fixed': { title: 'The location of a table never changes' },
  'metadata-too-large': { title: 'The table metadata is larger than it may be' },
  'unsortable-column': { title: 'Rows cannot be ordered by this column' },
  'unknown-sort-field': { title: 'The sort order names a field that the schema does not have' },
  'unknown-partition-field': { title: 'A partition field has no column in the schema' },
  'unsupported-partition': { title: 'Rows cannot be partitioned by this column' },
  'unknown-dedup-field': { title: 'The series key names a field that the schema does not have' },
  'unknown-transform': { title: 'The transform is not known' },
  'unknown-type': { title: 'The type is not known' },
  'unsupported-type': { title: 'The type needs a later format version' },
  'unsupported-format-version': { title: 'The format version of the table is not served' },

  // Commits.
  'commit-conflict': { title: 'Other changes came first, too often in a row' },
  'snapshot-exists': { title: 'The snapshot is in the table already' },
  'stale-sequence-number': { title: 'Another commit took the sequence number' },
  'unknown-snapshot': { title: 'The snapshot is not in the table' },
  'snapshot-referenced': { title: 'A branch or tag stands at the snapshot' },
  'commit-unknown': { title: 'The commit may have happened; ask again before sending it again' },

  // The service and its store.
  'bad-settings': { title: 'The configuration of the service is wrong', status: 500 },
  'store-unavailable': { title: 'The object store gave no clear answer' },
  'ledger-newer': { title: 'The ledger was written by newer software' },
  'frame-version-unknown': { title: 'A buffered batch was written by newer software' },
  'intent-form': { title: 'An open intent was written in another form', status: 500 },
  'avro-corrupt': { title: 'An Avro file is corrupt' },
  'avro-codec-unsupported': { title: 'An Avro file is compressed in a way that is not read' },
  'bad-single-value': { title: 'A bound in a manifest has the wrong form' },
  'deflate-corrupt': { title: 'Compressed data is corrupt' },
  'epochs-corrupt': { title: 'The progress in the snapshot summary is corrupt' },
  'foreign-location': { title: 'A file of the table lies where it cannot be reached' },
  'frame-corrupt': { title: 'A buffered batch is corrupt' },
  'location-moved': { title: 'The table says it lies elsewhere' },
  'manifest-corrupt': { title: 'A manifest is corrupt' },
  'manifest-list-missing': { title: 'The manifest list of a snapshot is missing' },
  'manifest-missing': { title: 'A manifest of a snapshot is missing' },
  'metadata-corrupt': { title: 'The table metadata is corrupt' },
  'parquet-corrupt': { title: 'A Parquet file is corrupt' },
  'version-too-large': { title: 'The version number in the table is too large' },
  'versions-vanish': { title: 'Versions of the table vanish while they are read' },
  'zstd-corrupt': { title: 'Compressed data is corrupt' },
};

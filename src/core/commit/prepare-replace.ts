import { assert } from '../base/assert.ts';
import type { Deflate, Digest } from '../base/codecs.ts';
import { ADDED } from '../iceberg/manifest.ts';
import { schemaById, specById } from '../iceberg/metadata.ts';
import type { DataFile, ManifestEntry, TableMetadata } from '../iceberg/types.ts';
import type { Upload } from '../sink.ts';
import { tableSettings } from '../table/properties.ts';
import { addedManifest } from './added-manifest.ts';
import type { CommitIdentity, ReplaceInput, ReplaceOperation } from './operation.ts';
import type { Layout } from './premises.ts';
import { ChangedFiles, tupleKey } from './select-files.ts';
import { isBetween, spansOf } from './spans.ts';

/** Files of one partition, and those that take their place. */
export interface Run {
  /** Live entries as a base lists them, with their numbers. */
  inputs: readonly ManifestEntry[];
  outputs: readonly DataFile[];
}

/**
 * A replacement of files by others with the same rows, made once. Outputs get the highest data sequence number of their
 * run's inputs: equality deletes that came after those still hit them, and those before do not (C4, B131).
 *
 * Throws AssertionError on what a compaction must never ask for: runs across partitions (C6), more rows than before, or
 * fewer without dedup (C1), one input twice, an output under the path of an input (Q9).
 */
export function prepareReplace(input: {
  identity: CommitIdentity;
  /** The base the runs were planned on. */
  metadata: TableMetadata;
  /** What the outputs were written with; all inputs are of its partition spec. */
  layout: Layout;
  runs: readonly Run[];
  /** Outputs that the commit is to upload; none for those that are in the store already. */
  uploads: readonly Upload[];
  place: { location: string; prefix: string };
  deflate: Deflate;
  digest: Digest;
}): ReplaceOperation {
  const { identity, metadata, layout, runs } = input;
  const schema = schemaById(metadata, layout.schemaId);
  const spec = specById(metadata, layout.specId);
  assert(schema !== null && spec !== null, 'the table knows the layout of the outputs');
  assert(runs.length > 0, 'a replace has at least one run');
  const { dedup } = tableSettings(metadata.properties);
  const inputs: ReplaceInput[] = [];
  const entries: ManifestEntry[] = [];
  const added = new ChangedFiles();
  const spans = new Set<string>();
  for (const run of runs) {
    const sequenceNumber = checkRun(run, dedup);
    spans.add(`${sequenceNumber} ${tupleKey(0, run.inputs[0].dataFile.partition)}`);
    for (const { dataFile, sequenceNumber: own } of run.inputs) {
      const { filePath, partition } = dataFile;
      inputs.push({ path: filePath, partition, sequenceNumber: own ?? sequenceNumber, highest: sequenceNumber });
    }
    for (const dataFile of run.outputs) {
      const { snapshotId } = identity;
      entries.push({ status: ADDED, snapshotId, sequenceNumber, fileSequenceNumber: null, dataFile });
      added.add(layout.specId, dataFile);
    }
  }
  const paths = [...inputs.map(({ path }) => path), ...entries.map(({ dataFile }) => dataFile.filePath)];
  assert(new Set(paths).size === paths.length, 'no file is replaced twice or by itself');
  // Two runs up to one commit's files would each put older rows beside the other's.
  if (dedup)
    assert(spans.size === runs.length && areContiguous(inputs), 'runs of one partition do not reach into each other');
  const manifest = addedManifest(input, { schema, spec }, entries);
  return {
    kind: 'replace',
    commitId: identity.commitId,
    uploads: [...input.uploads, { key: manifest.key, bytes: manifest.bytes }],
    identity,
    layout,
    inputs,
    dedup,
    manifest,
    added: added.sums(),
  };
}

/** The data sequence number of the run's outputs. */
function checkRun({ inputs, outputs }: Run, dedup: boolean): bigint {
  assert(inputs.length > 0 && outputs.length > 0, 'a run has inputs and outputs');
  const partition = tupleKey(0, inputs[0].dataFile.partition);
  const files = [...inputs.map(({ dataFile }) => dataFile), ...outputs];
  assert(
    files.every((file) => file.content === 0 && tupleKey(0, file.partition) === partition),
    'a run stays in one partition',
  );
  const sum = (list: readonly DataFile[]) => list.reduce((rows, file) => rows + file.recordCount, 0n);
  const before = sum(inputs.map(({ dataFile }) => dataFile));
  const after = sum(outputs);
  assert(dedup ? after <= before : after === before, `a run keeps its rows: ${before} before, ${after} after`);
  let highest = 0n;
  for (const { sequenceNumber } of inputs) {
    assert(sequenceNumber !== null, 'an input has a data sequence number');
    if (sequenceNumber > highest) highest = sequenceNumber;
  }
  return highest;
}

/** With dedup no input of one run has a number inside another run of its partition. */
function areContiguous(inputs: readonly ReplaceInput[]): boolean {
  const spans = spansOf(inputs);
  return inputs.every(({ partition, sequenceNumber, highest }) =>
    (spans.get(tupleKey(0, partition)) ?? []).every(
      (span) => span.highest === highest || !isBetween(sequenceNumber, span),
    ),
  );
}

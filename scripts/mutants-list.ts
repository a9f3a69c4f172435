/** One change of one file: a text that must be there exactly once, and what takes its place. */
export interface Change {
  file: string;
  from: string;
  to: string;
}

/** A fault that the simulator must find. */
export interface Mutant {
  name: string;
  /** What would go wrong, for who reads the table. */
  why: string;
  changes: Change[];
}

const COMMITTER = 'src/engine/committer.ts';

/** Own commits are not looked for any more, neither after a write nor before a decision nor when an intent is taken over. */
const NO_READ_BACK: Change[] = [
  {
    file: COMMITTER,
    from: `      const found = this.#sink.find(change, base);
      if (found !== null) return { look: 'own', base, found, error: null };`,
    to: `      const found = null;`,
  },
  {
    file: COMMITTER,
    from: `    const found = base === null ? null : this.#sink.find(change, base);
    if (found !== null) return { kind: 'settled', found };`,
    to: '',
  },
  {
    file: 'src/engine/intent-runner.ts',
    from: `const found = base === null ? null : this.#table.sink.findCommit(base, intent.commitId);`,
    to: `const found = null as Found | null;`,
  },
];

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'no read-back',
    why: 'a refused write is taken for a lost race, although the version there may be our own',
    changes: NO_READ_BACK,
  },
  {
    name: 'cleanup on unknown',
    why: 'files of an attempt are deleted while its write may still land',
    changes: [
      {
        file: COMMITTER,
        from: `            marks.hit('unknown');`,
        to: `            marks.hit('unknown');
            await this.#ports.store.delete(decision.uploads.map((upload) => upload.key)).catch(() => undefined);`,
      },
    ],
  },
  {
    name: 'epoch check outside the loop',
    why: 'progress is compared once, before the first attempt, and not on the base of each',
    changes: [
      {
        file: 'src/core/commit/decide-append.ts',
        from: `  if ((epochs.get(app) ?? 0n) >= operation.first) return { kind: 'again', reason: 'a part is committed already' };`,
        to: '',
      },
      {
        file: 'src/core/commit/decide-append.ts',
        from: `    if (placeOf({ epoch: first, sparse }, epochs.get(producer) ?? null) !== 'next') {`,
        to: `    if (placeOf({ epoch: first, sparse }, epochs.get(producer) ?? null) === 'gap' && nowMs < 0) {`,
      },
    ],
  },
  {
    name: 'epochs not carried by replace',
    why: 'a compaction loses the progress of producers',
    changes: [
      {
        file: 'src/core/commit/snapshot-of.ts',
        from: `epochs: progress === 'carry' ? 'carry' : serializeEpochs(progress),`,
        to: `epochs: plan.operation === 'replace' ? null : progress === 'carry' ? 'carry' : serializeEpochs(progress),`,
      },
      {
        file: 'src/core/commit/snapshot-of.ts',
        from: `    branch !== MAIN || progress === 'carry'
      ? []`,
        to: `    branch !== MAIN || progress === 'carry' || plan.operation === 'replace'
      ? []`,
      },
      {
        file: 'src/core/iceberg/snapshot.ts',
        from: `  for (let steps = 0; steps < byId.size && next !== undefined; steps++) {
    const snapshot = byId.get(next);
    if (snapshot === undefined) return;`,
        to: `  for (let steps = 0; steps < byId.size && next !== undefined; steps++) {
    const snapshot = byId.get(next);
    if (snapshot === undefined || (steps > 0 && snapshot.summary.operation === 'replace')) return;`,
      },
    ],
  },
  {
    name: 'no uuid check',
    why: 'rows of a dropped table land in the one made anew',
    changes: [
      {
        file: 'src/core/commit/decide-append.ts',
        from: `  if (metadata['table-uuid'] !== intent.tableUuid) {`,
        to: `  if (metadata['table-uuid'] !== intent.tableUuid && tableSettings(metadata.properties).dropped) {`,
      },
    ],
  },
  {
    name: 'created trusted without confirmation: late',
    why: 'a stalled writer wins an old number whose file was trimmed',
    changes: [
      {
        file: COMMITTER,
        from: `write.answer === 'created' && isFresh(confirmedMs, clock.now(), FENCE_MS)`,
        to: `write.answer === 'created' && isFresh(confirmedMs, confirmedMs, FENCE_MS)`,
      },
    ],
  },
  {
    name: 'created trusted without confirmation: base',
    why: 'the base is not confirmed before the write',
    changes: [
      {
        file: COMMITTER,
        from: `    return confirmation.holds();`,
        to: `    return confirmation.holds() || true;`,
      },
    ],
  },
  {
    name: 'own bytes trusted without the chain',
    why: 'the target holds our bytes, so the commit is believed, whatever the newest version says',
    changes: [
      {
        file: COMMITTER,
        from: `        const seen = await this.#look(change, target);`,
        to: `        const there = await this.#ports.store.get(this.#sink.versionKey(target)).catch(() => null);
        if (there !== null && there.bytes.length === decision.bytes.length && there.bytes.every((b, i) => b === decision.bytes[i])) {
          const next = decision.next(there.etag);
          return { outcome: 'committed', base: next, found: this.#sink.find(change, next) as Found, own: true };
        }
        const seen = await this.#look(change, target);`,
      },
    ],
  },
  {
    name: 'replace asks inputs before own commit',
    why: 'a late own replace reads as a conflict, and its live outputs are thrown away',
    changes: [
      {
        file: COMMITTER,
        from: `    const found = base === null ? null : this.#sink.find(change, base);
    if (found !== null) return { kind: 'settled', found };`,
        to: `    const isReplace = (change as unknown as { kind?: string }).kind === 'replace';
    const found = base === null || isReplace ? null : this.#sink.find(change, base);
    if (found !== null) return { kind: 'settled', found };`,
      },
      {
        file: COMMITTER,
        from: `discardable: isSure };
        }`,
        to: `discardable: true };
        }`,
      },
    ],
  },
  {
    name: 'own epoch = flush number',
    why: 'the number of a flush is no number of a batch: ranges that overlap are not seen',
    changes: [
      {
        file: 'src/core/commit/prepare-append.ts',
        from: `    last: BigInt(input.last),`,
        to: `    last: BigInt(Math.ceil(intent.first / 4)),`,
      },
    ],
  },
  {
    name: 'restored ledger not noticed',
    why: 'numbers are given out a second time, and batches under them swallowed',
    changes: [
      {
        file: 'src/engine/ledger-check.ts',
        from: `if (watermark !== null && watermark > BigInt(state.lastSequence)) {`,
        to: `if (watermark !== null && watermark < 0n) {`,
      },
    ],
  },
  {
    name: 'rows of a branch go to main',
    why: 'an intent does not say which branch its batches are for',
    changes: [
      {
        file: 'src/engine/table-writer.ts',
        from: `      ...(isMain ? {} : { branch: range.branch }),`,
        to: '',
      },
    ],
  },
  {
    name: 'a branch that went takes the whole buffer',
    why: 'the refusal of a branch is taken for one of the table',
    changes: [
      {
        file: 'src/engine/intent-runner.ts',
        from: `            this.#ports.ledger.settle(this.#refusal(result.type, result.message));`,
        to: `            this.#ports.ledger.discard(this.#refusal(result.type, result.message));`,
      },
    ],
  },
  {
    name: 'a refused batch skips the whole flush',
    why: 'one producer’s bad batch takes everybody’s with it',
    changes: [
      {
        file: 'src/engine/intent-runner.ts',
        from: `      if (selection.included.length === 0) {`,
        to: `      if (selection.included.length === 0 || selection.leftOut.some(({ outcome }) => outcome !== 'committed')) {`,
      },
    ],
  },
  {
    name: 'metadata written without our own load check',
    why: 'a version that nobody can load becomes the newest; planted with a fault that makes one',
    changes: [
      {
        file: COMMITTER,
        from: `        this.#sink.parseBase(target, decision.bytes, '');`,
        to: '',
      },
      {
        file: 'src/core/commit/snapshot-of.ts',
        from: `    bytes: utf8(serializeMetadata(next)),`,
        to: `    bytes: utf8(
      serializeMetadata(
        next.snapshots.length % 5 === 4 ? { ...next, 'last-sequence-number': next['last-sequence-number'] - 1n } : next,
      ),
    ),`,
      },
    ],
  },
  {
    name: 'index made again of an older snapshot',
    why: 'rows that came while the newest of each series were looked for are missing in the index, which is believed',
    changes: [
      {
        file: 'src/core/commit/decide-index.ts',
        from: `  if (currentSnapshot(metadata)?.['snapshot-id'] !== covers) {`,
        to: `  if (currentSnapshot(metadata)?.['snapshot-id'] !== covers && nowMs < 0) {`,
      },
      {
        file: 'src/core/commit/decide-index.ts',
        from: `hasIndex(metadata, operation) || currentSnapshot(metadata)?.['snapshot-id'] !== operation.covers`,
        to: `hasIndex(metadata, operation)`,
      },
    ],
  },
  {
    name: 'index carried over a delete',
    why: 'the index answers with rows that were deleted',
    changes: [
      {
        file: 'src/core/commit/last-value.ts',
        from: `  return { lastValueIndex: null, noIndex: timeColumn === null ? null : 'rows-removed' };`,
        to: `  return timeColumn === null ? { lastValueIndex: null } : SAME_INDEX;`,
      },
    ],
  },
  {
    name: 'index of a retained snapshot erased',
    why: 'what is reachable is told without indexes, so one that is carried on goes with the snapshot that made it',
    changes: [
      {
        file: 'src/engine/reach.ts',
        from: `    strike(namedByMetadata(metadata, metadata.snapshots));`,
        to: `    strike([...namedByMetadata(metadata, metadata.snapshots)].filter((location) => !location.includes('/lvi-')));`,
      },
    ],
  },
  {
    name: 'a file overwritten under its key',
    why: 'names come from the intent and not from the content, and creation has no condition',
    changes: [
      {
        file: 'src/core/commit/make-files.ts',
        from: `    const hash = input.digest([seedOf(identity.commitId), bytes]);`,
        to: `    const hash = input.digest([seedOf(identity.commitId), new TextEncoder().encode(folder)]);`,
      },
      {
        file: 'src/engine/uploader.ts',
        from: `persevere(ports, () => ports.store.putIfAbsent(upload.key, upload.bytes))`,
        to: `persevere(ports, async () => {
    const there = await ports.store.head(upload.key);
    if (there === null) return ports.store.putIfAbsent(upload.key, upload.bytes);
    return ports.store.putIf(upload.key, upload.bytes, there.etag);
  })`,
      },
    ],
  },
];

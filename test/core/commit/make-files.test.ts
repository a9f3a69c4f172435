import { describe, expect, test } from 'vitest';
import { makeFiles, rowsOf } from '../../../src/core/commit/make-files.ts';
import { codecs } from '../../../src/engine/codecs.ts';
import { PLACE } from '../../sim/service.ts';
import { PureTable, row } from './pure-table.ts';

describe('files of a commit', () => {
  test('names: equal for one commit run twice, different for two commits of the same rows at the same time', () => {
    const table = new PureTable();
    const identity = table.identity();
    const keysOf = (commitId: string) => {
      const columns = rowsOf([table.frame([row(0, 1), row(1, 2)])], table.metadata, identity.timeMs);
      const input = { identity: { ...identity, commitId }, metadata: table.metadata, place: PLACE, ...codecs };
      return makeFiles(columns, input).uploads.map(({ key }) => key);
    };
    const once = keysOf(identity.commitId);
    expect(once).toHaveLength(3);
    expect(keysOf(identity.commitId)).toEqual(once);
    const other = keysOf('00'.repeat(16));
    expect(other.filter((key) => once.includes(key))).toEqual([]);
  });
});

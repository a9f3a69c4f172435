import { expect } from 'vitest';
import { utf8 } from '../../src/core/base/bytes.ts';
import type { Theirs } from '../../src/core/commit/conflicts.ts';
import type { Operation } from '../../src/core/commit/operation.ts';
import { currentSchema, serializeMetadata } from '../../src/core/iceberg/metadata.ts';
import { applyUpdates, type MetadataUpdate } from '../../src/core/iceberg/updates.ts';
import type { Scenario } from '../sim/scenario.ts';
import { PLACE, type SeriesRow, type Service } from '../sim/service.ts';
import {
  commit,
  deleteOf,
  metadataOf,
  ofDay,
  on,
  overwriteOf,
  replaceOf,
  rewriteManifestsOf,
} from './file-operations.ts';

/** What another service or writer does while an operation of ours waits before its conditional write. */

export type Rows = readonly SeriesRow[];

/** Rows of the table before the race: two files on the first day, two on the second. */
export const BEFORE: Rows = [on(0, 1), on(0, 2), on(1, 3), on(1, 4)];
export const dayOf = (row: SeriesRow) => Number((row.time - BigInt(Date.UTC(2026, 0, 1)) * 1000n) / 86_400_000_000n);
export const without = (rows: Rows, day: number) => rows.filter((row) => dayOf(row) !== day);

/** Another writer's version, made of updates alone. */
export async function update({ world }: Scenario, other: Service, ...updates: MetadataUpdate[]): Promise<void> {
  const base = await world.clock.until(other.table.load());
  const version = base?.version ?? 0;
  const context = {
    nowMs: world.clock.now(),
    previousMetadataLocation: `${PLACE.location}/metadata/v${version}.metadata.json`,
  };
  const next = applyUpdates(metadataOf(other), updates, context);
  await world.memory.putIfAbsent(
    `${PLACE.prefix}/metadata/v${version + 1}.metadata.json`,
    utf8(serializeMetadata(next)),
  );
}

/** Does their change on `day` where it is about files; gives the rows after it. */
export async function doTheirs(theirs: Theirs, day: number, scenario: Scenario, other: Service): Promise<Rows> {
  const { world } = scenario;
  await world.clock.until(other.table.load());
  const done = async (operation: Operation) => {
    expect((await commit(world, other, operation)).outcome).toBe('committed');
  };
  const head = metadataOf(other);
  switch (theirs) {
    case 'append': {
      const row = on(day, 70, 'theirs');
      await world.clock.until(other.append([row]));
      await other.drain();
      return [...BEFORE, row];
    }
    case 'replace':
      await done(
        await replaceOf(
          world,
          other,
          day,
          BEFORE.filter((row) => dayOf(row) === day),
        ),
      );
      return BEFORE;
    case 'delete':
      await done(deleteOf(world, other, ofDay(day)));
      return without(BEFORE, day);
    case 'overwrite': {
      const row = on(day, 71, 'theirs');
      await done(overwriteOf(world, other, ofDay(day), [row]));
      return [...without(BEFORE, day), row];
    }
    case 'rewrite-manifests':
      await done(rewriteManifestsOf(world, other));
      return BEFORE;
    case 'expire': {
      const [oldest] = head.snapshots;
      await update(scenario, other, { action: 'remove-snapshots', 'snapshot-ids': [oldest['snapshot-id']] });
      return BEFORE;
    }
    case 'layout': {
      const schema = currentSchema(head);
      const fields = [
        ...schema.fields,
        { id: head['last-column-id'] + 1, name: 'w', required: false, type: 'long' as const },
      ];
      await update(
        scenario,
        other,
        { action: 'add-schema', schema: { ...schema, fields } },
        { action: 'set-current-schema', 'schema-id': -1 },
      );
      return BEFORE;
    }
    case 'properties':
      await update(scenario, other, { action: 'set-properties', updates: { owner: 'them' } });
      return BEFORE;
    case 'refs':
      await update(scenario, other, {
        action: 'set-snapshot-ref',
        'ref-name': 'b',
        type: 'branch',
        'snapshot-id': head.snapshots[0]['snapshot-id'],
      });
      return BEFORE;
    case 'rollback': {
      // Back to before the second day's last row, or to before the first day's.
      const to = head.snapshots[day === 1 ? 2 : 0];
      await update(scenario, other, {
        action: 'set-snapshot-ref',
        'ref-name': 'main',
        type: 'branch',
        'snapshot-id': to['snapshot-id'],
      });
      return BEFORE.slice(0, day === 1 ? 3 : 1);
    }
    case 'drop':
      await world.clock.until(other.admin.drop());
      return [];
  }
}

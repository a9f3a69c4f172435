import ledger from '../../migrations/0001_ledger.sql';
import doomed from '../../migrations/0002_doomed.sql';
import branches from '../../migrations/0003_branches.sql';
import upkeep from '../../migrations/0004_upkeep.sql';
import intents from '../../migrations/0005_intents.sql';
import { unavailable } from '../core/base/errors.ts';

/** In order; a migration's number is its place here. They only add, so that an older build can be seen to be older. */
const MIGRATIONS: readonly string[] = [ledger, doomed, branches, upkeep, intents];

/**
 * Brings the object's database to this build's schema, all or nothing.
 *
 * @throws unavailable `ledger-newer` when a newer build has been here: this one must not touch what it does not know.
 */
export function migrate(storage: DurableObjectStorage): void {
  const { sql } = storage;
  storage.transactionSync(() => {
    sql.exec(
      'CREATE TABLE IF NOT EXISTS schema_version (id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL)',
    );
    const rows = sql.exec<{ version: number }>('SELECT version FROM schema_version').toArray();
    const version = rows[0]?.version ?? 0;
    if (version > MIGRATIONS.length) {
      throw unavailable(
        'ledger-newer',
        `ledger was written by a newer build: version=${version} known=${MIGRATIONS.length}`,
      );
    }
    if (version === MIGRATIONS.length) return;
    for (const migration of MIGRATIONS.slice(version)) sql.exec(migration);
    sql.exec('INSERT OR REPLACE INTO schema_version (id, version) VALUES (1, ?)', MIGRATIONS.length);
  });
}

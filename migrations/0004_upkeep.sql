-- When upkeep that follows from the table's metadata is due next: known to an incarnation that has not loaded the table.
ALTER TABLE ledger ADD COLUMN chores_due_ms INTEGER;
-- When the last sweep of orphans ended.
ALTER TABLE ledger ADD COLUMN swept_ms INTEGER;

-- Uploads in parts that were begun and not ended: the store lists none, and a crash would leave them to its own time.
CREATE TABLE uploads (
  upload_id       TEXT    PRIMARY KEY,
  key             TEXT    NOT NULL,
  begun_ms        INTEGER NOT NULL
) WITHOUT ROWID;

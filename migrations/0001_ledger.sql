-- The ledger of one table: what was accepted and is not yet in the table, the commit under way, receipts and batch ids.
-- Migrations only add. Sequence numbers, versions and times stay below 2^53; 64-bit ids are kept as text.

CREATE TABLE ledger (
  id              INTEGER PRIMARY KEY CHECK (id = 1),
  ledger_id       TEXT    NOT NULL,
  earlier_ids     TEXT    NOT NULL, -- JSON: [{ledgerId, last}], identities given up and their highest sequence
  floor_sequence  INTEGER NOT NULL, -- highest sequence that left the buffer
  last_time_ms    INTEGER NOT NULL, -- latest intent time
  table_uuid      TEXT,
  table_version   INTEGER,
  hinted_version  INTEGER NOT NULL,
  last_commit     TEXT,             -- JSON
  last_error      TEXT              -- JSON
);

-- One row holds the frames of all requests that arrived together: rows written are billed one by one, whatever
-- their size. A group larger than a row may be goes on in further rows (part 1, 2, ...). The blob comes last, so
-- that reading headers does not touch its pages.
CREATE TABLE frame_groups (
  position        INTEGER PRIMARY KEY,
  part            INTEGER NOT NULL,
  accepted_ms     INTEGER NOT NULL,
  frames          TEXT    NOT NULL, -- JSON headers, on part 0
  body            BLOB    NOT NULL
);

CREATE TABLE intents (
  kind            TEXT    PRIMARY KEY,
  body            TEXT    NOT NULL, -- JSON
  targets         TEXT    NOT NULL, -- JSON: versions written or about to be
  failures        INTEGER NOT NULL,
  retry_ms        INTEGER NOT NULL
) WITHOUT ROWID;

-- What became of a range of sequences: one row a flush, not one a batch.
CREATE TABLE receipts (
  last_sequence   INTEGER PRIMARY KEY,
  first_sequence  INTEGER NOT NULL,
  settled_ms      INTEGER NOT NULL,
  receipt         TEXT    NOT NULL  -- JSON
);

-- Producers that keep their progress in the table. The digests of an app's last epochs recognise a replay.
CREATE TABLE apps (
  app             TEXT    PRIMARY KEY,
  recent          TEXT    NOT NULL, -- JSON: [[epoch, digest, sequence], ...], newest first
  parked          TEXT,             -- JSON: {epoch, type, message, atMs}
  retiring        INTEGER NOT NULL  -- 1: leaves the progress map with the next commit
) WITHOUT ROWID;

-- Batches of parked apps: the refused one first, then those that came behind it. Parts as in frame_groups.
CREATE TABLE parked_frames (
  position        INTEGER PRIMARY KEY,
  part            INTEGER NOT NULL,
  frame           TEXT    NOT NULL, -- JSON header, on part 0
  body            BLOB    NOT NULL
);

-- Sequences that a batch gave up when its app went on: its receipt is that of another.
CREATE TABLE moved (
  sequence        INTEGER PRIMARY KEY,
  target          INTEGER NOT NULL
);

CREATE TABLE batches (
  batch_id        TEXT    PRIMARY KEY,
  digest          TEXT    NOT NULL,
  sequence        INTEGER NOT NULL,
  accepted_ms     INTEGER NOT NULL
) WITHOUT ROWID;

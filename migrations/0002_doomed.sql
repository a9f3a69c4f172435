-- Keys of files that an expiry makes unreachable, queued for deletion. One row holds up to a thousand: rows written are
-- billed one by one.
CREATE TABLE doomed (
  position        INTEGER PRIMARY KEY,
  not_before_ms   INTEGER NOT NULL,
  keys            TEXT    NOT NULL  -- JSON
);

-- may change: changes
-- What the distiller has read, what an import has done, and what a model has cost.

ALTER TABLE sessions ADD COLUMN newest INTEGER NOT NULL DEFAULT 0;      -- the number of its last event
ALTER TABLE sessions ADD COLUMN distilled INTEGER NOT NULL DEFAULT 0;   -- the last event that its memories tell of
UPDATE sessions SET newest = coalesce((SELECT max(number) FROM events WHERE session = sessions.id), 0);
CREATE INDEX sessions_waiting ON sessions (last) WHERE newest > distilled;

-- How far something has come that may be interrupted: an import, a backfill.
CREATE TABLE marks (
  name TEXT PRIMARY KEY,
  text TEXT NOT NULL,
  at   REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE ledger (
  number     INTEGER PRIMARY KEY,
  at         REAL NOT NULL,
  provider   TEXT NOT NULL,
  model      TEXT NOT NULL,
  purpose    TEXT NOT NULL,
  session    TEXT NOT NULL DEFAULT '',
  tokens_in  INTEGER NOT NULL,
  tokens_out INTEGER NOT NULL,
  ms         REAL NOT NULL,
  outcome    TEXT NOT NULL
);
CREATE INDEX ledger_at ON ledger (at);

-- A session is distilled again and again while it goes on: of one function it tells one change.
DELETE FROM changes WHERE number NOT IN (SELECT max(number) FROM changes GROUP BY project, session, file, function);
CREATE UNIQUE INDEX changes_once ON changes (project, session, file, function);

-- What memories were good for, who changed what, what must not come back, which project is which, and what was counted.

-- The store's own: whoever keeps a known memory again leaves these as they are.
ALTER TABLE memories ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memories ADD COLUMN used INTEGER NOT NULL DEFAULT 0;        -- times it was given and made use of
ALTER TABLE memories ADD COLUMN ignored INTEGER NOT NULL DEFAULT 0;     -- times it was given for nothing
ALTER TABLE injection_items ADD COLUMN how TEXT NOT NULL DEFAULT '';    -- what told whether it was used
-- What is put aside or waits for the user, by kind; what is active has an index of its own.
CREATE INDEX memories_aside ON memories (owner, kind, created DESC) WHERE status <> 'active';
CREATE INDEX memories_proposed ON memories (created DESC) WHERE status = 'proposed';
CREATE INDEX injection_items_unjudged ON injection_items (injection) WHERE used IS NULL;
CREATE INDEX access_session ON access (session, at) WHERE session <> '';

-- Every change that somebody made on purpose, with what it takes to undo it.
CREATE TABLE log (
  number  INTEGER PRIMARY KEY AUTOINCREMENT,
  at      REAL NOT NULL,
  who     TEXT NOT NULL,               -- user, agent, tidy, worker
  what    TEXT NOT NULL,
  why     TEXT NOT NULL DEFAULT '',
  run     TEXT NOT NULL DEFAULT '',    -- what was done together
  project TEXT NOT NULL DEFAULT '',
  patch   TEXT NOT NULL DEFAULT '{}',
  undone  INTEGER NOT NULL DEFAULT 0   -- the number of the entry that took it back
);
CREATE INDEX log_run ON log (run) WHERE run <> '';
CREATE TABLE log_memories (
  memory TEXT NOT NULL,
  number INTEGER NOT NULL,
  PRIMARY KEY (memory, number)
) WITHOUT ROWID;

-- What was forgotten, as keyed hashes: no import may bring it back. A backup of an older schema may have them already.
CREATE TABLE IF NOT EXISTS tombstones (
  hash BLOB PRIMARY KEY,
  what TEXT NOT NULL,
  at   REAL NOT NULL
) WITHOUT ROWID;

-- The projects that were seen; one that is another's alias counts as that one.
CREATE TABLE projects (
  key      TEXT PRIMARY KEY,
  name     TEXT NOT NULL DEFAULT '',
  root     TEXT NOT NULL DEFAULT '',   -- where it was seen last
  roots    TEXT NOT NULL DEFAULT '[]', -- everywhere it was seen, the last first
  alias_of TEXT NOT NULL DEFAULT '',
  first    REAL NOT NULL DEFAULT 0,
  last     REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- Which rows were another project's before a merge, by its entry in the log: what it takes to undo it.
CREATE TABLE moved (
  entry INTEGER NOT NULL,
  what  TEXT NOT NULL,                 -- a table
  row   NOT NULL,                      -- the key of a row in it
  was   TEXT NOT NULL DEFAULT '',      -- what cannot be worked out again
  PRIMARY KEY (entry, what, row)
) WITHOUT ROWID;

-- What is only counted: silences, sizes.
CREATE TABLE tallies (
  day     TEXT NOT NULL,
  project TEXT NOT NULL,
  what    TEXT NOT NULL,
  number  REAL NOT NULL,
  PRIMARY KEY (day, project, what)
) WITHOUT ROWID;

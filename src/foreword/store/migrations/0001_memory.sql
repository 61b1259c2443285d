-- The first schema. Times are Unix seconds as REAL; lists and details are JSON text.

CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

-- Whose memory it is: one number for each scope (universal, language:X, project:KEY).
CREATE TABLE owners (
  number INTEGER PRIMARY KEY,
  scope  TEXT NOT NULL UNIQUE,
  newest INTEGER NOT NULL DEFAULT 0    -- the last sequence number given out
);

-- place = owner << 32 | sequence, so that a scope is one range of rowids: a search reads only its own postings.
CREATE TABLE memories (
  place         INTEGER PRIMARY KEY,
  id            TEXT NOT NULL UNIQUE,
  uid           TEXT NOT NULL UNIQUE,
  owner         INTEGER NOT NULL REFERENCES owners (number),
  kind          TEXT NOT NULL,
  title         TEXT NOT NULL,
  body          TEXT NOT NULL DEFAULT '',
  tags          TEXT NOT NULL DEFAULT '[]',
  files         TEXT NOT NULL DEFAULT '[]',
  functions     TEXT NOT NULL DEFAULT '[]',
  split         TEXT NOT NULL DEFAULT '',
  project       TEXT NOT NULL DEFAULT '',
  session       TEXT NOT NULL DEFAULT '',
  source        TEXT NOT NULL,
  trust         TEXT NOT NULL,
  confidence    REAL NOT NULL,
  seen          INTEGER NOT NULL,
  created       REAL NOT NULL,
  confirmed     REAL NOT NULL,
  status        TEXT NOT NULL DEFAULT 'active',
  superseded_by TEXT NOT NULL DEFAULT '',
  detail        TEXT NOT NULL DEFAULT '{}'
);
CREATE INDEX memories_recent ON memories (owner, kind, created DESC) WHERE status = 'active';
CREATE INDEX memories_session ON memories (session) WHERE session <> '';

CREATE TABLE links (
  source   TEXT NOT NULL,
  relation TEXT NOT NULL,
  target   TEXT NOT NULL,
  at       REAL NOT NULL,
  PRIMARY KEY (source, relation, target)
) WITHOUT ROWID;
CREATE INDEX links_target ON links (target);

CREATE TABLE sessions (
  id      TEXT PRIMARY KEY,
  host    TEXT NOT NULL,
  project TEXT NOT NULL,
  cwd     TEXT NOT NULL,
  started REAL NOT NULL,
  last    REAL NOT NULL,
  ended   REAL NOT NULL DEFAULT 0,
  window  REAL NOT NULL DEFAULT 0,     -- when its present context window began (start, clear, compaction)
  events  INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX sessions_recent ON sessions (project, last DESC);

CREATE TABLE events (
  number  INTEGER PRIMARY KEY,
  key     TEXT NOT NULL,
  host    TEXT NOT NULL,
  name    TEXT NOT NULL,
  kind    TEXT NOT NULL,
  session TEXT NOT NULL,
  project TEXT NOT NULL,
  cwd     TEXT NOT NULL,
  at      REAL NOT NULL,
  payload TEXT NOT NULL
);
CREATE INDEX events_key ON events (key);
CREATE INDEX events_session ON events (session, number);

CREATE TABLE changes (
  number    INTEGER PRIMARY KEY,
  project   TEXT NOT NULL,
  file      TEXT NOT NULL,
  function  TEXT NOT NULL,
  what      TEXT NOT NULL CHECK (what IN ('NEW', 'MODIFIED', 'DELETED')),
  signature TEXT NOT NULL DEFAULT '',
  line      INTEGER NOT NULL DEFAULT 0,
  end_line  INTEGER NOT NULL DEFAULT 0,
  session   TEXT NOT NULL DEFAULT '',
  at        REAL NOT NULL
);
CREATE INDEX changes_recent ON changes (project, at DESC);

CREATE TABLE injections (
  id       TEXT PRIMARY KEY,
  moment   TEXT NOT NULL,
  session  TEXT NOT NULL,
  project  TEXT NOT NULL,
  host     TEXT NOT NULL,
  at       REAL NOT NULL,
  tokens   INTEGER NOT NULL,
  budget   INTEGER NOT NULL,
  build_ms REAL NOT NULL,
  layers   TEXT NOT NULL,
  skipped  TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX injections_session ON injections (session, at);
CREATE INDEX injections_recent ON injections (project, at DESC);

CREATE TABLE injection_items (
  injection TEXT NOT NULL REFERENCES injections (id),
  number    INTEGER NOT NULL,
  memory    TEXT NOT NULL,
  layer     TEXT NOT NULL,
  score     REAL NOT NULL,
  tokens    INTEGER NOT NULL,
  why       TEXT NOT NULL,
  used      INTEGER,                   -- NULL until judged
  PRIMARY KEY (injection, number)
) WITHOUT ROWID;
CREATE INDEX injection_items_memory ON injection_items (memory);

-- Who fetched a memory, and how: shown alone is not access.
CREATE TABLE access (
  memory  TEXT NOT NULL,
  at      REAL NOT NULL,
  how     TEXT NOT NULL,
  session TEXT NOT NULL DEFAULT ''
);
CREATE INDEX access_memory ON access (memory, at DESC);

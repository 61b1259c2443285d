-- The whole schema, of the version `SCHEMA` in sql.py. Times are Unix seconds as REAL; lists and details are JSON text.
-- A new database is made by it, and so is what an old one lacks (`foreword index`): every statement can be repeated.
-- A change goes here and, for the databases that exist, into a step of migrations.py; both must lead to the same tables.

-- What the store knows of itself: the key of the tombstones, and since when the words index is behind.
CREATE TABLE IF NOT EXISTS meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

-- The scopes that memories are in (universal, language:X, project:KEY), one number each.
CREATE TABLE IF NOT EXISTS owners (
  number INTEGER PRIMARY KEY,
  scope  TEXT NOT NULL UNIQUE,
  newest INTEGER NOT NULL DEFAULT 0    -- the last sequence number given out
);

-- The memories. place = owner << 32 | sequence, so that a scope is one range of rowids: a search reads only its own
-- postings. Whoever keeps a known memory again leaves pinned, used and ignored as they are.
CREATE TABLE IF NOT EXISTS memories (
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
  split         TEXT NOT NULL DEFAULT '',    -- the parts of its names, for the words index
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
  detail        TEXT NOT NULL DEFAULT '{}',
  pinned        INTEGER NOT NULL DEFAULT 0,
  used          INTEGER NOT NULL DEFAULT 0,  -- times it was injected and used
  ignored       INTEGER NOT NULL DEFAULT 0   -- times it was injected for nothing
);
CREATE INDEX IF NOT EXISTS memories_recent ON memories (owner, kind, created DESC) WHERE status = 'active';
CREATE INDEX IF NOT EXISTS memories_session ON memories (session) WHERE session <> '';
CREATE INDEX IF NOT EXISTS memories_aside ON memories (owner, kind, created DESC) WHERE status <> 'active';
-- For the viewer's list of all projects, newest first, with its filters: read without the memories' texts.
CREATE INDEX IF NOT EXISTS memories_newest ON memories (created DESC, status, kind, owner, project, trust, pinned);

-- The index of the memories' words. It must stay readable by SQLite 3.40.1 (the stdlib of Python 3.11): no
-- secure-delete option, no tokenizer of our own.
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
  title, body, tags, files, split,
  content = 'memories', content_rowid = 'place',
  tokenize = 'porter unicode61 remove_diacritics 2'
);

-- The embeddings of memories, by the model in use. `number` grows with every write, so that an index in memory reads
-- only what is new; AUTOINCREMENT, because the number of a row that is gone must not come again.
CREATE TABLE IF NOT EXISTS vectors (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  place  INTEGER NOT NULL UNIQUE,      -- of the memory
  model  TEXT NOT NULL,
  scale  REAL NOT NULL,                -- makes the numbers unit length; 0 where the text has no vector
  blob   BLOB NOT NULL                 -- int8, one byte a number
);
-- Whoever removes a memory removes its vector: texts can be guessed from vectors.
CREATE TRIGGER IF NOT EXISTS vectors_gone AFTER DELETE ON memories BEGIN
  DELETE FROM vectors WHERE place = old.place;
END;

-- The files and functions that memories name, as they write them.
CREATE TABLE IF NOT EXISTS units (
  number INTEGER PRIMARY KEY,
  name   TEXT NOT NULL UNIQUE
);

-- Which memories name which unit, so that the code of the best hits can find its other memories.
CREATE TABLE IF NOT EXISTS code (
  unit  INTEGER NOT NULL REFERENCES units (number),
  place INTEGER NOT NULL,
  PRIMARY KEY (unit, place)
) WITHOUT ROWID;

-- Relations between memories, such as supersedes, part-of and relates-to.
CREATE TABLE IF NOT EXISTS links (
  source   TEXT NOT NULL,
  relation TEXT NOT NULL,
  target   TEXT NOT NULL,
  at       REAL NOT NULL,
  PRIMARY KEY (source, relation, target)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS links_target ON links (target);

-- Which earlier sessions saw what a later one has seen again: a memory names the newest, and its detail all of them.
CREATE TABLE IF NOT EXISTS sightings (
  session TEXT NOT NULL,
  memory  TEXT NOT NULL,
  PRIMARY KEY (session, memory)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS sightings_memory ON sightings (memory);

-- The sessions of agents. One whose newest event is beyond `extracted` waits to be turned into memories.
CREATE TABLE IF NOT EXISTS sessions (
  id        TEXT PRIMARY KEY,
  host      TEXT NOT NULL,
  project   TEXT NOT NULL,
  cwd       TEXT NOT NULL,
  started   REAL NOT NULL,
  last      REAL NOT NULL,
  ended     REAL NOT NULL DEFAULT 0,
  window    REAL NOT NULL DEFAULT 0,     -- when its present context window began (start, clear, compaction)
  events    INTEGER NOT NULL DEFAULT 0,
  newest    INTEGER NOT NULL DEFAULT 0,  -- the number of its last event
  extracted INTEGER NOT NULL DEFAULT 0   -- the last event that its memories tell of
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS sessions_recent ON sessions (project, last DESC);
CREATE INDEX IF NOT EXISTS sessions_waiting ON sessions (last) WHERE newest > extracted;
-- Of all projects by time: else a page of the timeline sorts every session there is.
CREATE INDEX IF NOT EXISTS sessions_last ON sessions (last DESC, id);

-- What hooks sent, redacted: the source that a session's memories can be made from again.
CREATE TABLE IF NOT EXISTS events (
  number  INTEGER PRIMARY KEY,
  key     TEXT NOT NULL,               -- the same for the same event sent twice
  host    TEXT NOT NULL,
  name    TEXT NOT NULL,
  kind    TEXT NOT NULL,
  session TEXT NOT NULL,
  project TEXT NOT NULL,
  cwd     TEXT NOT NULL,
  at      REAL NOT NULL,
  payload TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS events_key ON events (key);
CREATE INDEX IF NOT EXISTS events_session ON events (session, number);

-- The functions that sessions changed. A session is extracted again while it goes on: of one function it has one row.
CREATE TABLE IF NOT EXISTS changes (
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
CREATE INDEX IF NOT EXISTS changes_recent ON changes (project, at DESC);
CREATE UNIQUE INDEX IF NOT EXISTS changes_once ON changes (project, session, file, function);

-- The answers to triggers: the context that was injected and what was looked for; or, without tokens, why there was none,
-- in numbers and names.
CREATE TABLE IF NOT EXISTS injections (
  id       TEXT PRIMARY KEY,
  trigger  TEXT NOT NULL,
  session  TEXT NOT NULL,
  project  TEXT NOT NULL,
  host     TEXT NOT NULL,
  at       REAL NOT NULL,
  tokens   INTEGER NOT NULL,
  budget   INTEGER NOT NULL,
  build_ms REAL NOT NULL,
  layers   TEXT NOT NULL,
  skipped  TEXT NOT NULL,
  source   TEXT NOT NULL DEFAULT '',
  form     TEXT NOT NULL DEFAULT 'markdown',
  terms    TEXT NOT NULL DEFAULT '[]',
  files    TEXT NOT NULL DEFAULT '[]',
  away     INTEGER NOT NULL DEFAULT 0, -- given by the hook itself, without the worker
  why      TEXT NOT NULL DEFAULT '',   -- nothing was injected: one of `recall.pipeline.REASONS`
  nearest  TEXT NOT NULL DEFAULT '',   -- then the best memory that was considered
  score    REAL NOT NULL DEFAULT 0,
  needed   REAL NOT NULL DEFAULT 0,    -- the score from which on it would have been injected
  spent    INTEGER NOT NULL DEFAULT 0, -- tokens of a context window whose budget is used up ...
  allowed  INTEGER NOT NULL DEFAULT 0  -- ... of so many
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS injections_session ON injections (session, at);
CREATE INDEX IF NOT EXISTS injections_recent ON injections (project, at DESC);
CREATE INDEX IF NOT EXISTS injections_latest ON injections (at);

-- The memories in an injection, in their order, and whether the agent used them.
CREATE TABLE IF NOT EXISTS injection_items (
  injection TEXT NOT NULL REFERENCES injections (id),
  number    INTEGER NOT NULL,
  memory    TEXT NOT NULL,
  layer     TEXT NOT NULL,
  score     REAL NOT NULL,
  tokens    INTEGER NOT NULL,
  why       TEXT NOT NULL,
  used      INTEGER,                   -- NULL until judged
  how       TEXT NOT NULL DEFAULT '',  -- by which sign it was found used
  PRIMARY KEY (injection, number)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS injection_items_memory ON injection_items (memory);
CREATE INDEX IF NOT EXISTS injection_items_unjudged ON injection_items (injection) WHERE used IS NULL;

-- The exact text of an injection. Apart, because rows of 8 KB would make the tree of a table WITHOUT ROWID four rows wide.
CREATE TABLE IF NOT EXISTS injection_texts (
  injection TEXT PRIMARY KEY REFERENCES injections (id),
  text      TEXT NOT NULL
);

-- Who fetched a memory, and how: to be injected alone is not access.
CREATE TABLE IF NOT EXISTS access (
  memory  TEXT NOT NULL,
  at      REAL NOT NULL,
  how     TEXT NOT NULL,
  session TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS access_memory ON access (memory, at DESC);
CREATE INDEX IF NOT EXISTS access_session ON access (session, at) WHERE session <> '';

-- The audit log: every change that somebody made on purpose, with what it takes to undo it.
CREATE TABLE IF NOT EXISTS log (
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
CREATE INDEX IF NOT EXISTS log_run ON log (run) WHERE run <> '';

-- Which memories an entry of the audit log is about.
CREATE TABLE IF NOT EXISTS log_memories (
  memory TEXT NOT NULL,
  number INTEGER NOT NULL,
  PRIMARY KEY (memory, number)
) WITHOUT ROWID;

-- What was forgotten, as keyed hashes: no import may bring it back.
CREATE TABLE IF NOT EXISTS tombstones (
  hash BLOB PRIMARY KEY,
  what TEXT NOT NULL,
  at   REAL NOT NULL
) WITHOUT ROWID;

-- The projects that were seen; one that is another's alias counts as that one.
CREATE TABLE IF NOT EXISTS projects (
  key      TEXT PRIMARY KEY,
  name     TEXT NOT NULL DEFAULT '',
  root     TEXT NOT NULL DEFAULT '',   -- where it was seen last
  roots    TEXT NOT NULL DEFAULT '[]', -- everywhere it was seen, the last first
  alias_of TEXT NOT NULL DEFAULT '',
  first    REAL NOT NULL DEFAULT 0,
  last     REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- What is only counted, by day: recalls, sizes.
CREATE TABLE IF NOT EXISTS tallies (
  day     TEXT NOT NULL,
  project TEXT NOT NULL,
  what    TEXT NOT NULL,
  number  REAL NOT NULL,
  PRIMARY KEY (day, project, what)
) WITHOUT ROWID;

-- How far something has come that may be interrupted: an import, a backfill, a forget.
CREATE TABLE IF NOT EXISTS checkpoints (
  name TEXT PRIMARY KEY,
  text TEXT NOT NULL,
  at   REAL NOT NULL
) WITHOUT ROWID;

-- What each request to a model cost.
CREATE TABLE IF NOT EXISTS model_calls (
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
CREATE INDEX IF NOT EXISTS model_calls_at ON model_calls (at);

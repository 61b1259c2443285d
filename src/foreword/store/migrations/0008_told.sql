-- What sessions tell although it is no longer theirs alone, and why they were told nothing.

-- Which earlier sessions saw what a later one has seen again: a memory names the newest, and its detail all of them.
CREATE TABLE sightings (
  session TEXT NOT NULL,
  memory  TEXT NOT NULL,
  PRIMARY KEY (session, memory)
) WITHOUT ROWID;
CREATE INDEX sightings_memory ON sightings (memory);
INSERT OR IGNORE INTO sightings (session, memory)
  SELECT s.key, m.id FROM memories m, json_each(CASE WHEN json_valid(m.detail) AND json_type(m.detail, '$.seen_in') = 'object'
    THEN m.detail -> '$.seen_in' ELSE '{}' END) s
  WHERE m.session <> '' AND s.key NOT IN ('', 'earlier', m.session);
-- Those of all projects by time: else a page of the timeline sorts every session there is.
CREATE INDEX sessions_last ON sessions (last DESC, id);

-- Why nothing was said when a host asked: numbers and names, none of the words. `away`: the hook kept silent by itself.
CREATE TABLE silences (
  id       TEXT PRIMARY KEY,           -- that of the injection which it would have been
  moment   TEXT NOT NULL,
  source   TEXT NOT NULL DEFAULT '',
  session  TEXT NOT NULL,
  project  TEXT NOT NULL,
  host     TEXT NOT NULL,
  at       REAL NOT NULL,
  why      TEXT NOT NULL,              -- a word of `silences.REASONS`
  budget   INTEGER NOT NULL DEFAULT 0, -- what the answer might have cost
  build_ms REAL NOT NULL DEFAULT 0,
  nearest  TEXT NOT NULL DEFAULT '',   -- the best memory that was weighed
  score    REAL NOT NULL DEFAULT 0,
  needed   REAL NOT NULL DEFAULT 0,    -- the score from which on it would have been said
  spent    INTEGER NOT NULL DEFAULT 0, -- tokens of a context window whose budget is used up ...
  allowed  INTEGER NOT NULL DEFAULT 0, -- ... of so many
  away     INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX silences_session ON silences (session, at);
CREATE INDEX silences_recent ON silences (project, at DESC);

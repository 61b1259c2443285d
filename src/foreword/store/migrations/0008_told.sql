-- What sessions tell although it is no longer theirs alone.

-- Which earlier sessions saw what a later one has seen again: a memory names the newest, and its detail all of them.
CREATE TABLE sightings (
  session TEXT NOT NULL,
  memory  TEXT NOT NULL,
  PRIMARY KEY (session, memory)
) WITHOUT ROWID;
CREATE INDEX sightings_memory ON sightings (memory);
INSERT INTO sightings (session, memory)
  SELECT s.key, m.id FROM memories m, json_each(CASE WHEN json_valid(m.detail) AND json_type(m.detail, '$.seen_in') = 'object'
    THEN m.detail -> '$.seen_in' ELSE '{}' END) s
  WHERE m.session <> '' AND s.key NOT IN ('', 'earlier', m.session);

-- Which memories name which file or function, anew from the memories.
DROP TABLE IF EXISTS code;
DROP TABLE IF EXISTS units;
CREATE TABLE units (
  number INTEGER PRIMARY KEY,
  name   TEXT NOT NULL UNIQUE    -- a path or a function, as memories write it
);

CREATE TABLE code (
  unit  INTEGER NOT NULL REFERENCES units (number),
  place INTEGER NOT NULL,
  PRIMARY KEY (unit, place)
) WITHOUT ROWID;

INSERT INTO units (name)
  SELECT value FROM memories, json_each(CASE WHEN json_valid(files) AND json_type(files) = 'array' THEN files ELSE '[]' END) WHERE type = 'text'
  UNION SELECT value FROM memories, json_each(CASE WHEN json_valid(functions) AND json_type(functions) = 'array' THEN functions ELSE '[]' END) WHERE type = 'text';
INSERT INTO code (unit, place)
  SELECT u.number, m.place FROM memories m, json_each(CASE WHEN json_valid(m.files) AND json_type(m.files) = 'array' THEN m.files ELSE '[]' END) f
    JOIN units u ON u.name = f.value WHERE f.type = 'text'
  UNION SELECT u.number, m.place FROM memories m, json_each(CASE WHEN json_valid(m.functions) AND json_type(m.functions) = 'array' THEN m.functions ELSE '[]' END) f
    JOIN units u ON u.name = f.value WHERE f.type = 'text';

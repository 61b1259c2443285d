-- Which memories name which file or function, so that the code of the best hits can find its other memories.

CREATE TABLE units (
  number INTEGER PRIMARY KEY,
  name   TEXT NOT NULL UNIQUE    -- a path or a function, as memories write it
);

CREATE TABLE code (
  unit  INTEGER NOT NULL REFERENCES units (number),
  place INTEGER NOT NULL,
  PRIMARY KEY (unit, place)
) WITHOUT ROWID;

-- With a memory goes what it names, and a name goes with the last memory that has it.
CREATE TRIGGER code_gone AFTER DELETE ON memories BEGIN
  DELETE FROM code WHERE place = old.place AND unit IN (
    SELECT number FROM units WHERE name IN
      (SELECT value FROM json_each(old.files) UNION SELECT value FROM json_each(old.functions)));
  DELETE FROM units WHERE name IN
      (SELECT value FROM json_each(old.files) UNION SELECT value FROM json_each(old.functions))
    AND NOT EXISTS (SELECT 1 FROM code WHERE unit = number);
END;

INSERT INTO units (name)
  SELECT value FROM memories, json_each(files) UNION SELECT value FROM memories, json_each(functions);
INSERT INTO code (unit, place)
  SELECT u.number, m.place FROM memories m, json_each(m.files) f JOIN units u ON u.name = f.value
  UNION SELECT u.number, m.place FROM memories m, json_each(m.functions) f JOIN units u ON u.name = f.value;

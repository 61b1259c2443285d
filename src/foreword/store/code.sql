-- Which memories name which file or function, anew from the memories.
DELETE FROM code;
DELETE FROM units;
INSERT INTO units (name)
  SELECT value FROM memories, json_each(files) UNION SELECT value FROM memories, json_each(functions);
INSERT INTO code (unit, place)
  SELECT u.number, m.place FROM memories m, json_each(m.files) f JOIN units u ON u.name = f.value
  UNION SELECT u.number, m.place FROM memories m, json_each(m.functions) f JOIN units u ON u.name = f.value;

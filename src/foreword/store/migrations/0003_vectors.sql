-- What memories mean to the model in use. `number` grows with every write, so that an index in memory reads only what
-- is new; AUTOINCREMENT, because the number of a row that is gone must not come again.
CREATE TABLE vectors (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  place  INTEGER NOT NULL UNIQUE,      -- of the memory
  model  TEXT NOT NULL,
  scale  REAL NOT NULL,                -- makes the numbers unit length; 0 where the text has no vector
  blob   BLOB NOT NULL                 -- int8, one byte a number
);

-- Whoever removes a memory removes its vector: texts can be guessed from vectors.
CREATE TRIGGER vectors_gone AFTER DELETE ON memories BEGIN
  DELETE FROM vectors WHERE place = old.place;
END;

-- What was looked for, in which form, and the exact text: an injection can be told again as it was.

ALTER TABLE injections ADD COLUMN source TEXT NOT NULL DEFAULT '';
ALTER TABLE injections ADD COLUMN form TEXT NOT NULL DEFAULT 'markdown';
ALTER TABLE injections ADD COLUMN terms TEXT NOT NULL DEFAULT '[]';
ALTER TABLE injections ADD COLUMN files TEXT NOT NULL DEFAULT '[]';
ALTER TABLE injections ADD COLUMN away INTEGER NOT NULL DEFAULT 0;   -- given by the hook itself, without the worker

-- Apart, because rows of 8 KB would make the tree of a table WITHOUT ROWID four rows wide.
CREATE TABLE injection_texts (
  injection TEXT PRIMARY KEY REFERENCES injections (id),
  text      TEXT NOT NULL
);
CREATE INDEX injections_latest ON injections (at);

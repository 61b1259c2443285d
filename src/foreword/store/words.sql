-- The words index, apart from the migrations because `foreword index` makes it anew. It must stay readable by
-- SQLite 3.40.1 (the stdlib of Python 3.11): no secure-delete option, no tokenizer of our own.
DROP TABLE IF EXISTS words;
CREATE VIRTUAL TABLE words USING fts5 (
  title, body, tags, files, split,
  content = 'memories', content_rowid = 'place',
  tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO words (words) VALUES ('rebuild');

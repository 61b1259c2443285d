-- The words index, apart from the migrations because `foreword index` makes it anew. It must stay readable by
-- SQLite 3.40.1 (the stdlib of Python 3.11): no secure-delete option, no tokenizer of our own.
DROP TABLE IF EXISTS words;
CREATE VIRTUAL TABLE words USING fts5 (
  title, body, tags, files, split,
  content = 'memories', content_rowid = 'place',
  tokenize = 'porter unicode61 remove_diacritics 2'
);
-- A word in the title says most about a memory; one that was cut out of an identifier says as much as one in the body.
INSERT INTO words (words, rank) VALUES ('rank', 'bm25(4.0, 1.0, 2.0, 2.0, 1.0)');
INSERT INTO words (words) VALUES ('rebuild');

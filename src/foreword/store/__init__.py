"""Keep memories and what they came from in SQLite: `sqlite.Store` writes, `reading.Reader` also reads offline."""

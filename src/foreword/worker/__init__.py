"""The worker: one process per user that owns the database; everything else asks it over a Unix socket."""

"""Parse the command line, query the worker, print its answer. No SQL, and no logic of its own."""

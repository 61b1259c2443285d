"""Run background jobs of the worker: extraction, imports, maintenance, usage."""

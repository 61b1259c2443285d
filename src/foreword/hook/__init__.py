"""The hook: one generated file that pipes a host's event to the worker, and manages without it."""

"""The hook: a generated file that passes an agent's event to the worker, and manages without it."""

"""Define the exceptions; each carries a hint that says what to do.

ForewordError
├── BadPayload      an agent sent something that is not an event
├── BadRequest      a request that makes no sense (400)
├── NotFound        an unknown id (404)
├── Conflict        what was to be changed has changed since it was read (409)
├── BadConfig       config.toml, synonyms.toml or an agent's settings cannot be read or extended
├── StoreError      the database cannot be opened, read or written
│   ├── NewerStore      it was written by a newer Foreword
│   └── DamagedIndex    the words index is missing or damaged; the memories are safe
├── EmbedError      no embeddings can be made now; everything else goes on
├── ModelError      the model cannot be reached now; what was made without it stays
└── WorkerError     the worker cannot be started or reached
"""

from __future__ import annotations


class ForewordError(Exception):
    """A failure with its cause in plain words and a hint."""

    def __init__(self, message: str, *, hint: str = "run `foreword doctor`") -> None:
        super().__init__(message)
        self.hint = hint


class BadPayload(ForewordError):
    """An agent sent something that is not an event."""


class BadRequest(ForewordError):
    """A request makes no sense."""


class NotFound(ForewordError):
    """An id is unknown."""


class Conflict(ForewordError):
    """What was to be changed has changed since it was read."""


class BadConfig(ForewordError):
    """A settings file cannot be read."""


class StoreError(ForewordError):
    """The database cannot be opened, read or written."""


class NewerStore(StoreError):
    """The database was written by a newer Foreword."""


class DamagedIndex(StoreError):
    """The words index is missing or damaged; the memories themselves are safe."""


class EmbedError(ForewordError):
    """No embeddings can be made now; everything else goes on."""


class ModelError(ForewordError):
    """The model cannot be reached now; what was made without it stays."""


class WorkerError(ForewordError):
    """The worker cannot be started or reached."""

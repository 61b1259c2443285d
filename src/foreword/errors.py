"""What can go wrong, by name; every error carries a hint that tells the way out.

ForewordError
├── BadPayload      a host sent something that is not an event
├── BadRequest      a caller of the worker asked for something that makes no sense (400)
├── NotFound        an id that nobody knows (404)
├── Conflict        what was to be changed is no longer as it was known (409)
├── BadConfig       config.toml, synonyms.toml or a file of a host's settings cannot be read, or not be added to
├── StoreError      the database cannot be opened, read or written
│   ├── NewerStore      it was written by a newer Foreword
│   └── DamagedIndex    the words index is missing or damaged; the memories are safe
├── EmbedError      texts cannot be given vectors now; everything else goes on
├── ModelError      a model cannot be asked now; what was made without it stays
└── WorkerError     the worker cannot be started or reached
"""

from __future__ import annotations


class ForewordError(Exception):
    """A failure that names the thing and tells the way out."""

    def __init__(self, message: str, *, hint: str = "run `foreword doctor`") -> None:
        super().__init__(message)
        self.hint = hint


class BadPayload(ForewordError):
    """A host sent something that is not an event."""


class BadRequest(ForewordError):
    """A caller asked for something that makes no sense."""


class NotFound(ForewordError):
    """An id that nobody knows."""


class Conflict(ForewordError):
    """What was to be changed is no longer as it was known."""


class BadConfig(ForewordError):
    """A settings file cannot be read."""


class StoreError(ForewordError):
    """The database cannot be opened, read or written."""


class NewerStore(StoreError):
    """The database was written by a newer Foreword."""


class DamagedIndex(StoreError):
    """The words index is missing or damaged; the memories themselves are safe."""


class EmbedError(ForewordError):
    """Texts cannot be given vectors now; everything else goes on."""


class ModelError(ForewordError):
    """A model cannot be asked now; what was made without it stays."""


class WorkerError(ForewordError):
    """The worker cannot be started or reached."""

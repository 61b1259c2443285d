"""Define the exceptions; each carries a hint that says what to do."""

from __future__ import annotations


class ForewordError(Exception):
    """A failure with its cause in plain words and a hint."""

    def __init__(self, message: str, *, hint: str = "run `foreword doctor`") -> None:
        super().__init__(message)
        self.hint = hint


class BadPayload(ForewordError):
    """An agent sent something that is not an event."""


class BadRequest(ForewordError):
    """A request is invalid (400)."""


class NotFound(ForewordError):
    """An id is unknown (404)."""


class Conflict(ForewordError):
    """The thing to change has changed since it was read (409)."""


class BadConfig(ForewordError):
    """config.toml, synonyms.toml or an agent's settings cannot be read or extended."""


class StoreError(ForewordError):
    """The database cannot be opened, read or written."""


class NewerStore(StoreError):
    """The database was written by a newer Foreword."""


class DamagedIndex(StoreError):
    """The words index is missing or damaged; the memories themselves are safe."""


class EmbedError(ForewordError):
    """Embeddings cannot be computed now; everything else works."""


class ModelError(ForewordError):
    """The model cannot be reached now; summaries stay as extraction wrote them."""


class WorkerError(ForewordError):
    """The worker cannot be started or reached."""

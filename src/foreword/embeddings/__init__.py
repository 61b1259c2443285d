"""Texts -> vectors: what an embedder is, which text of a memory it gets, and the one that the settings choose.

Off unless the user turned it on; nothing of this is imported before. Vectors are int8: on the benches they rank as
float32 does (within 0.003), at a quarter of the room.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from foreword.errors import EmbedError
from foreword.models import Memory, Vector
from foreword.terms import split

if TYPE_CHECKING:
    from foreword.config import Settings

INSTALL = "pip install 'foreword[embeddings]'"
TITLE_CHARS, BODY_CHARS, NAMES_CHARS = 500, 3_000, 1_000  # about 1,000 tokens in all; models read 256 to 8,192
PROMPT_CHARS = 2_000


class Embedder(Protocol):
    """Gives texts their vectors. Vectors of different names are never compared."""

    @property
    def name(self) -> str: ...

    @property
    def dim(self) -> int:
        """How many numbers a vector has; 0 where the first answer will tell."""

    @property
    def at_once(self) -> bool:
        """Whether it is so quick that it may be asked while somebody waits."""

    def embed(self, texts: Sequence[str], *, seconds: float, tries: int = 1) -> tuple[Vector, ...]:
        """One vector for each text, within *seconds* a try; an empty one where the text says nothing to the model."""


class TextRefused(EmbedError):
    """The model will not take one of these texts; the others may be well."""


class Paused(EmbedError):
    """It failed a short time ago and is not asked for a while; the failure was reported."""


def chosen(settings: Settings, environ: Mapping[str, str]) -> Embedder | None:
    """The embedder that the settings name, ready for use; None where meaning is off."""
    if settings.embeddings == "off":
        return None
    if settings.embeddings == "local":
        from foreword.embeddings.local import Local

        return Local()
    from foreword.embeddings.remote import Remote

    return Remote(
        endpoint=settings.embeddings_url,
        model=settings.embeddings_model,
        key=_key(settings.embeddings_key_env, environ),
        seconds=settings.embeddings_timeout_ms / 1000,
    )


def text_of(memory: Memory) -> str:
    """What of a memory is embedded: its words, and the names of its code in parts (replay: 0.13 -> 0.16 alone)."""
    named = " ".join((*memory.tags, *memory.files, *memory.functions))
    return f"{memory.title[:TITLE_CHARS]}\n{memory.body[:BODY_CHARS]}\n{(split(named) or named)[:NAMES_CHARS]}".strip()


def text_of_prompt(prompt: str) -> str:
    """A prompt's beginning and end: what is pasted stands between them."""
    half = PROMPT_CHARS // 2
    return prompt if len(prompt) <= PROMPT_CHARS else f"{prompt[:half]}\n{prompt[-half:]}"


def quantized(rows: Any, *, model: str) -> tuple[Vector, ...]:
    """Rows of floats as vectors of whole numbers, each with the factor that makes it unit length."""
    np = numpy()
    given = np.asarray(rows, dtype=np.float32)
    peaks = np.abs(given).max(axis=1, keepdims=True)
    whole = np.rint(given * (127 / np.where(peaks > 0, peaks, 1))).astype(np.int8)
    lengths = np.sqrt(np.square(whole, dtype=np.float32).sum(axis=1))
    return tuple(
        Vector(model=model, scale=1 / float(length), data=row.tobytes()) if length else nothing(model)
        for row, length in zip(whole, lengths, strict=True)
    )


def nothing(model: str) -> Vector:
    """The vector of a text that says nothing to the model; it is near to none, and is not asked for again."""
    return Vector(model=model, scale=0.0, data=b"")


def numpy() -> Any:
    """numpy, or the line that installs it."""
    # Its threads wait for each other by spinning: on a busy machine 100,000 vectors take 60 ms with two, 6 with one.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        import numpy
    except ImportError as exc:
        raise missing("numpy") from exc
    return numpy


def missing(package: str) -> EmbedError:
    return EmbedError(f"`embeddings` needs {package}, which is not installed", hint=INSTALL)


def _key(variable: str, environ: Mapping[str, str]) -> str:
    key = environ.get(variable, "").strip() if variable else ""
    if variable and not key:
        raise EmbedError(
            f"the environment variable {variable} that `embeddings_key_env` names is not set where the worker runs",
            hint=f"export {variable}, then `foreword worker stop`; the next hook starts a worker that knows it",
        )
    return key

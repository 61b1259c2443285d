"""Embed texts: with a table on this disk, or with an OpenAI-compatible endpoint of the user's choice.

Vectors are int8: on the benches they rank as float32 does (within 0.003), at a quarter of the room.
"""

from __future__ import annotations

import importlib.util
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from foreword.config import Settings
from foreword.endpoint import WRONG_SETTING, BadAddress, Endpoint, Failed, Pause, Refused
from foreword.endpoint import Paused as EndpointPaused
from foreword.errors import EmbedError
from foreword.models import Memory, Vector
from foreword.terms import split

INSTALL = "pip install 'foreword[embeddings]'"
TITLE_CHARS, BODY_CHARS, NAMES_CHARS = 500, 3_000, 1_000  # about 1,000 tokens in all; models read 256 to 8,192
PROMPT_CHARS = 2_000
# The table (32,000 x 256, float16) and its tokenizer come in the `wordllama` package, whose own loader looks for them
# in a folder that it does not ship and then downloads them. We read the two files in place.
TABLE, TOKENIZER = "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"
REINSTALL = "install it again: pip install --force-reinstall --no-deps wordllama==0.2.2.post0"
MOST_TOKENS = 1024
BATCH = 32  # texts in a request
MOST_ANSWER = 16 * 1024 * 1024  # bytes; 32 vectors of 3,072 numbers are 2 MB
MOST_NUMBERS = 8192  # in a vector
RETRY_AFTER, LONGEST_RETRY = 0.25, 5.0  # seconds between two tries; an endpoint that wants longer gets a pause
RETRIES = "it is tried again by itself; `foreword config set embeddings off` ends that"
CHECK_SETTINGS = "check `embeddings_url`, `embeddings_model` and the variable that `embeddings_key_env` names"
EXAMPLE_URL = "such as http://127.0.0.1:11434/v1"


class Embedder(Protocol):
    """Gives texts their vectors. Vectors of different names are never compared."""

    @property
    def name(self) -> str: ...

    @property
    def dim(self) -> int:
        """How many numbers a vector has; 0 before the first answer of an endpoint."""

    @property
    def at_once(self) -> bool:
        """Whether it is so quick that it may run while somebody waits."""

    def embed(self, texts: Sequence[str], *, seconds: float, tries: int = 1) -> tuple[Vector, ...]:
        """Return one vector for each text, within *seconds* a try; an empty one where the model finds no token."""


class TextRefused(EmbedError):
    """The model rejects one of these texts; the others may be well."""


class Paused(EmbedError):
    """The endpoint failed a short time ago and is left alone for a while; the failure was reported."""


def choose_embedder(settings: Settings, environ: Mapping[str, str]) -> Embedder | None:
    """Return the embedder that the settings name; None where embeddings are off."""
    if settings.embeddings == "off":
        return None
    if settings.embeddings == "local":
        return Local()
    return Remote(
        endpoint=settings.embeddings_url,
        model=settings.embeddings_model,
        key=_key(settings.embeddings_key_env, environ),
        seconds=settings.embeddings_timeout_ms / 1000,
    )


def text_of(memory: Memory) -> str:
    """Return the text of a memory that is embedded: its words, and the names of its code in parts.

    With the names, vectors alone find 0.16 instead of 0.13 of the replayed prompts' memories.
    """
    names = " ".join((*memory.tags, *memory.files, *memory.functions))
    return f"{memory.title[:TITLE_CHARS]}\n{memory.body[:BODY_CHARS]}\n{(split(names) or names)[:NAMES_CHARS]}".strip()


def text_of_prompt(prompt: str) -> str:
    """Return a prompt's beginning and end: what is pasted is between them."""
    half = PROMPT_CHARS // 2
    return prompt if len(prompt) <= PROMPT_CHARS else f"{prompt[:half]}\n{prompt[-half:]}"


def quantize(rows: Any, *, model: str) -> tuple[Vector, ...]:
    """Return rows of floats as int8 vectors, each with the factor that makes it unit length."""
    np = numpy()
    floats = np.asarray(rows, dtype=np.float32)
    peaks = np.abs(floats).max(axis=1, keepdims=True)
    whole = np.rint(floats * (127 / np.where(peaks > 0, peaks, 1))).astype(np.int8)
    lengths = np.sqrt(np.square(whole, dtype=np.float32).sum(axis=1))
    return tuple(
        Vector(model=model, scale=1 / float(length), data=row.tobytes()) if length else empty_vector(model)
        for row, length in zip(whole, lengths, strict=True)
    )


def empty_vector(model: str) -> Vector:
    """Return the vector of a text without any token; it is near to none, and is not asked for again."""
    return Vector(model=model, scale=0.0, data=b"")


def numpy() -> Any:
    """Import numpy, or say how to install it."""
    # Its threads wait for each other by spinning: on a busy machine 100,000 vectors take 60 ms with two, 6 with one.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        import numpy
    except ImportError as exc:
        raise _missing("numpy") from exc
    return numpy


def _missing(package: str) -> EmbedError:
    return EmbedError(f"`embeddings` needs {package}, which is not installed", hint=INSTALL)


def _key(variable: str, environ: Mapping[str, str]) -> str:
    key = environ.get(variable, "").strip() if variable else ""
    if variable and not key:
        raise EmbedError(
            f"the environment variable {variable} that `embeddings_key_env` names is not set where the worker runs",
            hint=f"export {variable}, then `foreword worker stop`; the next hook starts a worker that knows it",
        )
    return key


class Local:
    """The mean of the tokens' vectors in the table of the `wordllama` package: no network, 0.04 ms a prompt."""

    name = "wordllama-256"
    dim = 256
    at_once = True

    def __init__(self) -> None:
        self._np = numpy()
        try:
            from tokenizers import Tokenizer
        except ImportError as exc:
            raise _missing("tokenizers") from exc
        package = importlib.util.find_spec("wordllama")  # found and not imported
        if package is None or not package.submodule_search_locations:
            raise _missing("wordllama")
        folder = Path(package.submodule_search_locations[0])
        try:
            self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
            self._table = self._mapped(folder / TABLE)
        except Exception as exc:  # the tokenizer's library raises bare Exception
            raise EmbedError(f"the table in {folder} cannot be read: {exc}", hint=REINSTALL) from exc
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MOST_TOKENS)

    def embed(self, texts: Sequence[str], *, seconds: float = 0.0, tries: int = 1) -> tuple[Vector, ...]:
        del seconds, tries  # it neither waits nor fails
        if not texts:
            return ()
        rows = self._np.zeros((len(texts), self.dim), dtype=self._np.float32)
        for row, text in zip(rows, texts, strict=True):
            clean = text.encode("utf-8", "replace").decode("utf-8")  # the tokenizer refuses lone surrogates
            # One by one: a batch would start threads on every core, and somebody is working on this machine.
            tokens = self._tokenizer.encode(clean, add_special_tokens=False).ids
            if tokens:
                row[:] = self._table[tokens].astype(self._np.float32).mean(axis=0)
        return quantize(rows, model=self.name)

    def _mapped(self, path: Path) -> Any:
        """Map the table from the disk: a text touches a few of its rows, and the rest costs no memory."""
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            (header,) = (each for each in json.loads(file.read(size)).values() if "shape" in each)
        if header["dtype"] != "F16" or header["shape"][1] != self.dim:
            raise ValueError(f"a table of {header['dtype']} {header['shape']}")
        start = 8 + size + header["data_offsets"][0]
        return self._np.memmap(path, dtype=self._np.float16, mode="r", offset=start, shape=tuple(header["shape"]))


class Remote:
    """One model at an OpenAI-compatible endpoint."""

    at_once = False

    def __init__(
        self,
        *,
        endpoint: str,
        model: str,
        key: str = "",
        seconds: float = 2.0,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.name = f"remote:{model}"
        self.dim = 0
        self._np = numpy()
        if not endpoint or not model:
            raise EmbedError(
                "`embeddings = remote` needs `embeddings_url` and `embeddings_model`",
                hint=f"{EXAMPLE_URL} and all-minilm, for an Ollama on this machine",
            )
        try:
            self._endpoint = Endpoint(endpoint, key=key)
        except BadAddress as exc:
            raise EmbedError(f"`embeddings_url` {exc}", hint=EXAMPLE_URL) from exc
        self._path = f"{self._endpoint.path.removesuffix('/embeddings')}/embeddings"
        self._model = model
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._seconds = seconds
        self._sleep = sleep
        self._pause = Pause(now=now)

    def embed(self, texts: Sequence[str], *, seconds: float = 0.0, tries: int = 1) -> tuple[Vector, ...]:
        vectors = [empty_vector(self.name)] * len(texts)
        full = [at for at, text in enumerate(texts) if text.strip()]  # endpoints refuse an empty text
        for start in range(0, len(full), BATCH):
            batch = full[start : start + BATCH]
            answer = self._embed([texts[at] for at in batch], seconds=seconds or self._seconds, tries=tries)
            for at, vector in zip(batch, answer, strict=True):
                vectors[at] = vector
        return tuple(vectors)

    def _embed(self, texts: Sequence[str], *, seconds: float, tries: int) -> Sequence[Vector]:
        """Return the answer of the first try that succeeds; after the last failure the endpoint gets a pause."""
        who = f"the embeddings endpoint at {self._endpoint.host}"
        try:
            with self._pause.asking():
                for _ in range(tries - 1):
                    try:
                        return self._request(texts, seconds=seconds)
                    except Failed as failed:
                        if not failed.passing or failed.after > LONGEST_RETRY:
                            raise
                        self._sleep(failed.after or RETRY_AFTER)
                return self._request(texts, seconds=seconds)
        except EndpointPaused as exc:
            raise Paused(f"{who} is not asked for a while", hint="it is tried again by itself") from exc
        except Refused as exc:
            message = f"the endpoint refuses a text ({exc.status})"
            raise TextRefused(message, hint="it is kept without a vector") from exc
        except Failed as failed:
            wrong = failed.why in [f"http-{status}" for status in WRONG_SETTING]
            raise EmbedError(f"{who} {failed}", hint=CHECK_SETTINGS if wrong else RETRIES) from failed

    def _request(self, texts: Sequence[str], *, seconds: float) -> Sequence[Vector]:
        request = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        data = self._endpoint.post(self._path, request, headers=self._headers, seconds=seconds, most=MOST_ANSWER)
        np = self._np
        try:
            answer = sorted(json.loads(data)["data"], key=lambda each: each["index"])
            rows = [np.asarray(each["embedding"]) for each in answer]
            places = [each["index"] for each in answer]
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as exc:
            raise Failed("answered with something that is no list of vectors") from exc
        if places != list(range(len(texts))):
            raise Failed("did not answer with one vector for each text")
        sizes = {row.shape for row in rows}
        if len(sizes) > 1 or any(row.ndim != 1 or row.dtype.kind not in "fi" for row in rows):
            raise Failed("answered with vectors that are no lists of numbers, or not of one length")
        ((size,),) = sizes
        if not 0 < size <= MOST_NUMBERS or (self.dim and size != self.dim):
            raise Failed(f"answered with vectors of {size} numbers" + (f", before {self.dim}" if self.dim else ""))
        stacked = np.stack(rows).astype(np.float32)
        if not np.isfinite(stacked).all():
            raise Failed("answered with numbers that are not finite")
        self.dim = size
        return quantize(stacked, model=self.name)

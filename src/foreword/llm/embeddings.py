"""Embed texts: with a table on this disk, or with an OpenAI-compatible endpoint of the user's choice.

Vectors are int8: on the benches they rank as float32 does (within 0.003), at a quarter of the room.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from foreword.config import Settings
from foreword.errors import EmbedError
from foreword.llm.client import BadAddress, Endpoint, Failed
from foreword.models import Memory, Vector
from foreword.store.vectors import INSTALL, numpy
from foreword.terms import split

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
REFUSED = (400, 413, 422)  # this request is wrong, the endpoint is well
CHECK_SETTINGS = "check `embeddings_url`, `embeddings_model` and `embeddings_key_env`, or set `embeddings` to off"
EXAMPLE_URL = "such as http://127.0.0.1:11434/v1"


class TextRefused(EmbedError):
    """The model rejects one of these texts; the others may be well."""


def choose_embedder(settings: Settings, environ: Mapping[str, str]) -> Embedder | None:
    """Return the embedder that the settings name; None where embeddings are off."""
    if settings.embeddings == "off":
        return None
    if settings.embeddings == "local":
        return Local()
    variable = settings.embeddings_key_env
    key = environ.get(variable, "").strip() if variable else ""
    if variable and not key:
        raise EmbedError(
            f"the environment variable {variable} that `embeddings_key_env` names is not set where the worker runs",
            hint=f"export {variable}, then `foreword worker stop`; the next hook starts a worker that knows it",
        )
    return Remote(endpoint=settings.embeddings_url, model=settings.embeddings_model, key=key)


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


def _missing(package: str) -> EmbedError:
    return EmbedError(f"`embeddings` needs {package}, which is not installed", hint=INSTALL)


class Local:
    """The mean of the tokens' vectors in the table of the `wordllama` package: no network, 0.04 ms a prompt."""

    name = "wordllama-256"
    dim = 256
    at_once = True  # so quick that it may run while somebody waits

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

    def embed(self, texts: Sequence[str], *, seconds: float, tries: int = 1) -> tuple[Vector, ...]:
        """Return one vector for each text; an empty one where it has no token."""
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

    def __init__(self, *, endpoint: str, model: str, key: str = "") -> None:
        self.name = f"remote:{model}"
        self.dim = 0  # before the first answer
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

    def embed(self, texts: Sequence[str], *, seconds: float, tries: int = 1) -> tuple[Vector, ...]:
        """Return one vector for each text, within *seconds* a request; an empty one for an empty text."""
        vectors = [empty_vector(self.name)] * len(texts)
        full = [at for at, text in enumerate(texts) if text.strip()]  # endpoints refuse an empty text
        for start in range(0, len(full), BATCH):
            batch = full[start : start + BATCH]
            answer = self._request([texts[at] for at in batch], seconds=seconds, tries=tries)
            for at, vector in zip(batch, answer, strict=True):
                vectors[at] = vector
        return tuple(vectors)

    def _request(self, texts: Sequence[str], *, seconds: float, tries: int) -> Sequence[Vector]:
        request = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        who = f"the embeddings endpoint at {self._endpoint.host}"
        try:
            limits: dict[str, Any] = {"seconds": seconds, "most": MOST_ANSWER, "tries": tries}
            answer = self._endpoint.post(self._path, request, headers=self._headers, **limits)
        except Failed as failed:
            if failed.status in REFUSED:
                message = f"the endpoint refuses a text ({failed.status})"
                raise TextRefused(message, hint="it is kept without a vector") from failed
            raise EmbedError(f"{who} {failed}", hint=CHECK_SETTINGS) from failed
        try:
            by_index = {each["index"]: each["embedding"] for each in answer["data"]}
            rows = self._np.asarray([by_index[at] for at in range(len(texts))])
            good = len(answer["data"]) == len(texts) and rows.ndim == 2 and rows.dtype.kind in "fi"
        except (ValueError, TypeError, KeyError, OverflowError):
            good = False
        if not good or not 0 < rows.shape[1] <= MOST_NUMBERS:
            raise EmbedError(f"{who} did not answer with one vector for each text", hint=CHECK_SETTINGS)
        if rows.shape[1] != (self.dim or rows.shape[1]) or not self._np.isfinite(rows).all():
            raise EmbedError(f"{who} answered with vectors of another length, or not finite", hint=CHECK_SETTINGS)
        self.dim = int(rows.shape[1])
        return quantize(rows, model=self.name)


Embedder: TypeAlias = Local | Remote

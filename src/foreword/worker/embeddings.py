"""Embed prompts and memories with a table of word vectors on this disk; optional, and loaded only where it is on.

Vectors are int8: on the benches they rank as float32 does (within 0.003), at a quarter of the room.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foreword.errors import EmbedError, StoreError
from foreword.models import Memory, Vector
from foreword.terms import split
from foreword.worker.jobs import Job, JobRunner
from foreword.worker.services import Services

if TYPE_CHECKING:
    from foreword.config import Settings

TITLE_CHARS, BODY_CHARS, NAMES_CHARS = 500, 3_000, 1_000  # about 1,000 tokens in all
PROMPT_CHARS = 2_000
MOST_TOKENS = 1024
# The table (32,000 x 256, float16) and its tokenizer come in the `wordllama` package, whose own loader looks for them
# in a folder that it does not ship and then downloads them. We read the two files in place.
TABLE, TOKENIZER = "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"
REINSTALL = "install it again: pip install --force-reinstall --no-deps wordllama==0.2.2.post0"
BATCH = 128  # memories that are caught up with one commit
BETWEEN = 0.02  # seconds between two batches: whoever waits for an answer comes first


class Embeddings:
    """The table that the settings chose, while they choose it."""

    def __init__(self, services: Services, runner: JobRunner) -> None:
        self._services, self._runner = services, runner
        self._chosen = "off"
        self._table: WordTable | None = None
        runner.add(Job("embeddings", self._catch_up, due=lambda: self._table is not None, keeps_worker=False))

    def configure(self, settings: Settings) -> None:
        """Follow the settings; the table is loaded in the background, and until then everything goes without."""
        if settings.embeddings != self._chosen:
            self._chosen, self._table = settings.embeddings, None
            if self._chosen != "off":
                self._runner.submit("embeddings", self._load)

    def embed_prompt(self, prompt: str) -> Vector | None:
        """Return the vector of a prompt; None where embeddings are off."""
        if self._table is None or not prompt.strip():
            return None
        half = PROMPT_CHARS // 2  # the beginning and the end: what is pasted is between them
        text = prompt if len(prompt) <= PROMPT_CHARS else f"{prompt[:half]}\n{prompt[-half:]}"
        return self._table.embed([text])[0]

    def _load(self) -> None:
        try:
            table = WordTable()
        except EmbedError as exc:
            self._services.report("meaning", f"{exc}; memories are found by their words meanwhile; {exc.hint}")
            return
        if self._chosen != "off" and not self._runner.closing:
            self._table = table

    def _catch_up(self) -> None:
        """Store vectors of the memories that have none."""
        memories = self._services.store.memories
        try:
            while (table := self._table) and (lacking := memories.without_vectors(table.name, limit=BATCH)):
                memories.add_vectors(lacking, table.embed([text_of(memory) for memory in lacking]))
                self._runner.sleep(BETWEEN)
        except StoreError:
            pass  # the store reports its own problems; the next second tries again


class WordTable:
    """The mean of the tokens' vectors in the table of the `wordllama` package: no network, 0.04 ms a prompt."""

    name = "wordllama-256"
    dim = 256

    def __init__(self) -> None:
        from foreword.store.search import INSTALL, numpy

        self._np = numpy()
        package = importlib.util.find_spec("wordllama")  # found and not imported
        if package is None or not package.submodule_search_locations:
            raise EmbedError("`embeddings` needs wordllama, which is not installed", hint=INSTALL)
        folder = Path(package.submodule_search_locations[0])
        try:
            from tokenizers import Tokenizer

            self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
            self._table = self._mapped(folder / TABLE)
        except Exception as exc:  # the tokenizer's library raises bare Exception
            raise EmbedError(f"the table in {folder} cannot be read: {exc}", hint=REINSTALL) from exc
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MOST_TOKENS)

    def embed(self, texts: Sequence[str]) -> tuple[Vector, ...]:
        """Return one vector for each text; an empty one where it has no token."""
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


def text_of(memory: Memory) -> str:
    """Return the text of a memory that is embedded: its words, and the names of its code in parts.

    With the names, vectors alone find 0.16 instead of 0.13 of the replayed prompts' memories.
    """
    names = " ".join((*memory.tags, *memory.files, *memory.functions))
    return f"{memory.title[:TITLE_CHARS]}\n{memory.body[:BODY_CHARS]}\n{(split(names) or names)[:NAMES_CHARS]}".strip()


def quantize(rows: Any, *, model: str) -> tuple[Vector, ...]:
    """Return rows of floats as int8 vectors, each with the factor that makes it unit length, or empty."""
    from foreword.store.search import numpy

    np = numpy()
    floats = np.asarray(rows, dtype=np.float32)
    peaks = np.abs(floats).max(axis=1, keepdims=True)
    whole = np.rint(floats * (127 / np.where(peaks > 0, peaks, 1))).astype(np.int8)
    lengths = np.sqrt(np.square(whole, dtype=np.float32).sum(axis=1))
    return tuple(
        Vector(model, 1 / float(length), row.tobytes()) if length else Vector(model, 0.0, b"")
        for row, length in zip(whole, lengths, strict=True)
    )

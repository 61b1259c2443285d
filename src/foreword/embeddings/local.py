"""Texts -> the mean of their tokens' vectors, from a table on this disk: no network, no model run, 0.04 ms a prompt.

The table (32,000 x 256, float16) and its tokenizer come in the `wordllama` package, whose own loader looks for them in
a folder that it does not ship and then downloads them; here the two files are read as they lie.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foreword.embeddings import missing, numpy, quantized
from foreword.errors import EmbedError
from foreword.models import Vector

TABLE, TOKENIZER = "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"
MOST_TOKENS = 1024


class Local:
    """The static table of the `wordllama` package."""

    name = "wordllama-256"
    dim = 256
    at_once = True

    def __init__(self) -> None:
        self._np = numpy()
        try:
            from tokenizers import Tokenizer
        except ImportError as exc:
            raise missing("tokenizers") from exc
        folder = _folder()
        try:
            self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
            self._table = self._mapped(folder / TABLE)
        except Exception as exc:  # the tokenizer's library raises bare Exception
            raise EmbedError(
                f"the table in {folder} cannot be read: {exc}", hint=f"install it again: {_AGAIN}"
            ) from exc
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MOST_TOKENS)

    def embed(self, texts: Sequence[str], *, seconds: float = 0.0, tries: int = 1) -> tuple[Vector, ...]:  # noqa: ARG002 - it neither waits nor fails
        if not texts:
            return ()
        rows = self._np.zeros((len(texts), self.dim), dtype=self._np.float32)
        for row, text in zip(rows, texts, strict=True):
            # One by one: a batch would start threads on every core, and somebody is working on this machine.
            tokens = self._tokenizer.encode(_clean(text), add_special_tokens=False).ids
            if tokens:
                row[:] = self._table[tokens].astype(self._np.float32).mean(axis=0)
        return quantized(rows, model=self.name)

    def _mapped(self, path: Path) -> Any:
        """The table, left on the disk: a text touches a few of its rows, and the rest costs no memory."""
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            (told,) = (each for each in json.loads(file.read(size)).values() if "shape" in each)
        if told["dtype"] != "F16" or told["shape"][1] != self.dim:
            raise ValueError(f"a table of {told['dtype']} {told['shape']}")
        start = 8 + size + told["data_offsets"][0]
        return self._np.memmap(path, dtype=self._np.float16, mode="r", offset=start, shape=tuple(told["shape"]))


_AGAIN = "pip install --force-reinstall --no-deps wordllama==0.2.2.post0"


def _folder() -> Path:
    """Where the package lies; it is looked up and not imported."""
    found = importlib.util.find_spec("wordllama")
    if found is None or not found.submodule_search_locations:
        raise missing("wordllama")
    return Path(found.submodule_search_locations[0])


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")  # the tokenizer refuses lone surrogates

"""Texts -> vectors from an OpenAI-compatible endpoint of the user's own choice: in time, or an error that says why."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence

from foreword import embeddings
from foreword.embeddings import TextRefused, nothing, numpy, quantized
from foreword.endpoint import WRONG_SETTING, BadAddress, Endpoint, Failed, Pause, Paused, Refused
from foreword.errors import EmbedError
from foreword.models import Vector

BATCH = 32  # texts in a request
MOST_ANSWER = 16 * 1024 * 1024  # bytes; 32 vectors of 3,072 numbers are 2 MB
MOST_NUMBERS = 8192  # in a vector
RETRY_AFTER, LONGEST_RETRY = 0.25, 5.0  # seconds between two tries; an endpoint that wants longer gets a pause
PASSES = "it is tried again by itself; `foreword config set embeddings off` ends that"
LOOK_AT = "look at `embeddings_url`, `embeddings_model` and the variable that `embeddings_key_env` names"


class Remote:
    """One endpoint and model, and how it has been behaving."""

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
        self._endpoint = _endpoint(endpoint, model=model, key=key)
        self._path = f"{self._endpoint.path.removesuffix('/embeddings')}/embeddings"
        self._model = model
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._seconds = seconds
        self._sleep = sleep
        self._pause = Pause(now=now)

    def embed(self, texts: Sequence[str], *, seconds: float = 0.0, tries: int = 1) -> tuple[Vector, ...]:
        found: list[Vector] = []
        for start in range(0, len(texts), BATCH):
            found += self._embed(texts[start : start + BATCH], seconds=seconds or self._seconds, tries=tries)
        return tuple(found)

    def _embed(self, texts: Sequence[str], *, seconds: float, tries: int) -> Sequence[Vector]:
        said = [at for at, text in enumerate(texts) if text.strip()]  # endpoints refuse an empty text
        vectors = [nothing(self.name)] * len(texts)
        if said:
            got = self._asked([texts[at] for at in said], seconds=seconds, tries=tries)
            for at, vector in zip(said, got, strict=True):
                vectors[at] = vector
        return vectors

    def _asked(self, texts: Sequence[str], *, seconds: float, tries: int) -> Sequence[Vector]:
        """The answer of the first try that succeeds; after the last one that fails it is left alone for a while."""
        try:
            with self._pause.asking():
                for _ in range(tries - 1):
                    try:
                        return self._understood(self._request(texts, seconds=seconds), many=len(texts))
                    except Failed as failed:
                        if not failed.passing or failed.after > LONGEST_RETRY:
                            raise
                        self._sleep(failed.after or RETRY_AFTER)
                return self._understood(self._request(texts, seconds=seconds), many=len(texts))
        except Paused as exc:
            raise embeddings.Paused(
                f"{self._host} is not asked for a while", hint="it is tried again by itself"
            ) from exc
        except Refused as exc:
            raise TextRefused(
                f"the endpoint refuses a text ({exc.status})", hint="it is kept without a vector"
            ) from exc
        except Failed as failed:
            wrong = failed.why in [f"http-{status}" for status in WRONG_SETTING]
            raise EmbedError(f"{self._host} {failed}", hint=LOOK_AT if wrong else PASSES) from failed

    def _request(self, texts: Sequence[str], *, seconds: float) -> bytes:
        told = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        return self._endpoint.post(self._path, told, headers=self._headers, seconds=seconds, most=MOST_ANSWER)

    def _understood(self, data: bytes, *, many: int) -> Sequence[Vector]:
        """The vectors in an answer, in the order asked; an answer that is anything else is a failure."""
        np = self._np
        try:
            told = sorted(json.loads(data)["data"], key=lambda each: each["index"])
            rows = [np.asarray(each["embedding"]) for each in told]
            places = [each["index"] for each in told]
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as exc:
            raise Failed("answered with something that is no list of vectors") from exc
        if places != list(range(many)):
            raise Failed("did not answer with one vector for each text")
        sizes = {row.shape for row in rows}
        if len(sizes) > 1 or any(row.ndim != 1 or row.dtype.kind not in "fi" for row in rows):
            raise Failed("answered with vectors that are no lists of numbers, or not of one length")
        ((size,),) = sizes
        if not 0 < size <= MOST_NUMBERS or (self.dim and size != self.dim):
            raise Failed(f"answered with vectors of {size} numbers" + (f", before {self.dim}" if self.dim else ""))
        stacked = np.stack(rows).astype(np.float32)
        if not np.isfinite(stacked).all():
            raise Failed("answered with numbers that are none")
        self.dim = size
        return quantized(stacked, model=self.name)

    @property
    def _host(self) -> str:
        return f"the embeddings endpoint at {self._endpoint.host}"


def _endpoint(url: str, *, model: str, key: str) -> Endpoint:
    if not url or not model:
        raise EmbedError(
            "`meaning = remote` needs `embeddings_url` and `embeddings_model`",
            hint="such as http://127.0.0.1:11434/v1 and all-minilm, for an Ollama on this machine",
        )
    try:
        return Endpoint(url, key=key)
    except BadAddress as exc:
        raise EmbedError(f"`embeddings_url` {exc}", hint="such as http://127.0.0.1:11434/v1") from exc

"""Texts -> vectors from an OpenAI-compatible endpoint of the user's own choice: in time, or an error that says why.

No redirects, no proxies: texts go to the address that the user wrote, and nowhere else.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from foreword import __version__
from foreword.embed import Resting, TextRefused, nothing, numpy, quantized
from foreword.errors import EmbedError
from foreword.types import Vector

BATCH = 32  # texts in a request
MOST_ANSWER = 16 * 1024 * 1024  # bytes; 32 vectors of 3,072 numbers are 2 MB
MOST_NUMBERS = 8192  # in a vector
FAILURES = 3  # in a row, then it rests
REST, LONGEST_REST = 15.0, 600.0  # seconds; each rest is twice the last
PAUSE, LONGEST_PAUSE = 0.25, 5.0  # seconds between two tries; an endpoint that wants longer is left to rest
LATE = "did not answer in time"
OWN_FAULT = (400, 413, 422)  # it does not like the text
WRONG_SETTING = (401, 403, 404, 405)  # asking again will not help


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
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self.name = f"remote:{model}"
        self.dim = 0
        self._np = numpy()
        self._where = _address(endpoint, model=model, key=key)
        self._path = f"{self._where.path.rstrip('/').removesuffix('/embeddings')}/embeddings"
        self._model = model
        self._key = key
        self._seconds = seconds
        self._now = now
        self._pause = pause
        self._failed = 0
        self._rest = REST
        self._rests_until = 0.0

    def embed(self, texts: Sequence[str], *, seconds: float = 0.0, tries: int = 1) -> tuple[Vector, ...]:
        found: list[Vector] = []
        for start in range(0, len(texts), BATCH):
            found += self._embed(texts[start : start + BATCH], seconds=seconds or self._seconds, tries=tries)
        return tuple(found)

    def _embed(self, texts: Sequence[str], *, seconds: float, tries: int) -> Sequence[Vector]:
        if self._now() < self._rests_until:
            raise Resting(f"{self._host} is not asked for a while", hint="it is tried again by itself")
        said = [at for at, text in enumerate(texts) if text.strip()]  # endpoints refuse an empty text
        if not said:
            return [nothing(self.name)] * len(texts)
        got = self._asked([texts[at] for at in said], seconds=seconds, tries=tries)
        vectors = [nothing(self.name)] * len(texts)
        for at, vector in zip(said, got, strict=True):
            vectors[at] = vector
        return vectors

    def _asked(self, texts: Sequence[str], *, seconds: float, tries: int) -> Sequence[Vector]:
        """The answer of the first try that succeeds; each failure is counted, and after some it rests."""
        for left in range(tries - 1, -1, -1):
            try:
                vectors = self._understood(self._request(texts, seconds=seconds), many=len(texts))
            except TextRefused:
                raise  # the endpoint is well
            except _Failed as failed:
                self._count(failed)
                if not left or not failed.passing or self._now() < self._rests_until:
                    raise EmbedError(f"{self._host} {failed}", hint=failed.hint) from failed
                self._pause(failed.after or PAUSE * 2 ** (tries - 1 - left))
            else:
                self._failed, self._rest = 0, REST
                return vectors
        raise AssertionError("unreachable")

    def _count(self, failed: _Failed) -> None:
        self._failed += 1
        if failed.passing and failed.after <= LONGEST_PAUSE and self._failed < FAILURES:
            return
        rest = max(self._rest, min(failed.after, LONGEST_REST))
        self._rests_until = self._now() + rest
        self._rest = min(rest * 2, LONGEST_REST)

    def _request(self, texts: Sequence[str], *, seconds: float) -> bytes:
        body = json.dumps({"model": self._model, "input": list(texts), "encoding_format": "float"}).encode()
        headers = {"Content-Type": "application/json", "User-Agent": f"foreword/{__version__}"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        make = http.client.HTTPSConnection if self._where.scheme == "https" else http.client.HTTPConnection
        connection = make(str(self._where.hostname), self._where.port, timeout=seconds)
        late = threading.Event()
        try:
            connection.connect()
            # The timeout above is for each read; a server that drips must not hold us longer than all of it.
            cut = threading.Timer(seconds, _cut, (connection.sock, late))
            cut.daemon = True
            cut.start()
            try:
                connection.request("POST", self._path, body, headers)
                with connection.getresponse() as answer:
                    data = answer.read(MOST_ANSWER + 1)
            finally:
                cut.cancel()
        except (OSError, http.client.HTTPException) as exc:
            in_time = not late.is_set() and not isinstance(exc, TimeoutError)
            raise _Failed(f"cannot be asked ({type(exc).__name__})" if in_time else LATE) from exc
        finally:
            connection.close()
        if late.is_set():
            raise _Failed(LATE)
        _check(answer.status, answer.getheader("Retry-After", ""))
        if len(data) > MOST_ANSWER:
            raise _Failed("answered with more than anyone would")
        return data

    def _understood(self, data: bytes, *, many: int) -> Sequence[Vector]:
        """The vectors in an answer, in the order asked; an answer that is anything else is a failure."""
        np = self._np
        try:
            told = sorted(json.loads(data)["data"], key=lambda each: each["index"])
            rows = [np.asarray(each["embedding"]) for each in told]
            places = [each["index"] for each in told]
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as exc:
            raise _Failed("answered with something that is no list of vectors") from exc
        if places != list(range(many)):
            raise _Failed("did not answer with one vector for each text")
        sizes = {row.shape for row in rows}
        if len(sizes) > 1 or any(row.ndim != 1 or row.dtype.kind not in "fi" for row in rows):
            raise _Failed("answered with vectors that are no lists of numbers, or not of one length")
        ((size,),) = sizes
        if not 0 < size <= MOST_NUMBERS or (self.dim and size != self.dim):
            raise _Failed(f"answered with vectors of {size} numbers" + (f", before {self.dim}" if self.dim else ""))
        stacked = np.stack(rows).astype(np.float32)
        if not np.isfinite(stacked).all():
            raise _Failed("answered with numbers that are none")
        self.dim = size
        return quantized(stacked, model=self.name)

    @property
    def _host(self) -> str:
        return f"the embeddings endpoint at {self._where.netloc}"


class _Failed(Exception):
    """A try that failed: whether another may do better, and after how many seconds."""

    def __init__(self, what: str, *, passing: bool = True, after: float = 0.0, hint: str = "") -> None:
        super().__init__(what)
        self.passing = passing
        self.after = after
        self.hint = hint or "it is tried again by itself; `foreword config set meaning off` ends that"


def _check(status: int, retry_after: str) -> None:
    if status == 200:
        return
    if status in OWN_FAULT:
        raise TextRefused(f"the endpoint refuses a text ({status})", hint="it is kept without a vector")
    if status in WRONG_SETTING:
        raise _Failed(
            f"answers {status}",
            passing=False,
            hint="look at `meaning_endpoint`, `meaning_model` and the variable that `meaning_key_env` names",
        )
    after = float(retry_after) if retry_after.isascii() and retry_after.isdigit() else 0.0
    raise _Failed(f"answers {status}", passing=status == 429 or status >= 500, after=after)


def _cut(connected: socket.socket, late: threading.Event) -> None:
    late.set()
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)


def _address(endpoint: str, *, model: str, key: str) -> Any:
    """The parts of the endpoint; one that is unusable, or would carry the key in the open, is refused."""
    if not endpoint or not model:
        raise EmbedError(
            "`meaning = remote` needs `meaning_endpoint` and `meaning_model`",
            hint="such as http://127.0.0.1:11434/v1 and all-minilm, for an Ollama on this machine",
        )
    try:
        parts = urlsplit(endpoint)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise EmbedError(f"`meaning_endpoint` is no address: {endpoint}", hint="such as http://127.0.0.1:11434/v1")
    if key and parts.scheme == "http" and not _is_here(str(parts.hostname)):
        raise EmbedError(
            f"the key would travel to {parts.hostname} in the open",
            hint="use an https address, or no `meaning_key_env`",
        )
    return parts


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

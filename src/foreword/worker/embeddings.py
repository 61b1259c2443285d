"""Prompts and memories -> their vectors, in time or not at all: what an embedder cannot do costs only itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from foreword.errors import EmbedError, ForewordError
from foreword.redact import redact

if TYPE_CHECKING:
    from foreword.config import Settings
    from foreword.embeddings.embedder import Embedder
    from foreword.models import Memory, Vector
    from foreword.store import Store

BATCH = 128  # memories that are caught up with one commit
TRIES = 2
BETWEEN = 0.02  # seconds between two batches: whoever waits for an answer comes first
MOST_ASKING = 4  # prompts that wait for an endpoint at the same time; one more goes without
LATE_TOLD = 3  # prompts in a row that an endpoint was too slow for


class Meaning:
    """The embedder that the settings chose, while they choose one; *tell* says once what goes wrong."""

    def __init__(self, *, tell: Callable[[str, str], None]) -> None:
        self._tell = tell
        self._chosen: tuple[object, ...] = ()
        self._embedder: Embedder | None = None
        self._catching_up = threading.Lock()
        self._asking = threading.BoundedSemaphore(MOST_ASKING)
        self._late = 0
        self._closed = threading.Event()

    def choose(self, settings: Settings, environ: Mapping[str, str]) -> None:
        """Follow the settings; what has to be loaded is loaded aside, and until then everything goes without."""
        variable = settings.embeddings_key_env
        remote = (settings.embeddings_url, settings.embeddings_model, variable, settings.embeddings_timeout_ms)
        wanted = (settings.embeddings, *remote, environ.get(variable, "") if variable else "")
        if wanted == self._chosen:
            return
        self._chosen, self._embedder, self._late = wanted, None, 0
        if settings.embeddings != "off":
            _aside(lambda: self._load(settings, environ, wanted), name="meaning")

    def of_prompt(self, prompt: str, *, seconds: float) -> Vector | None:
        """The vector of a prompt; None where meaning is off, fails, or takes longer than *seconds*."""
        embedder = self._embedder
        if embedder is None or not prompt.strip():
            return None
        from foreword.embeddings.embedder import text_of_prompt

        try:
            if embedder.at_once:
                return embedder.embed([text_of_prompt(prompt)], seconds=seconds)[0]
            # A search from the command line was not redacted on its way, and this leaves the machine.
            return self._asked(embedder, text_of_prompt(redact(prompt)), seconds=seconds)
        except EmbedError as exc:
            self._say(exc)
            return None

    def of_memories(self, memories: Sequence[Memory]) -> Sequence[Vector | None]:
        """The vectors that go into the same commit as their memories; none where somebody would wait for them."""
        embedder = self._embedder
        if embedder is None or not embedder.at_once:
            return ()
        from foreword.embeddings.embedder import text_of

        try:
            return embedder.embed([text_of(memory) for memory in memories], seconds=1.0)
        except EmbedError as exc:
            self._say(exc)
            return ()

    def catch_up(self, store: Store) -> None:
        """Give vectors to the memories that lack them, aside; while that goes on, another call does nothing."""
        embedder = self._embedder
        if embedder is not None and self._catching_up.acquire(blocking=False):
            _aside(lambda: self._catch_up(embedder, store), name="vectors")

    def close(self) -> None:
        self._closed.set()
        self._embedder = None

    def _load(self, settings: Settings, environ: Mapping[str, str], wanted: tuple[object, ...]) -> None:
        from foreword.embeddings.embedder import choose_embedder

        try:
            embedder = choose_embedder(settings, environ)
        except EmbedError as exc:
            self._say(exc)
            return
        if self._chosen == wanted and not self._closed.is_set():
            self._embedder = embedder

    def _asked(self, embedder: Embedder, text: str, *, seconds: float) -> Vector | None:
        """The answer of a slow embedder if it comes in time; one that is late ends by itself, aside."""
        if not self._asking.acquire(blocking=False):
            return None
        answer: Future[Vector] = Future()

        def ask() -> None:
            try:
                answer.set_result(embedder.embed([text], seconds=0)[0])
            except BaseException as exc:  # noqa: BLE001 - it belongs to the one who waits
                answer.set_exception(exc)
            finally:
                self._asking.release()

        _aside(ask, name="prompt")
        try:
            vector = answer.result(timeout=seconds)
        except TimeoutError:
            self._late += 1
            if self._late == LATE_TOLD:
                self._tell(
                    "meaning",
                    "the embeddings endpoint is too slow for prompts, which go without it; "
                    "raise `deadline_prompt_ms` (a quarter of it is waited), or use a nearer one",
                )
            return None
        self._late = 0
        return vector

    def _catch_up(self, embedder: Embedder, store: Store) -> None:
        try:
            while self._embedder is embedder:
                lacking = store.memories.without_vectors(embedder.name, dim=embedder.dim, limit=BATCH)
                if not lacking:
                    return
                store.memories.add_vectors(lacking, self._vectors(embedder, lacking))
                self._closed.wait(BETWEEN)
        except EmbedError as exc:
            self._say(exc)
        except ForewordError:
            pass  # the store's trouble is told by the store; the next second tries again
        finally:
            self._catching_up.release()

    def _vectors(self, embedder: Embedder, memories: Sequence[Memory]) -> Sequence[Vector]:
        """One vector for each; a text that is refused is found by halves, and has none."""
        from foreword.embeddings.embedder import TextRefused, empty_vector, text_of

        try:
            return embedder.embed([text_of(memory) for memory in memories], seconds=0, tries=TRIES)
        except TextRefused:
            if len(memories) == 1:
                return (empty_vector(embedder.name),)
            half = len(memories) // 2
            return (*self._vectors(embedder, memories[:half]), *self._vectors(embedder, memories[half:]))

    def _say(self, exc: EmbedError) -> None:
        from foreword.embeddings.embedder import Paused

        if not isinstance(exc, Paused):
            self._tell("meaning", f"{exc}; memories are kept and found by their words meanwhile; {exc.hint}")


def _aside(work: Callable[[], None], *, name: str) -> None:
    threading.Thread(target=work, name=name, daemon=True).start()

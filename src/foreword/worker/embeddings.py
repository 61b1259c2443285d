"""Embed prompts and memories with the embedder of the settings, in time or not at all."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from foreword.errors import EmbedError, StoreError
from foreword.redact import redact
from foreword.worker.jobs import Job, JobRunner
from foreword.worker.services import Services

if TYPE_CHECKING:
    from foreword.config import Settings
    from foreword.embeddings.embedder import Embedder
    from foreword.models import Memory, Vector

BATCH = 128  # memories that are caught up with one commit
TRIES = 2
BETWEEN = 0.02  # seconds between two batches: whoever waits for an answer comes first
MOST_WAITING = 4  # prompts that wait for an endpoint at the same time; one more goes without
LATE_REPORTED = 3  # prompts in a row that an endpoint was too slow for


class Embeddings:
    """The embedder that the settings chose, while they choose one."""

    def __init__(self, services: Services, runner: JobRunner) -> None:
        self._services, self._runner = services, runner
        self._chosen: tuple[object, ...] = ()
        self._embedder: Embedder | None = None
        self._waiting = threading.BoundedSemaphore(MOST_WAITING)
        self._late = 0
        runner.add(Job("embeddings", self._catch_up, due=lambda: self._embedder is not None, keeps_worker=False))

    def configure(self, settings: Settings, environ: Mapping[str, str]) -> None:
        """Follow the settings; a model is loaded in the background, and until then everything goes without."""
        variable = settings.embeddings_key_env
        remote = (settings.embeddings_url, settings.embeddings_model, variable, settings.embeddings_timeout_ms)
        wanted = (settings.embeddings, *remote, environ.get(variable, "") if variable else "")
        if wanted == self._chosen:
            return
        self._chosen, self._embedder, self._late = wanted, None, 0
        if settings.embeddings != "off":
            self._runner.submit("embeddings", lambda: self._load(settings, environ, wanted))

    def embed_prompt(self, prompt: str, *, seconds: float) -> Vector | None:
        """Return the vector of a prompt; None where embeddings are off, fail, or take longer than *seconds*."""
        embedder = self._embedder
        if embedder is None or not prompt.strip():
            return None
        from foreword.embeddings.embedder import text_of_prompt

        try:
            if embedder.at_once:
                return embedder.embed([text_of_prompt(prompt)], seconds=seconds)[0]
            # A search from the command line was not redacted on its way, and this leaves the machine.
            return self._request(embedder, text_of_prompt(redact(prompt)), seconds=seconds)
        except EmbedError as exc:
            self._report(exc)
            return None

    def embed_memories(self, memories: Sequence[Memory]) -> Sequence[Vector | None]:
        """The vectors that go into the same commit as their memories; none where somebody would wait for them."""
        embedder = self._embedder
        if embedder is None or not embedder.at_once:
            return ()
        from foreword.embeddings.embedder import text_of

        try:
            return embedder.embed([text_of(memory) for memory in memories], seconds=1.0)
        except EmbedError as exc:
            self._report(exc)
            return ()

    def close(self) -> None:
        self._embedder = None

    def _load(self, settings: Settings, environ: Mapping[str, str], wanted: tuple[object, ...]) -> None:
        from foreword.embeddings.embedder import choose_embedder

        try:
            embedder = choose_embedder(settings, environ)
        except EmbedError as exc:
            self._report(exc)
            return
        if self._chosen == wanted and not self._runner.closing:
            self._embedder = embedder

    def _request(self, embedder: Embedder, text: str, *, seconds: float) -> Vector | None:
        """Return the answer of a slow embedder if it comes in time; one that is late ends in its own thread."""
        if not self._waiting.acquire(blocking=False):
            return None
        answer: Future[Vector] = Future()

        def request() -> None:
            try:
                answer.set_result(embedder.embed([text], seconds=0)[0])
            except BaseException as exc:  # noqa: BLE001 - it belongs to the one who waits
                answer.set_exception(exc)
            finally:
                self._waiting.release()

        threading.Thread(target=request, name="prompt", daemon=True).start()
        try:
            vector = answer.result(timeout=seconds)
        except TimeoutError:
            self._late += 1
            if self._late == LATE_REPORTED:
                self._services.report(
                    "meaning",
                    "the embeddings endpoint is too slow for prompts, which go without it; "
                    "raise `deadline_prompt_ms` (a quarter of it is waited), or use a nearer one",
                )
            return None
        self._late = 0
        return vector

    def _catch_up(self) -> None:
        """Store vectors of the memories that have none."""
        embedder, store = self._embedder, self._services.store
        try:
            while embedder is not None and self._embedder is embedder:
                lacking = store.memories.without_vectors(embedder.name, dim=embedder.dim, limit=BATCH)
                if not lacking:
                    return
                store.memories.add_vectors(lacking, self._vectors(embedder, lacking))
                self._runner.sleep(BETWEEN)
        except EmbedError as exc:
            self._report(exc)
        except StoreError:
            pass  # the store reports its own problems; the next second tries again

    def _vectors(self, embedder: Embedder, memories: Sequence[Memory]) -> Sequence[Vector]:
        """Return a vector for each memory; a text that is refused is found by halves, and has none."""
        from foreword.embeddings.embedder import TextRefused, empty_vector, text_of

        try:
            return embedder.embed([text_of(memory) for memory in memories], seconds=0, tries=TRIES)
        except TextRefused:
            if len(memories) == 1:
                return (empty_vector(embedder.name),)
            half = len(memories) // 2
            return (*self._vectors(embedder, memories[:half]), *self._vectors(embedder, memories[half:]))

    def _report(self, exc: EmbedError) -> None:
        from foreword.embeddings.embedder import Paused

        if not isinstance(exc, Paused):
            self._services.report("meaning", f"{exc}; memories are kept and found by their words meanwhile; {exc.hint}")

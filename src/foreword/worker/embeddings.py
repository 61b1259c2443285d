"""Embed prompts and memories with the embedder of the settings, in time or not at all."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from foreword.errors import EmbedError, StoreError
from foreword.redact import redact
from foreword.worker.jobs import Job, JobRunner
from foreword.worker.services import Services

if TYPE_CHECKING:
    from foreword.config import Settings
    from foreword.llm.embeddings import Embedder
    from foreword.models import Memory, Vector

BATCH = 128  # memories that are caught up with one commit
SECONDS = 10.0  # of one request for memories
BETWEEN = 0.02  # seconds between two batches: whoever waits for an answer comes first
PAUSE = 60.0  # seconds after a failure in which an endpoint is left alone


class Embeddings:
    """The embedder that the settings chose, while they choose one."""

    def __init__(self, services: Services, runner: JobRunner) -> None:
        self._services, self._runner = services, runner
        self._chosen: tuple[object, ...] = ()
        self._embedder: Embedder | None = None
        self._not_before = 0.0
        runner.add(Job("embeddings", self._catch_up, due=lambda: self._usable is not None, keeps_worker=False))

    def configure(self, settings: Settings, environ: Mapping[str, str]) -> None:
        """Follow the settings; a model is loaded in the background, and until then everything goes without."""
        variable = settings.embeddings_key_env
        remote = (settings.embeddings_url, settings.embeddings_model, variable)
        wanted = (settings.embeddings, *remote, environ.get(variable, "") if variable else "")
        if wanted == self._chosen:
            return
        self._chosen, self._embedder, self._not_before = wanted, None, 0.0
        if settings.embeddings != "off":
            self._runner.submit("embeddings", lambda: self._load(settings, environ, wanted))

    def embed_prompt(self, prompt: str, *, seconds: float) -> Vector | None:
        """Return the vector of a prompt; None where embeddings are off, fail, or take longer than *seconds*."""
        embedder = self._usable
        if embedder is None or not prompt.strip():
            return None
        from foreword.llm.embeddings import text_of_prompt

        # A search from the command line was not redacted on its way, and a request leaves the machine.
        text = text_of_prompt(prompt if embedder.at_once else redact(prompt))
        try:
            return embedder.embed([text], seconds=seconds)[0]
        except EmbedError as exc:
            self._failed(exc)
            return None

    def embed_memories(self, memories: Sequence[Memory]) -> Sequence[Vector | None]:
        """Return the vectors that go into the commit of their memories; none where somebody would wait for them."""
        embedder = self._usable
        if embedder is None or not embedder.at_once:
            return ()
        return self._vectors(embedder, memories)

    def close(self) -> None:
        self._embedder = None

    @property
    def _usable(self) -> Embedder | None:
        return self._embedder if time.monotonic() >= self._not_before else None

    def _load(self, settings: Settings, environ: Mapping[str, str], wanted: tuple[object, ...]) -> None:
        from foreword.llm.embeddings import choose_embedder

        try:
            embedder = choose_embedder(settings, environ)
        except EmbedError as exc:
            self._failed(exc)
            return
        if self._chosen == wanted and not self._runner.closing:
            self._embedder = embedder

    def _catch_up(self) -> None:
        """Store vectors of the memories that have none."""
        embedder, store = self._usable, self._services.store
        try:
            while embedder is not None and self._embedder is embedder:
                lacking = store.memories.without_vectors(embedder.name, dim=embedder.dim, limit=BATCH)
                if not lacking:
                    return
                store.memories.add_vectors(lacking, self._vectors(embedder, lacking))
                self._runner.sleep(BETWEEN)
        except EmbedError as exc:
            self._failed(exc)
        except StoreError:
            pass  # the store reports its own problems; the next second tries again

    def _vectors(self, embedder: Embedder, memories: Sequence[Memory]) -> Sequence[Vector]:
        """Return a vector for each memory; an empty one for a text that the endpoint refuses."""
        from foreword.llm.embeddings import TextRefused, empty_vector, text_of

        try:
            return embedder.embed([text_of(memory) for memory in memories], seconds=SECONDS, tries=2)
        except TextRefused:
            if len(memories) == 1:
                return (empty_vector(embedder.name),)
            return [vector for memory in memories for vector in self._vectors(embedder, [memory])]

    def _failed(self, exc: EmbedError) -> None:
        self._not_before = time.monotonic() + PAUSE
        self._services.report("meaning", f"{exc}; memories are kept and found by their words meanwhile; {exc.hint}")

"""Let a model improve the summaries of ended sessions, one after another in the background."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from foreword.audit import merge_repeated
from foreword.errors import ForewordError, ModelError
from foreword.models import Memory
from foreword.worker.jobs import Job, JobRunner
from foreword.worker.services import Services

if TYPE_CHECKING:
    from foreword.llm.client import Answer, Model

log = logging.getLogger("foreword")

DAY = 86_400.0  # seconds
TRIAL = 'Answer with the JSON object {"word": "walrus"}.'
TRIAL_SYSTEM = "You answer with one JSON object and nothing else."


class RefineJob:
    """The sessions that wait for the model that the settings choose, while they choose one."""

    def __init__(self, services: Services, runner: JobRunner) -> None:
        self._services, self._runner = services, runner
        self._waiting: dict[str, tuple[Sequence[Memory], Sequence[str]]] = {}  # memories and excerpts, by session
        self._dropped = 0  # times that everything was dropped
        runner.add(Job("refine", self._run, due=lambda: bool(self._waiting)))

    @property
    def on(self) -> bool:
        return self._services.settings.model_provider != "off" and not self._runner.closing

    def submit(self, session: str, memories: Sequence[Memory], *, excerpts: Sequence[str] = ()) -> None:
        """Let the model improve the summary among a session's memories, where one is configured.

        The same session again takes the place of the one that waits.
        """
        if self.on:
            self._waiting[session] = (memories, excerpts)
            self._runner.wake("refine")

    def status(self) -> dict[str, Any]:
        """Return the model, what is wrong with it, and what it may still cost."""
        settings = self._services.settings
        where = problem = ""
        if self.on:
            try:
                where = self._model().where
            except ModelError as exc:
                problem = f"{exc}; {exc.hint}"
        return {
            "provider": settings.model_provider,
            "model": settings.model_name,
            "where": where,
            "daily_tokens": settings.model_daily_tokens,
            "spent_tokens": self._services.store.stats.model_tokens(self._services.now() - DAY),
            "waiting": len(self._waiting),
            "problem": problem,
        }

    def attempt(self) -> dict[str, Any]:
        """Call the model once; return what the call cost, or what is wrong."""
        began = self._services.now()
        try:
            if not self.on:
                raise ModelError("no model is configured", hint="docs/model.md explains how to turn one on")  # noqa: TRY301
            model = self._model()
            answer = self._call(model, TRIAL, system=TRIAL_SYSTEM, most_tokens=200, purpose="try")
        except ModelError as exc:
            return {"ok": False, "error": str(exc), "hint": exc.hint}
        took = round((self._services.now() - began) * 1000, 1)
        about = {"provider": model.provider, "model": model.name, "where": model.where, "took_ms": took}
        tokens = {"tokens_in": answer.tokens_in, "tokens_out": answer.tokens_out}
        return {"ok": True, **about, **{name: -1 if n is None else n for name, n in tokens.items()}}

    def drop(self) -> None:
        """Drop what waits and the call that runs: they hold texts that may be forgotten."""
        self._waiting.clear()
        self._dropped += 1

    def _run(self) -> None:
        while self._waiting and not self._runner.closing:
            try:
                dropped, session = self._dropped, next(iter(self._waiting))
                self._refine(session, *self._waiting.pop(session), dropped=dropped)
            except (KeyError, StopIteration, RuntimeError):  # dropped, or another one came, in this moment
                continue
            except Exception:
                log.exception("the refined summary of a session was not kept")

    def _refine(self, session: str, memories: Sequence[Memory], excerpts: Sequence[str], *, dropped: int) -> None:
        """Store the summary of a session in the model's words; it stays as it is where anything goes wrong."""
        from foreword.llm.refine import MOST_OUT, SYSTEM, apply, draft_of, refine

        def complete(prompt: str) -> dict[str, Any]:
            about = {"system": SYSTEM, "most_tokens": MOST_OUT, "purpose": "refine", "session": session}
            return self._call(model, prompt, **about).data

        store = self._services.store
        inputs = {"excerpts": excerpts, "trusts": (*(each.trust for each in memories), "agent")}
        try:
            model = self._model()
            refined = refine(complete, draft_of(memories), model=model.name, fence=secrets.token_hex(8), **inputs)
        except ForewordError as exc:  # also where the store fails: a call that cannot be counted is not made
            if self.on:
                message = f"{exc}; summaries stay as they are made without a model; {exc.hint}"
                self._services.report("model", message)
            return
        if refined and dropped == self._dropped and not self._runner.closing:
            summary = next(each for each in memories if each.kind == "summary")
            (known,) = store.memories.get_by_uid([summary.uid]) or (summary,)
            store.memories.put([merge_repeated(known, apply(known, refined))])

    def _model(self) -> Model:
        from foreword.llm.client import choose_model

        return choose_model(self._services.settings, os.environ)

    def _call(self, model: Model, prompt: str, **more: Any) -> Answer:
        from foreword.llm.client import call

        settings = self._services.settings
        store, daily, seconds = self._services.store, settings.model_daily_tokens, settings.model_seconds
        return call(model, prompt, store=store, daily=daily, seconds=seconds, **more)

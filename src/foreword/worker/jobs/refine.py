"""Let a model improve the summaries of ended sessions, one after another in the background."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from foreword.errors import ForewordError, ModelError
from foreword.worker.jobs import Job, JobRunner
from foreword.worker.services import Services

if TYPE_CHECKING:
    from foreword.config import Settings
    from foreword.llm.client import Model
    from foreword.llm.refine import Draft, Refined
    from foreword.llm.spending import DailyBudget

log = logging.getLogger("foreword")

MOST_WAITING = 64  # sessions; more end in a day only where something is wrong
UNREFINED = "summaries stay as they are made without a model"


@dataclass(frozen=True)
class _Request:
    """One session that waits, and what is done with the result."""

    draft: Draft
    excerpts: tuple[str, ...]
    trusts: tuple[str, ...]
    then: Callable[[Refined | None], object]


class RefineJob:
    """The model that the settings chose, while they choose one, and the sessions that wait for it."""

    def __init__(self, services: Services, runner: JobRunner) -> None:
        self._services, self._runner = services, runner
        self._settings: Settings | None = None
        self._environ: Mapping[str, str] = {}
        self._chosen: tuple[object, ...] = ()
        self._model: Model | None = None
        self._budget: DailyBudget | None = None  # what the model may cost
        self._problem: ModelError | None = None
        self._waiting: dict[str, _Request] = {}
        self._lock = threading.Lock()
        self._dropped = 0  # times that everything was dropped
        runner.add(Job("refine", self._run, due=lambda: bool(self._waiting)))

    @property
    def on(self) -> bool:
        return self._model is not None and not self._runner.closing

    def configure(self, settings: Settings, environ: Mapping[str, str]) -> None:
        """Follow the settings; a call of another model is cancelled, and what waits waits for the new one."""
        key = environ.get(settings.model_key_env, "") if settings.model_key_env else ""
        named = (settings.model_provider, settings.model_name, settings.model_url, settings.model_key_env)
        wanted = (*named, settings.model_daily_tokens, settings.model_seconds, key)
        if wanted == self._chosen or self._runner.closing:
            return
        self._chosen, self._settings, self._environ = wanted, settings, environ
        old, (model, budget, problem) = self._model, self._make(settings, environ)
        # The new one is set before the old one is closed: what waits must not find none in between.
        self._model, self._budget, self._problem = model, budget, problem
        if old is not None:
            old.close()
        if settings.model_provider == "off":
            with self._lock:
                self._waiting.clear()
        if problem is not None:
            self._report(problem)

    def _make(
        self, settings: Settings, environ: Mapping[str, str]
    ) -> tuple[Model | None, DailyBudget | None, ModelError | None]:
        """Return the model that the settings choose, its budget, and what is wrong with the choice."""
        if settings.model_provider == "off":
            return None, None, None
        from foreword.llm.client import choose_model
        from foreword.llm.spending import DailyBudget

        budget = DailyBudget(store=lambda: self._services.store, daily=settings.model_daily_tokens)
        try:
            return choose_model(settings, environ), budget, None
        except ModelError as exc:
            return None, budget, exc

    def submit(
        self,
        session: str,
        draft: Draft,
        *,
        excerpts: Sequence[str] = (),
        trusts: Sequence[str] = (),
        then: Callable[[Refined | None], object],
    ) -> bool:
        """Queue a draft, and call *then* at most once with the result, None where it stays as it is.

        Return False where no model is chosen, or too many sessions wait. The same session again takes the place of
        the one that waits.
        """
        with self._lock:
            if self._model is None or self._runner.closing:
                return False
            if session not in self._waiting and len(self._waiting) >= MOST_WAITING:
                self._services.report("model", f"more than {MOST_WAITING} sessions wait for the model; {UNREFINED}")
                return False
            self._waiting[session] = _Request(draft, tuple(excerpts), tuple(trusts), then)
        self._runner.wake("refine")
        return True

    def status(self) -> dict[str, Any]:
        """Return the model, whether it is well, and what it may still cost."""
        settings, model, budget = self._settings, self._model, self._budget
        return {
            "provider": settings.model_provider if settings else "off",
            "model": model.name if model else settings.model_name if settings else "",
            "where": model.where if model else "",
            "daily_tokens": settings.model_daily_tokens if settings else 0,
            "spent_tokens": budget.spent() if budget else 0,
            "paused_s": round(budget.pause.seconds, 1) if budget else 0.0,
            "waiting": len(self._waiting),
            "problem": f"{self._problem}; {self._problem.hint}" if self._problem else "",
        }

    def spendings(self, *, limit: int) -> list[dict[str, Any]]:
        return [vars(each) for each in self._services.store.stats.model_calls(0.0, limit)]

    def attempt(self) -> dict[str, Any]:
        """Call the model once, also during a pause; return what the call cost, or what is wrong."""
        try:
            return self._attempt()
        except ModelError as exc:
            return {"ok": False, "error": str(exc), "hint": exc.hint}

    def drop(self) -> None:
        """Drop what waits and the call that runs: they hold texts that may be forgotten."""
        with self._lock:
            self._waiting.clear()
            self._dropped += 1

    def close(self) -> None:
        """Cancel the call that runs, and drop what waits."""
        with self._lock:
            self._waiting.clear()
        if self._model is not None:
            self._model.close()

    def _attempt(self) -> dict[str, Any]:
        if self._problem is not None and self._settings is not None:
            self._chosen = ()  # what was wrong may have been fixed: a key in its file, for example
            self.configure(self._settings, self._environ)
        settings, model, budget = self._settings, self._model, self._budget
        if self._problem is not None:
            raise self._problem
        if settings is None or model is None or budget is None:
            raise ModelError("no model is chosen", hint="docs/model.md explains how to turn one on")
        from foreword.llm.schema import Object, Text
        from foreword.llm.spending import Metered

        metered = Metered(model, budget=budget, purpose="try", anyway=True)
        answer = metered.complete(
            'Answer with the JSON object {"word": "walrus"}.',
            system="You answer with one JSON object and nothing else.",
            schema=Object({"word": Text(200)}),
            most_tokens=200,
            seconds=settings.model_seconds,
        )
        about = {"provider": model.provider, "model": model.name, "where": model.where}
        cost = {"tokens_in": answer.tokens_in, "tokens_out": answer.tokens_out, "took_ms": round(answer.ms, 1)}
        return {"ok": True, **about, **cost}

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting or self._runner.closing:
                    return
                session = next(iter(self._waiting))
                request, before = self._waiting.pop(session), self._dropped
            refined = self._refined(session, request)
            if before == self._dropped and not self._runner.closing:
                try:
                    request.then(refined)
                except Exception:
                    log.exception("the refined summary of a session was not kept")

    def _refined(self, session: str, request: _Request) -> Refined | None:
        settings, model, budget = self._settings, self._model, self._budget
        if settings is None or model is None or budget is None:
            return None
        from foreword.llm.refine import refine
        from foreword.llm.spending import Metered

        metered = Metered(model, budget=budget, purpose="refine", session=session)
        try:
            return refine(
                metered,
                request.draft,
                excerpts=request.excerpts,
                trusts=request.trusts,
                fence=secrets.token_hex(8),
                seconds=settings.model_seconds,
            )
        except ModelError as exc:
            if model is self._model:  # else it was cancelled because another was chosen
                self._report(exc)
        except ForewordError as exc:  # the store cannot be written: a call that cannot be counted is not made
            if not self._runner.closing:
                self._services.report("model", f"the model is not called: {exc}; {UNREFINED}")
        except Exception:
            log.exception("refining failed")
        return None

    def _report(self, exc: ModelError) -> None:
        from foreword.llm.spending import ModelPaused

        if not self._runner.closing and not isinstance(exc, ModelPaused):
            self._services.report("model", f"{exc}; {UNREFINED}; {exc.hint}")

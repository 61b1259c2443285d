"""Sessions and their drafts -> what a model makes of them, one after another, aside; what fails costs only itself."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from foreword.errors import ForewordError, ModelError

if TYPE_CHECKING:
    from foreword.config import Settings
    from foreword.llm.client import Model
    from foreword.llm.refine import Draft, Refined
    from foreword.llm.spending import DailyBudget
    from foreword.store import Store

log = logging.getLogger("foreword")

MOST_WAITING = 64  # sessions; more end in a day only where something is wrong
LEAVING = 2.0  # seconds that a call which was cut gets to end
KEPT = "summaries are kept as they are made without a model"


@dataclass(frozen=True)
class _Job:
    """One session that waits, and who wants to know."""

    draft: Draft
    excerpts: tuple[str, ...]
    trusts: tuple[str, ...]
    then: Callable[[Refined | None], object]


class Refining:
    """The model that the settings chose, while they choose one, and the sessions that wait for it."""

    def __init__(self, *, store: Callable[[], Store], tell: Callable[[str, str], None]) -> None:
        self._store = store
        self._tell = tell
        self._settings: Settings | None = None
        self._environ: Mapping[str, str] = {}
        self._chosen: tuple[object, ...] = ()
        self._model: Model | None = None
        self._ledger: DailyBudget | None = None
        self._problem: ModelError | None = None
        self._waiting: dict[str, _Job] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._busy = False
        self._closed = False
        self._dropped = 0  # times that everything was dropped

    @property
    def on(self) -> bool:
        return self._model is not None and not self._closed

    @property
    def busy(self) -> bool:
        return self._busy or bool(self._waiting)

    def choose(self, settings: Settings, environ: Mapping[str, str]) -> None:
        """Follow the settings; what was being asked of another model is ended, and what waits waits for the new one."""
        key = environ.get(settings.model_key_env, "") if settings.model_key_env else ""
        named = (settings.model_provider, settings.model_name, settings.model_url, settings.model_key_env)
        wanted = (*named, settings.model_daily_tokens, settings.model_seconds, key)
        if wanted == self._chosen or self._closed:
            return
        self._chosen, self._settings, self._environ = wanted, settings, environ
        old, (model, ledger, problem) = self._model, self._make(settings, environ)
        # The new one is there before the old one ends: what waits must not find none in between.
        self._model, self._ledger, self._problem = model, ledger, problem
        if old is not None:
            old.close()
        if settings.model_provider == "off":
            with self._changed:
                self._waiting.clear()
        if problem is not None:
            self._say(problem)

    def _make(
        self, settings: Settings, environ: Mapping[str, str]
    ) -> tuple[Model | None, DailyBudget | None, ModelError | None]:
        """Return the model that the settings choose, the ledger of what it costs, and what is wrong with the choice."""
        if settings.model_provider == "off":
            return None, None, None
        from foreword.llm.client import choose_model
        from foreword.llm.spending import DailyBudget

        ledger = DailyBudget(store=self._store, daily=settings.model_daily_tokens)
        try:
            return choose_model(settings, environ), ledger, None
        except ModelError as exc:
            return None, ledger, exc

    def submit(
        self,
        session: str,
        draft: Draft,
        *,
        excerpts: Sequence[str] = (),
        trusts: Sequence[str] = (),
        then: Callable[[Refined | None], object],
    ) -> bool:
        """Have a draft refined in its turn, and *then* told, aside and at most once: None where it stays as it is.

        Nobody waits. False where no model is chosen, or too many sessions wait; then nobody is told. The same session
        again takes the place of the one that waits.
        """
        with self._changed:
            if self._model is None or self._closed:
                return False
            if session not in self._waiting and len(self._waiting) >= MOST_WAITING:
                self._tell("model", f"more than {MOST_WAITING} sessions wait for the model; {KEPT}")
                return False
            self._waiting[session] = _Job(draft, tuple(excerpts), tuple(trusts), then)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="refining", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return True

    def about(self) -> dict[str, Any]:
        """The model, whether it is well, and what it may still cost."""
        settings, model, ledger = self._settings, self._model, self._ledger
        told: dict[str, Any] = {
            "provider": settings.model_provider if settings else "off",
            "model": model.name if model else settings.model_name if settings else "",
            "where": model.where if model else "",
            "daily_tokens": settings.model_daily_tokens if settings else 0,
            "spent_tokens": ledger.spent() if ledger else 0,
            "paused_s": round(ledger.pause.seconds, 1) if ledger else 0.0,
            "waiting": len(self._waiting),
            "problem": f"{self._problem}; {self._problem.hint}" if self._problem else "",
        }
        return told

    def spendings(self, *, limit: int) -> list[dict[str, Any]]:
        return [vars(each) for each in self._store().stats.model_calls(0.0, limit)]

    def attempt(self) -> dict[str, Any]:
        """Ask the model for one word, now, also during a pause; what it answered and cost, or what is wrong."""
        try:
            return self._attempt()
        except ModelError as exc:
            return {"ok": False, "error": str(exc), "hint": exc.hint}

    def drop(self) -> None:
        """Let go of what waits and of what is being asked: it holds texts that may be forgotten."""
        with self._changed:
            self._waiting.clear()
            self._dropped += 1

    def close(self) -> None:
        """End what is being asked, and forget what waits."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
        if self._model is not None:
            self._model.close()
        if self._thread is not None:
            self._thread.join(LEAVING)

    def _attempt(self) -> dict[str, Any]:
        if self._problem is not None and self._settings is not None:
            self._chosen = ()  # what was wrong may have been put right: a key in its file, a command on its path
            self.choose(self._settings, self._environ)
        settings, model, ledger = self._settings, self._model, self._ledger
        if self._problem is not None:
            raise self._problem
        if settings is None or model is None or ledger is None:
            raise ModelError("no model is chosen", hint="docs/model.md tells how to turn one on")
        from foreword.llm.schema import Object, Text
        from foreword.llm.spending import Metered

        asked = Metered(model, budget=ledger, purpose="try", anyway=True)
        got = asked.complete(
            'Answer with the JSON object {"word": "walrus"}.',
            system="You answer with one JSON object and nothing else.",
            schema=Object({"word": Text(200)}),
            most_tokens=200,
            seconds=settings.model_seconds,
        )
        about = {"provider": model.provider, "model": model.name, "where": model.where}
        cost = {"tokens_in": got.tokens_in, "tokens_out": got.tokens_out, "took_ms": round(got.ms, 1)}
        return {"ok": True, **about, **cost}

    def _work(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                session = next(iter(self._waiting))
                job = self._waiting.pop(session)
                self._busy, before = True, self._dropped
            refined = self._refined(session, job)
            if before == self._dropped:
                self._tell_after(job, refined)

    def _refined(self, session: str, job: _Job) -> Refined | None:
        settings, model, ledger = self._settings, self._model, self._ledger
        if settings is None or model is None or ledger is None:
            return None
        from foreword.llm.refine import refine
        from foreword.llm.spending import Metered

        asked = Metered(model, budget=ledger, purpose="refine", session=session)
        try:
            return refine(
                asked,
                job.draft,
                excerpts=job.excerpts,
                trusts=job.trusts,
                fence=secrets.token_hex(8),
                seconds=settings.model_seconds,
            )
        except ModelError as exc:
            if model is self._model:  # else it was ended because another was chosen
                self._say(exc)
        except ForewordError as exc:  # the store cannot write: what cannot be counted is not asked
            if not self._closed:
                self._tell("model", f"the model is not asked: {exc}; {KEPT}")
        except Exception:
            log.exception("refining failed")
        return None

    def _tell_after(self, job: _Job, refined: Refined | None) -> None:
        if self._closed:
            return
        try:
            job.then(refined)
        except Exception:
            log.exception("what a model made of a session was not taken")

    def _say(self, exc: ModelError) -> None:
        from foreword.llm.spending import ModelPaused

        if not self._closed and not isinstance(exc, ModelPaused):
            self._tell("model", f"{exc}; {KEPT}; {exc.hint}")

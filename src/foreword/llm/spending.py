"""Count what a model costs, and refuse calls beyond the daily cap."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from foreword.endpoint import Pause, Paused
from foreword.errors import ModelError, StoreError
from foreword.llm.client import UNKNOWN, Completed, Model, NoAnswer
from foreword.llm.schema import Schema
from foreword.models import ModelCall
from foreword.recall.tokens import count, family_of
from foreword.store import Store

DAY = 86_400.0  # seconds; any 24 hours, so that midnight and time zones double nothing
LEAST = 10  # a reported cost counts at least a tenth of our own count: tokenizers differ by three


class OverCap(ModelError):
    """The day's tokens do not suffice for this call; it was not made."""


class ModelPaused(ModelError):
    """The model failed a short time ago and is not asked; the failure was reported."""


class DailyBudget:
    """The tokens that models may use in any 24 hours, and those that they used."""

    def __init__(
        self,
        *,
        store: Callable[[], Store],
        daily: int,
        now: Callable[[], float] = time.time,
        pause: Pause | None = None,
    ) -> None:
        self.daily = daily
        self.pause = pause or Pause()
        self._store = store
        self._now = now
        self._lock = threading.Lock()

    def spent(self) -> int:
        """Return the tokens of the last 24 hours; entries in the future, of a wrong clock, count too."""
        return self._store().stats.model_tokens(self._now() - DAY)

    def refuse(self, entry: ModelCall, *, outcome: str) -> None:
        self._store().stats.record_model_call(replace(entry, at=self._now(), outcome=outcome))

    def reserve(self, entry: ModelCall) -> ModelCall:
        """Record the call with all that it may cost, before it is made; OverCap where there is no room for it."""
        with self._lock:  # two at once must not both take the last tokens
            if self.spent() + entry.tokens_in + entry.tokens_out <= self.daily:
                return self._store().stats.record_model_call(replace(entry, at=self._now()))
        self.refuse(replace(entry, tokens_in=0, tokens_out=0), outcome="refused:cap")
        raise OverCap(
            f"a model may cost {self.daily:,} tokens in 24 hours, which are spent",
            hint="wait, or raise `model_daily_tokens`; `foreword model ledger` lists the calls",
        )

    def settle(self, entry: ModelCall) -> None:
        """Replace the reservation by the real cost; where the store fails, the reservation stays."""
        with suppress(StoreError):
            self._store().stats.record_model_call(entry)


class Metered:
    """A model whose calls, for one purpose of one session, count against the budget and pause after a failure."""

    def __init__(
        self, model: Model, *, budget: DailyBudget, purpose: str, session: str = "", anyway: bool = False
    ) -> None:
        self.provider, self.name, self.where = model.provider, model.name, model.where
        self._model = model
        self._budget = budget
        self._anyway = anyway  # the user asks: also during a pause
        self._entry = ModelCall(at=0.0, provider=model.provider, model=model.name, purpose=purpose, session=session)

    def complete(self, prompt: str, *, system: str, schema: Schema, most_tokens: int, seconds: float) -> Completed:
        expected = count(f"{system}\n{prompt}", family=family_of(self.name))
        try:
            with self._budget.pause.asking(anyway=self._anyway):
                entry = self._budget.reserve(replace(self._entry, tokens_in=expected, tokens_out=most_tokens))
                began = time.perf_counter()
                try:
                    got = self._model.complete(
                        prompt, system=system, schema=schema, most_tokens=most_tokens, seconds=seconds
                    )
                except NoAnswer as exc:
                    cost = _cost(entry, exc.used, text="") if exc.worked else (0, 0)
                    self._settle(entry, cost, began=began, outcome=f"failed:{exc.why}")
                    raise
                cost = _cost(entry, (got.tokens_in, got.tokens_out), text=got.text)
                self._settle(entry, cost, began=began, outcome="ok")
                return got
        except Paused as exc:
            self._budget.refuse(self._entry, outcome="paused")
            raise ModelPaused(f"{self.where} is not asked for a while", hint="it is tried again by itself") from exc

    def close(self) -> None:
        self._model.close()

    def _settle(self, entry: ModelCall, cost: tuple[int, int], *, began: float, outcome: str) -> None:
        ms = (time.perf_counter() - began) * 1000
        self._budget.settle(replace(entry, tokens_in=cost[0], tokens_out=cost[1], ms=ms, outcome=outcome))


def _cost(entry: ModelCall, reported: tuple[int, int], *, text: str) -> tuple[int, int]:
    """Return the reported cost, unless it is too little to be true; where nothing was reported, the reservation."""
    tokens_in, tokens_out = reported
    return (
        entry.tokens_in if tokens_in == UNKNOWN else max(tokens_in, entry.tokens_in // LEAST),
        entry.tokens_out if tokens_out == UNKNOWN else max(tokens_out, count(text) // LEAST),
    )

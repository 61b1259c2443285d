"""A model, a store and a cap -> the same model, each call of it written down, and none that the cap has no room for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from foreword.endpoint import Pause, Paused
from foreword.errors import ModelError, StoreError
from foreword.llm import UNTOLD, Completed, Model, NoAnswer
from foreword.models import ModelCall
from foreword.recall.tokens import count, family_of

if TYPE_CHECKING:
    from foreword.llm.schema import Schema
    from foreword.store import Store

DAY = 86_400.0  # seconds; any 24 hours, so that midnight and time zones double nothing
LEAST = 10  # what is told counts at least a tenth of what we count: tokenizers differ by three


class OverCap(ModelError):
    """The day's tokens do not suffice for this call; it was not made."""


class ModelPaused(ModelError):
    """The model failed a short time ago and is not asked; the failure was reported."""


class Ledger:
    """What models may spend in any 24 hours, what they spent, and how the present one behaves."""

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
        self._alone = threading.Lock()

    def spent(self) -> int:
        """The tokens of the last 24 hours; what a clock that was wrong wrote into the future counts too."""
        return self._store().stats.model_tokens(self._now() - DAY)

    def refuse(self, entry: ModelCall, *, outcome: str) -> None:
        self._store().stats.record_model_call(replace(entry, at=self._now(), outcome=outcome))

    def begin(self, entry: ModelCall) -> ModelCall:
        """Write the call down with all that it may cost, before it is made; OverCap where there is no room for it."""
        with self._alone:  # two at once must not both take the last tokens
            if self.spent() + entry.tokens_in + entry.tokens_out <= self.daily:
                return self._store().stats.record_model_call(replace(entry, at=self._now()))
        self.refuse(replace(entry, tokens_in=0, tokens_out=0), outcome="refused:cap")
        raise OverCap(
            f"a model may cost {self.daily:,} tokens in 24 hours, which are spent",
            hint="wait, or raise `model_daily_tokens`; `foreword model ledger` tells what they went to",
        )

    def end(self, entry: ModelCall) -> None:
        with suppress(StoreError):  # then what it might have cost stays written
            self._store().stats.record_model_call(entry)


class Metered:
    """A model whose calls, for one purpose of one session, go through the ledger, and pause after a failure."""

    def __init__(self, model: Model, *, ledger: Ledger, purpose: str, session: str = "", anyway: bool = False) -> None:
        self.provider, self.name, self.where = model.provider, model.name, model.where
        self._model = model
        self._ledger = ledger
        self._anyway = anyway  # the user asks: also during a pause
        self._entry = ModelCall(at=0.0, provider=model.provider, model=model.name, purpose=purpose, session=session)

    def complete(self, prompt: str, *, system: str, schema: Schema, most_tokens: int, seconds: float) -> Completed:
        expected = count(f"{system}\n{prompt}", family=family_of(self.name))
        asked: dict[str, Any] = {"system": system, "schema": schema, "most_tokens": most_tokens, "seconds": seconds}
        try:
            with self._ledger.pause.asking(anyway=self._anyway):
                entry = self._ledger.begin(replace(self._entry, tokens_in=expected, tokens_out=most_tokens))
                return self._asked(prompt, entry, asked)
        except Paused as exc:
            self._ledger.refuse(self._entry, outcome="paused")
            raise ModelPaused(f"{self.where} is not asked for a while", hint="it is tried again by itself") from exc

    def close(self) -> None:
        self._model.close()

    def _asked(self, prompt: str, entry: ModelCall, asked: Mapping[str, Any]) -> Completed:
        """Make the call, and write what came of it in the place of what was expected; a crash leaves that there."""
        began = time.perf_counter()
        try:
            got = self._model.complete(prompt, **asked)
        except NoAnswer as exc:
            cost = _cost(entry, exc.used, text="") if exc.worked else (0, 0)
            self._end(entry, cost, began=began, outcome=f"failed:{exc.why}")
            raise
        self._end(entry, _cost(entry, (got.tokens_in, got.tokens_out), text=got.text), began=began, outcome="ok")
        return got

    def _end(self, entry: ModelCall, cost: tuple[int, int], *, began: float, outcome: str) -> None:
        ms = (time.perf_counter() - began) * 1000
        self._ledger.end(replace(entry, tokens_in=cost[0], tokens_out=cost[1], ms=ms, outcome=outcome))


def _cost(entry: ModelCall, told: tuple[int, int], *, text: str) -> tuple[int, int]:
    """What counts: what was told, unless it is too little to be true; where nothing was told, what was expected."""
    least = (entry.tokens_in // LEAST, count(text) // LEAST)
    expected = (entry.tokens_in, entry.tokens_out)
    tokens_in, tokens_out = (
        expect if tell == UNTOLD else max(tell, low) for expect, tell, low in zip(expected, told, least, strict=True)
    )
    return tokens_in, tokens_out

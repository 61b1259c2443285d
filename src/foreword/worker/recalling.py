"""A moment -> what is said at it, recorded and counted, one at a time in a session; a search -> what it finds."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from foreword import answers
from foreword.capture import Captured, injection_id
from foreword.config import Settings
from foreword.errors import BadRequest
from foreword.hosts import cap_of, find, text_of
from foreword.layout import Recipe
from foreword.payloads import Delivery
from foreword.recall.pipeline import MOST_RECORDED, POOL, caps, injection_of, look, thresholds
from foreword.recall.query import query_of
from foreword.recall.silences import heard, kept
from foreword.recall.trial import Trial, tried
from foreword.store.silences import Silence
from foreword.store.sqlite import Store
from foreword.types import BASE32, KINDS, Moment, Project, Ranked, Recalled, Skipped
from foreword.worker.arrived import arrived
from foreword.worker.meaning import Meaning
from foreword.worker.measuring import Measuring
from foreword.worker.work import Work

T = TypeVar("T")

MOST_RESULTS = 200
SEARCH_SECONDS = 2.0  # somebody who searches waits so long for the vector of the question
TURNS = 32  # sessions that share a lock wait for each other some milliseconds
BETWEEN = "\n\n"  # two blocks in one answer


@dataclass(frozen=True)
class Found:
    """What a search found, best first, and what went wrong on the way."""

    ranked: tuple[Ranked, ...]
    problems: tuple[str, ...]


class Recalling:
    """Answers for one store, for as long as the worker runs."""

    def __init__(
        self,
        *,
        store: Callable[[], Store],
        settings: Callable[[], Settings],
        synonyms: Callable[[], Mapping[str, Sequence[str]]],
        meaning: Meaning,
        work: Work,
        measuring: Measuring,
        hush: Callable[[Project, Silence], None],
        tell: Callable[[str, str], None],
        now: Callable[[], float],
    ) -> None:
        self._store, self._settings, self._synonyms = store, settings, synonyms
        self._meaning, self._work, self._measuring = meaning, work, measuring
        self._hush, self._tell, self._now = hush, tell, now
        # One answer at a time for a session: what the first is given, the second must know.
        self._turns = tuple(threading.RLock() for _ in range(TURNS))

    def answer(self, moment: Moment, delivery: Delivery, captured: Captured) -> str:
        """What a hook is told at a moment; nothing where nothing is worth saying."""
        id, at = injection_id(delivery), delivery.at
        again = find(delivery.host).second_chance
        raced = again and moment.session and moment.name == "session_start"  # by the first prompt, which may be first
        if moment.stable or raced:
            return str(self.same(moment, id=id, at=at, hold=False)["context"])  # a plugin holds on to a silence itself
        begun = self._second_chance(moment, captured, at=at) if again and moment.name == "prompt" else ""
        got, _ = self.recall(moment, id=id, at=at, beside=begun)
        return BETWEEN.join(filter(None, (begun, got.text if isinstance(got, Recalled) else "")))

    def _second_chance(self, moment: Moment, captured: Captured, *, at: float) -> str:
        """What a session begins with, at the first prompt of a window, unless its transcript shows that it arrived."""
        if not moment.session or self._store().prompted(moment.session, before=at):
            return ""
        began = self._store().begun(moment.session)
        if began and (not self._settings().capture or arrived(text_of(captured.payload, "transcript_path"))):
            return ""  # without capture nobody knows which prompt is the first
        start = replace(moment, name="session_start", prompt="", source="")
        seconds = self._settings().deadline_prompt_ms / 1000 / 4  # the prompt's own block needs as much
        return str(self.same(start, at=at, hold=False, seconds=seconds, again=True)["context"])

    def same(
        self,
        moment: Moment,
        *,
        preview: bool = False,
        id: str = "",
        at: float = 0.0,
        hold: bool = True,
        seconds: float = 0.0,
        again: bool = False,
    ) -> dict[str, Any]:
        """What was given first to whoever asked the same; the first time it is built and recorded."""
        query = query_of(moment, synonyms=self._synonyms())
        silence = Skipped(why="", terms=query.terms[:MOST_RECORDED], files=query.files[:MOST_RECORDED])
        with self._turn(moment):
            first = self._store().given(injection_of(moment, silence, id="", at=0.0))
            gone = first is not None and first.tokens > 0 and not first.text  # pruned: it is built anew
            if first is not None and not gone and first.tokens <= (moment.budget or first.tokens):
                return answers.again(first)
            got, id = self.recall(moment, preview=preview, id=id, at=at, seconds=seconds, again=again)
            held = hold and not preview and not got.problems and "deadline" not in got.skipped.values()
            if isinstance(got, Skipped) and held:
                self._store().record(injection_of(moment, got, id=_new_id(), at=self._now()))
            return answers.context(got, id)

    def recall(
        self,
        moment: Moment,
        *,
        preview: bool = False,
        id: str = "",
        at: float = 0.0,
        kinds: Sequence[str] = (),
        beside: str = "",
        seconds: float = 0.0,
        again: bool = False,
    ) -> tuple[Recalled | Skipped, str]:
        """The context of a moment, in one answer with *beside*, and where there is one, the id it is recorded under.

        Why nothing is said is kept too, unless it is *again* that which nobody asked for.
        """
        with self._turn(moment):
            got, silence = self._asked(heard, moment, kinds, beside=beside, seconds=seconds)
            for problem in got.problems:
                self._tell("recall", problem)
            if preview:
                return got, ""
            self._measuring.recalled(moment.project.key, moment.name, silent=isinstance(got, Skipped))
            # Of a hook's call the time is the event's own, so that the window which it begins holds its answer.
            id, at = id or _new_id(), at or self._now()
            if silence is not None:
                if not again:
                    self._hush(moment.project, replace(silence, id=id, at=at))
                return got, ""
            self._store().record(injection_of(moment, got, id=id, at=at))
            return got, id

    def trial(self, moment: Moment) -> tuple[Trial, Silence | None]:
        """What would be said at a moment, and what would not; if nothing is, why. Nothing is recorded or counted."""
        got = self._asked(tried, moment)
        if not isinstance(got.got, Skipped):
            return got, None
        settings, used = self._settings(), self._store().spent(moment.session)
        recipe, threshold = settings.recipes[moment.name], thresholds(settings)[moment.name]
        return got, kept(moment, got.got, best=got.best, recipe=recipe, threshold=threshold, used=used)

    def _asked(
        self,
        sentence: Callable[..., T],
        moment: Moment,
        kinds: Sequence[str] = (),
        *,
        beside: str = "",
        seconds: float = 0.0,
    ) -> T:
        """What recall, or a trial of it, says to a moment with the settings and the window that it has."""
        start = moment.name == "session_start"
        deadline = self._settings().deadline_start_ms if start else self._settings().deadline_prompt_ms
        # The hook waits a little longer: a partial answer arrives.
        until = time.perf_counter() + (seconds or deadline / 1000 / 2)
        cap = cap_of(moment.host, raised=caps(self._settings()))
        if cap and beside:
            cap = replace(cap, most=max(0, cap.most - cap.size(beside + BETWEEN)))
        return sentence(
            self._store(),
            self._work.around(moment),
            recipe=_narrowed(self._settings().recipes[moment.name], kinds),
            threshold=thresholds(self._settings())[moment.name],
            now=self._now(),
            shown=lambda: self._store().shown(moment.session) if moment.session else frozenset(),
            spent=lambda: self._store().spent(moment.session),
            begun=lambda: self._store().begun(moment.session),
            synonyms=self._synonyms(),
            most_terms=self._settings().terms_max,
            postings=self._settings().postings_budget,
            family=self._settings().tokenizer,
            cap=cap,
            vector=self._meaning.of_prompt(moment.prompt, seconds=deadline / 1000 / 4),  # half of the time to build
            expired=lambda: time.perf_counter() > until,
        )

    def _turn(self, moment: Moment) -> AbstractContextManager[object]:
        return self._turns[hash(moment.session) % TURNS] if moment.session else nullcontext()

    def found(
        self,
        q: str,
        *,
        project: Project,
        now: float,
        kinds: Sequence[str] = (),
        since: float = 0.0,
        at: float = 0.0,
        limit: int = 0,
    ) -> Found:
        """What a search finds in a project, best first, and what must be told of it."""
        for kind in kinds:
            if kind not in KINDS:
                raise BadRequest(f"unknown kind {kind!r}", hint=f"one of {', '.join(KINDS)}")
        most = min(limit or self._settings().search_limit, MOST_RESULTS)
        query = replace(
            query_of(Moment(name="question", project=project, prompt=q), synonyms=self._synonyms()),
            kinds=tuple(kinds),
            since=since,
            at=at,
            limit=max(most, POOL),
            most_terms=self._settings().terms_max,
            postings=self._settings().postings_budget,
            vector=self._meaning.of_prompt(q, seconds=SEARCH_SECONDS),
        )
        if q.strip() and not query.terms:
            return Found((), ("only words that are everywhere: name a thing, a file or a function",))
        ranked, wrong = look(self._store(), query, now=now, moment="question")
        for problem in wrong:
            self._tell("search", problem)
        return Found(ranked[:most], wrong)


def _narrowed(recipe: Recipe, kinds: Sequence[str]) -> Recipe:
    """*recipe* with these kinds alone; without kinds, as it is."""
    if not kinds:
        return recipe
    layers = [
        replace(layer, kinds=only) for layer in recipe.layers if (only := tuple(k for k in layer.kinds if k in kinds))
    ]
    return replace(recipe, layers=tuple(layers))


def _new_id() -> str:
    return "inj-" + "".join(secrets.choice(BASE32) for _ in range(10))

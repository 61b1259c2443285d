"""Build the context of a trigger, recorded and counted, one at a time in a session; search memories."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from foreword.agents import find, text_of
from foreword.agents.transcript_tail import tail
from foreword.capture.parse import ParsedHook, injection_id
from foreword.capture.payload import HookCall
from foreword.errors import BadRequest
from foreword.models import BASE32, KINDS, Context, NoContext, Project, Query, Ranked, Trigger
from foreword.recall.files import TurnRecord, record_of
from foreword.recall.pipeline import POOL, Window, injection_of, options_of, recall
from foreword.recall.query import query_of
from foreword.recall.rank import ranked_search
from foreword.worker.embeddings import Embeddings
from foreword.worker.projects import ProjectRegistry
from foreword.worker.services import Services
from foreword.worker.working_set import WorkingSet

MOST_RESULTS = 200
MOST_TURNS = 300  # of a project, which tell its likely files
MOST_PROJECTS = 20  # whose turns are kept at hand
LOCKS = 32  # sessions that share a lock wait for each other some milliseconds
MOST_EXPLAINED = 500  # answers whose rejected memories are kept for `explain`; a busy day
MOST_REJECTED = 5  # memories of each
BETWEEN = "\n\n"  # two blocks in one answer
# How `render` begins a block in each form; nothing in it is written otherwise inside JSON.
BLOCK_MARKS = (b"--- foreword: notes from earlier sessions in ", b"<foreword_context ")


class ContextBuilder:
    """Runs the recall pipeline with the worker's settings and working set, and records what it injects."""

    def __init__(
        self, services: Services, projects: ProjectRegistry, working_set: WorkingSet, embeddings: Embeddings
    ) -> None:
        self._services, self._projects = services, projects
        self._working_set, self._embeddings = working_set, embeddings
        self._history: dict[str, tuple[TurnRecord, ...]] = {}
        self._rejected: dict[str, dict[str, str]] = {}  # by the id of an answer; never stored
        # One answer at a time for a session: what the first injects, the second must know.
        self._locks = tuple(threading.RLock() for _ in range(LOCKS))

    def answer_hook(self, trigger: Trigger, hook_call: HookCall, parsed: ParsedHook) -> str:
        """Return the context for a hook call; empty where nothing is worth injecting."""
        id, at = injection_id(hook_call), hook_call.at
        again = find(hook_call.host).second_chance
        raced = again and trigger.session and trigger.name == "session_start"  # by the first prompt, which may be first
        if trigger.stable or raced:
            return self.stable(trigger, id=id, at=at)  # a plugin remembers no context itself
        begun = self._second_chance(trigger, parsed, at=at) if again and trigger.name == "prompt" else ""
        got, _ = self.recall(trigger, id=id, at=at, beside=begun)
        return BETWEEN.join(filter(None, (begun, got.text if isinstance(got, Context) else "")))

    def _second_chance(self, trigger: Trigger, parsed: ParsedHook, *, at: float) -> str:
        """Return the start context at the first prompt of a window, unless the transcript shows that it arrived."""
        if not trigger.session or self._services.store.events.has_prompt(trigger.session, before=at):
            return ""
        began = self._services.store.injections.last_start_at(trigger.session)
        if began and (not self._services.settings.capture or holds_context(text_of(parsed.payload, "transcript_path"))):
            return ""  # without capture nobody knows which prompt is the first
        start = trigger._replace(name="session_start", prompt="", source="")
        seconds = self._services.settings.deadline_prompt_ms / 1000 / 4  # the prompt's own block needs as much
        return self.stable(start, at=at, seconds=seconds, again=True)

    def stable(
        self, trigger: Trigger, *, id: str = "", at: float = 0.0, seconds: float = 0.0, again: bool = False
    ) -> str:
        """Return the same start context throughout a window; the first time it is built and recorded."""
        injections = self._services.store.injections
        with self._session_lock(trigger):
            first = injections.first_start(trigger.session, project=trigger.project.key, form=trigger.form)
            if first is not None and (first.text or not first.tokens):  # else it was pruned, and is built again
                return first.text
            got, _ = self.recall(trigger, id=id, at=at, seconds=seconds, again=again)
            return got.text if isinstance(got, Context) else ""

    def recall(
        self,
        trigger: Trigger,
        *,
        preview: bool = False,
        id: str = "",
        at: float = 0.0,
        beside: str = "",
        seconds: float = 0.0,
        again: bool = False,
    ) -> tuple[Context | NoContext, str]:
        """Return the context of a trigger, in one answer with *beside*, and the id under which it is recorded.

        Why nothing is injected is recorded too, unless the context is built *again* by ourselves. A *preview* records
        nothing.
        """
        with self._session_lock(trigger):
            got = self._recall(trigger, beside=beside, seconds=seconds)
            for problem in got.problems:
                self._services.report("recall", problem)
            if preview:
                return got, ""
            # Of a hook's call the time is the event's own, so that the window which it begins holds its answer.
            id = id or "inj-" + "".join(secrets.choice(BASE32) for _ in range(10))
            at = at or self._services.now()
            while len(self._rejected) >= MOST_EXPLAINED:
                self._rejected.pop(next(iter(self._rejected)), None)
            self._rejected[id] = {each.ranked.memory.id: each.text for each in got.rejected[:MOST_REJECTED]}
            has_context = isinstance(got, Context)
            if has_context or not (again or self._projects.policy(trigger.project).capture):
                self._services.store.injections.record(injection_of(trigger, got, id=id, at=at))
            return got, id if has_context else ""

    def rejected(self, id: str) -> Mapping[str, str]:
        """Return the memories that an answer left out, best first, each with the reason; while the worker knows it."""
        return self._rejected.get(id, {})

    def _recall(self, trigger: Trigger, *, beside: str, seconds: float) -> Context | NoContext:
        """Run the pipeline with the settings and the window that the trigger has."""
        start = trigger.name == "session_start"
        settings = self._services.settings
        deadline = settings.deadline_start_ms if start else settings.deadline_prompt_ms
        # The hook waits a little longer: a partial answer arrives.
        until = time.perf_counter() + (seconds or deadline / 1000 / 2)
        cap = find(trigger.host).cap if trigger.host else None
        if cap and beside:
            cap = cap._replace(most=max(0, cap.most - cap.size(beside + BETWEEN)))
        session, store = trigger.session, self._services.store
        return recall(
            store.search,
            self._working_set.enrich(trigger),
            options=options_of(settings, trigger.name, synonyms=self._services.synonyms, cap=cap),
            now=self._services.now(),
            window=Window(
                shown=lambda: self._in_context(trigger),
                spent=lambda: store.injections.window_tokens(session),
                began=lambda: store.injections.last_start_at(session),
                history=lambda: self._turns_of(trigger.project),
            ),
            vector=self._embeddings.embed_prompt(trigger.prompt),
            expired=lambda: time.perf_counter() > until,
        )

    def _in_context(self, trigger: Trigger) -> frozenset[str]:
        """Return the memories that the agent has in its context, those of a conversation that it carries on too.

        Which conversation that is, is a guess: a session start rather repeats a line.
        """
        carried = self._working_set.carried_over(trigger.session) if trigger.name == "prompt" else ()
        sessions = (trigger.session, *carried) if trigger.session else ()
        return frozenset(id for each in sessions for id in self._services.store.injections.shown(each))

    def refresh(self) -> None:
        """Read turns again: they changed. A read that has begun writes to the dict that is dropped here."""
        self._history = {}

    def _turns_of(self, project: Project) -> tuple[TurnRecord, ...]:
        """Return the newest turns of a project, newest first, from memory: every prompt needs them."""
        history = self._history
        known = history.get(project.key)
        if known is None:
            query = Query(scopes=(project.scope,), kinds=("turn",), limit=MOST_TURNS)
            known = tuple(record_of(hit.memory) for hit in self._services.store.search.by_recency(query))
            if len(history) >= MOST_PROJECTS:
                history.clear()
            history[project.key] = known
        return known

    def _session_lock(self, trigger: Trigger) -> AbstractContextManager[object]:
        return self._locks[hash(trigger.session) % LOCKS] if trigger.session else nullcontext()

    def search(
        self, q: str, *, project: Project, now: float, kinds: Sequence[str] = (), since: float = 0.0, limit: int = 0
    ) -> tuple[tuple[Ranked, ...], tuple[str, ...]]:
        """Return what a search finds in a project, best first, and what went wrong."""
        for kind in kinds:
            if kind not in KINDS:
                raise BadRequest(f"unknown kind {kind!r}", hint=f"one of {', '.join(KINDS)}")
        most = min(limit or self._services.settings.search_limit, MOST_RESULTS)
        question = Trigger(name="question", project=project, prompt=q)
        query = query_of(question, synonyms=self._services.synonyms)._replace(
            kinds=tuple(kinds),
            since=since,
            limit=max(most, POOL),
            vector=self._embeddings.embed_prompt(q),
        )
        if q.strip() and not query.terms:
            return (), ("only words that are everywhere: name a thing, a file or a function",)
        ranked, wrong = ranked_search(self._services.store.search, query, now=now, trigger="question")
        for problem in wrong:
            self._services.report("search", problem)
        return ranked[:most], wrong


def holds_context(transcript: str) -> bool:
    """Return whether the end of a transcript, where a first prompt stands, holds a context block of ours."""
    end = tail(transcript)
    return any(mark in end for mark in BLOCK_MARKS)

"""The story -> a month in a real store: everything that was injected, what each night left, and the morning of day 30.

The agent of the story also reacts to what it is given. Which memories it finds useful is decided by a hash of their
words alone, so it has nothing to do with their kind, their age or their place in the block; and in every third session
it pays no attention at all.
"""

from __future__ import annotations

import hashlib
import random
import re
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foreword.capture.parse import project_at
from foreword.capture.payload import HookCall
from foreword.models import Injection, Memory
from foreword.paths import Home
from foreword.worker import injections, mcp_tools, working_set
from foreword.worker.app import App
from tests.month import seams
from tests.month.claude import Claude, Clock
from tests.month.product import Product
from tests.month.story import DAY, DAYS, FIRST, REVIEWS, SESSIONS, HookInput, Step

TELLING = ("Stop", "PreCompact", "SessionEnd")  # after these a session is distilled
PATIENCE = 60.0  # seconds that the play waits for a thread: it must be ready, however busy the machine is
MOST_USED = 2  # memories that the agent takes up in one turn
# At most what the settings allow: a block that was cut short by a busy machine would be another month.
SETTINGS = "deadline_prompt_ms = 4500\ndeadline_start_ms = 4500\n"
SCENE = (
    "test_storm_warning_live is red again, how do we get the storm warning test green?",
    "What must I know before I change save_booking() in havn/storage.py, and where do we store bookings?",
    "How far are we with our goal for the season, and what starts the nightly jobs?",
)


@dataclass(frozen=True)
class InjectedContext:
    """One block that was injected, with the day it was on and the memories it showed, as they were then."""

    day: int
    injection: Injection
    memories: dict[str, Memory]


@dataclass(frozen=True)
class Night:
    """What the store held after a day and its tidying."""

    day: int
    active: int
    rows: dict[str, int]
    bytes: int
    build_ms: float  # median of the day's blocks; 0 where there were none
    tidied: int  # changes that tidying made


@dataclass
class Month:
    """All that a play has seen."""

    contexts: list[InjectedContext] = field(default_factory=list)
    nights: list[Night] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)  # at the end, whatever their status
    judged: dict[str, Injection] = field(default_factory=dict)  # by id, as it stands at the end
    refused: list[tuple[int, Memory]] = field(default_factory=list)  # what a user said no to, and the day
    again: int = 0  # changes that tidying once more would make on the last night
    scene: dict[str, str] = field(default_factory=dict)  # what day 30 looked like, by name
    active: list[Memory] = field(default_factory=list)


def play(folder: Path, *, days: int = DAYS, attentive: bool = True) -> Month:
    """Play the month in *folder*; an agent that is not *attentive* ignores all that it is given."""
    folder.mkdir(parents=True, exist_ok=True)
    home = Home(root=folder / "home")
    home.prepare()
    home.config.write_text(SETTINGS, encoding="utf-8")
    clock = Clock(FIRST)
    product = Product(folder / "havn")
    product.commit("Havn as it was", at=FIRST - DAY, who="mia")
    month = Month()
    with _git_asked_once(), seams.at_home(home.root):
        app = App(home, now=clock)
        app.store.memories.choose = random.Random(30).choice
        try:
            with seams.served(app):
                player = _Player(app, product, clock, month, attentive=attentive)
                for day in range(1, days + 1):
                    player.day(day)
                    if day == DAYS:
                        month.scene = player.scene()
                    else:
                        player.night(day)
                month.memories = seams.everything(app)
                month.active = [memory for memory in month.memories if memory.status == "active"]
                found = app.store.injections.list(project=player.project.key, limit=10_000)
                month.judged = {each.id: each for each in found}
        finally:
            app.close()
    return month


class _Player:
    def __init__(self, app: App, product: Product, clock: Clock, month: Month, *, attentive: bool) -> None:
        self.app, self.product, self.clock, self.month = app, product, clock, month
        self.attentive = attentive
        self.project = project_at(str(product.root))
        self.user = seams.User(app, product.root, clock)
        self._today = 1
        self._seen: set[str] = set()

    def day(self, day: int) -> None:
        self._today = day
        for number, session in enumerate(SESSIONS):
            if session.day == day:
                self.clock.to(session.at)
                self._session(f"session {number + 1}", session)
        if day in REVIEWS:
            self.clock.to(max(self.clock(), FIRST + (day - 1) * DAY + 20 * 3600))
            refused = self.user.review(REVIEWS[day])
            self.month.refused += [(day, memory) for memory in self.app.store.memories.get(refused)]

    def night(self, day: int) -> None:
        self.clock.to(FIRST + day * DAY - 3600)
        tidied = self.user.tidies()
        if day == DAYS - 1:
            self.month.again = self.user.tidies()
        times = [each.injection.build_ms for each in self.month.contexts if each.day == day]
        active = [memory for memory in seams.everything(self.app) if memory.status == "active"]
        self.month.nights.append(
            Night(
                day=day,
                active=len(active),
                rows=dict(self.app.store.stats.row_counts()),
                bytes=seams.size(self.app),
                build_ms=statistics.median(times) if times else 0.0,
                tidied=tidied,
            )
        )

    def scene(self) -> dict[str, str]:
        """The morning of the last day: what a session is given, and what a user who asks is told."""
        self.clock.to(FIRST + (DAYS - 1) * DAY + 9 * 3600)
        agent = Claude("the last day", self.product, deliver=self._deliver, clock=self.clock)
        scene = {"start": agent.start()}
        for place, prompt in enumerate(SCENE, 1):
            scene[f"prompt {place}"] = agent.prompt(prompt)
            if place == 2:
                agent.edit("havn/storage.py", "(booking[", "[booking[")
                agent.run("uv run pytest -q", "14 passed in 1.40s")
            agent.stop("save_booking() passes a list now, because pymysql wants one. All tests pass.")
        agent.compaction()
        scene["compaction"] = injections.show_context(
            self.app, project_path=str(self.product.root), session_id=agent.session, trigger="compaction", preview=True
        )["context"]
        return scene | self.user.reads()

    # -- sessions -----------------------------------------------------------------------------------------------
    def _session(self, name: str, session: HookInput) -> None:
        agent = Claude(name, self.product, deliver=self._deliver, clock=self.clock)
        attentive = self.attentive and _number(name) % 3 != 0
        agent.start()
        tasks = 0
        for step in session.steps:
            if step.verb == "answer":
                remarks = self._react(agent) if attentive else ()
                agent.stop(" ".join((*step.arguments, *remarks)))
            elif step.verb == "todo":
                for subject in step.arguments:
                    tasks += 1
                    agent.task(tasks, subject)
            else:
                self._do(agent, step)
        agent.end()
        self.product.commit(f"{session.who}: {name}", at=self.clock(), who=session.who)

    def _do(self, agent: Claude, step: Step) -> None:
        verb, arguments = step.verb, step.arguments
        if verb in ("read", "edit", "write", "run"):
            getattr(agent, verb)(*arguments)
        elif verb == "say":
            agent.prompt(*arguments)
        elif verb == "fail":
            agent.run(*arguments, fails=True)
        elif verb == "done":
            agent.task_done(*arguments)
        elif verb in ("move", "remove"):
            getattr(self.product, verb)(*arguments)
        elif verb == "compaction":
            agent.compaction()
            agent.start("compact")
        elif verb == "remember":
            kind, title, body = arguments
            agent.memory("memory_remember", {"kind": kind, "title": title, "body": body}, call=self._ask)
        elif verb == "handoff":
            agent.memory("memory_handoff", {"message": arguments[0], "next": list(arguments[1:])}, call=self._ask)
        else:
            getattr(self.user, verb)(*arguments)

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        return mcp_tools.answer(self.app, request)

    def _deliver(self, hook_call: HookCall) -> bytes:
        answer = self.app.hooks.answer(hook_call)
        if hook_call.event in TELLING:
            seams.quiet(self.app, self.project.key, seconds=PATIENCE)
        if answer:
            self._note_given()
        return answer

    def _note_given(self) -> None:
        for each in self.app.store.injections.list(project=self.project.key, limit=3, texts=True):
            if each.id not in self._seen:
                self._seen.add(each.id)
                found = self.app.store.memories.get([item.memory for item in each.items])
                self.month.contexts.append(InjectedContext(self._today, each, {memory.id: memory for memory in found}))

    # -- what the agent makes of what it was given --------------------------------------------------------------
    def _react(self, agent: Claude) -> list[str]:
        """Take up some of the useful memories that this session was shown; what it would say of them."""
        shown = [each for each in self.month.contexts if each.injection.session == agent.session]
        useful = {memory.id: memory for each in shown for memory in each.memories.values() if is_useful(memory)}
        chosen = sorted(useful.values(), key=lambda memory: _number(f"{agent.session} {memory.title}"))[:MOST_USED]
        return [remark for memory in chosen if (remark := self._take_up(agent, memory))]

    def _take_up(self, agent: Claude, memory: Memory) -> str:
        files = [file for file in memory.files if self.product.has(file)]
        command = re.search(r"^ran `([^`]+)`", str(memory.detail.get("fixed_by", "")))
        if memory.kind == "failure" and command:
            agent.run(command[1], "done")
        elif memory.kind in ("change", "summary", "observation") and files:
            agent.read(files[0])
        elif _number(f"how {memory.title}") % 3 or memory.kind == "failure":
            agent.memory("memory_get", {"ids": [memory.id]}, call=self._ask)
        else:
            words = sorted(set(re.findall(r"\w{4,}", memory.title)), key=lambda word: (-len(word), word))[:5]
            return f"That goes with {', '.join(words)}."
        return ""


def is_useful(memory: Memory) -> bool:
    """Whether the agent of this story has a use for a memory: a third of them, by a hash of their words."""
    return _number(f"{memory.kind} {memory.title}") % 3 == 0


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big")


@contextmanager
def _git_asked_once() -> Iterator[None]:
    """What git calls changed is told in the background, whenever it is ready: too late or too early by turns."""
    before = working_set.GIT_SECONDS
    working_set.GIT_SECONDS = float("inf")
    try:
        yield
    finally:
        working_set.GIT_SECONDS = before

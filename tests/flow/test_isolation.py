"""Project A is never shown in project B: many projects with 52 random words each, through everything that reads.

Each word begins with the mark of its project, so that also half a word tells whose it is. A real worker is asked, and
hook processes with and without one.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foreword.models import FORMS, KINDS, STATUSES, TRIGGERS, Change, Event, Injection, Item, Link, Memory
from foreword.paths import Home
from foreword.store import Store
from foreword.worker import mcp_tools
from foreword.worker.client import Client
from foreword.worker.routes import ROUTES
from tests.flow.conftest import CLEAN, HookRunner, end_worker, wait_for
from tests.flow.forked import foreword

Answers = Iterator[tuple[str, str]]  # where, and what was told there

PROJECTS = [12, pytest.param(100, marks=pytest.mark.long)]
WORDS = 52
LETTERS = "bcdfghjkmnpqrstvwxyz"
OLD = 1_780_000_000.0  # long ago, so that no session is waited for
EVERYWHERE = "walrus"  # a word that every memory of every project holds
SHARED = "s-shared"  # a session that went through all projects' folders
RELATIONS = ("supersedes", "resolves", "caused-by", "relates-to", "part-of")

# What every route may tell. A new one belongs into one of these; a reader of a project is then asked below.
OF_A_PROJECT = {
    "GET /api/context", "GET /api/search", "GET /api/sessions", "GET /api/injections", "GET /api/line",
    "GET /api/resume", "GET /api/export", "GET /api/imports", "GET /api/goals", "GET /api/project",
    "GET /api/log", "GET /api/review", "GET /api/stats", "POST /api/tidy",
    "POST /api/mcp", "POST /api/hook",
}  # fmt: skip
# Ids that somebody types: the user may reach other projects by them, from the command line.
BY_HAND = {"GET /api/memories/", "GET /api/sessions/", "GET /api/injections/"}
# Of all projects, for the user at the viewer; no agent is answered by these.
BY_HAND |= {
    "GET /api/memories", "GET /api/facets", "GET /api/live", "GET /api/timeline",
    "GET /api/preview", "POST /api/preview",
}  # fmt: skip
NO_WORDS = {
    "GET /api/health", "GET /api/projects", "GET /api/model", "GET /api/changes",
}  # fmt: skip
WRITING = {
    "POST /api/events", "POST /api/memories", "POST /api/imports", "POST /api/goals/",
    "POST /api/project/merge",
    "POST /api/model", "POST /api/index", "POST /api/scrub",
    "POST /api/backup", "POST /api/restore", "POST /api/verify",
    "POST /api/memories/", "POST /api/pin", "POST /api/supersede", "POST /api/undo", "POST /api/review",
    "POST /api/forget", "POST /api/prune",
}  # fmt: skip
ASKING = {"memory_search", "memory_get", "memory_timeline", "memory_context"}
SAYING = {"memory_remember", "memory_handoff", "memory_revise", "memory_forget"}


class Place:
    """One project: its folder, its words, and the ids of its memories."""

    def __init__(self, folder: Path, mark: str, *, chance: random.Random) -> None:
        self.folder, self.mark = str(folder), mark
        words = {f"zq{mark}{''.join(chance.choices(LETTERS, k=7))}" for _ in range(WORDS * 2)}
        self.words = sorted(words)[:WORDS]
        self.key = f"dir:{folder}"
        self.session = f"s-{folder.name}"
        self.ids: list[str] = []

    def files(self) -> None:
        Path(self.folder).mkdir(parents=True)
        (Path(self.folder) / "pyproject.toml").write_text("")


def test_every_route_and_tool_is_one_that_somebody_thought_about() -> None:
    known = [OF_A_PROJECT, BY_HAND, NO_WORDS, WRITING]
    assert {f"{method} {path}" for path, methods in ROUTES.items() for method in methods} == set().union(*known)
    assert sum(map(len, known)) == len(set().union(*known))
    assert set(mcp_tools.TOOLS) == ASKING | SAYING


@pytest.fixture(scope="module", params=PROJECTS)
def places(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> list[Place]:
    chance, many = random.Random(6), request.param
    marks = sorted({"".join(chance.choices(LETTERS, k=4)) for _ in range(many * 2)})
    chance.shuffle(marks)
    root = tmp_path_factory.mktemp("all")
    made = [Place(root / f"p{number:02d}", marks[number], chance=chance) for number in range(many)]
    for place in made:
        place.files()
    return made


def memories_of(place: Place) -> tuple[list[Memory], Iterator[str]]:
    """A memory of every kind and status, with words in every field; the words that are left."""
    words = iter(place.words)

    def one(kind: str, **more: Any) -> Memory:
        title = f"{EVERYWHERE} {next(words)}"
        at = {"created": OLD, "confirmed": OLD, "session": place.session}
        made = Memory(kind, title, f"{EVERYWHERE} {next(words)}", project=place.key, **at)  # type: ignore[arg-type]
        return replace(made, **more)

    made = [one(kind) for kind in KINDS]
    details = {
        "decision": {"why": next(words)},
        "summary": {"done": [next(words)], "next": [next(words)], "decisions": [next(words)]},
        "goal": {"status": "open", "outcome": next(words)},
        "project": {"role": next(words), "contracts": [next(words)], "depends_on": [next(words)]},
        "failure": {"message": next(words), "fixed_by": next(words)},
        "learning": {"why": next(words)},
    }
    code = {
        "files": (f"src/{next(words)}.py", "src/shared.py"),
        "functions": (next(words), "shared"),
        "tags": (next(words),),
    }
    made = [replace(each, detail=details.get(each.kind, {})) for each in made]
    made = [replace(each, **code) if each.kind in ("decision", "change") else each for each in made]
    made = [replace(each, uid=f"sum:{place.key}:{place.session}") if each.kind == "summary" else each for each in made]
    decision = next(each for each in made if each.kind == "decision")
    for status in STATUSES[1:]:
        made.append(replace(decision, title=f"{EVERYWHERE} {next(words)}", uid="", status=status))
    made.append(replace(decision, title=f"{EVERYWHERE} {next(words)}", uid="", session=SHARED))
    return made, words


def fill(store: Store, places: Sequence[Place]) -> None:
    """Everything that a project can hold, and what a hostile hand might write across projects."""
    made = {place.key: memories_of(place) for place in places}
    kept = iter(store.memories.put([memory for memories, _ in made.values() for memory in memories]))
    events: list[Event] = []
    changes: list[Change] = []
    for place in places:
        memories, words = made[place.key]
        place.ids = [next(kept).id for _ in memories]
        for session in (place.session, SHARED):
            payload = {"session_id": session, "cwd": place.folder, "prompt": f"{EVERYWHERE} {next(words)}"}
            who = ("claude-code", "UserPromptSubmit", "prompt", session, place.key, place.folder)
            events.append(Event(f"{place.key} {session}", *who, OLD, payload))
        changes.append(Change(place.key, "src/shared.py", next(words), "NEW", session=SHARED, at=OLD))
        text, terms = f"{EVERYWHERE} {next(words)}", (next(words),)
        whose = (f"inj-{place.mark}", "prompt", place.session, place.key, "claude-code", OLD, 3, 500, 0.1)
        store.injections.record(
            Injection(*whose, {}, {}, (Item(place.ids[0], "past", 1.0, 3, {}),), text=text, terms=terms)
        )
        assert next(words, "") == "", "all words are used"
    store.events.append(events)
    store.save(changes=changes)
    memories, links = hostile(store, places)
    store.memories.put(memories, links=links)


def hostile(store: Store, places: Sequence[Place]) -> tuple[list[Memory], list[Link]]:
    """Memories that speak of another project's, or stand where its own are looked for; links across, both ways."""
    memories: list[Memory] = []
    links: list[Link] = []
    for place, other in zip(places, [*places[1:], places[0]], strict=True):
        forth = [Link(place.ids[2], relation, other.ids[2]) for relation in RELATIONS]
        links += [*forth, *(Link(link.target, link.relation, link.source) for link in forth)]
        gone, goal = store.memories.get([place.ids[-3], place.ids[10]])
        memories.append(replace(gone, status="superseded", superseded_by=other.ids[10]))
        memories.append(replace(goal, detail={**goal.detail, "parent": other.ids[10]}))
        for kind, uid in (("summary", f"sum:{place.key}:{SHARED}"), ("project", f"prj:{place.key}")):
            memories.append(Memory(kind, f"zq{other.mark}", uid=uid, project=other.key))
    return memories, links


def read_everything(client: Client, place: Place, other: Place, *, folder: str = "", all: bool = False) -> Answers:
    """Everything that one project can be told, asked with the words and ids of another."""
    here = folder or place.folder
    foreign = f"{EVERYWHERE} goal milestone contract {' '.join(other.words[:8])} src/shared.py shared()"

    def get(path: str, **query: Any) -> tuple[str, str]:
        answer = client.get(path, **query)
        for each in answer.get("injections", ()) if path == "/api/injections" else ():
            each.pop("terms")  # what was asked for, which is the other's words here
        return f"{path} {query}"[:160], json.dumps(answer)

    forms = FORMS if all else (FORMS[len(place.mark + here) % len(FORMS)],)
    for trigger in TRIGGERS:
        for form in forms:
            usual = SHARED if trigger == "compaction" else ""
            for session in ("", place.session, SHARED, other.session) if all else (usual,):
                request = {"trigger": trigger, "form": form, "session_id": session, "project_path": here, "preview": 1}
                yield get("/api/context", prompt=foreign, **request)
    yield get("/api/search", q=foreign, project_path=here, limit=200, explain=1)
    yield get("/api/search", q=EVERYWHERE, project_path=here, limit=200, compact=1)
    for path in ("/api/sessions", "/api/injections", "/api/line", "/api/resume", "/api/imports", "/api/project"):
        yield get(path, project_path=here, limit=100, text=1)
    yield get("/api/injections", project_path=here, empty=1)
    for path in ("/api/log", "/api/review", "/api/stats"):
        yield get(path, project_path=here)
    if all:
        tidied = client.post("/api/tidy", {"project_path": here, "dry_run": True})
        yield "/api/tidy", json.dumps(tidied)
    yield get("/api/goals", project_path=here, all=1)
    for part in ("session", "memory", "change", "link"):
        yield get("/api/export", part=part, project_path=here)
    linked = client.get(f"/api/memories/{place.ids[2]}", full=1)["links"]
    yield f"/api/memories {place.ids[2]}", json.dumps(linked)
    for name, arguments in calls(place, other, foreign, all=all):
        request = {"tool": name, "arguments": arguments, "caller": {"cwd": here, "client": {"name": "somebody"}}}
        yield f"{name} {arguments}"[:160], json.dumps(client.post("/api/mcp", request))


def calls(place: Place, other: Place, foreign: str, *, all: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every tool that tells something, asked for what is another's."""
    yield "memory_get", {"ids": [place.ids[2]]}
    yield "memory_search", {"query": foreign, "limit": 50}
    yield "memory_search", {"query": EVERYWHERE, "compact": True, "limit": 50}
    for named in (other.folder, other.key) if all else ():
        yield "memory_search", {"query": EVERYWHERE, "project": named}
    yield "memory_get", {"ids": other.ids[:13]}
    yield "memory_timeline", {"id": other.ids[2]}
    yield "memory_revise", {"id": other.ids[2], "title": "mine now"}
    yield "memory_forget", {"ids": other.ids[:3], "why": "not mine"}
    yield "memory_timeline", {"query": foreign, "limit": 10}
    if all:
        yield "memory_context", {}
    yield "memory_context", {"query": foreign}


def leaks(answers: Answers, *allowed: Place, places: Sequence[Place]) -> list[str]:
    """Where a word of a project was told that may not be told here."""
    ours = {place.mark for place in allowed}
    every = {place.mark for place in places}
    return [
        f"{where}: {mark}"
        for where, text in answers
        for mark in sorted(set(re.findall(r"zq([a-z]{4})", text)) & every - ours)
    ]


def count_own(answers: Answers, place: Place) -> int:
    return sum(f"zq{place.mark}" in text for _, text in answers)


@pytest.fixture
def filled(home: Home, places: list[Place], start: Callable[[], Client]) -> Client:
    store = Store(home.database, backups=home.backups)
    fill(store, places)
    store.close()
    return start()


def git(folder: Path, *, remote: str) -> None:
    (folder / ".git").mkdir(parents=True, exist_ok=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "config").write_text(f'[remote "origin"]\n\turl = https://example.com/{remote}.git\n')


def worktree(folder: Path, at: Path) -> str:
    admin = folder / ".git" / "worktrees" / at.name
    admin.mkdir(parents=True)
    (admin / "HEAD").write_text("ref: refs/heads/other\n")
    (admin / "commondir").write_text("../..\n")
    at.mkdir()
    (at / ".git").write_text(f"gitdir: {admin}\n")
    return str(at)


@pytest.mark.timeout(400)  # some three thousand questions
def test_no_word_of_a_project_is_told_in_another_by_anything_that_reads(
    home: Home, host: HookRunner, places: list[Place], filled: Client, tmp_path: Path
):
    client = filled
    found: list[str] = []
    for number, place in enumerate(places):
        other = places[(number + 1) % len(places)]
        answers = list(read_everything(client, place, other, all=number % 25 == 0))
        assert count_own(iter(answers), place) > 10, "its own words are told"
        found += leaks(iter(answers), place, places=places)
        found += [where for where, text in answers if _tells_no_id(where) and any(id in text for id in other.ids)]
    assert found == []
    for path in sorted(each.removeprefix("GET ") for each in NO_WORDS):
        assert leaks(iter([(path, json.dumps(client.get(path)))]), places=places) == []

    # A folder that counts as another project.
    alias = tmp_path / "alias"
    alias.mkdir()
    client.post("/api/project/merge", {"project_path": places[0].folder, "other": str(alias)})
    answers = list(read_everything(client, places[0], places[1], folder=str(alias)))
    assert count_own(iter(answers), places[0]) > 10
    assert leaks(iter(answers), places[0], places=places) == []

    # Two that became one.
    entry = client.post("/api/project/merge", {"project_path": places[3].folder, "other": places[2].key})["entry"]
    assert entry
    for folder in (places[2].folder, places[3].folder):
        answers = list(read_everything(client, places[3], places[4], folder=folder))
        assert count_own(iter(answers), places[2]) > 10
        assert leaks(iter(answers), places[2], places[3], places=places) == []
    assert leaks(read_everything(client, places[4], places[2]), places[4], places=places) == []

    # A folder that became a repository, and one whose remote changed: it is another project, until they are merged.
    for remote in ("a/five", "b/five"):
        git(Path(places[5].folder), remote=remote)
        wait_for(lambda remote=remote: _key(client, places[5].folder) == f"git:example.com/{remote}")
        assert leaks(_without_graph(read_everything(client, places[5], places[6])), places=places) == []
    client.post("/api/project/merge", {"project_path": places[5].folder, "other": places[5].key})
    second = worktree(Path(places[5].folder), tmp_path / "second")
    for folder in (places[5].folder, second):
        answers = list(read_everything(client, places[5], places[6], folder=folder))
        assert count_own(iter(answers), places[5]) > 10
        assert leaks(iter(answers), places[5], places=places) == []
    assert leaks(read_everything(client, places[6], places[5]), places[6], places=places) == []

    # What the command line tells in a folder, and hooks with a worker and without.
    assert leaks(_typed(home, places[7]), places[7], places=places) == []
    for away in (False, True):
        if away:
            end_worker(home)
            host.write_hook()
        for place, other, folder in (
            (places[8], places[9], places[8].folder),
            (places[0], places[1], str(alias)),
            (places[3], places[4], places[2].folder),
            (places[5], places[6], second),
        ):
            answers = list(_hooked(host, other, folder=folder, session=f"{place.mark}{away}"))
            own = (places[2], places[3]) if place is places[3] else (place,)
            assert any(f"zq{each.mark}" in text for each in own for _, text in answers), (folder, away)
            assert leaks(iter(answers), *own, places=places) == []


def _tells_no_id(where: str) -> bool:
    """Whether links are told there: those that lead to another project are not."""
    own = where.startswith("memory_get") and "," not in where
    return own or where.startswith(("/api/memories", "/api/export {'part': 'link'", "/api/context"))


def _key(client: Client, folder: str) -> str:
    return str(client.get("/api/project", project_path=folder)["key"])


def _without_graph(answers: Answers) -> Answers:
    """Without what was asked by an id that is the old project's."""
    return (
        (where, text)
        for where, text in answers
        if not where.startswith(("/api/memories", "/api/export {'part': 'event'"))
    )


def _typed(home: Home, place: Place) -> Answers:
    for words in (
        ["status"],
        ["export", "-"],
        ["resume"],
        ["sessions"],
        ["explain", f"inj-{place.mark}"],  # the last one looked for another project's words, and says so
        ["graph", place.ids[2]],
        ["goal", "list", "--all"],
        ["context", EVERYWHERE],
    ):
        ended = foreword(
            *words, cwd=place.folder, env={**CLEAN, "FOREWORD_HOME": str(home.root), "HOME": str(home.root)}
        )
        assert ended.returncode == 0, (words, ended.stderr)
        yield " ".join(words), ended.stdout + ended.stderr


def _hooked(host: HookRunner, other: Place, *, folder: str, session: str) -> Answers:
    fields = {"session_id": session, "cwd": folder}
    start = {**fields, "hook_event_name": "SessionStart", "source": "startup"}
    yield "SessionStart", host.context("SessionStart", start)
    prompt = f"{EVERYWHERE} milestone contract {' '.join(other.words[:5])}"
    payload = {**fields, "hook_event_name": "UserPromptSubmit", "prompt": prompt}
    yield "UserPromptSubmit", host.context("UserPromptSubmit", payload)

"""A home and a folder for projects -> a memory as people fill it: three projects, told through the doors they use.

Havn's first days are the story of tests/month, moved so that the last of them was yesterday; the session of today goes
on, and was given something that is used and something that is not. The shop has what was written by hand and a session
of Codex, Tern a few rules. What only a clock or a missing file would bring about (stale, discarded) is kept by the
store itself, before there is a worker.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlencode

from foreword.agents import find
from foreword.capture.payload import HookCall
from foreword.models import Memory
from foreword.paths import Home
from foreword.projects import resolve
from foreword.store import Store
from foreword.worker import lifecycle
from foreword.worker.client import Client
from tests.everyday import remembered
from tests.flow.conftest import PATIENT, HookRunner, end_worker, wait_for
from tests.flow.viewing import is_gone
from tests.month.claude import Claude, Clock
from tests.month.product import Product
from tests.month.story import DAY, FIRST, SESSIONS, HookInput, Step

DAYS = 10  # of the story: nineteen sessions in which money, a database and names change
HOUR = 3600.0
CODEX = "0199c4a1-7c4e-7d33-b1f0-6b7a6d1e2f30"
SHOP_PROMPT = "Guests see the checkout transport time out again, and the Stripe webhook books twice. Where do I look?"
LIVE_PROMPTS = (
    "Why does test_storm_warning_live fail again, and what did we decide about storing bookings?",
    "Let price_of() round the berth fee to whole cents, and run the tests.",
)


@dataclass(frozen=True)
class Filled:
    """What lies there: the folders of the projects by name, sessions and memories by what they are good for."""

    projects: Mapping[str, str]
    sessions: Mapping[str, str] = field(default_factory=dict)  # live, ended, codex
    ids: Mapping[str, str] = field(default_factory=dict)  # pinned, superseded, note, goal, ... -> a memory's id


@contextmanager
def worker(home: Home, user: Path) -> Iterator[Client]:
    """Start the worker of *home* for somebody whose own home is *user*; at the end its process is gone."""
    user.mkdir(parents=True, exist_ok=True)
    own = {"FOREWORD_HOME": str(home.root), "HOME": str(user), **PATIENT}
    agents = ("CLAUDECODE", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
    environ = {name: value for name, value in os.environ.items() if name not in agents}
    with patch.dict(os.environ, environ | own, clear=True):
        lifecycle.start(home)
    client = Client(home, seconds=60)
    client.get("/api/health")  # it has read its settings and written its hook
    pid = lifecycle.pid_of(home)
    try:
        yield client
    finally:
        try:
            lifecycle.stop(home)
        finally:
            end_worker(home)
            if pid:  # it lets its lock go before it has ended, and whoever removes the home must not be in its way
                wait_for(lambda: is_gone(pid))


def fill(home: Home, folder: Path) -> Filled:
    """Fill *home* with what is told of projects in *folder*; the worker that did so has left."""
    shop, tern = (_project(folder / name, file) for name, file in (("shop", "pyproject.toml"), ("tern", "go.mod")))
    product = Product(folder / "havn")
    now = time.time()
    product.commit("Havn as it was", at=now - (DAYS + 2) * DAY, who="mia")
    projects = {"havn": str(product.root), "shop": shop, "tern": tern}
    ids = _kept(home, projects, now=now)
    with worker(home, folder / "user") as client:
        sessions = {"ended": _story(client, product, now=now)}
        ids |= _add_by_hand(client, projects, now=now)
        sessions["codex"] = _codex(client, shop, now=now)
        sessions["live"] = _today(client, product, HookRunner(home), now=now)
        ids |= _governed(client, projects, ids)
        wait_for(lambda: all(each["name"] for each in client.get("/api/projects")["projects"]))
    return Filled(projects, sessions, ids)


# -- sessions -----------------------------------------------------------------------------------------------------


def _story(client: Client, product: Product, *, now: float) -> str:
    """The first days of Havn; the last of its sessions."""
    later = now - (now % DAY) - DAYS * DAY - FIRST  # day 10 of the story was yesterday
    sessions = [each for each in SESSIONS if each.day <= DAYS]
    for number, each in enumerate(sessions, 1):
        clock = Clock(each.at + later)
        last = _session(f"session {number}", each, product, clock, client)
        product.commit(f"{each.who}: {each.steps[0].arguments[0][:60]}", at=clock(), who=each.who)
    return last


def _session(name: str, session: HookInput, product: Product, clock: Clock, client: Client) -> str:
    def deliver(hook_call: HookCall) -> bytes:
        return hooked(client, hook_call)

    agent = Claude(name, product, deliver=deliver, clock=clock)
    agent.start()
    for step in session.steps:
        _do(agent, step, product, client)
    agent.end()
    wait_for(lambda: client.get("/api/sessions", limit=1)["sessions"][0]["events"] > 0)
    client.get(f"/api/sessions/{agent.session}")  # answers when it is distilled
    return agent.session


def _do(agent: Claude, step: Step, product: Product, client: Client) -> None:
    verb, arguments = step.verb, step.arguments
    if verb in ("read", "edit", "write", "run"):
        getattr(agent, verb)(*arguments)
    elif verb == "say":
        agent.prompt(*arguments)
    elif verb == "answer":
        agent.stop(*arguments)
    elif verb == "fail":
        agent.run(*arguments, fails=True)
    elif verb == "todo":
        for number, subject in enumerate(arguments, 1):
            agent.task(number, subject)
    elif verb == "done":
        agent.task_done(*arguments)
    elif verb == "note":
        fields = {"kind": "note", "title": arguments[0], "project_path": str(product.root)}
        client.post("/api/memories", fields)
    elif verb == "goal":
        client.post("/api/memories", {"kind": "goal", "title": arguments[0], "project_path": str(product.root)})
    elif verb == "remember":
        kind, title, *_ = arguments
        agent.memory("memory_remember", {"kind": kind, "title": title}, call=lambda body: client.post("/api/mcp", body))


def _codex(client: Client, shop: str, *, now: float) -> str:
    """A session of another host in another project, two hours ago."""
    known = {"session_id": CODEX, "cwd": shop, "model": "gpt-6-sol", "permission_mode": "default"}
    failing = "..F [100%]\nE       DeadlockDetected: process 81 waits for ShareLock\n1 failed, 2 passed in 3.68s\n"
    patched = (
        "*** Begin Patch\n*** Update File: shop/stock.py\n@@\n-    for line in cart:\n+    for line in sorted(cart):\n"
    )
    use: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "python -m pytest -q tests/test_stock.py"}}
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("SessionStart", {"source": "startup"}),
        ("UserPromptSubmit", {"turn_id": "t1", "prompt": SHOP_PROMPT}),
        ("PostToolUse", {**use, "tool_use_id": "call_1", "tool_response": failing}),
        (
            "PostToolUse",
            {
                "tool_name": "apply_patch",
                "tool_use_id": "call_2",
                "tool_input": {"command": f"{patched}*** End Patch"},
                "tool_response": "Exit code: 0\nOutput:\nSuccess. Updated the following files:\nM shop/stock.py\n",
            },
        ),
        ("PostToolUse", {**use, "tool_use_id": "call_3", "tool_response": "... [100%]\n3 passed in 2.10s\n"}),
        ("Stop", {"turn_id": "t1", "last_assistant_message": "reserve_stock() locks rows in one order now."}),
    )
    for place, (event, more) in enumerate(calls):
        raw = json.dumps({**known, "hook_event_name": event, **more}).encode()
        hooked(client, HookCall("codex", event, now - 2 * HOUR + 20 * place, raw))
    return CODEX


def _today(client: Client, product: Product, host: HookRunner, *, now: float) -> str:
    """A session that goes on, told by real hook processes: it uses some of what it was given."""
    clock = Clock(now - HOUR / 3)

    def deliver(hook_call: HookCall) -> bytes:
        return host.tell(hook_call.event, hook_call.raw).stdout

    agent = Claude("today", product, deliver=deliver, clock=clock)
    agent.start()
    first, second = LIVE_PROMPTS
    agent.prompt(first)
    agent.read("havn/weather.py")
    agent.run("uv run pytest -q tests/test_weather.py", "TimeoutError: the met office did not answer", fails=True)
    agent.stop("The met office is slow again; bookings are stored in Postgres, as the office and the web both write.")
    agent.prompt(second)
    agent.edit("havn/prices.py", "RATE = 240\n", "RATE = 250\n")
    agent.run("uv run pytest -q", "10 passed in 1.02s")
    agent.stop("price_of() counts in whole cents.")
    wait_for(lambda: len(client.get("/api/injections", session_id=agent.session)["injections"]) > 1)
    return agent.session


def hooked(client: Client, hook_call: HookCall) -> bytes:
    """What a hook is answered when it tells the worker this, at the time it says."""
    assert find(hook_call.host)
    query = urlencode({"host": hook_call.host, "event": hook_call.event, "at": hook_call.at})
    status, answer = client.send("POST", f"/api/hook?{query}", hook_call.raw)
    assert status == 200, answer
    return answer


# -- what people write, and what becomes of it ----------------------------------------------------------------------


def _kept(home: Home, projects: Mapping[str, str], *, now: float) -> dict[str, str]:
    """What no door makes at once: a memory whose file is gone, one that was discarded."""
    about = {name: {"project": resolve(path).key, "scope": resolve(path).scope} for name, path in projects.items()}
    store = Store(home.database, backups=home.backups)
    try:
        stale, discarded = store.memories.put(
            [
                Memory(
                    "observation",
                    "Moved the price list into tariffs.csv",
                    body="The file is gone since the spring.",
                    files=("havn/tariffs.csv",),
                    status="stale",
                    created=now - 60 * DAY,
                    **about["havn"],
                ),
                Memory("note", "look at htmx some day", status="discarded", created=now - 20 * DAY, **about["shop"]),
            ]
        )
    finally:
        store.close()
    return {"stale": stale.id, "discarded": discarded.id}


def _add_by_hand(client: Client, projects: Mapping[str, str], *, now: float) -> dict[str, str]:
    """What was added by hand: the shop's months, and rules of every scope."""
    names = ("kind", "title", "body", "files", "created")
    shop = [
        {name: each for name, each in vars(memory).items() if name in names}
        | {"files": list(memory.files), "tags": _tags(memory), "project_path": projects["shop"]}
        for memory in remembered(project="", now=now)
        if memory.kind not in ("change", "project", "goal")
    ]
    rules = [
        {"kind": "preference", "title": "Wrap errors with what was tried", "scope": "language:go"},
        {"kind": "preference", "title": "Say what you do before you do it", "scope": "universal"},
        {
            "kind": "pattern",
            "title": "Close every response body",
            "body": "A leaked body keeps its connection, and the pool runs dry after an hour.",
            "detail": {"context": "HTTP clients", "problem": "connections leak", "solution": "defer resp.Body.Close()"},
            "files": ["tern/fetch.go"],
            "functions": ["Fetch"],
        },
        {"kind": "note", "title": "ask Priya who owns the DNS of tern", "tags": ["ops"]},
    ]
    tern = [{"project_path": projects["tern"], "created": now - 3 * DAY, **each} for each in rules]
    kept = client.post("/api/memories", {"memories": [*shop, *tern]})["memories"]
    known = {each["title"]: each["id"] for each in kept}
    return {
        "decision": known["Money is stored as integer cents"],
        "failure": known["psycopg.errors.DeadlockDetected in reserve_stock"],
        "pattern": known["Close every response body"],
        "note": known["ask Priya who owns the DNS of tern"],
        "locks": known["Use PostgreSQL advisory locks for the picking queue"],
        "outbox": known["Kafka is not introduced; the outbox table is polled each second"],
        "search": known["Search uses trigram similarity instead of Elasticsearch"],
    }


def _tags(memory: Memory) -> list[str]:
    """Where in the shop it is, as people tag."""
    return sorted({file.split("/")[0] for file in memory.files if "/" in file})


def _governed(client: Client, projects: Mapping[str, str], ids: Mapping[str, str]) -> dict[str, str]:
    """Pins, a successor, goals, and what is said of a project."""
    ids = client.get(
        "/api/search", q="money cents locks outbox trigram deadlock", project_path=projects["shop"], limit=50
    )
    by = {each["title"]: each["id"] for each in ids["results"]}
    money = by["Money is stored as integer cents"]
    search = by["Search uses trigram similarity instead of Elasticsearch"]
    client.post("/api/pin", {"id": money})
    shop = {"project_path": projects["shop"]}
    words = {"kind": "decision", "title": "Search uses Meilisearch", "body": "typos in German"}
    [successor] = client.post("/api/memories", {**words, **shop})["memories"]
    client.post("/api/supersede", {"old": search, "new": successor["id"]})
    goals = [{"kind": "goal", "title": title, **shop} for title in ("Lisbon opens in October", "Magic links")]
    season, done = client.post("/api/memories", {"memories": goals})["memories"]
    client.post(f"/api/goals/{done['id']}", {"outcome": "live since May"})
    return {
        "pinned": money,
        "superseded": search,
        "successor": successor["id"],
        "goal": season["id"],
        "reached": done["id"],
    }


def _project(folder: Path, file: str) -> str:
    folder.mkdir(parents=True)
    (folder / file).write_text("")
    return str(folder)

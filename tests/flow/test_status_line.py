"""The status line: what a session was given, in a line, at once or not at all."""

from __future__ import annotations

import os
import signal
import time

import pytest

from foreword.models import Memory
from foreword.paths import Home
from foreword.problems import noted
from foreword.projects import resolve
from foreword.store import Store
from foreword.worker import lifecycle
from foreword.worker.client import Client
from tests.flow.conftest import HookRunner, wait_for
from tests.recorded import recorded
from tests.scratch import processes_in, suspend

PROMPT = {
    "session_id": "s1",
    "hook_event_name": "UserPromptSubmit",
    "prompt": "why does the checkout transport retry a timeout twice?",
}
START = {"session_id": "s1", "hook_event_name": "SessionStart", "source": "startup"}


@pytest.fixture
def known(home: Home, project: str) -> Home:
    store, owner, now = Store(home.database, backups=home.backups), resolve(project), time.time()
    about = {"project": owner.key, "scope": owner.scope, "created": now, "confirmed": now}
    store.memories.put([Memory(kind="decision", title="The transport retries twice", **about)])
    store.memories.put([Memory(kind="handoff", title="Sandbox", detail={"next": ["ask for a sandbox"]}, **about)])
    store.close()
    return home


def request(project: str, *, session: str = "s1") -> dict[str, object]:
    """What Claude writes to a status line's command, as recorded where that is at hand."""
    found = [each for each in recorded() if each.event == "statusLine"]
    if found:
        return found[0].placed(folder=project, session=session).payload
    return {"session_id": session, "cwd": project, "workspace": {"current_dir": project}}


def drawn(host: HookRunner, payload: object) -> str:
    ended = host.tell("statusLine", payload)
    assert (ended.returncode, ended.stderr) == (0, b"")
    return ended.stdout.decode()


def context(client: Client, session: str = "s1") -> str:
    """The line that the list of injections comes to."""
    found = client.get("/api/injections", session_id=session)["injections"]
    items = {item["memory"] for each in found for item in each["items"]}
    plural = "" if len(items) == 1 else "s"
    return f"foreword: {len(items)} item{plural}, {sum(each['tokens'] for each in found):,} tokens"


def test_the_line_counts_every_memory_once_and_every_token_of_the_session(known, host: HookRunner, start, project):
    client = start()
    assert drawn(host, request(project)) == "foreword: quiet"
    host.context("UserPromptSubmit", {**PROMPT, "cwd": project})
    assert drawn(host, request(project)) == context(client)
    assert context(client).startswith("foreword: 1 item, ")
    host.context("SessionStart", {**START, "cwd": project})  # a new window: the same memory again, and another
    assert drawn(host, request(project)) == context(client)
    assert context(client).startswith("foreword: 2 items, ")
    assert drawn(host, request(project, session="s2")) == "foreword: quiet"


def test_drawing_it_leaves_no_trace(known, host: HookRunner, start, project):
    client = start()
    for payload in (request(project), b"", b"no JSON", b"[]", {"cwd": project}, {"session_id": 7}):
        assert drawn(host, payload) in ("", "foreword: quiet")
    assert host.stored() == []
    assert host.spooled() == 0
    assert client.get("/api/sessions")["sessions"] == []
    assert client.get("/api/injections")["injections"] == []
    assert noted(str(known.trouble)) == ()


@pytest.mark.parametrize("worker", ["away", "hung"])
def test_without_a_worker_nothing_is_said_kept_started_or_complained_of(
    known, host: HookRunner, start, project, worker
):
    pid = 0
    if worker == "hung":
        start()
        pid = lifecycle.pid_of(known)
        suspend(pid)
    counter = known.root / "started"
    host.write_hook(worker=["/bin/sh", "-c", f"echo x >> {counter}"], FOREWORD_DEADLINE_PROMPT_MS="300")
    assert drawn(host, request(project)) == ""
    wait_for(lambda: {each.pid for each in processes_in(known.root)} <= {pid})
    assert not counter.exists()
    assert host.spooled() == 0
    assert noted(str(known.trouble)) == ()
    if pid:
        os.kill(pid, signal.SIGCONT)

"""What is switched off in a project is off on every path: hook, worker, MCP, command line, status line, imports."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client as McpClient

from foreword.capture.payload import HookCall
from foreword.errors import BadRequest
from foreword.hook.spool import hook_calls
from foreword.models import Memory
from foreword.paths import Home
from foreword.policy import FILE
from foreword.projects import resolve
from foreword.store import Store
from tests.flow.conftest import CLEAN, PATIENT, HookRunner, end_worker, wait_for
from tests.flow.forked import foreword
from tests.flow.test_mcp import Agent

# Each switch as a setting of the user's or as the repository's own file; what is kept and what is told then.
SWITCHES = {
    "off_projects": (False, False),
    "read_only_projects": (False, True),
    "silent_projects": (True, False),
    "": (False, False),
    "nobody knows what": (False, False),
}


@pytest.fixture
def filled(home: Home, project: str) -> Home:
    fill(home, project)
    return home


@pytest.fixture
def switched(home: Home, tmp_path: Path) -> dict[str, str]:
    """A project for each switch, which is set there."""
    folders = {what: str(tmp_path / f"with {what}" / "shop") for what in SWITCHES}
    for what, folder in folders.items():
        Path(folder).mkdir(parents=True)
        (Path(folder) / "pyproject.toml").write_text("")
        switch(home, folder, what)
    fill(home, *folders.values())
    return folders


def fill(home: Home, *projects: str) -> None:
    store, now = Store(home.database, backups=home.backups), time.time()
    for owner in map(resolve, projects):
        about = {"project": owner.key, "scope": owner.scope, "created": now, "confirmed": now}
        store.memories.put(
            [
                Memory(
                    kind="decision",
                    title="The checkout HTTPTransport retries every timeout twice, then it asks the second bank",
                    body="the bank",
                    **about,
                ),
                Memory(kind="failure", title="checkout transport timeout", detail={"fixed_by": "raise it"}, **about),
            ]
        )
    store.close()


def switch(home: Home, project: str, what: str) -> None:
    if what.endswith("_projects"):
        with home.config.open("a") as file:
            file.write(f"{what} = [{json.dumps(project)}]\n")
    else:
        (Path(project) / FILE).write_text(what)


def prompt(project: str, text: str = "why does the checkout transport retry a timeout twice?") -> dict[str, str]:
    session = f"in {project}"
    return {"session_id": session, "cwd": project, "hook_event_name": "UserPromptSubmit", "prompt": text}


def test_a_hook_obeys_with_a_worker(home: Home, host: HookRunner, start, switched):
    client = start()
    for what, (kept, injects) in SWITCHES.items():
        project, before = switched[what], len(host.stored())
        inner = str(Path(project, "inner"))
        Path(inner).mkdir()
        assert bool(host.context("UserPromptSubmit", prompt(inner))) is injects, what
        assert (len(host.stored()) > before) is kept, what
        event = {"host": "claude-code", "event": "Stop", "payload": {"session_id": what, "cwd": project}}
        assert client.post("/api/events", event)["stored"] == int(kept), what
        got = client.get(
            "/api/context",
            project_path=project,
            prompt="why does the checkout transport retry a timeout twice?",
            preview=1,
        )
        assert bool(got["context"]) is injects, what
        assert injects or "switched off" in got["why"], what


def test_a_hook_obeys_without_a_worker(home: Home, host: HookRunner, switched):
    host.write_hook()
    for what, (kept, injects) in SWITCHES.items():
        assert bool(host.context("UserPromptSubmit", prompt(switched[what]))) is injects, what
        spool = home.spool / "current"
        waiting = list(hook_calls(spool.read_bytes())) if spool.exists() else []
        assert any(isinstance(each, HookCall) and not each.injection for each in waiting) is kept, what
        spool.unlink(missing_ok=True)


def test_what_waits_in_the_spool_is_not_taken_in_where_it_was_switched_off_since(
    filled: Home, host: HookRunner, start, project
):
    inner = Path(project, "inner")
    inner.mkdir()
    host.write_hook()
    host.tell("UserPromptSubmit", prompt(str(inner)))
    assert host.spooled()
    switch(filled, project, "")
    start()
    wait_for(lambda: not host.spooled())
    assert host.stored() == []


def test_tools_and_callers_of_the_worker_obey(home: Home, start, switched):
    client = start()
    calls = [
        ("memory_remember", {"kind": "note", "title": "a wombat"}),
        ("memory_handoff", {"message": "half done"}),
        ("memory_context", {"query": "checkout transport retries"}),
        ("memory_search", {"query": "checkout transport"}),
    ]

    async def work(agent: McpClient) -> list[Any]:
        return [await agent.call_tool(tool, arguments) for tool, arguments in calls]

    for what, (kept, injects) in SWITCHES.items():
        answers = Agent(home, switched[what]).run(work)
        remembered, handed, context, found = (answer.content[0].text for answer in answers)
        assert [answer.is_error for answer in answers[:2]] == [not kept, not kept], (what, remembered, handed)
        if not kept:
            assert "switched off" in remembered if not injects else "read-only" in remembered, what
            with pytest.raises(BadRequest, match=r"switched off|read-only"):
                client.post("/api/memories", {"kind": "note", "title": "a wombat", "project_path": switched[what]})
        assert ("HTTPTransport" in context) is injects, what
        assert ("HTTPTransport" in found) is (kept or injects), what  # who asks is answered, unless all is off


def test_a_status_line_says_so(home: Home, host: HookRunner, start, switched):
    start()
    lines = {"off_projects": "off", "": "off", "silent_projects": "silent", "read_only_projects": "quiet"}
    for what, line in lines.items():
        result = host.tell("statusLine", {"session_id": what, "cwd": switched[what]})
        assert result.stdout == f"foreword: {line}".encode(), what


def run(home: Home, folder: str, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    environ = {**CLEAN, **PATIENT, "FOREWORD_HOME": str(home.root), "HOME": str(Path(folder).parent)}
    ended = foreword(*words, cwd=folder, env=environ)
    assert ended.returncode == code, (words, ended.stdout, ended.stderr)
    return ended


KEEPING = (
    ["add", "note", "x"],
    ["note", "x"],
    ["handoff", "x"],
    ["init", "--yes"],
    ["import", "git"],
    ["goal", "add", "x"],
    ["project", "set", "--role", "x"],
)


def test_the_command_line_keeps_nothing_and_tells_the_way_out(home: Home, start, switched):
    start()
    for what in ("off_projects", "read_only_projects", ""):
        project, way = switched[what], what if what.endswith("_projects") else FILE
        for words in KEEPING:
            errors = run(home, project, *words, code=1).stderr
            assert "nothing is stored here" in errors, (what, words)
            assert way in errors, (what, words)
        assert way in run(home, project, "status").stdout
        assert json.loads(run(home, project, "status", "--json").stdout)["switched_off"]
        doctor = run(home, project, "doctor").stdout
        assert way in doctor
        assert "nothing is captured" in doctor


def test_another_project_goes_on(filled: Home, host: HookRunner, start, project, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "pyproject.toml").write_text("")
    for what in ("off_projects", ""):
        switch(filled, project, what)
    client = start()
    host.tell("UserPromptSubmit", prompt(str(other)))
    assert len(host.stored()) == 1
    kept = client.post("/api/memories", {"kind": "note", "title": "x", "project_path": str(other)})
    assert kept["memories"][0]["id"]


def test_an_import_of_many_projects_leaves_out_those_that_are_off(filled: Home, start, project, tmp_path):
    start()
    run(filled, project, "add", "note", "a wombat of the shop")
    run(filled, project, "export", "--all", str(tmp_path / "all.jsonl"))
    end_worker(filled)
    filled.database.unlink()
    other = tmp_path / "other"
    other.mkdir()
    switch(filled, project, "")
    client = start()
    run(filled, str(other), "import", "jsonl", str(tmp_path / "all.jsonl"), "--all")
    assert client.get("/api/search", q="wombat", project_path=project)["results"] == []


def test_a_project_is_off_when_the_command_says_so(filled: Home, start, project):
    client = start()
    assert run(filled, project, "project", "off").stdout.startswith("shop is off")
    assert not client.get(
        "/api/context", project_path=project, prompt="why does the checkout transport retry a timeout twice?"
    )["context"]
    with pytest.raises(BadRequest):
        client.post("/api/memories", {"kind": "note", "title": "a wombat", "project_path": project})
    run(filled, project, "project", "on")
    assert client.get(
        "/api/context", project_path=project, prompt="why does the checkout transport retry a timeout twice?"
    )["context"]


def test_on_tells_what_the_repository_itself_keeps_off(filled: Home, start, project):
    start()
    (Path(project) / FILE).touch()
    assert f"off by its own {FILE}" in run(filled, project, "project", "on").stdout
    assert f"off by its own {FILE}" in run(filled, project, "project", "show").stdout

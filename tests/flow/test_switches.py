"""What is switched off in a project is off on every path: hook, worker, MCP, command line, status line, imports."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from foreword.errors import BadRequest
from foreword.paths import Home
from foreword.payloads import Delivery
from foreword.projects import resolve
from foreword.spool import deliveries
from foreword.store.sqlite import Store
from foreword.switches import FILE
from foreword.types import Memory
from tests.flow.conftest import CLEAN, PATIENT, PYTHON, Host, end_worker, wait_for
from tests.flow.test_mcp import Agent

# Each switch as a setting of the user's or as the repository's own file; what is kept and what is told then.
SWITCHES = {
    "off_projects": (False, False),
    "read_only_projects": (False, True),
    "silent_projects": (True, False),
    "": (False, False),
    "capture": (False, True),
    "inject": (True, False),
    "nobody knows what": (False, False),
}


@pytest.fixture
def filled(home: Home, project: str) -> Home:
    store = Store(home.database, backups=home.backups)
    owner, now = resolve(project), time.time()
    about = {"project": owner.key, "scope": owner.scope, "created": now, "confirmed": now}
    store.keep(
        [
            Memory(kind="decision", title="The checkout HTTPTransport retries twice", body="the bank", **about),
            Memory(kind="failure", title="checkout transport timeout", detail={"fixed_by": "raise it"}, **about),
        ]
    )
    store.close()
    return home


def switch(home: Home, project: str, what: str) -> None:
    if what.endswith("_projects"):
        home.config.write_text(f"{what} = [{json.dumps(project)}]\n")
    else:
        (Path(project) / FILE).write_text(what)


def prompt(project: str, text: str = "why does the checkout transport time out?") -> dict[str, str]:
    return {"session_id": "s1", "cwd": project, "hook_event_name": "UserPromptSubmit", "prompt": text}


@pytest.mark.parametrize("what", SWITCHES)
def test_a_hook_obeys_with_a_worker(filled: Home, host: Host, start, project, what):
    kept, told = SWITCHES[what]
    switch(filled, project, what)
    client = start()
    inner = str(Path(project, "inner"))
    Path(inner).mkdir()
    assert bool(host.context("UserPromptSubmit", prompt(inner))) is told
    assert bool(host.stored()) is kept
    event = {"host": "claude-code", "event": "Stop", "payload": {"session_id": "s2", "cwd": project}}
    assert client.post("/api/events", event)["stored"] == int(kept)
    got = client.get("/api/context", project_path=project, prompt="the checkout transport", preview=1)
    assert bool(got["context"]) is told
    assert told or "switched off" in got["why"]


@pytest.mark.parametrize("what", SWITCHES)
def test_a_hook_obeys_without_a_worker(filled: Home, host: Host, project, what):
    kept, told = SWITCHES[what]
    switch(filled, project, what)
    host.write_hook()
    assert bool(host.context("UserPromptSubmit", prompt(project))) is told
    spool = filled.spool / "current"
    waiting = list(deliveries(spool.read_bytes())) if spool.exists() else []
    assert any(isinstance(each, Delivery) and not each.given for each in waiting) is kept


def test_what_waits_in_the_spool_is_not_taken_in_where_it_was_switched_off_since(
    filled: Home, host: Host, start, project
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


@pytest.mark.parametrize("what", SWITCHES)
def test_tools_and_callers_of_the_worker_obey(filled: Home, start, project, what):
    kept, told = SWITCHES[what]
    switch(filled, project, what)
    client, agent = start(), Agent(filled, project)
    remembered = agent.call("memory_remember", {"kind": "note", "title": "a wombat"})
    handed = agent.call("memory_handoff", {"message": "half done"})
    assert all(answer.startswith("error:") is not kept for answer in (remembered, handed))
    if not kept:
        assert "switched off" in remembered if not told else "read-only" in remembered
        with pytest.raises(BadRequest, match=r"switched off|read-only"):
            client.post("/api/memories", {"kind": "note", "title": "a wombat", "project_path": project})
    asked = agent.call("memory_context", {"query": "checkout transport retries"})
    assert ("HTTPTransport" in asked) is told
    found = agent.call("memory_search", {"query": "checkout transport"})
    assert ("HTTPTransport" in found) is (kept or told)  # who asks is answered, unless all is off


@pytest.mark.parametrize(
    ("what", "line"), [("off_projects", "off"), ("", "off"), ("inject", "silent"), ("read_only_projects", "quiet")]
)
def test_a_status_line_says_so(filled: Home, host: Host, start, project, what, line):
    switch(filled, project, what)
    client = start()
    told = host.tell("statusLine", {"session_id": "s1", "cwd": project})
    assert told.stdout == f"foreword: {line}".encode()
    assert client.get("/api/line", project_path=project)["line"] == f"foreword: {line}"


def run(home: Home, folder: str, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(
        [PYTHON, "-m", "foreword", *words],
        cwd=folder,
        env={**CLEAN, **PATIENT, "FOREWORD_HOME": str(home.root), "HOME": str(Path(folder).parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
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


@pytest.mark.parametrize("what", ["off_projects", "read_only_projects", "", "capture"])
def test_the_command_line_keeps_nothing_and_tells_the_way_out(filled: Home, start, project, what):
    switch(filled, project, what)
    start()
    way = what if what.endswith("_projects") else FILE
    for words in KEEPING:
        told = run(filled, project, *words, code=1).stderr
        assert "nothing is kept here" in told, words
        assert way in told, words
    assert way in run(filled, project, "status").stdout
    assert json.loads(run(filled, project, "status", "--json").stdout)["switched_off"]
    doctor = run(filled, project, "doctor").stdout
    assert way in doctor
    assert "nothing is kept" in doctor


def test_another_project_goes_on(filled: Home, host: Host, start, project, tmp_path):
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
    assert not client.get("/api/context", project_path=project, prompt="the checkout transport")["context"]
    with pytest.raises(BadRequest):
        client.post("/api/memories", {"kind": "note", "title": "a wombat", "project_path": project})
    run(filled, project, "project", "on")
    assert client.get("/api/context", project_path=project, prompt="the checkout transport")["context"]


def test_on_tells_what_the_repository_itself_keeps_off(filled: Home, start, project):
    start()
    (Path(project) / FILE).write_text("capture")
    assert f"read-only by its own {FILE}" in run(filled, project, "project", "on").stdout
    assert f"read-only by its own {FILE}" in run(filled, project, "project", "show").stdout

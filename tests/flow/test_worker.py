"""The worker's own life, and its answers: private, alone, leaving when idle, replaced after an upgrade."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import socket
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import foreword
from foreword.errors import BadRequest, NotFound, StoreError, WorkerError
from foreword.hook import build
from foreword.models import KINDS
from foreword.paths import Home
from foreword.problems import noted
from foreword.worker import lifecycle
from foreword.worker.client import Client
from foreword.worker.http import Request
from foreword.worker.routes import respond
from foreword.worker.services import Services
from tests.flow.conftest import HookRunner, end_worker, wait_for
from tests.scratch import asking, fact


def test_a_worker_that_leaves_is_no_problem_to_report_and_a_locked_store_is(home: Home):
    home.prepare()
    services = Services(home)

    def fails(_: Request) -> dict[str, int]:
        raise StoreError("locked", hint="wait")

    request, routes = Request("GET", "/api/health", {}, b""), {"/api/health": {"GET": fails}}
    services.is_closed = True
    assert respond(routes, request, services=services).status == 503
    assert not noted(str(home.trouble))
    services.is_closed = False
    assert respond(routes, request, services=services).status == 503
    assert [each.what for each in noted(str(home.trouble))] == ["locked; wait"]


def test_socket_and_folders_are_private_whatever_the_umask(home: Home, start):
    old = os.umask(0)
    try:
        start()
    finally:
        os.umask(old)
    assert stat.S_IMODE(home.socket.stat().st_mode) == 0o600
    for folder in (home.root, home.run, home.spool, home.backups, home.logs):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder
    for file in (home.database, home.hook, home.log, home.lock):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv to be another user")
def test_another_user_is_refused_even_where_the_files_would_let_it_in(home: Home, start):
    start()
    for folder in (home.root.parent, home.root, home.run):
        folder.chmod(0o755)
    home.socket.chmod(0o666)
    asking = """
import socket, sys
for _ in range(1000):
    s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect(sys.argv[1])
    try:
        s.sendall(b"GET /api/health HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
        print(s.recv(100))
    except OSError as error:
        print(type(error).__name__)
"""
    command = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        build.interpreter(),
        "-I",
        "-S",
        "-c",
        asking,
    ]
    other = subprocess.run([*command, str(home.socket)], capture_output=True, check=False, timeout=90)
    answers = other.stdout.splitlines()
    assert len(answers) == 1000, other
    assert set(answers) <= {b"b''", b"ConnectionResetError", b"BrokenPipeError"}


def test_it_leaves_when_nobody_asks_and_takes_up_changed_settings_before(home: Home, start):
    start()
    assert lifecycle.pid_of(home)
    home.config.write_text("worker_idle_minutes = 0.02\n")
    wait_for(lambda: not lifecycle.pid_of(home))
    assert not home.socket.exists()


def test_it_is_replaced_when_the_package_changes(home: Home, start, tmp_path: Path, monkeypatch):
    package = tmp_path / "site" / "foreword"
    shutil.copytree(Path(foreword.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    client = start()
    before = client.get("/api/health")
    init = package / "__init__.py"
    init.write_text(init.read_text().replace(before["version"], "9.9.9"))
    wait_for(lambda: _version(client) == "9.9.9", seconds=40)
    assert client.get("/api/health")["build"] != before["build"]


@pytest.mark.parametrize("name", ["a.py", "store/a.sql", "a.toml", "agents/a.js", "agents/claude/A.md"])
def test_another_build_is_known_by_any_file_of_the_package(name, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "PACKAGE", tmp_path)
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("1")
    before = build.fingerprint()
    file.write_text("22")
    assert build.fingerprint() != before


def test_it_leaves_when_asked_and_takes_its_socket_along(home: Home, start):
    start()
    assert lifecycle.stop(home) is True
    assert not home.socket.exists()
    assert lifecycle.stop(home) is False


def test_a_stale_socket_and_lock_of_a_killed_worker_are_no_hindrance(home: Home, start):
    start()
    end_worker(home)
    assert home.socket.exists()
    assert start().get("/api/health")["ok"]


def test_a_start_waits_for_the_socket_of_the_new_worker_and_not_for_that_of_a_killed_one(home: Home):
    home.prepare()
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(home.socket))
    lock = os.open(home.lock, os.O_RDWR | os.O_CREAT)
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as new, ThreadPoolExecutor(1) as pool:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a new one sits there
        os.pwrite(lock, b"1\n", 0)
        started = pool.submit(lifecycle.start, home)
        with pytest.raises(TimeoutError):
            started.result(timeout=0.5)
        new.bind(str(home.run / "new"))
        new.listen()
        (home.run / "new").rename(home.socket)
        started.result(timeout=10)
    os.close(lock)


def test_every_kind_can_be_added_shown_and_found(home: Home, start, project):
    client = start()
    for kind, prefix in KINDS.items():
        made = client.post("/api/memories", {"kind": kind, "title": f"wombat {kind}", "project_path": project})[
            "memories"
        ][0]
        assert made["id"].startswith(f"{prefix}-")
        assert client.get(f"/api/memories/{made['id']}")["memory"]["title"] == f"wombat {kind}"
    found = client.get("/api/search", q="wombat", project_path=project, limit=50)["results"]
    assert {result["kind"] for result in found} == set(KINDS)
    only = client.get("/api/search", q="wombat", project_path=project, kinds="decision,note")["results"]
    assert {result["kind"] for result in only} == {"decision", "note"}


def test_answers_have_the_shapes_of_the_specification(home: Home, start, project):
    client = start()
    client.post("/api/memories", {"kind": "decision", "title": fact("wombat"), "project_path": project})
    context = client.get(
        "/api/context", project_path=project, session_id="s", trigger="prompt", prompt=asking("wombat"), budget=200
    )
    assert set(context) == {
        "context",
        "tokens",
        "budget",
        "layers",
        "skipped",
        "build_ms",
        "injection",
        "why",
        "reason",
        "ms",
    }
    assert fact("wombat") in context["context"]
    assert 0 < context["tokens"] <= context["budget"] == 200
    wait_for(lambda: client.get("/api/injections", session_id="s")["injections"])
    (injection,) = client.get("/api/injections", session_id="s")["injections"]
    assert injection["id"] == context["injection"]
    assert set(injection["items"][0]["why"]) == {"match", "recency", "importance", "reinforcement", "scope", "task"}
    again = client.get("/api/context", project_path=project, session_id="s", trigger="prompt", prompt=asking("wombat"))
    assert again["context"] == ""  # shown already in this window
    explained = client.get("/api/search", q="wombats", project_path=project, explain=1)["results"][0]
    score = 1.0
    for factor in explained["why"].values():
        score *= factor
    assert explained["score"] == pytest.approx(score, abs=0.001)
    (line,) = (
        result["line"] for result in client.get("/api/search", q="wombats", project_path=project, compact=1)["results"]
    )
    assert line.startswith("[decision] dec-")


def test_an_event_told_twice_is_one_event(home: Home, start, host: HookRunner, project):
    client = start()
    payload = {"session_id": "s", "cwd": project, "prompt": "yes"}
    event = {"host": "claude-code", "event": "UserPromptSubmit", "payload": payload}
    assert client.post("/api/events", event)["stored"] == 1
    assert client.post("/api/events", event)["stored"] == 0
    assert (
        client.post("/api/events", {"events": [{**event, "payload": {**payload, "prompt": "no"}}, event]})["stored"]
        == 1
    )
    assert [session["events"] for session in client.get("/api/sessions")["sessions"]] == [2]


QUESTIONS = [
    ("/api/context", {}, BadRequest),
    ("/api/context", {"project_path": "relative/x"}, BadRequest),
    ("/api/context", {"project_path": "/tmp", "trigger": "lunch"}, BadRequest),
    ("/api/context", {"project_path": "/tmp", "budget": "many"}, BadRequest),
    ("/api/context", {"project_path": "/tmp", "budget": "nan"}, BadRequest),
    ("/api/search", {"q": "x"}, BadRequest),
    ("/api/search", {"q": "x", "project_path": "/tmp", "kinds": "wish"}, BadRequest),
    ("/api/search", {"q": "x", "project_path": "/tmp", "limit": "-1"}, BadRequest),
    ("/api/memories/dec-00000000", {}, NotFound),
    ("/api/nothing", {}, NotFound),
]
MEMORIES = [
    {},
    {"kind": "wish", "title": "x", "project_path": "/tmp"},
    {"kind": "note", "title": "  ", "project_path": "/tmp"},
    {"kind": "note", "title": "x"},
    {"kind": "note", "title": "x", "project_path": "relative"},
    {"kind": "note", "title": "x", "project_path": "/tmp", "scope": "galaxy"},
    {"kind": "note", "title": "x", "project_path": "/tmp", "tags": "a"},
    {"kind": "note", "title": "x", "project_path": "/tmp", "confidence": 2},
    {"kind": "note", "title": "x", "project_path": "/tmp", "trust": "god"},
    {"memories": []},
    {"memories": [7]},
]


def test_bad_questions_are_told_the_way_out(worker: Client):
    for path, query, error in QUESTIONS:
        with pytest.raises(error) as caught:
            worker.get(path, **query)
        assert caught.value.hint, (path, query)


def test_bad_memories_are_refused_and_told_why(worker: Client):
    for memory in MEMORIES:
        with pytest.raises(BadRequest) as caught:
            worker.post("/api/memories", memory)
        assert caught.value.hint, memory
    assert worker.get("/api/health")["counts"]["memories"] == 0


def test_bodies_that_are_no_object_are_refused(worker: Client):
    for body in (b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"payload": 1}'):
        for path in ("/api/events", "/api/memories"):
            status, raw = worker.send("POST", path, body)
            assert status == 400, body[:20]
            assert set(json.loads(raw)) == {"error", "hint"}


def test_an_endless_body_is_cut_off(worker: Client):
    with contextlib.suppress(WorkerError):  # it may hang up before everything was sent
        assert worker.send("POST", "/api/events", b"x" * (17 * 1024 * 1024))[0] == 400
    assert worker.get("/api/health")["ok"]


def _version(client: Client) -> str:
    try:
        return str(client.get("/api/health")["version"])
    except Exception:
        return ""

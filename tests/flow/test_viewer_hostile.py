"""Flood a viewer, fill its disk, lock its store and give it odd names: it answers, and nothing is lost."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from foreword.paths import Home
from foreword.worker import lifecycle
from tests.flow.conftest import end_worker
from tests.flow.test_viewer_gate import EVERY, Answer, Open, held, open_, stored

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    with held(str(tmp_path_factory.mktemp("shop"))) as here:
        yield here


# -- floods ----------------------------------------------------------------------------------------------------------


def test_nobody_without_the_key_makes_the_worker_hold_a_body(opened: Open) -> None:
    size = 12 << 20
    request = replace(opened.asks("/api/forget", "POST").but(cookie=None, content_length=str(size)), body=b"")

    def flooded(_: int) -> int:
        with socket.create_connection(("127.0.0.1", opened.port), timeout=20) as line:
            taken = 0
            with contextlib.suppress(OSError):
                line.sendall(request.raw)
                while taken < size:
                    taken += line.send(b"x" * 65_536)
            return taken

    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(flooded, range(8)))
    assert max(taken) < size, "the line is closed long before"
    assert opened.send(opened.asks("/api/projects").raw).status == 200


MANY = 300
SLOW: dict[str, Callable[[Open], bytes]] = {
    "say nothing": lambda _: b"",
    "drip their head": lambda _: b"GET /now HTTP/1.1\r\n",
    "announce a body that does not come": lambda here: replace(here.asks("/api/pin", "POST"), body=b"").raw,
    "listen for changes": lambda here: here.asks("/api/changes").raw,
}


@pytest.mark.parametrize("how", SLOW.values(), ids=list(SLOW))
def test_hundreds_who_are_slow_keep_neither_page_nor_hooks(opened: Open, how: Callable[[Open], bytes]) -> None:
    raw = how(opened)
    with contextlib.ExitStack() as stack:
        for _ in range(MANY):
            line = stack.enter_context(socket.create_connection(("127.0.0.1", opened.port), timeout=10))
            line.sendall(raw)
        for _ in range(5):
            assert opened.send(opened.asks("/api/projects").raw).status == 200
        assert opened.client.get("/api/projects")


# -- content ---------------------------------------------------------------------------------------------------------

ODD = (
    "a/b",
    "a?b#c",
    "%2e%2e",
    "a%2fb",
    "\u202eid",
    "z\u200bw",
    "a&b=c+d",
    " a ",
    "é" * 40,
    "'\"<b>",
    "-",
    "a,b",
    "..",
)


def test_every_odd_name_leads_to_its_own(opened: Open, tmp_path: Path) -> None:
    project = tmp_path / "a b?#%&+é\u202ex"
    project.mkdir()
    (project / "pyproject.toml").write_text("")
    for each in ODD:
        answer = {"kind": "note", "title": f"of {each}", "tags": [each], "files": [each], "project_path": str(project)}
        opened.client.post("/api/memories", answer)
        payload = {"session_id": each, "cwd": str(project), "prompt": f"do {each}"}
        opened.client.post("/api/events", {"host": "claude-code", "event": "UserPromptSubmit", "payload": payload})
    for each in ODD:
        assert request(opened, "/api/sessions/" + quote(each, safe=""))["session"]["id"] == each
        shown = request(opened, "/api/memories?" + urlencode({"q": f"of {each}", "project": f"dir:{project}"}))[
            "memories"
        ]
        assert all(
            request(opened, "/api/memories/" + one["id"] + "?full=1")["memory"]["id"] == one["id"] for one in shown
        )


def request(here: Open, target: str) -> dict[str, Any]:
    got = here.send(replace(here.asks("/api/projects"), target=target).raw)
    assert got.status == 200, (target, got.body)
    return json.loads(got.body)


# -- a store in trouble ----------------------------------------------------------------------------------------------

PHRASE = "zqxjkwvb whispers"


def test_a_locked_store_is_looked_at_and_refuses_changes_in_words(opened: Open) -> None:
    lock = sqlite3.connect(opened.home.database, isolation_level=None)
    with contextlib.closing(lock):
        lock.execute("BEGIN EXCLUSIVE")
        for path, method in EVERY:
            if (
                method == "GET"
                and path.startswith("/api/")
                and path not in ("/api/changes", "/api/preview")
                and path[-1] != "/"
            ):
                got = opened.send(opened.asks(path).raw)
                assert got.status == 200, (path, got)
        got = opened.send(opened.asks("/api/pin", "POST").raw)
        assert got.status == 503
        assert b"locked" in got.body
        lock.execute("ROLLBACK")
    assert opened.send(opened.asks("/api/pin", "POST").raw).status == 200


@pytest.fixture
def small() -> Iterator[Home]:
    """A home on a disk of its own, which can be filled."""
    root = Path(tempfile.mkdtemp(prefix="fw-"))
    home = Home(root=root / "h")
    home.root.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(home.root)], check=False)
    if mounted.returncode:
        shutil.rmtree(root)
        pytest.skip("cannot mount a tmpfs here")
    home.prepare()
    yield home
    end_worker(home)
    subprocess.run(["umount", str(home.root)], check=True)
    shutil.rmtree(root)


def test_a_full_disk_is_looked_at_and_changes_are_refused_whole_until_there_is_room(small: Home, monkeypatch) -> None:
    monkeypatch.setenv("FOREWORD_HOME", str(small.root))
    lifecycle.start(small)
    here = open_(small)
    try:
        is_looked_at_and_refuses_changes(here)
    finally:
        here.server.close("the test ended")


def is_looked_at_and_refuses_changes(here: Open) -> None:
    small = here.home
    done = here.client.post(f"/api/memories/{here.id}", {"title": "before"})
    changes: dict[str, dict[str, Any]] = {
        f"/api/memories/{here.id}": {"title": "in other words", "body": "w" * 9000},
        "/api/pin": {"id": here.id},
        "/api/undo": {"entry": done["entry"]["number"]},
        "/api/review": {"do": "promote", "id": here.id, "as": "decision"},
        "/api/forget": {"ids": [here.id], "yes": True},
    }

    def change(path: str) -> Answer:
        body = json.dumps(changes[path]).encode()
        request = replace(here.asks("/api/pin", "POST").but(content_length=str(len(body))), target=path, body=body)
        return here.send(request.raw)

    before = stored(small)
    ballast = small.root / "ballast"
    with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    for path in ("/api/projects", "/api/memories", "/api/facets", "/api/timeline", "/api/live", "/api/health", "/now"):
        assert here.send(here.asks(path).raw).status == 200, path
    for path in changes:
        got = change(path)
        assert got.status == 503, (path, got.body)
        assert b"free some space" in got.body, path
    assert stored(small) == before
    ballast.unlink()
    for path in ("/api/pin", "/api/undo", "/api/forget"):
        assert change(path).status == 200, path


def test_a_trial_leaves_no_byte_of_its_prompt_anywhere_also_when_it_fails(opened: Open) -> None:
    key = request(opened, "/api/projects")["projects"][0]["key"]
    for answer in (
        {"project": key},
        {"project": "nowhere"},
        {"project": key, "budget": -1},
        {"project": key, "trigger": PHRASE},
    ):
        body = json.dumps({"prompt": f"{PHRASE} of checkout.py and {PHRASE}", **answer}).encode()
        tried = replace(opened.asks("/api/preview", "POST").but(content_length=str(len(body))), body=body)
        assert opened.send(tried.raw).status in (200, 400, 404)
    searched = opened.asks("/api/projects")
    opened.send(replace(searched, target="/api/memories?q=" + quote(PHRASE)).raw)
    held = [path for path in opened.home.root.rglob("*") if path.is_file() and PHRASE[:8].encode() in path.read_bytes()]
    assert held == []

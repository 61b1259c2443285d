"""What is forgotten is gone from every file, and stays away; what is not, is as it was."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from foreword.capture.payload import HookCall
from foreword.errors import NotFound
from foreword.hook.spool import append
from foreword.models import Event, Memory
from foreword.paths import Home
from foreword.projects import resolve
from foreword.store import Store
from foreword.worker.client import Client
from tests import canaries
from tests.canaries import standing
from tests.flow.conftest import CLEAN, HookRunner, end_worker, wait_for

RNG = random.Random(6)


def noise(length: int = 48) -> str:
    return canaries.noise(RNG, length)


def run(home: Home, *words: str, code: int = 0, **environ: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "foreword", *words],
        env={**CLEAN, "FOREWORD_HOME": str(home.root), "PYTHONPATH": ":".join(sys.path), **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + (done.stderr if code else "")


def forget(home: Home, *words: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(run(home, "forget", *words, "--yes", "--json"))
    return answer


def prompts(client: Client, project: str, session: str, texts: Iterable[str]) -> None:
    """A session in which somebody says these things, and which ends."""
    base = {"session_id": session, "cwd": project, "transcript_path": f"/somewhere/{session}.jsonl"}
    calls = [("SessionStart", {"source": "startup"})]
    for text in texts:
        calls += [("UserPromptSubmit", {"prompt": text}), ("Stop", {"last_assistant_message": f"Done: {text}"})]
    calls.append(("SessionEnd", {"reason": "exit"}))
    events = [{"host": "claude-code", "event": name, "payload": {**base, **more}} for name, more in calls]
    client.post("/api/events", {"events": events})


def transcript(folder: Path, project: str, session: str, text: str) -> None:
    """What Claude Code leaves of a session."""
    path = folder / "projects" / project.replace("/", "-") / f"{session}.jsonl"
    path.parent.mkdir(parents=True)
    base = {"sessionId": session, "cwd": project, "version": "2.0", "gitBranch": "main", "isSidechain": False}
    lines = [
        {**base, "type": "user", "uuid": "u1", "parentUuid": None, "timestamp": "2026-01-01T10:00:00.000Z",
         "message": {"role": "user", "content": text}},
        {**base, "type": "assistant", "uuid": "u2", "parentUuid": "u1", "timestamp": "2026-01-01T10:01:00.000Z",
         "message": {"role": "assistant", "content": [{"type": "text", "text": f"Noted: {text}"}]}},
    ]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    os.utime(path, (1e9, 1e9))


def a_note(project: str) -> dict[str, Any]:
    fields = {"kind": "note", "title": noise(), "body": f"{noise()} {noise()}", "tags": [noise(12)]}
    return {**fields, "detail": {"why": noise(40)}, "project_path": project}


def an_export(path: Path, project: str, titles: Iterable[str]) -> Path:
    """An export of another home."""
    key = resolve(project).key
    same = {"kind": "decision", "scope": f"project:{key}", "project": key, "trust": "user", "status": "active"}
    same |= {"confidence": 1.0, "seen": 1, "created": 5.0, "confirmed": 5.0, "source": "user"}
    rows = [{"memory": {**same, "uid": f"other-{number}", "title": title}} for number, title in enumerate(titles)]
    header = {"format": "foreword export", "version": 1, "project": key}
    path.write_text("\n".join(map(json.dumps, [header, *rows])) + "\n")
    return path


def test_all_of_a_project_leaves_no_canary_in_any_file_and_nothing_brings_it_back(
    home: Home, host: HookRunner, start: Callable[[], Client], project: str, tmp_path: Path
) -> None:
    client = start()
    notes = [a_note(project) for _ in range(60)]
    kept = client.post("/api/memories", {"memories": notes})["memories"]
    decisions = [f"let's use {noise(20)} because {noise(30)} {noise(12)}" for _ in range(20)]
    for number in range(2):
        prompts(client, project, f"live-{number}", decisions[number * 10 : number * 10 + 10])
    texts = [text for each in notes for text in (each["title"], each["body"], *each["tags"], each["detail"]["why"])]

    # Imports: an export of another home, and a transcript.
    titles, spoken = [noise() for _ in range(10)], noise(40)
    other = an_export(tmp_path / "other.jsonl", project, titles)
    run(home, "import", "jsonl", str(other), "--project", project)
    transcript(tmp_path / "claude", project, "told-1", f"we decided to use {spoken} because {noise(12)}")
    claude = {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}
    assert "Learned" in run(home, "import", "claude-code", "--project", project, **claude)

    # What an agent was given, what was changed on purpose, a backup, logs, and what was set aside or waits.
    host.context("UserPromptSubmit", {"session_id": "asks", "cwd": project, "prompt": f"what about {texts[0]}?"})
    wait_for(lambda: len(client.get("/api/search", q=decisions[3], project_path=project)["results"]) > 0)
    older = noise()
    client.post(f"/api/memories/{kept[0]['id']}", {"title": older, "why": noise()})
    end_worker(home, how=signal.SIGTERM)
    Store(home.database, backups=home.backups).close()  # what is in the log goes into the file
    shutil.copy(home.database, home.backups / "by-hand.db")
    home.trouble.write_text(json.dumps({"at": time.time(), "where": "hook", "what": f"bad {texts[1]}"}) + "\n")
    home.log.write_text(f"2026-01-01 INFO saw {texts[4].lower()}\nsecond line\n")
    (home.logs / "worker.log.1").write_text(f"2026-01-01 INFO saw {texts[3]}\n")
    append(str(home.spool / "aside"), HookCall("x", "y", 5.0, json.dumps({"t": texts[4]}).encode()), most=1 << 20)
    host.tell("UserPromptSubmit", {"session_id": "live-0", "cwd": project, "prompt": f"and again: {texts[5]}"})
    assert host.spooled() > 0
    client = start()
    everything = [*texts, *decisions, *titles, spoken, older]
    assert standing(home.root, everything).keys() >= {
        "memory.db", "backups/by-hand.db", "logs/worker.log", "logs/worker.log.1", "logs/trouble.jsonl",
        "spool/aside/current",
    }  # fmt: skip

    would = json.loads(run(home, "forget", "--project", project, "--dry-run", "--json"))
    assert standing(home.root, everything)
    receipt = forget(home, "--project", project)
    assert standing(home.root, everything) == {}
    assert (receipt["left"], receipt["not_looked_into"]) == ([], [])
    assert receipt["memories"] == len(would["memories"]) >= 80
    assert receipt["sentences"]["looked_for"] > 200
    for told_of in (would, receipt):
        assert "cannot be undone" in told_of["undo"]
        assert any("/somewhere/live-0.jsonl" in each for each in told_of["not_ours"])
    assert "second line" in home.log.read_text()

    # Nothing brings it back.
    assert "you had forgotten" in run(home, "import", "jsonl", str(other), "--project", project)
    run(home, "import", "claude-code", "--project", project, **claude)
    run(home, "init", project, "--yes", **claude)
    assert client.get("/api/search", q=f"{spoken} {titles[0]} {texts[0]}", project_path=project)["results"] == []
    end_worker(home, how=signal.SIGTERM)
    assert standing(home.root, everything) == {}


def test_a_memory_leaves_its_session_too_and_the_rest_of_the_session_stays(
    home: Home, host: HookRunner, start: Callable[[], Client], project: str
) -> None:
    """One of a session's decisions goes, in every wording; the session, its events and its other words stay."""
    client = start()
    gone, kept = noise(30), noise(30)
    prompts(client, project, "one", [f"let's use {gone} because it is quick", f"let's use {kept} because it is small"])
    prompts(client, project, "two", [f"was it right? let's use {gone} because it is quick"])
    doomed = next(each for each in decided(client, project, 2) if gone in json.dumps(each))
    host.context("UserPromptSubmit", {"session_id": "three", "cwd": project, "prompt": f"what of {doomed['title']}?"})
    question = {"project_path": project, "session_id": "four", "trigger": "question", "prompt": doomed["title"]}
    assert gone in client.get("/api/context", **question)["context"]
    client.post(f"/api/memories/{doomed['id']}", {"title": f"Take {gone} for it"})
    wait_for(lambda: host.spooled() == 0)
    would = json.loads(run(home, "forget", doomed["id"], "--dry-run", "--json"))
    assert standing(home.root, [gone])
    receipt = forget(home, doomed["id"], "--why", f"we take {gone} for it no more")
    assert standing(home.root, [gone]) == {}
    assert receipt["left"] == []
    assert would["tables"] == {name: n for name, n in receipt["removed"].items() if name in would["tables"]}
    assert would["tables"]["injection_texts"] >= 1
    assert any(kept in json.dumps(each) for each in host.stored())
    assert any("[forgotten]" in each.get("prompt", "") for each in host.stored())
    left = client.get("/api/search", q=kept, project_path=project)["results"]
    assert any(kept in each["title"] + each["body"] + json.dumps(each["detail"]) for each in left)
    with pytest.raises(NotFound):
        client.get(f"/api/memories/{doomed['id']}")
    index = sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)  # SQLite of the standard library reads it
    hits = "SELECT count(*) > 0 FROM words WHERE words MATCH ?"
    assert [index.execute(hits, (word,)).fetchone() for word in (kept, gone)] == [(1,), (0,)]
    assert index.execute("SELECT v FROM words_config WHERE k = 'version'").fetchone() == (4,)
    index.close()

    # The session goes on: it is read anew, and nothing of it comes back.
    prompts(client, project, "one", ["let's use a third way because two are not enough"])
    decided(client, project, 2)
    assert standing(home.root, [gone]) == {}
    titles = [each["title"] for each in client.get("/api/search", q="use way", project_path=project)["results"]]
    assert not any("[forgotten]" in title and "use" in title.split()[:1] for title in titles)


def decided(client: Client, project: str, count: int) -> list[dict[str, Any]]:
    """The decisions of a project, when there are so many."""
    found: list[dict[str, Any]] = []

    def there() -> bool:
        rows = client.get("/api/export", part="memory", project_path=project)["rows"]
        found[:] = [each for each in rows if each["kind"] == "decision" and each["status"] == "active"]
        return len(found) >= count

    wait_for(there)
    return found


def test_without_a_yes_nothing_goes_and_what_is_unknown_is_told(
    home: Home, start: Callable[[], Client], project: str
) -> None:
    client = start()
    [kept] = client.post("/api/memories", {"kind": "note", "title": "walrus here", "project_path": project})["memories"]
    assert "not a terminal" in run(home, "forget", kept["id"], code=1)
    assert "name what to forget" in run(home, "forget", code=1)
    assert "there is no memory not-00000000" in run(home, "forget", "not-00000000", "--yes", code=1)
    assert "there is no session" in run(home, "forget", "--session", "ostrich", code=1)
    output = run(home, "forget", kept["id"], "--dry-run")
    assert kept["id"] in output
    assert "cannot be undone" in output
    assert client.get(f"/api/memories/{kept['id']}")["memory"]["status"] == "active"
    assert forget(home, kept["id"])["ids"] == [kept["id"]]


KILLED = """
import os, sys, time
from pathlib import Path
from foreword.paths import Home
from foreword.store import forget as rows
from foreword.store.audit import Audit
from foreword.store.maintenance import Maintenance
from foreword.worker import forget
from foreword.worker.app import App
home, id, step = Home(Path(sys.argv[1])), sys.argv[2], sys.argv[3]
def killed(*_, **__):
    os._exit(9)
if step in ("rewrite_files", "scan"):
    setattr(forget, step, killed)
else:
    setattr({"rewrite": Maintenance, "forget": rows.Backup, "note": Audit}.get(step, rows.Forgetter), step, killed)
app = App(home)
if id:
    forget.forget(app, {"ids": [id]})
time.sleep(30)
"""


def test_killed_at_every_step_it_is_finished_by_the_next_worker(
    home: Home, start: Callable[[], Client], project: str
) -> None:
    """Killed at the first step, taken up again, killed at the second, and so on to the last."""
    text = noise(60)
    store = Store(home.database, backups=home.backups)
    key = resolve(project).key
    memory = Memory("decision", text, f"{text[::-1]}", project=key, created=5.0, session="s")
    (kept, other) = store.memories.put([memory, Memory("note", "walrus stays", project=key, created=5.0)])
    payload = {"prompt": f"use {text}"}
    store.events.append([Event("k", "claude-code", "UserPromptSubmit", "prompt", "s", key, "/", 5.0, payload)])
    store.close()
    shutil.copy(home.database, home.backups / "memory-schema-8.db")
    home.log.write_text(f"saw {text}\n")
    environ = {**CLEAN, "PYTHONPATH": ":".join(sys.path), "FOREWORD_HOME": str(home.root)}

    def killed(step: str, *, id: str = "") -> bool:
        words = [sys.executable, "-c", KILLED, str(home.root), id, step]
        return subprocess.run(words, env=environ, check=False, timeout=60).returncode == 9

    assert killed("hide", id=kept.id)
    assert rows(home, "SELECT status FROM memories ORDER BY place") == [
        ("active",),
        ("active",),
    ]  # nothing was promised
    assert killed("rewrite", id=kept.id)
    assert rows(home, "SELECT status FROM memories ORDER BY place") == [("forgotten",), ("active",)]
    for step in ("bury_cut", "rewrite_files", "forget", "remove", "scan", "note"):
        assert killed(step)
        assert rows(home, "SELECT count(*) FROM checkpoints WHERE name = 'forgetting'") == [(1,)]
    client = start()
    wait_for(lambda: rows(home, "SELECT count(*) FROM checkpoints WHERE name = 'forgetting'") == [(0,)])
    assert standing(home.root, [text, text[::-1]]) == {}
    assert client.get(f"/api/memories/{other.id}")["memory"]["title"] == "walrus stays"
    with pytest.raises(NotFound):
        client.get(f"/api/memories/{kept.id}")


def rows(home: Home, sql: str) -> list[Any]:
    """What stands in the database, read by the standard library."""
    db = sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def test_an_agent_forgets_what_agents_wrote_and_only_puts_aside_what_the_user_said(
    home: Home, start: Callable[[], Client], project: str
) -> None:
    client = start()
    texts = [noise(30) for _ in range(3)]
    elsewhere = Path(project).parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "pyproject.toml").touch()
    [users], [agents], [others] = (
        client.post("/api/memories", {"kind": "note", "title": text, "trust": trust, "project_path": where})["memories"]
        for text, trust, where in zip(
            texts, ("user", "agent", "agent"), (project, project, str(elsewhere)), strict=True
        )
    )
    ids = [each["id"] for each in (users, agents, others)]
    call = {"tool": "memory_forget", "arguments": {"ids": ids, "why": "wrong"}, "caller": {"cwd": project}}
    answer = client.post("/api/mcp", call)
    assert not answer["failed"], answer
    assert answer["text"].splitlines()[0] == f"{agents['id']} forgotten for good; no copy is left"
    assert f"foreword forget {users['id']}" in answer["text"]
    assert f"not found here: {others['id']}" in answer["text"]
    assert client.get(f"/api/memories/{users['id']}")["memory"]["status"] == "discarded"
    assert client.get(f"/api/memories/{others['id']}")["memory"]["status"] == "active"
    assert standing(home.root, [texts[1]]) == {}
    call["arguments"] = {"ids": [f"not-{number:08d}" for number in range(11)], "why": "all"}
    assert client.post("/api/mcp", call)["failed"]


def test_what_is_never_changed_is_named_in_the_receipt(home: Home, start: Callable[[], Client], project: str) -> None:
    client = start()
    text = noise(40)
    [kept] = client.post("/api/memories", {"kind": "note", "title": text, "project_path": project})["memories"]
    (home.installed / "abc.was").write_text(f"# {text}\n")
    (home.root / "picture.bin").write_bytes(b"\xff\xfe" + text.encode() + b"\0")
    (home.root / "old.jsonl.gz").write_bytes(b"\x1f\x8b packed")
    receipt = json.loads(run(home, "forget", kept["id"], "--yes", "--json", code=1).partition("\x1b")[0])
    left = {each["file"]: each["why"] for each in receipt["left"]}
    assert left == {
        "installed/abc.was": "your own settings, which are never changed",
        "picture.bin": "a file that is not ours: remove it yourself",
    }
    assert receipt["not_looked_into"] == ["old.jsonl.gz: packed"]

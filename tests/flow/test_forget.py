"""What is forgotten is gone from every file, and stays away; what is not, is as it was."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from foreword.amendments import Amendment
from foreword.client import Client
from foreword.errors import NotFound
from foreword.paths import Home
from foreword.payloads import Delivery
from foreword.projects import resolve
from foreword.spool import append
from foreword.store.migrations import migrate
from foreword.store.reading import SCHEMA
from foreword.store.sqlite import SqliteStore
from foreword.types import Event, Memory
from tests.flow.conftest import CLEAN, Host, end_worker, wait_for

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"  # of base 32
RNG = random.Random(6)


def noise(length: int = 48) -> str:
    """Random base-32: six letters of it are met by chance once in a billion."""
    return "".join(RNG.choices(LETTERS, k=length))


def windows(texts: Iterable[str]) -> set[bytes]:
    """Every six bytes of every text, as they are and in small letters; not those of numbers alone."""
    found = {text[at : at + 6].encode() for text in texts for at in range(len(text) - 5)}
    return {form for window in found if not window.isdigit() for form in (window, window.lower())}


DRAWN = re.compile(
    rb"[0-9a-f]{16,}"  # keys and digests
    rb"|\b[a-z]{3}-[0-9a-z]{8,10}\b"  # ids
    rb"|\x04\x2c[\x13-\x1b]\x07.{16}(memory|text|session|event|cut)",  # a tombstone, as SQLite writes its row
    re.DOTALL,
)


def standing(root: Path, sought: set[bytes]) -> dict[str, set[bytes]]:
    """An own look at every byte of every file, but for drawn keys, hashes and ids: any of them may spell noise.

    The log names a hundred ids of what is gone: three in a hundred times one of them has six letters of it. Of three
    thousand hashes, one in a hundred times one ends with letters that noise has before the name behind it.
    """
    found: dict[str, set[bytes]] = {}
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            data = DRAWN.sub(b"", path.read_bytes())
            here = {data[at : at + 6] for at in range(len(data) - 5)} & sought
            if here:
                found[str(path.relative_to(root))] = here
    return found


def by_chance(home: Home, sought: set[bytes]) -> set[bytes]:
    """What six letters of a packed program happen to be; that no stored text is in it is a test of its own."""
    data = home.hook.read_bytes() + home.hook_client.read_bytes()
    return {data[at : at + 6] for at in range(len(data) - 5)} & sought


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
    told: dict[str, Any] = json.loads(run(home, "forget", *words, "--yes", "--json"))
    return told


def prompts(client: Client, project: str, session: str, texts: Iterable[str]) -> None:
    """A session in which somebody says these things, and which ends."""
    base = {"session_id": session, "cwd": project, "transcript_path": f"/somewhere/{session}.jsonl"}
    told = [("SessionStart", {"source": "startup"})]
    for text in texts:
        told += [("UserPromptSubmit", {"prompt": text}), ("Stop", {"last_assistant_message": f"Done: {text}"})]
    told.append(("SessionEnd", {"reason": "exit"}))
    events = [{"host": "claude-code", "event": name, "payload": {**base, **more}} for name, more in told]
    client.post("/api/events", {"events": events})


def transcript(folder: Path, project: str, session: str, said: str) -> None:
    """What Claude Code leaves of a session."""
    path = folder / "projects" / project.replace("/", "-") / f"{session}.jsonl"
    path.parent.mkdir(parents=True)
    base = {"sessionId": session, "cwd": project, "version": "2.0", "gitBranch": "main", "isSidechain": False}
    lines = [
        {**base, "type": "user", "uuid": "u1", "parentUuid": None, "timestamp": "2026-01-01T10:00:00.000Z",
         "message": {"role": "user", "content": said}},
        {**base, "type": "assistant", "uuid": "u2", "parentUuid": "u1", "timestamp": "2026-01-01T10:01:00.000Z",
         "message": {"role": "assistant", "content": [{"type": "text", "text": f"Noted: {said}"}]}},
    ]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    os.utime(path, (1e9, 1e9))


def old_backup(home: Home, texts: Iterable[str]) -> None:
    """A backup as a migration left it, with other wordings of the same memories."""
    path = home.backups / f"memory-schema-{SCHEMA}.db"
    db = apsw.Connection(str(path))
    migrate(db, backups=home.backups)
    db.execute("INSERT INTO owners VALUES (1, 'project:x', 9)")
    for place, text in enumerate(texts, (1 << 32) + 1):
        db.execute(
            """INSERT INTO memories (place, id, uid, owner, kind, title, source, trust, confidence, seen, created,
            confirmed) VALUES (?, ?, ?, 1, 'note', ?, 'user', 'user', 1, 1, 1, 1)""",
            (place, f"not-old{place:05x}"[-12:], f"uid-{place}", text),
        )
        row = (f"key{place}", "claude-code", "UserPromptSubmit", "prompt", "live-0", "x", "/", 1.0)
        db.execute(
            "INSERT INTO events (key, host, name, kind, session, project, cwd, at, payload) VALUES (?,?,?,?,?,?,?,?,?)",
            (*row, json.dumps({"prompt": f"as before: {text}"})),
        )
    db.close()


def a_note(project: str, number: int) -> dict[str, Any]:
    told = {"kind": "note", "title": noise(), "body": noise(100), "tags": [noise(12)], "detail": {"why": noise(40)}}
    return {**told, "project_path": project, "uid": f"uid-{(1 << 32) + 1 + number}"}


def texts_of(memory: dict[str, Any]) -> list[str]:
    return [memory["title"], memory["body"], *memory["tags"], memory["detail"]["why"]]


def an_export(path: Path, project: str, titles: Iterable[str]) -> Path:
    """An export of another home."""
    key = resolve(project).key
    same = {"kind": "decision", "scope": f"project:{key}", "project": key, "trust": "user", "status": "active"}
    same |= {"confidence": 1.0, "seen": 1, "created": 5.0, "confirmed": 5.0, "source": "user"}
    rows = [{"memory": {**same, "uid": f"other-{number}", "title": title}} for number, title in enumerate(titles)]
    header = {"format": "foreword export", "version": 1, "project": key, "counts": {"memory": len(rows)}}
    path.write_text("\n".join(map(json.dumps, [header, *rows])) + "\n")
    return path


@pytest.mark.timeout(300)  # a minute on a busy machine
def test_a_thousand_memories_of_noise_leave_no_six_bytes_in_any_file(
    home: Home, host: Host, start: Callable[[], Client], project: str, tmp_path: Path
) -> None:
    client = start()
    added = [a_note(project, number) for number in range(900)]
    kept: list[dict[str, Any]] = []
    for at in range(0, len(added), 100):
        kept += client.post("/api/memories", {"memories": added[at : at + 100]})["memories"]
    said = [f"let's use {noise(20)} because {noise(30)} {noise(9)}" for _ in range(60)]
    for number in range(6):
        prompts(client, project, f"live-{number}", said[number * 10 : number * 10 + 10])
    texts = [text for memory in added for text in texts_of(memory)]
    words = [word for each in said for word in each.split() if word not in ("let's", "use", "because")]

    # Imports: an export of another home, and a transcript.
    told = [noise() for _ in range(60)]
    other = an_export(tmp_path / "other.jsonl", project, told)
    run(home, "import", "jsonl", str(other), "--project", project)
    spoken = noise(40)
    transcript(tmp_path / "claude", project, "told-1", f"we decided to use {spoken} because {noise(5)}")
    claude = {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}
    assert "Learnt" in run(home, "import", "claude-code", "--project", project, **claude)

    # What agents were given, what was changed on purpose, and an export in the home.
    host.context("UserPromptSubmit", {"session_id": "asks", "cwd": project, "prompt": f"what about {texts[0]}?"})
    run(home, "export", str(home.root / "all.jsonl"), "--all", "--events")
    wait_for(lambda: not client.get("/api/health")["problems"])
    wait_for(lambda: len(client.get("/api/search", q=said[3], project_path=project)["results"]) > 0)
    client.post("/api/stop", {})
    end_worker(home)
    store = SqliteStore(home.database, backups=home.backups)
    one, two, three, *_ = store.by_id([memory["id"] for memory in kept[:6]])
    older = noise()
    store.amend([Amendment("revise", older, changed=((one, replace(one, title=older)),))], who="user", at=5.0)
    merged = replace(two, status="superseded", superseded_by=three.id)
    store.amend([Amendment("merge", f"as {noise()}", changed=((two, merged),))], who="tidy", at=5.0)
    store.close()
    shutil.copy(home.database, home.backups / "by-hand.db")
    old = [noise() for _ in range(20)]
    old_backup(home, old)
    everything = [*texts, *words, *told, spoken, older, *old]
    home.trouble.write_text(json.dumps({"at": time.time(), "where": "hook", "what": f"bad {texts[1]}"}) + "\n")
    home.log.write_text(f"2026-01-01 INFO saw {texts[2].lower()}\nsecond line\n")
    (home.logs / "worker.log.1").write_text(f"2026-01-01 INFO saw {texts[3]}\n")
    append(str(home.spool / "aside"), Delivery("x", "y", 5.0, json.dumps({"t": texts[4]}).encode()), most=1 << 20)
    (home.root / "notes.txt").write_text(f"somebody wrote {texts[5]}\nand this stays\n")
    waiting = {"session_id": "live-0", "cwd": project, "prompt": f"and again: {texts[6]}"}
    host.tell("UserPromptSubmit", waiting)
    assert host.spooled() > 0
    client = start()
    sought = windows(everything) - by_chance(home, windows(everything))
    assert {path.split("/")[-1] for path in standing(home.root, sought)} >= {
        "memory.db", "by-hand.db", f"memory-schema-{SCHEMA}.db", "all.jsonl", "worker.log", "worker.log.1",
        "trouble.jsonl", "notes.txt",
    }  # fmt: skip

    would = json.loads(run(home, "forget", "--project", project, "--dry-run", "--json"))
    assert standing(home.root, sought)
    assert "cannot be undone" in would["undo"]
    assert any("/somewhere/live-0.jsonl" in each for each in would["not_ours"])
    receipt = forget(home, "--project", project)
    assert receipt["left"] == []
    print(
        receipt["seconds"], receipt["scanned"], receipt["windows"], receipt["removed"], receipt["cut"], receipt["files"]
    )
    assert receipt["memories"] >= 1000
    assert receipt["windows"]["looked_for"] > 100_000
    assert any("git" in each for each in receipt["not_ours"])
    assert any("/somewhere/live-0.jsonl" in each for each in receipt["not_ours"])
    assert standing(home.root, sought) == {}
    assert "second line" in home.log.read_text()
    assert (home.root / "notes.txt").read_text().endswith("and this stays\n")

    # Nothing brings it back.
    assert "forgotten here" in run(home, "import", "jsonl", str(other), "--project", project)
    run(home, "import", "claude-code", "--project", project, **claude)
    run(home, "init", project, "--yes", **claude)
    assert client.get("/api/search", q=f"{spoken} {told[0]} {texts[0]}", project_path=project)["results"] == []
    assert standing(home.root, sought) == {}
    client.post("/api/stop", {})
    end_worker(home)
    assert standing(home.root, sought) == {}
    store = SqliteStore(home.database, backups=home.backups)
    (entry,) = store.log(numbers=[receipt["entry"]])
    assert (entry.what, entry.patch["receipt"]["left"]) == ("forget", [])
    refused = store.undo([entry], who="user", at=9.0)
    assert "cannot be taken back" in refused.refused[entry.number]
    store.close()


def test_a_memory_leaves_its_session_too_and_the_rest_of_the_session_stays(
    home: Home, host: Host, start: Callable[[], Client], project: str
) -> None:
    """One of a session's decisions goes, in every wording; the session, its events and its other words stay."""
    client = start()
    gone, kept = noise(30), noise(30)
    prompts(client, project, "one", [f"let's use {gone} because it is quick", f"let's use {kept} because it is small"])
    prompts(client, project, "two", [f"was {gone} not slow?"])
    decisions = decided(client, project, 2)
    client.post("/api/memories", {"kind": "note", "title": f"{noise(20)} is quick", "project_path": project})
    doomed = next(each for each in decisions if gone in each["title"] + each["body"] + json.dumps(each["detail"]))
    sought = windows([gone]) - by_chance(home, windows([gone]))
    receipt = forget(home, doomed["id"], "--why", f"{gone} is nobody's business")
    assert receipt["left"] == []
    assert standing(home.root, sought) == {}
    assert host.stored()
    assert any(kept in json.dumps(each) for each in host.stored())
    assert any("[forgotten]" in each.get("prompt", "") for each in host.stored())
    left = client.get("/api/search", q=kept, project_path=project)["results"]
    assert any(kept in each["title"] + each["body"] + json.dumps(each["detail"]) for each in left)
    with pytest.raises(NotFound):
        client.get(f"/api/memories/{doomed['id']}")

    # The session goes on: it is read anew, and nothing of it comes back.
    prompts(client, project, "one", ["let's use a third way because two are not enough"])
    decided(client, project, 2)
    assert standing(home.root, sought) == {}
    titles = [each["title"] for each in client.get("/api/search", q="use way", project_path=project)["results"]]
    assert not any("[forgotten]" in title and "use" in title.split()[:1] for title in titles)


def test_what_would_go_and_be_cut_is_told_before_as_it_is_afterwards(
    home: Home, host: Host, start: Callable[[], Client], project: str
) -> None:
    client = start()
    gone = noise(30)
    prompts(client, project, "one", [f"let's use {gone} because it is quick", "let's use a queue because it is small"])
    prompts(client, project, "two", [f"was {gone} not slow?"])
    doomed = next(each for each in decided(client, project, 2) if gone in json.dumps(each))
    host.context("UserPromptSubmit", {"session_id": "three", "cwd": project, "prompt": f"what of {doomed['title']}?"})
    client.post(f"/api/memories/{doomed['id']}", {"title": f"Take {gone}"})
    (home.root / "notes.txt").write_text(f"somebody wrote {gone}\nand this stays\n")
    wait_for(lambda: host.spooled() == 0)
    would = json.loads(run(home, "forget", doomed["id"], "--dry-run", "--json"))
    receipt = forget(home, doomed["id"])
    assert receipt["left"] == []
    assert would["cut"]["log"] == 1  # the entry stays, and says no more
    assert would["cut"]["events"] >= 2
    assert would["cut"]["injection_texts"] == 1
    assert would["files"]["notes.txt"] == 1
    assert would["tables"] == receipt["removed"]
    # What a prompt was searched for goes with the prompt's own words: it is cut before its table is come to.
    assert {**receipt["cut"], "injections": 1} == would["cut"]
    assert would["files"]["notes.txt"] == receipt["files"]["notes.txt"]

    whole = json.loads(run(home, "forget", "--session", "three", "--dry-run", "--json"))
    assert whole["tables"]["injection_texts"] == 1
    assert {"events", "injection_texts"}.isdisjoint(whole["cut"])  # its own go, and no other tells of it


def test_a_hash_that_spells_what_is_forgotten_is_not_left_of_it(
    home: Home, start: Callable[[], Client], project: str
) -> None:
    client = start()
    title = noise(40)
    added = client.post(
        "/api/memories",
        {"memories": [{"kind": "note", "title": each, "project_path": project} for each in (noise(40), title)]},
    )["memories"]
    assert forget(home, added[0]["id"])["left"] == []  # from here on there are tombstones
    client.post("/api/stop", {})
    end_worker(home)
    db = apsw.Connection(str(home.database))
    db.execute("INSERT INTO tombstones VALUES (?, 'text', 5.0)", (title[:16].lower().encode(),))
    db.close()
    start()
    receipt = forget(home, added[1]["id"])
    assert receipt["left"] == []
    assert receipt["windows"]["in_what_stays"] >= 11
    assert standing(home.root, windows([title]) - by_chance(home, windows([title]))) == {}


def decided(client: Client, project: str, count: int) -> list[dict[str, Any]]:
    """The decisions of a project, when there are so many."""
    found: list[dict[str, Any]] = []

    def there() -> bool:
        rows = client.get("/api/export", part="memory", project_path=project)["rows"]
        found[:] = [each for each in rows if each["kind"] == "decision" and each["status"] == "active"]
        return len(found) >= count

    wait_for(there)
    return found


def test_of_two_that_share_words_the_other_stays_as_it_was_and_is_found(
    home: Home, start: Callable[[], Client], project: str
) -> None:
    client = start()
    one, two = (
        client.post("/api/memories", {"project_path": project, **each})["memories"][0]
        for each in (
            {"kind": "decision", "title": "Bookings are stored in UTC", "body": "because bands travel between zones"},
            {
                "kind": "decision",
                "title": "Bookings are stored in UTC and shown in local time",
                "body": "for the bands",
            },
        )
    )
    client.get("/api/context", project_path=project, prompt="how are bookings stored?", session_id="s")
    receipt = forget(home, one["id"])
    assert (receipt["left"], receipt["cut_memories"]) == ([], [])
    [found] = client.get("/api/search", q="bookings UTC", project_path=project)["results"]
    assert {name: found[name] for name in two} == two
    assert receipt["windows"]["in_what_stays"] > 10
    assert b"travel between" not in b"".join(path.read_bytes() for path in home.root.rglob("memory.db*"))
    index = sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)  # SQLite of the standard library
    hits = "SELECT count(*) FROM words WHERE words MATCH ?"
    assert [index.execute(hits, (word,)).fetchone() for word in ("bookings", "travel")] == [(1,), (0,)]
    assert index.execute("SELECT v FROM words_config WHERE k = 'version'").fetchone() == (4,)
    index.close()


def test_a_session_that_was_forgotten_may_go_on_and_tells_nothing_of_before(
    home: Home, host: Host, start: Callable[[], Client], project: str
) -> None:
    client = start()
    gone = noise(30)
    prompts(client, project, "goes-on", [f"let's use {gone} because it is quick"])
    decided(client, project, 1)
    before = host.stored()
    receipt = forget(home, "--session", "goes-")
    assert receipt["sessions"] == 1
    assert standing(home.root, windows([gone]) - by_chance(home, windows([gone]))) == {}
    told = [{"host": "claude-code", "event": "UserPromptSubmit", "payload": each, "at": 5.0} for each in before]
    assert client.post("/api/events", {"events": told})["stored"] == 0
    host.tell("UserPromptSubmit", {"session_id": "goes-on", "cwd": project, "prompt": "and now something else"})
    assert [each["prompt"] for each in host.stored()] == ["and now something else"]


def test_without_a_yes_nothing_goes_and_what_is_unknown_is_told(
    home: Home, start: Callable[[], Client], project: str
) -> None:
    client = start()
    [kept] = client.post("/api/memories", {"kind": "note", "title": "walrus here", "project_path": project})["memories"]
    assert "nobody is there to ask" in run(home, "forget", kept["id"], code=1)
    assert "say one thing" in run(home, "forget", code=1)
    assert "there is no memory not-00000000" in run(home, "forget", "not-00000000", "--yes", code=1)
    assert "nothing here is like that" in run(home, "forget", "--match", "ostrich", "--project", project, code=1)
    told = run(home, "forget", "--match", "WALRUS here", "--project", project, "--dry-run")
    assert kept["id"] in told
    assert "cannot be undone" in told
    assert client.get(f"/api/memories/{kept['id']}")["memory"]["status"] == "active"
    assert forget(home, "--match", "WALRUS here", "--project", project)["ids"] == [kept["id"]]


KILLED = """
import os, sys, time
from pathlib import Path
from foreword.paths import Home
from foreword.store import forgetting as rows
from foreword.worker import forgetting
from foreword.worker.keeper import Keeper
home, id, step = Home(Path(sys.argv[1])), sys.argv[2], sys.argv[3]
def killed(*_, **__):
    os._exit(9)
if step in ("_cut", "files", "scan"):
    setattr(forgetting, step, killed)
else:
    setattr(rows.Copy if step == "forget" else rows.Forgetter, step, killed)
keeper = Keeper(home)
if id:
    keeper.forget({"ids": [id]})
time.sleep(30)
"""


def test_killed_at_every_step_it_is_finished_by_the_next_worker(
    home: Home, start: Callable[[], Client], project: str
) -> None:
    """Killed at the first step, taken up again, killed at the second, and so on to the last."""
    text = noise(60)
    store = SqliteStore(home.database, backups=home.backups)
    key = resolve(project).key
    told = Memory("decision", text, f"{text[::-1]}", project=key, created=5.0, session="s")
    (kept, other) = store.keep([told, Memory("note", "walrus stays", project=key, created=5.0)])
    payload = {"prompt": f"use {text}"}
    store.append([Event("k", "claude-code", "UserPromptSubmit", "prompt", "s", key, "/", 5.0, payload)])
    store.close()
    shutil.copy(home.database, home.backups / "memory-schema-5.db")
    home.log.write_text(f"saw {text}\n")
    environ = {**CLEAN, "PYTHONPATH": ":".join(sys.path), "FOREWORD_HOME": str(home.root)}

    def killed(step: str, *, id: str = "") -> bool:
        words = [sys.executable, "-c", KILLED, str(home.root), id, step]
        return subprocess.run(words, env=environ, check=False, timeout=60).returncode == 9

    assert killed("begin", id=kept.id)
    assert rows(home, "SELECT status FROM memories ORDER BY place") == [
        ("active",),
        ("active",),
    ]  # nothing was promised
    assert killed("_cut", id=kept.id)
    assert rows(home, "SELECT status FROM memories ORDER BY place") == [("forgotten",), ("active",)]
    for step in ("cut_done", "files", "forget", "remove", "scan", "end"):
        assert killed(step)
        assert rows(home, "SELECT count(*) FROM marks WHERE name = 'forgetting'") == [(1,)]
    client = start()
    wait_for(lambda: rows(home, "SELECT count(*) FROM marks WHERE name = 'forgetting'") == [(0,)])
    assert standing(home.root, windows([text, text[::-1]]) - by_chance(home, windows([text, text[::-1]]))) == {}
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
    asked = {"tool": "memory_forget", "arguments": {"ids": ids, "why": "wrong"}, "caller": {"cwd": project}}
    answer = client.post("/api/mcp", asked)
    assert not answer["failed"], answer
    told = answer["structured"]
    assert (told["forgotten"], told["put_aside"], told["missing"]) == ([agents["id"]], [users["id"]], [others["id"]])
    assert f"foreword forget {users['id']}" in answer["text"]
    assert told["receipt"]["left"] == []
    assert client.get(f"/api/memories/{users['id']}")["memory"]["status"] == "discarded"
    assert client.get(f"/api/memories/{others['id']}")["memory"]["status"] == "active"
    assert standing(home.root, windows([texts[1]]) - by_chance(home, windows([texts[1]]))) == {}
    asked["arguments"] = {"ids": [f"not-{number:08d}" for number in range(11)], "why": "all"}
    assert client.post("/api/mcp", asked)["failed"]


def test_what_is_never_changed_is_named_in_the_receipt(home: Home, start: Callable[[], Client], project: str) -> None:
    client = start()
    text = noise(40)
    [kept] = client.post("/api/memories", {"kind": "note", "title": text, "project_path": project})["memories"]
    (home.installed / "abc.was").write_text(f"# {text}\n")
    (home.root / "picture.bin").write_bytes(b"\xff\xfe" + text.encode() + b"\0")
    (home.root / "old.jsonl.gz").write_bytes(b"\x1f\x8b packed")
    receipt = json.loads(run(home, "forget", kept["id"], "--yes", "--json", code=1).partition("\x1b")[0])
    left = {each["file"]: each["why"] for each in receipt["left"]}
    assert left == {"installed/abc.was": "your own settings, which are never changed", "picture.bin": "it is not ours"}
    assert receipt["not_looked_into"] == ["old.jsonl.gz: packed"]

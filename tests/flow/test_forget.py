"""What is forgotten is gone from every file, and stays away; what is not, is as it was."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import apsw

from foreword.amendments import Amendment
from foreword.client import Client
from foreword.paths import Home
from foreword.payloads import Delivery
from foreword.projects import resolve
from foreword.spool import append
from foreword.store.migrate import migrate, steps
from foreword.store.sqlite import SqliteStore
from foreword.values import replace
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


def standing(root: Path, sought: set[bytes]) -> dict[str, set[bytes]]:
    """An own look at every byte of every file."""
    found: dict[str, set[bytes]] = {}
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            here = {data[at : at + 6] for at in range(len(data) - 5)} & sought
            if here:
                found[str(path.relative_to(root))] = here
    return found


def by_chance(home: Home, sought: set[bytes]) -> set[bytes]:
    """What six letters of a packed program happen to be; that no stored text is in it is a test of its own."""
    data = home.hook.read_bytes() + home.hook_cache.read_bytes()
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


def prompts(host: Host, project: str, session: str, texts: Iterable[str]) -> None:
    """A session in which somebody says these things, and which ends."""
    base = {"session_id": session, "cwd": project, "transcript_path": f"/somewhere/{session}.jsonl"}
    assert host.tell("SessionStart", {**base, "source": "startup"}).returncode == 0
    for text in texts:
        host.tell("UserPromptSubmit", {**base, "prompt": text})
        host.tell("Stop", {**base, "last_assistant_message": f"Done: {text}"})
    host.tell("SessionEnd", {**base, "reason": "exit"})


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


def old_backup(home: Home, texts: Iterable[str], *, schema: int) -> None:
    """A backup as a migration from an older schema left it, with other wordings of the same memories."""
    path = home.backups / f"memory-schema-{schema}.db"
    db = apsw.Connection(str(path))
    migrate(db, todo=steps()[:schema], backups=home.backups)
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
        prompts(host, project, f"live-{number}", said[number * 10 : number * 10 + 10])
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
    old_backup(home, old, schema=3)
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
        "memory.db", "by-hand.db", "memory-schema-3.db", "all.jsonl", "worker.log", "worker.log.1", "trouble.jsonl",
        "notes.txt",
    }  # fmt: skip

    would = json.loads(run(home, "forget", "--project", project, "--dry-run", "--json"))
    assert standing(home.root, sought)
    assert "cannot be undone" in would["undo"]
    assert any("/somewhere/live-0.jsonl" in each for each in would["not_ours"])
    receipt = forget(home, "--project", project)
    assert receipt["left"] == []
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

"""Whatever comes in, the hook ends with 0 and prints one object or nothing; nothing that can be kept is lost."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from foreword.errors import ForewordError, StoreError, WorkerError
from foreword.hook import build
from foreword.models import Memory
from foreword.paths import Home
from foreword.problems import noted
from foreword.projects import resolve
from foreword.store import SCHEMA, Store
from foreword.store.migrations import OLDEST
from foreword.worker import lifecycle
from foreword.worker.client import Client
from tests.flow.conftest import CLEAN, HookRunner, wait_for
from tests.scratch import asking, fact

EVENT = "UserPromptSubmit"
PAYLOADS = {
    "not JSON": b"hello",
    "empty": b"",
    "only spaces": b" \n ",
    "half an object": b'{"session_id": "s", "cwd": "/',
    "a list": b"[1, 2]",
    "a number": b"7",
    "null": b"null",
    "invalid UTF-8": b'{"session_id":"s","cwd":"/tmp","prompt":"\xff\xfe\x80"}',
    "a byte order mark": b'\xef\xbb\xbf{"session_id":"s","cwd":"/tmp","prompt":"x"}',
    "lone surrogates": b'{"session_id":"s\\ud800","cwd":"/tmp/\\udfff","prompt":"\\ud83d"}',
    "NUL bytes": b'{"session_id":"s\\u0000","cwd":"/tmp/\\u0000x","prompt":"a\\u0000b"}',
    "raw NUL bytes": b"\0" * 5000,
    "a missing cwd": b'{"session_id":"s","prompt":"x"}',
    "a relative cwd": b'{"session_id":"s","cwd":"src/x","prompt":"x"}',
    "an empty cwd": b'{"session_id":"s","cwd":"","prompt":"x"}',
    "a cwd that is not there": b'{"session_id":"s","cwd":"/nowhere/at/all","prompt":"x"}',
    "fields of the wrong type": b'{"session_id":1,"cwd":["/"],"prompt":{"a":1}}',
    "100,000 brackets": b"[" * 100_000,
    "100,000 nested objects": b'{"a":' * 100_000,
    "a huge number": b'{"session_id":"s","cwd":"/tmp","prompt":"x","n":' + b"9" * 10_000 + b"}",
    "NaN": b'{"session_id":"s","cwd":"/tmp","prompt":"y","n":NaN}',
}


@pytest.mark.parametrize("worker", ["up", "away"])
def test_bad_payloads_end_well_and_are_kept_where_there_is_anything_to_keep(
    home: Home, host: HookRunner, start, worker
):
    host.write_hook()
    if worker == "up":
        start()
    for name, raw in PAYLOADS.items():
        ended = host.tell(EVENT, raw)
        assert (ended.returncode, ended.stderr) == (0, b""), name
        assert ended.stdout == b"", name
    start()
    wait_for(lambda: host.spooled() == 0)
    wanted = sum(bool(raw.strip()) for raw in PAYLOADS.values())
    assert len(host.stored()) == wanted
    Client(home).get("/api/health")


ARGUMENTS = [
    (),
    ("--host",),
    ("--host", "claude-code"),
    ("--host", "nobody", "Stop"),
    ("--host", "codex", "NoSuchEvent"),
    ("x" * 5000,),
    ("--host", "../../etc", "a b\r\nc: d"),
    ("--host", "claude-code", "é∂"),
]


@pytest.mark.parametrize("worker", ["up", "away"])
def test_unknown_hosts_and_events_are_kept_and_not_answered(home: Home, host: HookRunner, start, worker, project):
    host.write_hook()
    if worker == "up":
        start()
    for number, arguments in enumerate(ARGUMENTS):
        ended = subprocess.run(
            [*build.command(home, host="x", event="y")[:4], *arguments],
            input=json.dumps({"session_id": f"s{number}", "cwd": project, "prompt": "x"}).encode(),
            capture_output=True,
            check=False,
            timeout=30,
            env=CLEAN,
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b""), arguments
    start()
    wait_for(lambda: host.spooled() == 0)
    assert len(host.stored()) == len(ARGUMENTS)


@pytest.mark.parametrize("worker", ["up", "away"])
def test_fifty_megabytes_keep_their_ids_their_beginning_and_their_end(
    home: Home, host: HookRunner, start, worker, project
):
    host.write_hook()
    if worker == "up":
        start()
    huge = {
        "session_id": "s-huge",
        "cwd": project,
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_response": {"stdout": "BEGINNING " + 'lorem ipsum \\"dolor\\" ' * 2_400_000 + " ENDING"},
        "tool_use_id": "toolu_huge",
    }
    raw = json.dumps(huge).encode()
    assert len(raw) > 50_000_000
    ended = host.tell("PostToolUse", raw)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    start()
    wait_for(lambda: host.spooled() == 0)
    (kept,) = host.stored()
    assert (kept["session_id"], kept["cwd"], kept["tool_use_id"]) == ("s-huge", project, "toolu_huge")
    assert kept["tool_response"]["stdout"].startswith("BEGINNING lorem")
    assert "ENDING" in kept["foreword_cut"]["tail"]
    assert len(json.dumps(kept)) < 1_000_000


def test_a_missing_home_is_no_failure(home: Home, host: HookRunner, project):
    host.write_hook()
    hook = home.root.parent / "hook.py"
    shutil.copy(home.hook, hook)
    shutil.rmtree(home.root)
    ended = subprocess.run(
        [build.interpreter(), "-I", "-S", str(hook), "--host", "claude-code", EVENT],
        input=json.dumps({"session_id": "s", "cwd": project, "prompt": "x"}).encode(),
        capture_output=True,
        check=False,
        timeout=30,
        env=CLEAN,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    assert not home.root.exists()


def test_a_home_that_cannot_be_written_still_gives_context(home: Home, host: HookRunner, project):
    _fill(home, project)
    host.write_hook()
    shutil.rmtree(home.spool)
    home.spool.write_text("a file where the folder should be")  # refuses root too, as modes would not
    shutil.rmtree(home.logs)
    home.logs.write_text("")
    assert "the canary sings" in host.context(EVENT, {"session_id": "s", "cwd": project, "prompt": asking("canary")})


def test_a_socket_path_that_is_too_long_is_told_and_the_hook_manages(
    tmp_path: Path, host: HookRunner, project, monkeypatch
):
    long = Home(root=tmp_path / ("x" * 90) / "h")
    long.root.parent.mkdir(parents=True)
    long.prepare()
    with pytest.raises(WorkerError, match="103") as caught:
        lifecycle.start(long)
    assert "FOREWORD_HOME" in caught.value.hint
    _fill(long, project)
    there = HookRunner(long)
    there.write_hook()
    assert "the canary sings" in there.context(EVENT, {"session_id": "s", "cwd": project, "prompt": asking("canary")})
    assert there.spooled() > 0


@pytest.mark.parametrize(("version", "way_out"), [(999, "upgrade"), (OLDEST - 1, "foreword export")])
def test_a_database_of_an_unknown_version_is_left_alone_and_told(
    home: Home, host: HookRunner, start, project, version, way_out
):
    _fill(home, project)
    _sql(home, f"PRAGMA user_version = {version}")
    before = home.database.read_bytes()
    host.write_hook()
    host.context(EVENT, {"session_id": "s", "cwd": project, "prompt": asking("canary")})
    client = start()
    with pytest.raises(StoreError, match=f"schema {version}") as caught:
        client.get("/api/search", q="canary", project_path=project)
    assert way_out in caught.value.hint
    health = client.get("/api/health")
    assert not health["ok"]
    context = host.context(EVENT, {"session_id": "s", "cwd": project, "prompt": "canary again?"})
    assert context == "" or version < SCHEMA  # a hook reads what it can of an older one
    assert home.database.read_bytes() == before
    assert host.spooled() > 0
    _sql(home, f"PRAGMA user_version = {SCHEMA}")
    wait_for(lambda: host.spooled() == 0)
    assert len(host.stored()) == 2


@pytest.mark.parametrize(
    "damage", ["DROP TABLE words", "DELETE FROM words_data", "UPDATE words_data SET block = x'00ff'"]
)
def test_a_broken_words_index_costs_words_alone_and_index_mends_it(
    home: Home, host: HookRunner, start, project, damage
):
    _fill(home, project)
    _sql(home, damage)
    host.write_hook()
    opening = {"session_id": "s", "cwd": project, "source": "startup"}
    prompted = {"session_id": "s", "cwd": project, "prompt": asking("canary")}
    assert "the canary sings" in host.context("SessionStart", opening)
    host.context(EVENT, prompted)
    client = start()
    assert "the canary sings" in host.context("SessionStart", opening)
    host.context(EVENT, prompted)
    memory = {"kind": "note", "title": "kept after it was mended: wombat", "project_path": project}
    with pytest.raises(ForewordError) as refused:
        client.post("/api/memories", memory)
    assert "foreword index" in refused.value.hint
    if damage != "DELETE FROM words_data":  # an empty index looks like one that finds nothing
        wait_for(lambda: any("index" in trouble.what for trouble in noted(str(home.trouble))))
    assert client.post("/api/index", {})["indexed"] == 1
    client.post("/api/memories", memory)
    found = client.get("/api/search", q="wombat canary", project_path=project)["results"]
    assert {result["title"] for result in found} == {fact("canary"), "kept after it was mended: wombat"}
    assert client.get("/api/health")["ok"]
    assert "the canary sings" in host.context(EVENT, {**prompted, "session_id": "fresh"})


def test_an_event_that_the_store_cannot_take_waits_in_the_spool_and_is_reported(
    home: Home, host: HookRunner, start, project
):
    _fill(home, project)
    _sql(home, "DROP TABLE events")
    start()
    assert host.tell(EVENT, {"session_id": "s", "cwd": project, "prompt": asking("canary")}).returncode == 0
    wait_for(lambda: any("no such table: events" in trouble.what for trouble in noted(str(home.trouble))))
    assert host.spooled() > 0


@pytest.mark.parametrize("missing", ["_sqlite3", "_json", "zlib", "fcntl"])
def test_an_interpreter_without_a_module_ends_well(home: Home, host: HookRunner, project, missing):
    _fill(home, project)
    host.write_hook()
    home.hook.write_text(f"import sys\nsys.modules[{missing!r}] = None\n{home.hook.read_text()}")
    ended = host.tell(EVENT, {"session_id": "s", "cwd": project, "prompt": asking("canary")})
    assert (ended.returncode, ended.stderr) == (0, b"")
    if missing == "_sqlite3":
        assert any("sqlite" in trouble.what for trouble in noted(str(home.trouble)))
        assert host.spooled() > 0
    if missing == "fcntl":  # without a lock nothing is kept, and that is told
        assert any("fcntl" in trouble.what for trouble in noted(str(home.trouble)))
    if missing != "_sqlite3":
        assert b"the canary sings" in ended.stdout


def test_a_sqlite_without_full_text_search_gives_recency_and_is_told(home: Home, host: HookRunner, project):
    _fill(home, project)
    connection = sqlite3.connect(home.database)
    connection.execute("PRAGMA writable_schema = ON")  # to SQLite, a module that nobody has is one that was left out
    connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'fts5', 'fts_left_out') WHERE name = 'words'")
    connection.commit()
    connection.close()
    host.write_hook()
    assert "the canary sings" in host.context("SessionStart", {"session_id": "s", "cwd": project, "source": "startup"})
    assert host.context(EVENT, {"session_id": "s", "cwd": project, "prompt": asking("canary")}) == ""
    assert any("no such module" in trouble.what for trouble in noted(str(home.trouble)))
    assert host.spooled() > 0


def test_broken_settings_mean_built_in_values_told_once(home: Home, host: HookRunner, start, project):
    home.config.write_text("capture = maybe\n[broken")
    home.synonyms.write_text("= nothing")
    client = start()
    client.post("/api/memories", {"kind": "note", "title": fact("canary"), "project_path": project})
    assert "the canary sings" in host.context(EVENT, {"session_id": "s", "cwd": project, "prompt": asking("canary")})
    home.synonyms.write_text("deploy = 3")  # both files are read again, and of config.toml nothing new is to be told

    def reported() -> list[str]:
        return [trouble.what for trouble in noted(str(home.trouble)) if "settings" in trouble.where]

    wait_for(lambda: sum("synonyms.toml" in what for what in reported()) == 2)
    assert sum("config.toml" in what and "line" in what for what in reported()) == 1
    assert len(reported()) == 3


def _fill(home: Home, project: str) -> None:
    store = Store(home.database, backups=home.backups)
    owner = resolve(project)
    now = time.time()
    store.memories.put(
        [
            Memory(
                kind="preference",
                title=fact("canary"),
                trust="user",
                project=owner.key,
                scope=owner.scope,
                created=now,
                confirmed=now,
            )
        ]
    )
    store.close()


def _sql(home: Home, sql: str) -> None:
    connection = sqlite3.connect(home.database)
    connection.execute(sql)
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()

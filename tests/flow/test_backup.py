"""Copies of the database: made, checked, restored under a running worker; and every way to lose one, reported."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import date, timedelta
from pathlib import Path

import pytest

from foreword.cli.doctor import check_all
from foreword.errors import ForewordError, StoreError
from foreword.hook import spool
from foreword.paths import Home
from foreword.problems import WRONG, losses, noted
from foreword.store import Store, backup
from foreword.store.database import KnownEvents
from foreword.worker import lifecycle
from foreword.worker.app import App
from foreword.worker.client import Client
from tests.flow.conftest import HookRunner, end_worker, wait_for
from tests.flow.forked import start_worker

TITLE = "The cache is warmed by scripts/warm.py because a cold one takes a minute"


@pytest.fixture
def filled(home: Home, host: HookRunner, start: Callable[..., Client], project: str) -> Client:
    """A worker whose home holds a memory and 20 events."""
    client = start()
    client.post("/api/memories", {"kind": "decision", "title": TITLE, "project_path": project})
    host.write_hook()
    add_events(client, project, range(20))
    return client


def add_events(client: Client, project: str, numbers: Iterable[int], *, session: str = "s1") -> None:
    payload = {"session_id": session, "cwd": project}
    events = [
        {"host": "claude-code", "event": "UserPromptSubmit", "payload": {**payload, "prompt": f"step {n} of the work"}}
        for n in numbers
    ]
    client.post("/api/events", {"events": events})


def prompts(home: Home) -> list[str]:
    with closing(sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)) as db:
        rows = db.execute("SELECT payload FROM events ORDER BY number").fetchall()
    return [json.loads(payload)["prompt"] for (payload,) in rows]


def steps(numbers: range) -> list[str]:
    return [f"step {n} of the work" for n in numbers]


def titles(client: Client, project: str) -> list[str]:
    return [each["title"] for each in client.get("/api/search", q="cache", project_path=project)["results"]]


def lost(client: Client) -> list[str]:
    return [each["says"] for each in client.get("/api/health", full=1)["findings"] if each["check"] == "lost"]


def flip(path: Path, *, page: int, at: int = 0, size: int = 200) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096 + at)
        file.write(bytes(size))


def root_page(path: Path, name: str) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()[0])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 MB in memory."""
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "none", folder], check=False, capture_output=True
    ).returncode:
        pytest.skip("this user may not mount a small disk")
    yield folder
    while os.path.ismount(folder):
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def small_home(small_disk: Path) -> Iterator[Home]:
    """A home on the small disk, whose worker is ended."""
    made = Home(small_disk / "h")
    made.prepare()
    yield made
    end_worker(made)


@pytest.fixture
def start_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[Home], Client]:
    """Starts the worker of any home."""

    def started(home: Home) -> Client:
        monkeypatch.setenv("FOREWORD_HOME", str(home.root))
        start_worker(home, os.environ)
        return Client(home, seconds=20)

    return started


# -- copies


def test_a_copy_is_whole_private_and_never_replaces_a_file(filled: Client, home: Home, tmp_path: Path):
    folder = tmp_path / "disk"
    folder.mkdir()
    target = folder / "copy.db"
    made = filled.post("/api/backup", {"file": str(target)})
    assert (made["rows"]["memories"], made["rows"]["events"]) == (1, 20)
    assert target.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(target)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert os.listdir(folder) == ["copy.db"]
    with pytest.raises(ForewordError, match="cannot write"):
        filled.post("/api/backup", {"file": str(target)})


def test_a_copy_that_finds_no_room_is_refused_and_leaves_nothing(filled: Client, home: Home, small_disk: Path):
    with pytest.raises(StoreError, match="not enough space"):
        filled.post("/api/backup", {"file": str(small_disk / "copy.db")})
    assert os.listdir(small_disk) == []


def test_the_worker_makes_a_copy_a_day_when_it_is_quiet(home: Home, start, project):
    home.prepare()
    home.config.write_text("worker_idle_minutes = 0.05\n")
    client = start()
    client.post("/api/memories", {"kind": "decision", "title": TITLE, "project_path": project})
    wait_for(lambda: len(list(home.backups.glob("memory-2*.db"))) == 1)
    wait_for(lambda: not lifecycle.pid_of(home))
    assert [each.what for each in noted(str(home.trouble))] == []


def test_restore_takes_the_newest_copy_and_keeps_the_events_since(filled: Client, home: Home, host, project):
    filled.post("/api/backup", {})
    add_events(filled, project, range(20, 30))
    filled.post("/api/memories", {"kind": "decision", "title": "Later: no cache", "project_path": project})
    done = filled.post("/api/restore", {})
    assert (done["taken_over"], done["losses"], done["memories_before"]) == (10, [], 2)
    assert sorted(prompts(home)) == sorted(steps(range(30)))
    assert titles(filled, project) == [TITLE]
    assert Path(done["replaced"]).exists()
    assert not lost(filled)


def test_hooks_during_restores_lose_nothing(filled: Client, home: Home, host: HookRunner, project):
    filled.post("/api/backup", {})
    with ThreadPoolExecutor(3) as pool:
        payload = {"session_id": "s1", "cwd": project}
        telling = [
            pool.submit(host.tell, "UserPromptSubmit", {**payload, "prompt": step}) for step in steps(range(20, 50))
        ]
        for _ in range(3):
            filled.post("/api/restore", {})
        assert {each.result().returncode for each in telling} == {0}
    wait_for(lambda: host.spooled() == 0)
    assert sorted(prompts(home)) == sorted(steps(range(50)))
    assert losses(home.losses) == ()


def test_a_restore_that_was_killed_changes_nothing(filled: Client, home: Home, start, project):
    filled.post("/api/backup", {})
    add_events(filled, project, range(20, 25))
    end_worker(home)
    new, known = home.backups / "new.db", backup.forgotten(home.backups, database=home.database, live=None)
    newest = backup.prepare(backup.copies(home.backups)[0], new, known)[0].rows["newest"]
    counted = KnownEvents(home.database)
    with closing(Store(new, backups=home.backups)) as store:
        counts = {"newest": counted.number, "events": counted.count}
        assert backup.take_over(home.database, store, home.backups, since=newest, **counts) == (5, 0)
    counted.close()
    start()
    assert sorted(prompts(home)) == sorted(steps(range(25)))
    assert losses(home.losses) == ()


# -- what was forgotten stays forgotten


def test_a_restore_that_an_earlier_version_left_unfinished_is_finished(filled: Client, home: Home, start, project):
    filled.post("/api/backup", {})
    add_events(filled, project, range(20, 25))
    end_worker(home)
    new, known = home.backups / "new.db", backup.forgotten(home.backups, database=home.database, live=None)
    counted, replaced = KnownEvents(home.database), home.backups / "replaced-20260101-000000.db"
    noted = {"file": str(replaced), "newest": counted.number, "events": counted.count}
    counted.close()
    noted["since"] = backup.prepare(backup.copies(home.backups)[0], new, known)[0].rows["newest"]
    backup.put_in_place(new, home.database, replaced=replaced)
    with closing(Store(home.database, backups=home.backups)) as store:
        store.set_checkpoint("restored", json.dumps(noted), at=1.0)
    client = start()
    assert sorted(prompts(home)) == sorted(steps(range(25)))
    assert lost(client) == []
    end_worker(home)
    with closing(Store(home.database, backups=home.backups)) as store:
        assert store.checkpoint("restored") == ""


def bytes_of(home: Home) -> bytes:
    return b"".join(path.read_bytes() for path in home.root.rglob("*") if path.is_file())


def test_forget_reaches_the_copies(filled: Client, home: Home, project):
    for _ in range(2):
        filled.post("/api/backup", {})
    filled.post("/api/restore", {})  # what was replaced is a copy, too
    (home.backups / ".memory-20260101-000000.db.tmp").write_bytes(TITLE.encode())  # of a worker that was killed
    [found] = filled.get("/api/search", q="cache", project_path=project)["results"]
    receipt = filled.post("/api/forget", {"ids": [found["id"]]})
    assert receipt["left"] == []
    assert len([name for name in receipt["files"] if name.startswith("backups/")]) == 3
    assert TITLE.encode() not in bytes_of(home)
    filled.post("/api/restore", {})
    assert titles(filled, project) == []


def test_a_copy_from_elsewhere_does_not_bring_back_what_was_forgotten(filled: Client, home: Home, project, tmp_path):
    quoting = {"session_id": "s2", "cwd": project, "prompt": f"I quote: {TITLE}"}
    filled.post("/api/events", {"host": "claude-code", "event": "UserPromptSubmit", "payload": quoting})
    filled.post("/api/memories", {"kind": "note", "title": "The kettle whistles", "project_path": project})
    filled.post("/api/backup", {"file": str(tmp_path / "copy.db")})
    [found] = filled.get("/api/search", q="cache", project_path=project)["results"]
    filled.post("/api/forget", {"ids": [found["id"]]})
    filled.post("/api/forget", {"session": "s1"})
    done = filled.post("/api/restore", {"file": str(tmp_path / "copy.db")})
    assert done["losses"] == []
    assert titles(filled, project) == []
    assert prompts(home) == ["I quote: [forgotten]"]
    assert TITLE.encode() not in bytes_of(home)
    assert b"step 3 of the work" not in bytes_of(home)
    assert len(filled.get("/api/search", q="kettle", project_path=project)["results"]) == 1


# -- what can be lost, and how it is reported


def gone(home: Home) -> None:
    for ending in ("", "-wal", "-shm"):
        Path(f"{home.database}{ending}").unlink(missing_ok=True)


def emptied(home: Home) -> None:
    os.truncate(home.database, 0)
    Path(f"{home.database}-wal").unlink(missing_ok=True)


def without_log(home: Home) -> None:
    Path(f"{home.database}-wal").unlink()


@pytest.mark.parametrize("lose", [gone, without_log])
def test_files_removed_under_a_worker_are_put_back_whole(filled: Client, home: Home, host, project, lose):
    lose(home)
    wait_for(lambda: any("nothing is lost" in each.what for each in noted(str(home.trouble))))
    host.tell("UserPromptSubmit", {"session_id": "s1", "cwd": project, "prompt": "step 20 of the work"})
    wait_for(lambda: host.spooled() == 0)
    assert sorted(prompts(home)) == sorted(steps(range(21)))
    assert titles(filled, project) == [TITLE]
    end_worker(home)
    with closing(sqlite3.connect(home.database)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert losses(home.losses) == ()


@pytest.mark.parametrize(("lose", "cause"), [(gone, "it was deleted"), (emptied, "it was emptied")])
@pytest.mark.parametrize("killed", [True, False])
def test_a_lost_database_is_reported_with_its_events_until_somebody_acknowledges_it(
    filled: Client, home: Home, start, project, lose, cause, killed
):
    filled.post("/api/backup", {})
    add_events(filled, project, range(20, 27))
    if killed:
        os.kill(lifecycle.pid_of(home), 9)
        wait_for(lambda: not lifecycle.pid_of(home))
    else:
        end_worker(home)
    lose(home)
    client = start()
    assert lost(client) == [f"27 events were lost: {home.database}: {cause}"]
    add_events(client, project, range(27, 30))
    end_worker(home)
    client = start()
    assert len(lost(client)) == 1, "it stays"
    done = client.post("/api/restore", {})
    assert (done["taken_over"], [each["events"] for each in done["losses"]]) == (3, [7])
    assert sorted(prompts(home)) == sorted(steps(range(20)) + steps(range(27, 30)))
    assert [each[:2] for each in lost(client)] == ["7 "]
    client.post("/api/verify", {"acknowledge": True})
    assert lost(client) == []
    end_worker(home)
    assert lost(start()) == []


def test_a_database_emptied_under_a_worker_acknowledges_nothing_more(filled: Client, home: Home, host, start, project):
    filled.post("/api/backup", {})
    assert lifecycle.stop(home)  # so that all is in the file that is emptied
    filled = start()
    emptied(home)
    for step in steps(range(20, 23)):
        host.tell("UserPromptSubmit", {"session_id": "s1", "cwd": project, "prompt": step})
    wait_for(lambda: lost(filled))
    wait_for(lambda: host.spooled() == 0)
    assert lost(filled) == [f"20 events were lost: {home.database}: it was emptied"]
    done = filled.post("/api/restore", {})
    assert (done["taken_over"], done["losses"]) == (3, [])
    assert sorted(prompts(home)) == sorted(steps(range(23)))


def test_a_log_that_was_deleted_after_a_crash_is_reported_with_its_events(filled: Client, home: Home, start, project):
    os.kill(lifecycle.pid_of(home), 9)
    wait_for(lambda: not lifecycle.pid_of(home))
    saved = home.root / "saved"
    saved.write_bytes(home.database.read_bytes())
    without_log(home)
    Path(f"{home.database}-shm").unlink()
    client = start()
    assert lost(client) == [
        f"20 events were lost: {home.database}: its write-ahead log was removed, or an older copy was put in its place"
    ]


@pytest.mark.parametrize("size", [3, 4096, 40_960, -4096, -100])
def test_a_truncated_database_is_named_and_restored(filled: Client, home: Home, start, project, size):
    filled.post("/api/backup", {})
    add_events(filled, project, range(20, 25))
    assert lifecycle.stop(home)
    os.truncate(home.database, size if size > 0 else home.database.stat().st_size + size)
    client = start()
    found = client.post("/api/verify", {})
    assert found["damage"], found
    assert any(word in found["damage"][0] for word in ("cut short", "overwritten"))
    done = client.post("/api/restore", {})
    assert done["taken_over"] + sum(each["events"] for each in done["losses"]) == 5
    assert set(prompts(home)) >= set(steps(range(20)))
    assert titles(client, project) == [TITLE]
    assert Path(done["replaced"]).exists()


@pytest.mark.parametrize("copied", [False, True])
def test_flipped_bytes_are_named_by_table_and_the_rest_is_salvaged(filled: Client, home: Home, start, project, copied):
    for each in range(100, 1000, 100):
        add_events(filled, project, range(each, each + 100), session=f"s{each}")
    if copied:  # a copy has what cannot be read
        filled.post("/api/backup", {})
        add_events(filled, project, range(1000, 1010))
    assert lifecycle.stop(home)
    flip(home.database, page=leaf_of(home.database, "events"))
    client = start()
    found = client.post("/api/verify", {})
    assert any("table events" in each for each in found["damage"])
    assert "foreword restore" in found["way_out"]
    done = client.post("/api/restore", {"salvage": True})
    kept, unreadable = prompts(home), done["unreadable"].get("events", 0)
    assert (len(kept) + unreadable, len(set(kept))) == (930 if copied else 920, len(kept))
    assert (0 < unreadable < 100) is not copied
    assert [each.partition(" events were lost")[0] for each in lost(client)] == [str(unreadable)] * (not copied)
    assert titles(client, project) == [TITLE]
    assert client.post("/api/verify", {})["damage"] == []


def test_a_damaged_index_is_named_and_built_again(filled: Client, home: Home, start):
    assert lifecycle.stop(home)
    flip(home.database, page=root_page(home.database, "events_session"), at=3800)
    client = start()
    found = client.post("/api/verify", {})
    assert found["damage"]
    assert "foreword index" in found["way_out"], found
    client.post("/api/index", {})
    assert client.post("/api/verify", {})["damage"] == []


def test_damage_is_found_by_the_daily_check_and_stops_the_rotation(home: Home, filled: Client, start, project):
    assert lifecycle.stop(home)
    flip(home.database, page=root_page(home.database, "memories"))
    home.config.write_text("worker_idle_minutes = 0.05")
    start()
    wait_for(lambda: losses(home.losses))
    assert "table memories" in losses(home.losses)[0].what
    assert not list(home.backups.glob("memory-2*"))


def leaf_of(path: Path, table: str) -> int:
    """Return a page in the middle of a table's rows."""
    import apsw

    with closing(apsw.Connection(str(path))) as db:
        sql = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path"
        pages = [page for (page,) in db.execute(sql, (table,))]
    return pages[len(pages) // 2]


def test_events_that_a_full_disk_does_not_take_are_counted(small_home: Home, start_at, project):
    """With the reserve used up, the number is still written: in place."""
    host = HookRunner(small_home)
    client = start_at(small_home)
    wait_for(lambda: (small_home.root / "spool.reserve").exists() and (small_home.root / "spool.lost").exists())
    assert lifecycle.stop(small_home)
    host.write_hook()
    filler = filled_up(small_home.root)
    number = 0
    while not spool.lost(str(small_home.spool)):  # the reserve is used up first
        payload = {"session_id": "s1", "cwd": project, "prompt": f"step {number} {'x' * 200_000}"}
        assert host.tell("UserPromptSubmit", payload).returncode == 0
        number += 1
    payload = {"session_id": "s1", "cwd": project, "prompt": f"one more {'x' * 200_000}"}
    assert host.tell("UserPromptSubmit", payload).returncode == 0
    filler.unlink()
    client = start_at(small_home)
    wait_for(lambda: lost(client))
    assert lost(client)[0].startswith("2 events were lost: hooks found no worker and no room in the spool")
    wait_for(lambda: host.spooled() == 0)
    assert len(prompts(small_home)) == number - 1


def test_a_read_only_home_is_named_and_never_fails_a_hook(small_home: Home, start_at, project):
    host = HookRunner(small_home)
    start_at(small_home)
    host.write_hook()
    payload = {"session_id": "s1", "cwd": project}
    host.tell("UserPromptSubmit", {**payload, "prompt": "before"})
    assert lifecycle.stop(small_home)
    disk = small_home.root.parent
    subprocess.run(["mount", "--bind", disk, disk], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", disk], check=True)
    ended = host.tell("UserPromptSubmit", {**payload, "prompt": "lost"})
    assert (ended.returncode, ended.stderr) == (0, b"")
    [found] = [each for each in check_all(small_home, {}) if each.check == "home"]
    assert (found.state, "cannot be written, so nothing is captured" in found.says) == (WRONG, True)
    subprocess.run(["umount", disk], check=True)
    start_at(small_home)
    host.tell("UserPromptSubmit", {**payload, "prompt": "after"})
    wait_for(lambda: host.spooled() == 0)
    assert prompts(small_home) == ["before", "after"]


def test_of_copies_those_of_the_last_days_and_weeks_that_have_one_stay(tmp_path: Path):
    start = date(2026, 1, 1)
    days = [start + timedelta(days=each) for each in range(60) if each % 10 != 3]
    for day in days:
        for hour in ("08", "20"):
            (tmp_path / f"memory-{day:%Y%m%d}-{hour}0000.db").touch()
    stays = f"replaced-{time.strftime('%Y%m%d')}-000000.db"
    for other in ("memory-schema-8.db", "mine.db", stays, "replaced-20260101-000000.db"):
        (tmp_path / other).touch()
    backup.rotate(tmp_path, daily=7)
    kept = sorted(tmp_path.glob("memory-2*"))
    assert kept[-7:] == [tmp_path / f"memory-{day:%Y%m%d}-200000.db" for day in days[-7:]]
    assert len(kept) == 7 + 2, "the newest two of four weeks are among the days"
    others = set(tmp_path.iterdir()) - set(kept)
    assert {each.name for each in others} == {"memory-schema-8.db", "mine.db", stays}


def test_doctor_names_folders_that_share_a_repository_by_a_git_file(home: Home, start, tmp_path: Path):
    first, second = tmp_path / "first", tmp_path / "second"
    subprocess.run(["git", "init", "-q", first], check=True)
    second.mkdir()
    (second / ".git").write_text(f"gitdir: {first}/.git\n")
    client = start()
    for folder in (first, second):
        add_events(client, str(folder), range(1), session=folder.name)
    wait_for(lambda: [each for each in client.get("/api/health", full=1)["findings"] if each["check"] == "folders"])
    [found] = [each for each in client.get("/api/health", full=1)["findings"] if each["check"] == "folders"]
    assert found["says"] == f"{first} and {second} are one project: the .git of each leads to {first}/.git"


# -- weaknesses that were found, each with its own test


def resized(folder: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", folder], check=True)


def filled_up(folder: Path, *, free: int = 0) -> Path:
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    os.truncate(filler, filler.stat().st_size - free)
    return filler


def test_a_restore_that_finds_no_room_changes_nothing(small_home: Home, small_disk: Path, start_at, project):
    resized(small_disk, "80m")
    client = start_at(small_home)
    add_events(client, project, range(20))
    client.post("/api/backup", {})
    add_events(client, project, range(20, 25))
    filler = filled_up(small_disk, free=4 << 20)
    with pytest.raises(StoreError, match="not enough space"):
        client.post("/api/restore", {})
    filler.unlink()
    assert client.post("/api/restore", {})["taken_over"] == 5
    assert sorted(prompts(small_home)) == sorted(steps(range(25)))
    assert losses(small_home.losses) == ()


def test_events_that_cannot_be_read_are_reported_by_a_restore(filled: Client, home: Home, start, project):
    filled.post("/api/backup", {})
    add_events(filled, project, range(20, 25))
    end_worker(home)
    for path in (home.database, Path(f"{home.database}-wal")):
        path.write_bytes(bytes(8192)) if path.exists() else None
    client = start()
    client.post("/api/restore", {})
    assert lost(client)[0].startswith("5 events were lost")
    assert sorted(prompts(home)) == sorted(steps(range(20)))


@pytest.mark.parametrize("killed", [False, True])
def test_files_removed_where_there_is_no_room_to_put_them_back_wait_for_it(
    small_home: Home, small_disk: Path, start_at, project, killed
):
    client = start_at(small_home)
    add_events(client, project, range(20))
    if killed:
        end_worker(small_home)
        small_home.database.unlink()  # its log has all of it
        client = start_at(small_home)
    else:
        gone(small_home)
    wait_for(lambda: any("not enough space" in each.what for each in noted(str(small_home.trouble))))
    assert [each for each in client.get("/api/health", full=1)["findings"] if "not enough space" in each["says"]]
    resized(small_disk, "80m")
    wait_for(small_home.database.exists)
    wait_for(lambda: prompts(small_home) == steps(range(20)))
    assert losses(small_home.losses) == ()


def test_restore_takes_the_last_copy_before_a_loss(filled: Client, home: Home, start, project, tmp_path):
    made = filled.post("/api/backup", {})["file"]
    end_worker(home)
    gone(home)
    client = start()
    add_events(client, project, range(20, 23))
    client.post("/api/backup", {})  # of what began after the loss
    done = client.post("/api/restore", {})
    assert (done["file"], done["taken_over"], done["losses"]) == (made, 3, [])
    assert titles(client, project) == [TITLE]
    again = tmp_path / "again.db"
    client.post("/api/backup", {"file": str(again)})
    again.rename(home.backups / "memory-29991231-000000.db")
    assert client.post("/api/restore", {})["file"] != made, "the loss is made good"


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("salvage", [False, True])
def test_no_restore_brings_back_what_was_forgotten(
    filled: Client, home: Home, start, project, tmp_path, broken, salvage
):
    old = str(tmp_path / "old.db")
    filled.post("/api/backup", {"file": old})
    filled.post("/api/backup", {})
    [found] = filled.get("/api/search", q="cache", project_path=project)["results"]
    filled.post("/api/forget", {"ids": [found["id"]]})
    if broken:
        assert lifecycle.stop(home)
        flip(home.database, page=1)
        filled = start()
    filled.post("/api/restore", {"file": old, "salvage": salvage})
    assert titles(filled, project) == []
    assert TITLE.encode() not in bytes_of(home)


def test_what_was_removed_on_purpose_is_not_counted_as_lost(filled: Client, home: Home, start, project):
    add_events(filled, project, range(20, 27), session="s2")
    add_events(filled, project, range(30, 35), session="s3")
    filled.post("/api/forget", {"session": "s2"})
    end_worker(home)
    gone(home)
    assert lost(start()) == [f"25 events were lost: {home.database}: it was deleted"]


def test_copies_are_made_while_sessions_are_extracted(home: Home):
    """And the other way round: whichever takes long does not hold up the other."""
    home.prepare()
    app, extracted = App(home), threading.Event()
    try:
        app.runner.submit("extract", extracted.wait)
        app.runner.wake("backup")
        wait_for(lambda: backup.copies(home.backups))
    finally:
        extracted.set()
        app.close()

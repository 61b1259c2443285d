"""A home -> findings, one a check: what is well, what is worth a note, what is wrong and the way out of it.

Nothing here raises and nothing is repaired, but for a worker that is away: whether it can start is a question too.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from contextlib import suppress
from shlex import quote
from typing import TYPE_CHECKING, Any

from foreword.cli.screen import lasting
from foreword.errors import ForewordError, StoreError
from foreword.problems import BACKLOG, NOTE, OK, SETTLE, WRONG, Finding, spooled
from foreword.units import sized

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from foreword.config import Settings
    from foreword.paths import Home

ANSWER_SECONDS = 5.0  # an idle worker answers in a millisecond, one that has just been started in half a second
LEAST_DISK = 200 * 1024 * 1024  # bytes; a busy month is some 50 MB, and a migration keeps a copy
# Without site packages, as the hook runs it; the C module alone, as the hook imports it.
PROBE = (
    "import _sqlite3; c = _sqlite3.connect(':memory:'); c.execute('CREATE VIRTUAL TABLE t USING fts5(x)'); "
    "print(_sqlite3.sqlite_version)"
)


def findings(home: Home, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Every check, in the order in which one depends on another."""
    from foreword.config import load, load_synonyms

    at_home = folder(home)
    yield at_home
    if at_home.state != WRONG:
        yield disk(home)
    yield socket_path(home)
    loaded = load(home, environ)
    yield from file(home.config, loaded.problems)
    yield from file(home.synonyms, load_synonyms(home)[1])
    yield from switches(loaded.settings, environ)
    if at_home.state == WRONG:
        yield Finding("worker", NOTE, "not asked, because its home must be repaired first")
    elif not os.path.isdir(home.root):
        yield Finding("worker", NOTE, "not asked, because there is no home for it yet")
    else:
        health: dict[str, Any] = {}
        for each, answer in worker(home):
            yield each
            health = answer or health
        yield model(home, loaded.settings)
        yield spool(home, loaded.settings, up=float(health.get("uptime_s", 0)))
        yield hook(home, loaded.settings)
    yield interpreter()


def folder(home: Home) -> Finding:
    """The home itself: there, ours, closed to others, writable."""
    root = home.root
    try:
        found = root.stat()
    except FileNotFoundError:
        return _not_there(root)
    except OSError as exc:
        return Finding("home", WRONG, f"{root}: {exc.strerror}", "set FOREWORD_HOME to a folder of yours")
    if not stat.S_ISDIR(found.st_mode):
        return Finding("home", WRONG, f"{root} is not a folder", "move it away, or set FOREWORD_HOME to another folder")
    if found.st_uid != os.geteuid():
        return Finding("home", WRONG, f"{root} belongs to another user", "set FOREWORD_HOME to a folder of your own")
    if found.st_mode & 0o077:
        return Finding("home", WRONG, f"{root} is open to other users", f"chmod 700 {quote(str(root))}")
    if not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        return Finding(
            "home", WRONG, f"{root} cannot be written", f"chmod 700 {quote(str(root))}; or set FOREWORD_HOME elsewhere"
        )
    for path in (home.database, home.config, home.hook):
        if path.exists() and path.stat().st_mode & 0o022:
            return Finding("home", WRONG, f"{path} can be written by other users", f"chmod 600 {quote(str(path))}")
    return Finding("home", OK, f"{root}, yours alone")


def disk(home: Home) -> Finding:
    room = shutil.disk_usage(_existing(home.root)).free
    if room < LEAST_DISK:
        return Finding("disk", WRONG, f"only {sized(room)} free", f"free at least {sized(LEAST_DISK)}")
    return Finding("disk", OK, f"{sized(room)} free")


def socket_path(home: Home) -> Finding:
    from foreword.paths import socket_problem

    if problem := socket_problem(home):
        return Finding("socket", WRONG, problem, "set FOREWORD_HOME to a short path in a folder of your own")
    return Finding("socket", OK, "its path is short enough and safe")


def file(path: Path, problems: tuple[str, ...]) -> list[Finding]:
    """A file of the user's; what is wrong with it comes with its line."""
    if not problems:
        return [Finding(path.name, OK, "well written" if os.path.lexists(path) else "not there: built-in values count")]
    way_out = "correct it; until then the built-in value is used"
    return [Finding(path.name, WRONG, problem, way_out) for problem in problems]


def switches(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    """What the user has switched off, because it explains silence."""
    if environ.get("FOREWORD_OFF", "") not in ("", "0"):
        yield Finding("switches", NOTE, "FOREWORD_OFF is set: nothing is captured or injected", "unset FOREWORD_OFF")
    if not settings.capture:
        yield Finding("switches", NOTE, "capture is off: sessions are not kept", "foreword config set capture on")
    if not settings.inject:
        yield Finding("switches", NOTE, "inject is off: agents are told nothing", "foreword config set inject on")
    yield from (Finding("switches", NOTE, says, way_out) for says, way_out in here(settings))


def here(settings: Settings) -> list[tuple[str, str]]:
    """What is switched off in the project of this folder alone, each with the way out."""
    from foreword.capture.parse import project_at
    from foreword.policy import chosen, findings, off

    with suppress(ForewordError, OSError):
        project = project_at(os.getcwd())
        return list(findings(off(project, chosen(settings)), project))
    return []


def worker(home: Home) -> Iterator[tuple[Finding, dict[str, Any]]]:
    """Whether it starts, answers and is of this build; then what it tells of the database."""
    from foreword.hook.build import fingerprint
    from foreword.worker.client import Client
    from foreword.worker.lifecycle import pid_of, start

    pid = pid_of(home)
    try:
        start(home)
        health = Client(home, seconds=ANSWER_SECONDS).get("/api/health")
    except StoreError as exc:
        yield Finding("worker", OK, f"process {pid_of(home)} answers"), {}
        yield Finding("database", WRONG, str(exc), exc.hint), {}
        return
    except ForewordError as exc:
        if pid and pid_of(home) == pid:
            way_out = f"run `foreword worker stop`; if it does not leave: kill -9 {pid} (nothing is lost)"
            yield Finding("worker", WRONG, f"process {pid} runs and does not answer: {exc}", way_out), {}
        else:
            yield Finding("worker", WRONG, str(exc), exc.hint), {}
        return
    says = f"process {health['pid']}, version {health['version']}, up {lasting(health['uptime_s'])}"
    if health["build"] != fingerprint():
        yield Finding("worker", NOTE, f"{says}, of another build than this command", "it replaces itself soon"), health
    else:
        yield Finding("worker", OK, says + ("" if pid else " (started just now)")), health
    yield from ((each, health) for each in _database(home, health))


def model(home: Home, settings: Settings) -> Finding:
    """The model, if one is chosen: whether it can be asked, and what it has cost."""
    from foreword.worker.client import Client

    if settings.model_provider == "off":
        return Finding("model", OK, "off: none is asked")
    try:
        about = Client(home, seconds=ANSWER_SECONDS).get("/api/model")
    except ForewordError as exc:
        return Finding("model", NOTE, f"the worker cannot tell of it: {exc}", exc.hint)
    if about["problem"]:
        return Finding("model", WRONG, about["problem"], "docs/model.md tells how to set it up, and how to turn it off")
    says = f"{about['provider']} {about['model']}, {about['where']}: {about['spent_tokens']:,} of "
    says += f"{about['daily_tokens']:,} tokens in the last 24 hours"
    if about["paused_s"]:
        way_out = "summaries are made without it meanwhile; `foreword model try` asks it now"
        return Finding("model", NOTE, f"{says}; it failed, and is not asked for {lasting(about['paused_s'])}", way_out)
    return Finding("model", OK, says)


def spool(home: Home, settings: Settings, *, up: float) -> Finding:
    """What hooks could not tell the worker: how much, and since when."""
    try:
        waits = spooled(home.spool)
    except OSError as exc:
        way_out = f"chmod 700 {quote(str(home.spool))}"
        return Finding("spool", WRONG, f"cannot look into {home.spool}: {exc.strerror}", way_out)
    if not waits.bytes:
        return Finding("spool", OK, "nothing waits")
    age = time.time() - waits.oldest
    says = f"{sized(waits.bytes)} wait, since {lasting(max(age, 0))}"
    if waits.bytes > 0.8 * settings.spool_max_mb * 1024 * 1024:
        return Finding("spool", WRONG, f"{says}; it is almost full", "foreword worker start, then look again")
    if up > SETTLE and age > BACKLOG:
        return Finding("spool", WRONG, f"{says}, though a worker runs", f"see {home.log}, and please report it")
    return Finding("spool", NOTE, f"{says}; the worker takes it in")


def hook(home: Home, settings: Settings, *, again: bool = True) -> Finding:
    """hook.py: there, and the one that goes with this package and these settings."""
    from foreword.hook.build import files
    from foreword.paths import worker_command

    way_out = "run `foreword worker stop`, then `foreword worker start`: a worker writes it"
    wanted = files(home, settings, worker=worker_command() if settings.worker_autostart else [])
    paths = (home.hook, home.hook_client)
    try:
        texts = [path.read_text(encoding="utf-8") for path in paths]
    except FileNotFoundError as exc:
        return Finding("hook", WRONG, f"{exc.filename} is missing: hosts can tell nothing", way_out)
    except (OSError, UnicodeDecodeError) as exc:
        return Finding("hook", WRONG, f"{home.hook} cannot be read: {exc}", way_out)
    if texts == [wanted[path] for path in paths]:
        return Finding("hook", OK, f"{home.hook} is up to date")
    if again:  # a worker needs a second to see changed settings
        time.sleep(1.5)
        return hook(home, settings, again=False)
    return Finding("hook", WRONG, f"{home.hook} is of another version, or of other settings", way_out)


def interpreter() -> Finding:
    """The Python that hosts start: whether it is there and can read the database without us."""
    from foreword.hook.build import interpreter as chosen

    python = chosen()
    way_out = "install Foreword with a Python 3.11 or newer whose SQLite has FTS5"
    try:
        asked = [python, "-I", "-S", "-c", PROBE]
        ended = subprocess.run(asked, capture_output=True, text=True, timeout=10, check=False)  # noqa: S603 - our own
    except (OSError, subprocess.SubprocessError) as exc:
        return Finding("interpreter", WRONG, f"{python} cannot be run: {exc}", way_out)
    if ended.returncode:
        last = ended.stderr.strip().rpartition("\n")[2]
        return Finding("interpreter", WRONG, f"{python} cannot search without the worker: {last}", way_out)
    return Finding("interpreter", OK, f"{python}, SQLite {ended.stdout.strip()} with FTS5")


def _not_there(root: Path) -> Finding:
    near = _existing(root)
    if near.is_dir() and near == root.parent and os.access(near, os.W_OK | os.X_OK):
        return Finding("home", NOTE, f"{root} is not there yet", "it is made by the first memory or the first hook")
    why = "is not there" if near.is_dir() and near != root.parent else "cannot be written"
    return Finding("home", WRONG, f"{root} cannot be made: {root.parent} {why}", "set FOREWORD_HOME to another folder")


def _existing(path: Path) -> Path:
    return next((each for each in (path, *path.parents) if os.path.lexists(each)), path)


def _database(home: Home, health: Mapping[str, Any]) -> Iterator[Finding]:
    if not health["counts"]:
        way_out = "run `foreword worker stop`, and move the file away, with those beside it that begin with its name; "
        way_out += f"put the newest copy from {home.backups} in its place, or none: then a new one begins"
        for problem in health["problems"]:
            yield Finding("database", WRONG, problem, way_out)
        return
    yield Finding("database", OK, f"{home.database}, {health['counts'].get('memories', 0):,} memories")
    for problem in health["problems"]:
        yield Finding("index and tables", WRONG, problem, "run `foreword index`; the memories themselves are safe")
    if not health["problems"]:
        yield Finding("index and tables", OK, "complete")

"""`status`: what is stored, what happened last, and what went wrong since the user last looked."""

from __future__ import annotations

import json as jsonlib
import os
import select
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli import doctor, output
from foreword.cli.connection import connect, folder, this_home
from foreword.cli.options import Json
from foreword.encoding import STORE, sized
from foreword.errors import ForewordError
from foreword.problems import WRONG, Problem, grouped, noted, spooled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from foreword.paths import Home

LINE_SECONDS = 0.5  # a status line is drawn often; an empty one is better than a late one
MAX_INPUT = 1 << 20  # bytes that an agent may write to our stdin
PATIENCE = 8.0  # seconds for the first answer; a worker that migrates an old database is reported as busy
NEARLY_FULL = 0.8  # share of `store_max_mb` from which on it is reported
REPEAT_SECONDS = 86_400.0  # a problem that persists is reported once a day
COUNTED = ("memories", "sessions", "events", "injections")


def status(
    line: Annotated[bool, typer.Option("--line", help="Only what a session was given, for a status line.")] = False,
    json: Json = False,
) -> None:
    """Show what is stored, what happened last, and what went wrong.

    Problems are shown once; `foreword doctor` keeps showing them.

    With --line: the items and tokens that a session was given. The session is the one that the agent names on stdin,
    else the last one in this folder. No worker is started; without one the line is empty.

    \b
    Examples:
      foreword status
      foreword status --line
    """
    home = this_home()
    if line:
        answer = _line(home)
        output.write_json(answer) if json else output.write(answer["line"])
        return
    about = _about(home)
    problems = unreported(home)
    about["troubles"] = [vars(group) for group in grouped(problems)]
    if json:
        output.write_json(about)
        return
    output.fields(_fields(about))
    if about["troubles"]:
        output.write("\nwent wrong since you last looked (shown once; `foreword doctor` says what to do):")
    for each in about["troubles"]:
        output.write(f"  {output.age(each['last'])}, {each['count']}x, {each['where']}: {each['what']}")
    mark_reported(home, problems)


def unreported(home: Home) -> tuple[Problem, ...]:
    """Return the problems after the last one that was reported, without those reported within a day."""
    found = noted(str(home.trouble))
    last = _last_reported(home)
    positions = [position for position, problem in enumerate(found) if problem == last]
    old, new = (found[: positions[-1] + 1], found[positions[-1] + 1 :]) if positions else ((), found)
    reported = {(each.where, each.what): each.at for each in old}
    return tuple(
        each for each in new if each.at - reported.get((each.where, each.what), -REPEAT_SECONDS) >= REPEAT_SECONDS
    )


def mark_reported(home: Home, problems: Sequence[Problem]) -> None:
    """Remember the last problem that was reported; where that cannot be written, it is reported again."""
    if problems:
        with suppress(OSError):
            _reported_file(home).write_text(jsonlib.dumps(vars(problems[-1])), encoding="utf-8")


def _reported_file(home: Home) -> Path:
    # It holds the problem itself, not a position: the list begins again when it is full.
    return home.logs / "trouble.seen"


def _last_reported(home: Home) -> Problem | None:
    try:
        return Problem(**jsonlib.loads(_reported_file(home).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _line(home: Home) -> dict[str, Any]:
    """Return what a session was given, from a running worker, or at once an empty line."""
    from foreword.agents import text_of
    from foreword.worker.client import Client

    payload = _stdin_payload()
    session = text_of(payload, "session_id")
    try:
        query = {"session_id": session} if session else {"project_path": folder(text_of(payload, "cwd"))}
        return Client(home, seconds=LINE_SECONDS).get("/api/line", **query)
    except (ForewordError, UnicodeError):  # an agent may name a folder that cannot exist
        return {"line": "", "items": 0, "tokens": 0, "session": session}


def _stdin_payload() -> dict[str, Any]:
    """Return the JSON object that an agent writes to its status line command; empty where none comes in time."""
    raw, until = b"", time.monotonic() + LINE_SECONDS
    with suppress(OSError, ValueError, TypeError, RecursionError):  # no stdin, or no JSON object
        if sys.stdin.isatty():
            return {}
        while select.select([sys.stdin], [], [], max(0.0, until - time.monotonic()))[0]:
            part = os.read(sys.stdin.fileno(), 1 << 16)
            raw += part
            if not part or len(raw) > MAX_INPUT:
                break
        return dict(jsonlib.loads(raw))
    return {}


def _about(home: Home) -> dict[str, Any]:
    """Return all that is known; where the worker cannot be reached, why."""
    from foreword.config import load
    from foreword.install.status import install_status
    from foreword.worker.lifecycle import pid_of

    settings = load(home, os.environ).settings
    about: dict[str, Any] = {
        "switched_off": [says for says, _ in doctor.switched_off_here(settings)],
        "worker": {"running": False},
        "home": str(home.root),
        "home_exists": os.path.isdir(home.root),
        "counts": {},
        "database_bytes": 0,
        "database_max_bytes": settings.store_max_mb * 1024 * 1024,
        "spool_bytes": 0,
        "last_injection": None,
        "hosts": {},
        "silent": {},
        "review": 0,
        "problems": [],
    }
    if not about["home_exists"]:
        found = doctor.check_home(home)
        return {**about, "problems": [f"{found.says}; {found.way_out}"] if found.state == WRONG else []}
    try:
        client = connect(home, patience=PATIENCE)
        health = client.get("/api/health")
        about["worker"] = {"running": True, **{name: health[name] for name in ("pid", "version", "uptime_s")}}
        about |= {"counts": health["counts"], "problems": health["problems"]}
        about["database_bytes"] = health["database_bytes"] or 0
        about["last_injection"] = next(iter(client.get("/api/injections", limit=1)["injections"]), None)
        about["hosts"] = hosts = client.get("/api/hosts")["hosts"]
        if settings.capture:
            statuses = install_status(home, os.environ)
            silent = {name: doctor.silent_since(each, hosts.get(name, {})) for name, each in statuses.items()}
            about["silent"] = {name: at for name, at in silent.items() if at}
        about["review"] = client.get("/api/review")["waiting"]
    except ForewordError as exc:
        about["worker"]["pid"] = pid_of(home) or None
        about["problems"] = list(dict.fromkeys([*about["problems"], f"{exc}; {exc.hint}"]))
    with suppress(OSError):
        about["spool_bytes"] = spooled(home.spool).bytes
    return about


def _fields(about: dict[str, Any]) -> list[tuple[str, str]]:
    worker, size, most = about["worker"], about["database_bytes"], about["database_max_bytes"]
    running = f"process {worker['pid']} does not answer" if worker.get("pid") else "not running"
    if worker["running"]:
        up = output.duration(worker["uptime_s"])
        running = f"running, process {worker['pid']}, version {worker['version']}, up {up}"
    counts = ", ".join(output.plural(about["counts"][name], name) for name in COUNTED if name in about["counts"])
    database = f"{sized(size)} ({STORE})" if size else "none yet"
    if most and size > most * NEARLY_FULL:
        database += f", of {sized(most)} that `store_max_mb` allows; `foreword prune --dry-run` shows what would go"
    waiting = output.plural(about["review"], "items")
    silent = "wrote a transcript {}, long after its last event: run `foreword doctor`"
    return [
        ("worker", running),
        ("home", about["home"] + ("" if about["home_exists"] else ", not created yet")),
        *(("switched off", f"{says}; `foreword doctor` says how to change it") for says in about["switched_off"]),
        ("stored", counts or ("unknown" if about["home_exists"] else "nothing yet")),
        ("database", database),
        ("spool", f"{sized(about['spool_bytes'])} waiting" if about["spool_bytes"] else "empty"),
        ("review", f"{waiting} to decide: `foreword review --all`" if about["review"] else ""),
        *((name, doctor.agent_line(seen)) for name, seen in about["hosts"].items()),
        *(("silent", f"{name} {silent.format(output.age(at))}") for name, at in about["silent"].items()),
        *(("problem", problem) for problem in about["problems"]),
    ]

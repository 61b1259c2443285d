"""A home -> what is in it, what it did last, and what went wrong since the user last looked."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli import checks, door, hosts, screen, troubles
from foreword.cli.memories import Json
from foreword.errors import BadRequest, ForewordError
from foreword.problems import WRONG, grouped
from foreword.units import STORE, sized

if TYPE_CHECKING:
    from pathlib import Path

    from foreword.paths import Home

LINE_SECONDS = 0.5  # a status line is drawn often, and an empty one is better than a late one
MOST_BYTES = 1 << 20  # that a host tells of itself
PATIENCE = 8.0  # seconds; a worker that brings an old database up to date may need more, and is told as busy
NEAR = 0.8  # of the cap of the database, from which on it is told
COUNTED = ("memories", "sessions", "events", "injections")


def status(
    line: Annotated[bool, typer.Option("--line", help="Only what this session was given, in a line.")] = False,
    session: Annotated[str, typer.Option("--session", metavar="ID", help="Of this session; with --line.")] = "",
    json: Json = False,
) -> None:
    """Show what is remembered and what went wrong.

    What went wrong since you last asked is shown once; `foreword doctor` keeps showing it.
    A worker that is away is started.

    With --line: the items and tokens that a session was given, for a status line. The session is the one that the
    host names on stdin, else the last one in this folder. Nothing is started, and nothing is said without a worker.

    \b
    Examples:
      foreword status
      foreword status --line
    """
    home = door.here()
    if line:
        told = _line(home, session)
        screen.as_json(told) if json else screen.say(told["line"])
        return
    if session:
        raise BadRequest("--session goes with --line", hint="`foreword sessions ID` tells all of one")
    about = _about(home)
    new = troubles.untold(home)
    about["troubles"] = [vars(group) for group in grouped(new)]
    if json:
        screen.as_json(about)
        return
    screen.rows(_lines(about))
    if about["troubles"]:
        screen.say("\nwent wrong since you last asked (told once; `foreword doctor` has the way out):")
    for each in about["troubles"]:
        screen.say(f"  {_when(each['last'])}, {each['count']}x, {each['where']}: {each['what']}")
    troubles.told(home, new)


def _line(home: Home, session: str) -> dict[str, Any]:
    """What a session was given, from a worker that is there; at once, or an empty line."""
    from foreword.agents import dict_of, find, text_of
    from foreword.worker.client import Client

    told = {} if session else _from_host()
    read = find("claude-code").parse(told)
    place = read.cwd or text_of(dict_of(told.get("workspace")), "current_dir")
    asked = {"session_id": session or read.session}
    try:
        asked |= {} if asked["session_id"] else {"project_path": door.folder(place)}
        return Client(home, seconds=LINE_SECONDS).get("/api/line", **asked)
    except (ForewordError, UnicodeError):  # of a host that names what no file can be called
        return {"line": "", "items": 0, "tokens": 0, "session": asked["session_id"]}


def _from_host() -> dict[str, Any]:
    """What a host writes to the command of its status line; nothing where a person typed it, or it does not come."""
    import select
    from json import loads

    raw, until = b"", time.monotonic() + LINE_SECONDS
    with suppress(OSError, ValueError, TypeError, RecursionError):  # no stdin, or no JSON object
        if sys.stdin.isatty():
            return {}
        while select.select([sys.stdin], [], [], max(0.0, until - time.monotonic()))[0]:
            part = os.read(sys.stdin.fileno(), 1 << 16)
            raw += part
            if not part or len(raw) > MOST_BYTES:
                break
        return dict(loads(raw))
    return {}


def waiting(home: Home) -> int:
    """The bytes that hooks have spooled and no worker has taken in."""
    return _size(home.spool)


def _about(home: Home) -> dict[str, Any]:
    """All that can be told; where the worker cannot be asked, why."""
    from foreword.config import load
    from foreword.worker.lifecycle import pid_of

    about: dict[str, Any] = {
        "switched_off": [says for says, _ in checks.here(load(home, os.environ).settings)],
        "worker": {"running": False},
        "home": str(home.root),
        "home_exists": os.path.isdir(home.root),
        "counts": {},
        "database_bytes": _file(home.database),
        "database_max_bytes": _most(home),
        "spool_bytes": waiting(home),
        "last_event": None,
        "last_injection": None,
        "hosts": {},
        "silent": {},
        "use": None,
        "review": 0,
        "problems": [],
    }
    if not about["home_exists"]:
        found = checks.folder(home)
        wrong = found.state == WRONG
        return {**about, "problems": [f"{found.says}; {found.way_out}"] if wrong else []}
    try:
        client = door.worker(home, patience=PATIENCE)
        health = client.get("/api/health")
        about["worker"] = {"running": True, **{name: health[name] for name in ("pid", "version", "uptime_s")}}
        about |= {"counts": health["counts"], "problems": health["problems"]}
        about["database_bytes"] = health.get("database_bytes") or _file(home.database)  # what is in the log too
        about["last_event"] = next(iter(client.get("/api/sessions", limit=1)["sessions"]), None)
        about["last_injection"] = next(iter(client.get("/api/injections", limit=1)["injections"]), None)
        about["hosts"] = client.get("/api/hosts")["hosts"]
        about["silent"] = hosts.silent(home, os.environ, about["hosts"])
        with suppress(BadRequest):  # a folder that was taken away is no project
            about["use"] = client.get("/api/use", project_path=door.folder(""))
        about["review"] = client.get("/api/review")["waiting"]
    except ForewordError as exc:
        about["worker"]["pid"] = pid_of(home) or None
        about["problems"] = list(dict.fromkeys([*about["problems"], f"{exc}; {exc.hint}"]))
    return {**about, "spool_bytes": waiting(home)}


def _lines(about: dict[str, Any]) -> list[tuple[str, str]]:
    worker, event, injection = about["worker"], about["last_event"], about["last_injection"]
    running = f"process {worker['pid']} does not answer" if worker.get("pid") else "not running"
    if worker["running"]:
        running = (
            f"running, process {worker['pid']}, version {worker['version']}, up {screen.lasting(worker['uptime_s'])}"
        )
    counts = ", ".join(screen.counted(about["counts"][name], name) for name in COUNTED if name in about["counts"])
    given = "nothing yet"
    if injection:
        given = (
            f"{_when(injection['at'])}, {injection['trigger']}, {injection['tokens']} of {injection['budget']} tokens, "
            f"{len(injection['items'])} shown, {injection['project']}"
        )
    return [
        ("worker", running),
        ("home", about["home"] + ("" if about["home_exists"] else ", not there yet: the first memory makes it")),
        *(("switched off", f"{says}; `foreword doctor` has the way out") for says in about["switched_off"]),
        ("holds", counts or ("unknown" if about["home_exists"] else "nothing yet")),
        ("database", _database(about["database_bytes"], about["database_max_bytes"])),
        ("waiting", f"{sized(about['spool_bytes'])} in the spool" if about["spool_bytes"] else "nothing"),
        ("last event", f"{_when(event['last'])}, {event['host']}, {event['project']}" if event else "none yet"),
        ("last given", given),
        *([("used here", _use(about["use"]))] if about["use"] else []),
        *([("review", _waiting(about["review"]))] if about["review"] else ()),
        *((name, hosts.line_of(seen, now=time.time())) for name, seen in about["hosts"].items()),
        *(
            ("silent", f"{name} wrote a transcript {_when(at)}, long after its last event: run `foreword doctor`")
            for name, at in about["silent"].items()
        ),
        *(("problem", problem) for problem in about["problems"]),
    ]


def _use(use: dict[str, Any]) -> str:
    """What became of what this project was given lately."""
    lately = f"in {use['days']} days"
    if not use["shown"]:
        return f"nothing was shown {lately}"
    untold = use["shown"] - use["used"] - use["ignored"]
    return f"{use['used']:,} of {use['shown']:,} shown {lately}, {use['ignored']:,} not used, {untold:,} not judged"


def _most(home: Home) -> int:
    """The bytes that the database may have, 0 for any."""
    from foreword.config import load

    return load(home, os.environ).settings.store_max_mb * 1024 * 1024


def _database(size: int, most: int) -> str:
    if not size:
        return "none yet"
    told = f"{sized(size)} ({STORE})"
    if not most or size < most * NEAR:
        return told
    share = f"{100 * size / most:.0f} % of the {sized(most)} that `store_max_mb` allows"
    return f"{told}, {share}; `foreword prune --dry-run` tells what would go"


def _waiting(things: int) -> str:
    return f"{things} thing{' waits' if things == 1 else 's wait'} for you: `foreword review --all`"


def _size(folder: Path) -> int:
    """The bytes of the files there; what goes away meanwhile counts nothing."""
    total = 0
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                total += entry.stat().st_size
    return total


def _file(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0


def _when(at: float) -> str:
    from foreword.recall.render import ago

    return ago(time.time() - at)

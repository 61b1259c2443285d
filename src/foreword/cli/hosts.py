"""Hosts on this machine, and what the worker saw of them -> findings: installed, wired, trusted, heard, or the way out.

Everything is looked at and nothing is written, but what a host itself writes when it is asked.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any

from foreword.cli.checks import ANSWER_SECONDS
from foreword.errors import ForewordError
from foreword.problems import LATELY, NEVER_SEEN, NOTE, OK, WRONG, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from foreword.install.status import InstallStatus
    from foreword.paths import Home
    from foreword.problems import Problem

MOST_FILES = 2  # of a host that are named in its line
SILENT_SECONDS = 86_400.0  # hosts go on for hours to append bookkeeping to transcripts of sessions that are over


@dataclass(frozen=True)
class Standing:
    """How one host stands, in all that can be told of it."""

    host: str
    program: str  # where its program lies; empty where the PATH has none
    version: str
    wired: InstallStatus
    strays: tuple[str, ...]  # launchers that its files name and that are gone
    trust: Mapping[str, str]  # Codex: event -> trusted, modified, untrusted; empty where nobody can tell
    silent: float  # when it last wrote a transcript, if that is long after its last event; else 0
    seen: Mapping[str, Any]  # of `GET /api/hosts`
    troubles: tuple[Problem, ...]  # of its hooks, in the last week
    asked: bool = True  # whether a worker answered what it saw of it

    @property
    def used(self) -> bool:
        return bool(self.program or self.seen or self.wired.begun) or self.wired.setup.folder.is_dir()


def standings(home: Home, environ: Mapping[str, str], *, seen: Mapping[str, Any] | None) -> Iterator[Standing]:
    """Every host that can be wired, one after the other: to ask one for its trust takes seconds.

    Where no worker tells what was *seen*, nothing is concluded from its silence.
    """
    from foreword.cli.codex import codex_trust
    from foreword.config import load
    from foreword.install.detect import place_of, version_of
    from foreword.install.status import install_status, missing_launchers

    path = environ.get("PATH", "")
    settings = load(home, environ).settings
    names = install_status(home, environ)
    programs = {name: shutil.which(wired.setup.binary, path=path) or "" for name, wired in names.items()}
    versions = {name: version_of(program, environ=environ) for name, program in programs.items() if program}
    troubles = _troubles(home)
    for name, wired in install_status(home, environ, versions=versions).items():
        program = programs[name]
        trusting = name == "codex" and wired.begun and program
        heard = (seen or {}).get(name, {})
        listens = settings.capture and seen is not None
        yield Standing(
            host=name,
            program=program,
            version=versions.get(name, ""),
            wired=wired,
            strays=missing_launchers(wired, place=place_of(home, environ)),
            trust=codex_trust(program, environ, wired=wired) if trusting else {},
            silent=silent_until(wired, heard) if listens else 0.0,
            seen=heard,
            troubles=tuple(each for each in troubles if each.where.startswith(f"hook of {name}")),
            asked=seen is not None,
        )


def findings(standing: Standing, *, now: float) -> Iterator[Finding]:
    """What is to be said of a host: first what is wrong, each with its way out, then how it stands."""
    if not standing.wired.begun:
        yield _unwired(standing, now=now)
        return
    wrong = list(_wrong(standing))
    yield from wrong
    if standing.silent:
        yield _gone_silent(standing, now=now)
    if standing.troubles:
        yield _failures(standing, now=now)
    state = NOTE if wrong or not standing.program else OK
    yield Finding(standing.host, state, _told(standing, now=now), _missing_program(standing))


def _wrong(standing: Standing) -> Iterator[Finding]:
    name, wired = standing.host, standing.wired
    again = f"foreword install {name}"
    for how in ("unreadable", "missing", "changed"):
        lacks = [lack for lack in wired.gaps if lack.how == how]
        for file in dict.fromkeys(lack.file for lack in lacks):
            what = ", ".join(dict.fromkeys(lack.what for lack in lacks if lack.file == file))
            yield Finding(name, WRONG, SAYS[how].format(what=what, file=file), WAYS[how].format(again=again))
    if standing.strays:
        # A worker writes it when it begins: one that runs already would be left as it is.
        anew = "run `foreword worker stop`, then `foreword worker start`: a worker writes it"
        way_out = anew if _ours(standing) else f"run `{again}`"
        says = f"it runs {', '.join(standing.strays)}, which is gone or cannot be run"
        yield Finding(name, WRONG, says, way_out)
    if wired.off:
        yield Finding(name, WRONG, f"it runs no hooks: {wired.off}", "take that setting out, or ask who manages it")
    untrusted = [event for event, trust in standing.trust.items() if trust not in TRUSTED]
    if untrusted:
        says = f"it skips hooks that are not trusted, without a word: {', '.join(untrusted)}"
        yield Finding(name, WRONG, says, "start codex, open /hooks, and trust those that name foreword-hook")


def absent(standings: Sequence[Standing]) -> list[Finding]:
    """One line for all hosts that are not here."""
    names = [each.host for each in standings if not each.used]
    return [Finding("other hosts", OK, f"not found here: {', '.join(names)}")] if names else []


def mcp(health: Mapping[str, Any]) -> list[Finding]:
    """How the sessions behind the calls of tools were found, since the worker began."""
    told = health.get("mcp") or {}
    calls = told.get("calls", 0)
    if not calls:
        return []
    ways = {
        "by_tool_use": "the id of the tool's use",
        "by_call": "the call itself",
        "by_variable": "the host's variable",
        "by_newest": "the newest",
    }
    found = [f"{told[name]} by {way}" for name, way in ways.items() if told.get(name)]
    found += [f"{told['none']} without one"] if told.get("none") else []
    says = f"{calls} {'call' if calls == 1 else 'calls'} of its tools; sessions found: {', '.join(found) or 'none'}"
    if told.get("ambiguous"):
        several = f"{says}; {told['ambiguous']} could have been of several sessions, and count against none"
        way_out = "nothing is lost; of sessions at once in one folder, this host does not tell which one calls"
        return [Finding("mcp", NOTE, several, way_out)]
    return [Finding("mcp", OK, says)]


def as_json(standing: Standing) -> dict[str, Any]:
    """A host, for programs."""
    wired = standing.wired
    return {
        "host": standing.host,
        "program": standing.program,
        "version": standing.version,
        "folder": str(wired.setup.folder),
        "found": standing.used,
        "wired": wired.begun,
        "files": [str(file) for file in wired.files],
        "lacks": [{**vars(lack), "file": str(lack.file)} for lack in wired.gaps] if wired.begun else [],
        "gone": list(standing.strays),
        "switched_off": wired.off,
        "trust": dict(standing.trust),
        "silent_until": standing.silent or None,
        "failures": len(standing.troubles),
        **NEVER_SEEN,
        **standing.seen,
    }


TRUSTED = ("trusted", "managed")
SAYS = {
    "missing": "{file} lacks what install wrote: {what}",
    "changed": "{file} has something else than install wrote: {what}",
    "unreadable": "{file} cannot be read: {what}",
}
WAYS = {
    "missing": "run `{again}`: it writes what lacks, and leaves the rest as it is",
    "changed": "run `{again}` to have it again, or leave it if the change was yours",
    "unreadable": "correct the file, then run `{again}`",
}


def heard(home: Home) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """What a worker tells of itself and of each host; None where none runs, or it cannot answer."""
    from foreword.worker.client import Client

    asks = Client(home, seconds=ANSWER_SECONDS)
    try:
        return asks.get("/api/health"), asks.get("/api/hosts")["hosts"]
    except (ForewordError, OSError):
        return {}, None


def silent_until(wired: InstallStatus, seen: Mapping[str, Any]) -> float:
    """Return when a wired host last wrote a transcript, if that is long after its last event; else 0."""
    event = seen.get("last_event")
    after = max(event["at"] if event else 0.0, wired.since)
    if not wired.begun or not after:
        return 0.0  # before it was wired, nobody listened
    files = (file for pattern in wired.setup.transcripts for file in wired.setup.folder.glob(pattern))
    newest = max(map(_modified, files), default=0.0)
    return newest if newest > after + SILENT_SECONDS else 0.0


def silent(home: Home, environ: Mapping[str, str], seen: Mapping[str, Any]) -> dict[str, float]:
    """Return the wired hosts that go on and tell nothing, each with the time of its last transcript."""
    from foreword.config import load
    from foreword.install.status import install_status

    if not load(home, environ).settings.capture:
        return {}
    found = {name: silent_until(wired, seen.get(name, {})) for name, wired in install_status(home, environ).items()}
    return {name: at for name, at in found.items() if at}


def _modified(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def line_of(seen: Mapping[str, Any], *, now: float) -> str:
    """What was seen of a host, in a line."""
    event, given = seen.get("last_event"), seen.get("last_injection")
    if not event:
        return "no event yet"
    told = f"last event {_ago(now - event['at'])} ({event['name']})"
    gave = f"last given {_ago(now - given['at'])} ({given['trigger']}, {given['tokens']} tokens)" if given else ""
    number = seen.get("sessions", 0)
    count = f"{number:,} {'session' if number == 1 else 'sessions'}" if number else ""
    return ", ".join(filter(None, (told, gave or "nothing given yet", count)))


def _unwired(standing: Standing, *, now: float) -> Finding:
    name = standing.host
    event = standing.seen.get("last_event")
    if event and now - event["at"] < LATELY:
        says = "not wired by install, but heard, by hand or before `foreword uninstall`"
        return Finding(name, OK, f"{says}: {line_of(standing.seen, now=now)}")
    return Finding(name, NOTE, f"{_found(standing)}, not wired: nothing is captured", f"run `foreword install {name}`")


def _gone_silent(standing: Standing, *, now: float) -> Finding:
    event = standing.seen.get("last_event")
    told = f"the last event of {_ago(now - event['at'])}" if event else "no event was ever seen"
    says = f"its newest transcript is of {_ago(now - standing.silent)}, {told}: its hooks may not run"
    again = f"run `foreword install {standing.host}`, and start it anew"
    return Finding(standing.host, NOTE, says, f"{again}; where capture is switched off, this is as it should be")


def _failures(standing: Standing, *, now: float) -> Finding:
    last = standing.troubles[-1]
    count = len(standing.troubles)
    says = (
        f"{count} {'call of a hook' if count == 1 else 'calls of hooks'} had trouble in the last seven days, the last "
    )
    says += f"{_ago(now - last.at)}: {last.what}"
    return Finding(standing.host, NOTE, says, "what was told is in the spool or the database; below is every kind")


def _told(standing: Standing, *, now: float) -> str:
    files = ", ".join(quote(str(file)) for file in standing.wired.files[:MOST_FILES])
    more = len(standing.wired.files) - MOST_FILES
    files += f" and {more} more" if more > 0 else ""
    trust = "; trusted" if standing.trust and all(each in TRUSTED for each in standing.trust.values()) else ""
    seen = line_of(standing.seen, now=now) if standing.asked else "what it told last, only a worker knows"
    return f"{_found(standing)}, wired in {files}{trust}; {seen}"


def _found(standing: Standing) -> str:
    if not standing.program:
        return f"its folder is here, and no `{standing.wired.setup.binary}` on the PATH"
    return f"version {standing.version}" if standing.version else f"{standing.program}, of unknown version"


def _missing_program(standing: Standing) -> str:
    return "" if standing.program else f"if it is gone for good: foreword uninstall {standing.host}"


def _ours(standing: Standing) -> bool:
    """Whether the launcher that is gone is this home's own."""
    return any(standing.strays[0] in str(change) for change in standing.wired.setup.changes)


def _troubles(home: Home) -> tuple[Problem, ...]:
    from foreword.problems import noted

    return tuple(each for each in noted(str(home.trouble)) if each.at > time.time() - LATELY)


def _ago(seconds: float) -> str:
    from foreword.recall.render import ago

    return ago(seconds)

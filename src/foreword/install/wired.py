"""A host's setup and its files as they lie -> how much of it stands there, and what keeps it off. Read-only."""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foreword.agents import FILES, find
from foreword.agents.setup import AgentResidue, Block, Entry, OwnedFile, Place, Setup
from foreword.errors import ForewordError
from foreword.install import jsonedit
from foreword.install.blocks import includes
from foreword.install.found import place_of
from foreword.models import EMPTY
from foreword.paths import Home

MOST_BYTES = 16 * 1024 * 1024  # of a file of settings; a longer one is something else
LAUNCHER = "bin/foreword-"  # how a line of ours is known, whoever's home it names


@dataclass(frozen=True)
class Lack:
    """One thing that does not stand where it should: it is missing, changed or unreadable."""

    how: str
    what: str
    file: Path


@dataclass(frozen=True)
class Wired:
    """How a host is wired: what stands in its files, and what lacks."""

    setup: Setup
    there: int = 0  # changes that stand as they were written
    lacks: tuple[Lack, ...] = ()
    off: str = ""  # the host's own switch that is off, with its file
    since: float = 0.0  # when it was wired last, where that is on file

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that hold something of ours, or should."""
        return tuple(dict.fromkeys(each.file for each in self.setup.changes if not isinstance(each, AgentResidue)))

    @property
    def begun(self) -> bool:
        """Whether somebody has wired it: something of ours is there, whole or changed."""
        return self.there > 0 or any(lack.how == "changed" for lack in self.lacks)


def look(home: Home, environ: Mapping[str, str], *, versions: Mapping[str, str] = EMPTY) -> dict[str, Wired]:
    """Every host that can be wired, as it stands; as a plugin or by its settings, whichever has more of it."""
    found = {}
    for name in FILES:
        as_told = replace(place_of(home, environ), version=versions.get(name, ""))
        ways = [find(name).setup(as_told), find(name).setup(replace(as_told, plugin=True))]
        looks = [stands(setup) for setup in ways if setup is not None]
        if looks:
            best = max(looks, key=lambda each: (each.there, -len(each.lacks)))
            found[name] = replace(best, since=_written(home.installed, name))
    return found


def stands(setup: Setup) -> Wired:
    """What of a setup stands in its files, each read once."""
    files: dict[Path, Any] = {}
    lacks = []
    there = 0
    for change in setup.changes:
        if isinstance(change, AgentResidue):
            continue  # a host that was not started since has not written it
        lack = _lack(change, files)
        if lack is None:
            there += not (isinstance(change, Entry) and change.default)
        else:
            lacks.append(lack)
    return Wired(setup=setup, there=there, lacks=tuple(lacks), off=_switch(setup))


def settings_of(file: Path) -> Any:
    """What a file of settings says; comments and commas too many are passed over. Broken ones raise ValueError."""
    text = _text(file)
    if file.suffix == ".toml":
        return tomllib.loads(text)
    try:
        said = jsonedit.read(text)
    except ForewordError as exc:
        raise ValueError(str(exc)) from exc
    return {} if said is jsonedit.MISSING else said


def _lack(change: Entry | Block | OwnedFile, files: dict[Path, Any]) -> Lack | None:
    what = ".".join(change.keys) if isinstance(change, Entry) else change.file.name
    try:
        if isinstance(change, Entry):
            if change.file not in files:
                files[change.file] = settings_of(change.file)
            how = _entry(change, files[change.file])
        else:
            how = _whole(change)
    except FileNotFoundError:
        how = "missing"
    except (OSError, ValueError, RecursionError):
        how = "unreadable"
    return Lack(how, what, change.file) if how else None


def _entry(change: Entry, said: Any) -> str:
    for key in change.keys:
        if not isinstance(said, dict) or key not in said:
            return "missing"
        said = said[key]
    if change.default:
        return ""
    if not change.append:
        return "" if said == change.value else "changed"
    if isinstance(said, list) and change.value in said:
        return ""
    return "changed" if LAUNCHER in json.dumps(said) else "missing"


def _whole(change: Block | OwnedFile) -> str:
    text = _text(change.file)
    if isinstance(change, OwnedFile):
        return "" if text == change.text else "changed"
    if change.text.strip() in text:
        return ""
    if change.file.suffix == ".toml" and includes(tomllib.loads(text), tomllib.loads(change.text)):
        return ""  # a host that writes its settings anew orders and quotes them in its own way
    return "changed" if LAUNCHER in text or change.text.split("\n", 1)[0] in text else "missing"


def strays(wired: Wired, *, place: Place) -> tuple[str, ...]:
    """Launchers that a host's files name and that are not there."""
    named: list[str] = []
    for file in wired.files:
        try:
            text = _text(file)
        except (OSError, ValueError):
            continue
        named += [str(each) for each in (place.hook, place.mcp) if str(each) in text]
        named += _NAMED.findall(text)
    return tuple(each for each in dict.fromkeys(named) if not os.access(each, os.X_OK))


def _written(folder: Path, name: str) -> float:
    """When install wrote last what it did for a host."""
    try:
        return max((each.stat().st_mtime for each in folder.glob(f"{name}*")), default=0.0)
    except OSError:
        return 0.0


def _switch(setup: Setup) -> str:
    for file, keys, off in setup.switches:
        path = setup.folder / file
        try:
            said = settings_of(path)
        except (OSError, ValueError, RecursionError):
            continue
        for key in keys.split("."):
            said = said.get(key) if isinstance(said, dict) else None
        if said is off:
            return f"{keys} is {str(off).lower()} in {path}"
    return ""


def _text(file: Path) -> str:
    # A pipe would wait for ever: of what is no file, nothing is read.
    with open(file, encoding="utf-8-sig", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise OSError(f"{file} is no file")
        return opened.read(MOST_BYTES)


_NAMED = re.compile(r"""(?<![^\s'"=])/[^\s'"\\]*?/bin/foreword-(?:hook|mcp)\b""")  # a path with spaces is passed over

"""Check how much of an agent's setup is in its files, and what keeps its hooks from running. Read-only."""

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
from foreword.install import jsonc
from foreword.install.detect import place_of
from foreword.install.toml_block import includes
from foreword.models import EMPTY
from foreword.paths import Home

MOST_BYTES = 16 * 1024 * 1024  # of a file of settings; a longer one is something else
LAUNCHER = "bin/foreword-"  # how a line of ours is known, whoever's home it names


@dataclass(frozen=True)
class Gap:
    """One thing that is not where it should be: it is missing, changed or unreadable."""

    how: str
    what: str
    file: Path


@dataclass(frozen=True)
class InstallStatus:
    """How an agent is set up: what is in its files, and what is not."""

    setup: Setup
    there: int = 0  # changes that are in place as they were written
    gaps: tuple[Gap, ...] = ()
    off: str = ""  # the agent's own switch that is off, with its file
    since: float = 0.0  # when it was installed last, where that is on file

    @property
    def files(self) -> tuple[Path, ...]:
        """Return the files that hold something of ours, or should."""
        return tuple(dict.fromkeys(each.file for each in self.setup.changes if not isinstance(each, AgentResidue)))

    @property
    def begun(self) -> bool:
        """Tell whether it was installed: something of ours is there, whole or changed."""
        return self.there > 0 or any(gap.how == "changed" for gap in self.gaps)


def install_status(
    home: Home, environ: Mapping[str, str], *, versions: Mapping[str, str] = EMPTY
) -> dict[str, InstallStatus]:
    """Return the status of every agent; as a plugin or by its settings, whichever has more in place."""
    found = {}
    for name in FILES:
        place = replace(place_of(home, environ), version=versions.get(name, ""))
        ways = [find(name).setup(place), find(name).setup(replace(place, plugin=True))]
        checked = [check(setup) for setup in ways if setup is not None]
        if checked:
            best = max(checked, key=lambda each: (each.there, -len(each.gaps)))
            found[name] = replace(best, since=_written(home.installed, name))
    return found


def check(setup: Setup) -> InstallStatus:
    """Return what of a setup is in its files, each read once."""
    files: dict[Path, Any] = {}
    gaps = []
    there = 0
    for change in setup.changes:
        if isinstance(change, AgentResidue):
            continue  # an agent that was not started since has not written it
        gap = _gap_of(change, files)
        if gap is None:
            there += not (isinstance(change, Entry) and change.default)
        else:
            gaps.append(gap)
    return InstallStatus(setup=setup, there=there, gaps=tuple(gaps), off=_switch(setup))


def settings_of(file: Path) -> Any:
    """Read a settings file; comments and trailing commas are skipped, broken files raise ValueError."""
    text = _text(file)
    if file.suffix == ".toml":
        return tomllib.loads(text)
    try:
        found = jsonc.read(text)
    except ForewordError as exc:
        raise ValueError(str(exc)) from exc
    return {} if found is jsonc.MISSING else found


def _gap_of(change: Entry | Block | OwnedFile, files: dict[Path, Any]) -> Gap | None:
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
    return Gap(how, what, change.file) if how else None


def _entry(change: Entry, value: Any) -> str:
    for key in change.keys:
        if not isinstance(value, dict) or key not in value:
            return "missing"
        value = value[key]
    if change.default:
        return ""
    if not change.append:
        return "" if value == change.value else "changed"
    if isinstance(value, list) and change.value in value:
        return ""
    return "changed" if LAUNCHER in json.dumps(value) else "missing"


def _whole(change: Block | OwnedFile) -> str:
    text = _text(change.file)
    if isinstance(change, OwnedFile):
        return "" if text == change.text else "changed"
    if change.text.strip() in text:
        return ""
    if change.file.suffix == ".toml" and includes(tomllib.loads(text), tomllib.loads(change.text)):
        return ""  # an agent that rewrites its settings orders and quotes them in its own way
    return "changed" if LAUNCHER in text or change.text.split("\n", 1)[0] in text else "missing"


def missing_launchers(status: InstallStatus, *, place: Place) -> tuple[str, ...]:
    """Return launchers that an agent's files name and that do not exist."""
    named: list[str] = []
    for file in status.files:
        try:
            text = _text(file)
        except (OSError, ValueError):
            continue
        named += [str(each) for each in (place.hook, place.mcp) if str(each) in text]
        named += _NAMED.findall(text)
    return tuple(each for each in dict.fromkeys(named) if not os.access(each, os.X_OK))


def _written(folder: Path, name: str) -> float:
    """Return when the manifest of an agent was written."""
    try:
        return max((each.stat().st_mtime for each in folder.glob(f"{name}*")), default=0.0)
    except OSError:
        return 0.0


def _switch(setup: Setup) -> str:
    for file, keys, off in setup.switches:
        path = setup.folder / file
        try:
            value = settings_of(path)
        except (OSError, ValueError, RecursionError):
            continue
        for key in keys.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if value is off:
            return f"{keys} is {str(off).lower()} in {path}"
    return ""


def _text(file: Path) -> str:
    # A pipe would wait for ever: only regular files are read.
    with open(file, encoding="utf-8-sig", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise OSError(f"{file} is not a regular file")
        return opened.read(MOST_BYTES)


_NAMED = re.compile(r"""(?<![^\s'"=])/[^\s'"\\]*?/bin/foreword-(?:hook|mcp)\b""")  # a path with spaces is skipped

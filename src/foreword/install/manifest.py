"""What was done for a host -> `installed/HOST.json` and the bytes that were there before, for the day it is undone."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foreword import __version__
from foreword.agents.setup import AgentResidue, Entry
from foreword.install import files
from foreword.install.jsonedit import Keys
from foreword.paths import Home

FORMAT = 1
FLAGS = ("append", "default")  # of an entry
ORIGINAL = ".was"  # behind the digest of bytes that were there before


@dataclass(frozen=True)
class Filed:
    """One file that we changed."""

    existed: bool = True
    original: str = ""  # the digest of the bytes that uninstalling gives back
    known: tuple[str, ...] = ()  # digests of bytes for which the original is exactly what they are without us
    entries: tuple[Entry, ...] = ()
    made: tuple[Keys, ...] = ()
    was: Mapping[Keys, str] = field(default_factory=dict, hash=False)
    block: str = ""
    gap: str = ""
    own: bool = False


@dataclass(frozen=True)
class Manifest:
    """All that was done for one host."""

    host: str
    files: Mapping[str, Filed] = field(default_factory=dict, hash=False)
    folders: tuple[str, ...] = ()  # that were made, outermost first
    left: tuple[AgentResidue, ...] = ()  # what the host may write by itself because of us
    theirs: tuple[AgentResidue, ...] = ()  # what of that stood there before, and stays
    plugin: bool = False  # as the host's own kind of plugin
    foreword: str = __version__


def load(home: Home, host: str) -> Manifest | None:
    """What was done for a host; None where nothing is known. What another version left out has its default."""
    try:
        told = json.loads(_path(home, host).read_text(encoding="utf-8"))
        return _manifest(host, told)
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        return None  # gone, or not readable: what is ours is still known by its looks


def save(home: Home, manifest: Manifest) -> None:
    """On the disk before anything it tells of is touched."""
    told = {"format": FORMAT, **vars(manifest)}
    told["files"] = {path: _filed_out(filed) for path, filed in manifest.files.items()}
    for name in ("left", "theirs"):
        told[name] = [{**vars(each), "file": str(each.file)} for each in told[name]]
    files.write(_path(home, manifest.host), json.dumps(told, indent=1).encode())


def drop(home: Home, host: str) -> None:
    files.write(_path(home, host), None)


def known_hosts(home: Home) -> tuple[str, ...]:
    """The hosts that were installed."""
    try:
        return tuple(sorted(path.stem for path in home.installed.glob("*.json") if not path.name.startswith(".")))
    except OSError:
        return ()


def keep(home: Home, data: bytes) -> str:
    """Keep bytes beside the manifests; the name by which `kept` finds them."""
    name = digest(data)
    path = home.installed / f"{name}{ORIGINAL}"
    if not path.exists():
        files.write(path, data)
    return name


def kept(home: Home, name: str) -> bytes | None:
    """What was kept by that name; None where somebody took it away or changed it."""
    try:
        data = (home.installed / f"{name}{ORIGINAL}").read_bytes()
    except OSError:
        return None
    return data if digest(data) == name else None


def tidy(home: Home) -> None:
    """Take away kept bytes that no manifest needs any more: they may hold keys of the user's."""
    needed: set[str] = set()
    for host in known_hosts(home):
        manifest = load(home, host)
        if manifest is None:
            return
        needed |= {filed.original for filed in manifest.files.values()}
    with suppress(OSError):
        for path in home.installed.glob(f"*{ORIGINAL}"):
            if path.stem not in needed:
                path.unlink(missing_ok=True)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextmanager
def alone(home: Home) -> Iterator[None]:
    """One at a time: two who install at once would each save what the other wrote."""
    if not home.installed.is_dir():
        yield
        return
    opened = os.open(home.installed / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def _path(home: Home, host: str) -> Path:
    return home.installed / f"{host}.json"


def _filed_out(filed: Filed) -> dict[str, Any]:
    told = dict(vars(filed))
    told["entries"] = [{**vars(each), "file": str(each.file)} for each in filed.entries]
    told["was"] = [[list(keys), inside] for keys, inside in filed.was.items()]
    return told


def _manifest(host: str, told: Mapping[str, Any]) -> Manifest:
    return Manifest(
        host,
        {path: _filed(path, each) for path, each in told.get("files", {}).items()},
        tuple(told.get("folders", ())),
        _lefts(told.get("left", ())),
        _lefts(told.get("theirs", ())),
        bool(told.get("plugin", False)),
        str(told.get("foreword", "")),
    )


def _filed(path: str, told: Mapping[str, Any]) -> Filed:
    return Filed(
        existed=bool(told.get("existed", True)),
        original=str(told.get("original", "")),
        known=tuple(told.get("known", ())),
        entries=tuple(
            Entry(Path(path), tuple(each["keys"]), each["value"], **{name: bool(each.get(name)) for name in FLAGS})
            for each in told.get("entries", ())
        ),
        made=tuple(tuple(keys) for keys in told.get("made", ())),
        was={tuple(keys): inside for keys, inside in told.get("was", ())},
        block=str(told.get("block", "")),
        gap=str(told.get("gap", "")),
        own=bool(told.get("own", False)),
    )


def _lefts(told: Iterable[Mapping[str, Any]]) -> tuple[AgentResidue, ...]:
    return tuple(AgentResidue(Path(each["file"]), tuple(each["keys"])) for each in told)

"""Record in `installed/AGENT.json` what was done for an agent, and keep the bytes that were there before."""

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

from foreword.agents.setup import AgentResidue, Entry
from foreword.install import files
from foreword.install.jsonc import Keys
from foreword.paths import Home

ORIGINAL = ".was"  # behind the digest of bytes that were there before


@dataclass(frozen=True)
class FileRecord:
    """One file that we changed."""

    existed: bool = True
    original: str = ""  # the digest of the bytes that uninstalling gives back
    known: tuple[str, ...] = ()  # digests of bytes for which the original is exactly what they are without us
    entries: tuple[Entry, ...] = ()
    made: tuple[Keys, ...] = ()
    was: Mapping[Keys, str] = field(default_factory=dict, hash=False)
    block: str = ""
    gap: str = "\n"
    own: bool = False


@dataclass(frozen=True)
class Manifest:
    """All that was done for one agent."""

    agent: str
    files: Mapping[str, FileRecord] = field(default_factory=dict, hash=False)
    folders: tuple[str, ...] = ()  # that were made, outermost first
    residue: tuple[AgentResidue, ...] = ()  # what the agent may write by itself because of us
    preexisting: tuple[AgentResidue, ...] = ()  # what of that was there before, and stays
    plugin: bool = False  # as the agent's own kind of plugin
    version: str = ""  # of the agent, where it was known


def load(home: Home, agent: str) -> Manifest | None:
    """Return what was done for an agent; None where nothing is known."""
    try:
        fields = json.loads(_path(home, agent).read_text(encoding="utf-8"))
        return Manifest(
            agent,
            {path: _record(path, each) for path, each in fields["files"].items()},
            tuple(fields["folders"]),
            _residue(fields["residue"]),
            _residue(fields["preexisting"]),
            fields["plugin"],
            fields["version"],
        )
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        return None  # gone, or not readable: what is ours is still recognized by what it runs


def save(home: Home, manifest: Manifest) -> None:
    """Write the manifest to the disk, before anything that it describes is touched."""
    fields = dict(vars(manifest))
    fields["files"] = {
        path: {**vars(record), "was": [[list(keys), inside] for keys, inside in record.was.items()]}
        for path, record in manifest.files.items()
    }
    files.write(_path(home, manifest.agent), json.dumps(fields, indent=1, default=_serialize).encode())


def drop(home: Home, agent: str) -> None:
    files.write(_path(home, agent), None)


def installed_agents(home: Home) -> tuple[str, ...]:
    """Return the agents that Foreword was installed for."""
    return tuple(sorted(path.stem for path in home.installed.glob("*.json") if not path.name.startswith(".")))


def installed_at(home: Home, agent: str) -> float:
    """Return when an agent was installed last; 0 where it was not."""
    with suppress(OSError):
        return _path(home, agent).stat().st_mtime
    return 0.0


def keep(home: Home, data: bytes) -> str:
    """Keep bytes beside the manifests; return the name by which `kept` finds them."""
    name = digest(data)
    path = home.installed / f"{name}{ORIGINAL}"
    if not path.exists():
        files.write(path, data)
    return name


def kept(home: Home, name: str) -> bytes | None:
    """Return what was kept by that name; None where somebody removed or changed it."""
    try:
        data = (home.installed / f"{name}{ORIGINAL}").read_bytes()
    except OSError:
        return None
    return data if digest(data) == name else None


def tidy(home: Home) -> None:
    """Remove kept bytes that no manifest needs any more: they may hold keys of the user's."""
    needed: set[str] = set()
    for agent in installed_agents(home):
        manifest = load(home, agent)
        if manifest is None:
            return
        needed |= {record.original for record in manifest.files.values()}
    with suppress(OSError):
        for path in home.installed.glob(f"*{ORIGINAL}"):
            if path.stem not in needed:
                path.unlink(missing_ok=True)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextmanager
def lock(home: Home) -> Iterator[None]:
    """Hold a lock: two who install at once would each save what the other wrote."""
    if not home.installed.is_dir():
        yield
        return
    opened = os.open(home.installed / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def _path(home: Home, agent: str) -> Path:
    return home.installed / f"{agent}.json"


def _serialize(item: Any) -> Any:
    return str(item) if isinstance(item, Path) else vars(item)


def _record(path: str, fields: Mapping[str, Any]) -> FileRecord:
    entries = ({**each, "file": Path(path), "keys": tuple(each["keys"])} for each in fields["entries"])
    return FileRecord(
        **{
            **fields,
            "known": tuple(fields["known"]),
            "entries": tuple(Entry(**each) for each in entries),
            "made": tuple(tuple(keys) for keys in fields["made"]),
            "was": {tuple(keys): inside for keys, inside in fields["was"]},
        }
    )


def _residue(items: Iterable[Mapping[str, Any]]) -> tuple[AgentResidue, ...]:
    return tuple(AgentResidue(Path(each["file"]), tuple(each["keys"])) for each in items)

"""Read and replace the user's files, and record in `installed/AGENT.json` what was done, so that it can be undone."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foreword.agents.setup import AgentResidue, Entry
from foreword.errors import ForewordError
from foreword.install.jsonc import Keys
from foreword.paths import UNFINISHED, Home, replacing, sync_path

OUR_FILE, OUR_FOLDER = 0o600, 0o700
LARGEST = 32 * 1024 * 1024  # bytes; a settings file that is larger is something else


def read(path: Path) -> bytes | None:
    """Return the bytes of a file; None where there is none."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:  # a pipe would wait for ever
            raise ForewordError(f"{path} is not a settings file", hint="move it away, then try again")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as exc:
        hint = "make it readable for you, then try again"
        raise ForewordError(f"cannot read {path}: {exc.strerror}", hint=hint) from exc


def check_writable(path: Path) -> None:
    """Raise ForewordError where a file cannot be changed, before anything is."""
    real = Path(os.path.realpath(path))
    folder = next(each for each in real.parents if each.exists())
    may_write = real.stat().st_mode & stat.S_IWUSR and os.access(real, os.W_OK) if real.exists() else True
    if not may_write or not os.access(folder, os.W_OK | os.X_OK):
        raise ForewordError(f"{real} is read-only for you", hint="make it and its folder writable, then try again")


def missing_folders(path: Path) -> list[Path]:
    """Return the folders that must be made for a file, outermost first."""
    return [each for each in reversed(Path(os.path.realpath(path)).parents) if not each.exists()]


def write(path: Path, data: bytes | None) -> None:
    """Replace a file behind any links, whole or not at all, with its rights and owner; None removes it."""
    real = sweep(path)
    if data is None:
        real.unlink(missing_ok=True)
    else:
        before = real.stat() if real.exists() else None
        with replacing(real, mode=stat.S_IMODE(before.st_mode) if before else OUR_FILE) as file:
            file.write(data)
            if before:
                with suppress(PermissionError):  # a group that we are not in any more
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
    with suppress(FileNotFoundError):
        sync_path(real.parent)  # only then a new name in it lasts


def sweep(path: Path) -> Path:
    """Remove unfinished files that a crash left beside another, and return its path behind any links."""
    real = Path(os.path.realpath(path))
    for unfinished in real.parent.glob(f"{UNFINISHED}*"):
        unfinished.unlink(missing_ok=True)
    return real


@dataclass(frozen=True)
class FileRecord:
    """One file that we changed, in the names that are stored."""

    existed: bool = True  # before us
    entries: tuple[Entry, ...] = ()
    made: tuple[Keys, ...] = ()  # containers that came with the entries
    was: Mapping[Keys, str] = field(default_factory=dict, hash=False)  # the inside of containers that were empty
    block: str = ""  # tables at the end of a TOML file
    gap: str = "\n"  # between them and the user's last line
    own: str = ""  # the digest of a whole file of ours


@dataclass(frozen=True)
class Manifest:
    """All that was done for one agent."""

    agent: str
    files: Mapping[str, FileRecord] = field(default_factory=dict, hash=False)
    folders: tuple[str, ...] = ()  # that were made, outermost first
    residue: tuple[AgentResidue, ...] = ()  # what the agent may write by itself because of us
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
            tuple(AgentResidue(Path(each["file"]), tuple(each["keys"])) for each in fields["residue"]),
            fields["plugin"],
            fields["version"],
        )
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        return None  # gone, or not readable: what is ours is still recognized by what it runs


def save(home: Home, manifest: Manifest) -> None:
    """Write the manifest to the disk, before anything that it describes is touched."""
    records = {
        path: {**vars(record), "was": [[list(keys), inside] for keys, inside in record.was.items()]}
        for path, record in manifest.files.items()
    }
    text = json.dumps(
        {**vars(manifest), "files": records},
        indent=1,
        default=lambda item: str(item) if isinstance(item, Path) else vars(item),
    )
    write(_path(home, manifest.agent), text.encode())


def drop(home: Home, agent: str) -> None:
    write(_path(home, agent), None)


def installed_agents(home: Home) -> list[str]:
    """Return the agents that Foreword was installed for."""
    return sorted(path.stem for path in home.installed.glob("*.json") if not path.name.startswith("."))


def installed_at(home: Home, agent: str) -> float:
    """Return when an agent was installed last; 0 where it was not."""
    with suppress(OSError):
        return _path(home, agent).stat().st_mtime
    return 0.0


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _path(home: Home, agent: str) -> Path:
    return home.installed / f"{agent}.json"


def _record(path: str, fields: Mapping[str, Any]) -> FileRecord:
    entries = ({**each, "file": Path(path), "keys": tuple(each["keys"])} for each in fields["entries"])
    tuples = {
        "entries": tuple(Entry(**each) for each in entries),
        "made": tuple(tuple(keys) for keys in fields["made"]),
        "was": {tuple(keys): inside for keys, inside in fields["was"]},
    }
    return FileRecord(**{**fields, **tuples})

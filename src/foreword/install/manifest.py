"""Record in `installed/AGENT.json` what was done for an agent, so that all of it can be undone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foreword.agents.setup import AgentResidue, Entry
from foreword.install import files
from foreword.install.jsonc import Keys
from foreword.paths import Home


@dataclass(frozen=True)
class FileRecord:
    """One file that we changed."""

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


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _path(home: Home, agent: str) -> Path:
    return home.installed / f"{agent}.json"


def _serialize(item: Any) -> Any:
    return str(item) if isinstance(item, Path) else vars(item)


def _record(path: str, fields: Mapping[str, Any]) -> FileRecord:
    entries = ({**each, "file": Path(path), "keys": tuple(each["keys"])} for each in fields["entries"])
    return FileRecord(
        **{
            **fields,
            "entries": tuple(Entry(**each) for each in entries),
            "made": tuple(tuple(keys) for keys in fields["made"]),
            "was": {tuple(keys): inside for keys, inside in fields["was"]},
        }
    )

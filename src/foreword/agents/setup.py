"""Where a user's things lie -> what a host must be told, as changes of its own files that can be shown and undone."""

from __future__ import annotations

import json
import os.path
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Place:
    """One user's machine, as a host file needs to know it."""

    user: Path  # the home folder
    environ: Mapping[str, str]  # CLAUDE_CONFIG_DIR, CODEX_HOME, XDG_CONFIG_HOME, ...
    hook: Path  # our launchers: their paths stay the same when Python or Foreword is upgraded
    mcp: Path
    socket: Path  # of the worker, for a plugin that speaks to it
    version: str = ""  # of the host that is installed; empty where it is not known
    plugin: bool = False  # as the host's own kind of plugin, where it has one beside its settings
    # Host -> what the user wants it to take in one output, in its own tokens
    limits: Mapping[str, int] = field(default_factory=dict, hash=False)

    def folder(self, variable: str, *below: str) -> Path:
        """The folder that a variable names, as hosts let theirs be moved; else the one below the user's own."""
        named = self.environ.get(variable, "")
        return Path(named) if os.path.isabs(named) else self.user.joinpath(*below)

    def command(self, host: str, event: str) -> str:
        """What a host's shell is told to run; where our home was taken away, nothing, and without an error."""
        hook = shlex.quote(str(self.hook))
        return f"[ ! -x {hook} ] || exec {hook} --host {host} {event}"


@dataclass(frozen=True)
class Entry:
    """A value in a JSON file of the user's: set at *keys*, or appended to the list there."""

    file: Path
    keys: tuple[str, ...]
    value: Any
    append: bool = False
    default: bool = False  # only where nothing stands there yet; what stands there stays


@dataclass(frozen=True)
class Block:
    """Lines at the end of a text file of the user's."""

    file: Path
    text: str


@dataclass(frozen=True)
class OwnedFile:
    """A whole file that is ours alone."""

    file: Path
    text: str
    executable: bool = False


@dataclass(frozen=True)
class AgentResidue:
    """What a host writes down by itself because of us: never written by us, and taken out again with all the rest.

    An entry at *keys* in a JSON file of the host's own; without keys, a whole file or folder.
    """

    file: Path
    keys: tuple[str, ...] = ()


Change = Entry | Block | OwnedFile | AgentResidue


@dataclass(frozen=True)
class Setup:
    """How a host is found on a machine, and what it must be told."""

    binary: str  # what it is called on the PATH
    folder: Path  # where it keeps its settings: it is there when the host was ever used
    changes: tuple[Change, ...]  # done in this order, and undone last first
    after: tuple[str, ...] = ()  # what only the user can do then, a sentence each
    # Its own settings that keep every hook from running: in which file, under which name, with which value.
    switches: tuple[tuple[str, str, bool], ...] = ()
    transcripts: tuple[str, ...] = ()  # patterns below `folder` of the files that it writes while it works


def written(item: Any) -> str:
    """A whole file of JSON, as a person would write it."""
    return json.dumps(item, indent=2, ensure_ascii=False) + "\n"


def quoted(text: str) -> str:
    """A text in quotes, as JSON, JavaScript and TOML read it alike."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def shipped(name: str) -> str:
    """A text that lies beside the host files in the package."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")

"""Describe what install writes for an agent, as changes of its files that can be shown and undone."""

from __future__ import annotations

import json
import os.path
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple


class InstallTarget(NamedTuple):
    """One user's machine, as an adapter needs to know it."""

    user: Path  # the home folder
    environ: Mapping[str, str]  # CLAUDE_CONFIG_DIR, CODEX_HOME, XDG_CONFIG_HOME, ...
    hook: Path  # our launchers: their paths stay the same when Python or Foreword is upgraded
    mcp: Path
    socket: Path  # of the worker, for a plugin that calls it
    version: str = ""  # of the agent that is installed; empty where it is not known
    plugin: bool = False  # as the agent's own kind of plugin, where it has one beside its settings

    def folder(self, variable: str, *below: str) -> Path:
        """Return the folder that a variable names, as agents let theirs be moved; else the one below the user's own."""
        named = self.environ.get(variable, "")
        return Path(named) if os.path.isabs(named) else self.user.joinpath(*below)

    def command(self, agent: str, event: str) -> str:
        """Return the command of an agent's hook; where our home was removed, it does nothing, without an error."""
        hook = shlex.quote(str(self.hook))
        return f"[ ! -x {hook} ] || exec {hook} --host {agent} {event}"


@dataclass(frozen=True)
class Entry:
    """A value in a JSON file of the user's: set at *keys*, or appended to the list there."""

    file: Path
    keys: tuple[str, ...]
    value: Any
    append: bool = False
    default: bool = False  # only where there is no value yet; an existing one stays


class Block(NamedTuple):
    """Lines at the end of a text file of the user's."""

    file: Path
    text: str


class OwnedFile(NamedTuple):
    """A whole file that is ours alone."""

    file: Path
    text: str


@dataclass(frozen=True)
class AgentResidue:
    """What an agent writes by itself because of us: never written by us, and removed with all the rest.

    An entry at *keys* in a JSON file of the agent's own; without keys, a whole file or folder.
    """

    file: Path
    keys: tuple[str, ...] = ()


Change = Entry | Block | OwnedFile | AgentResidue


class Setup(NamedTuple):
    """How an agent is found on a machine, and what install writes for it."""

    binary: str  # what it is called on the PATH
    folder: Path  # where it keeps its settings: it is there when the agent was ever used
    changes: tuple[Change, ...]  # done in this order, and undone last first
    after: tuple[str, ...] = ()  # what only the user can do then, a sentence each
    # Its own settings that keep every hook from running: in which file, under which name, with which value.
    switches: tuple[tuple[str, str, bool], ...] = ()
    transcripts: tuple[str, ...] = ()  # patterns below `folder` of the files that it writes while it works


def json_file(item: Any) -> str:
    """Return a whole file of JSON, as a person would write it."""
    return json.dumps(item, indent=2, ensure_ascii=False) + "\n"


def json_string(text: str) -> str:
    """Return a text in quotes, as JSON, JavaScript and TOML read it alike."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_asset(name: str) -> str:
    """Return a text that lies beside the adapters in the package."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")

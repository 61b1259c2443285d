"""Decide whether a project is captured and gets context, by settings and by a file of its own that may opt out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from foreword.errors import BadRequest
from foreword.models import Project

FILE = ".foreword-off"  # in a project's root
BOTH = ("capture", "inject")
LISTS = ("off_projects", "read_only_projects", "silent_projects")
CHOICES = (*BOTH, *LISTS)  # settings that decide here
MOST = 4096  # bytes of that file; two words are all it can hold
HINTS = {
    **{name: f"foreword config set {name} on" for name in BOTH},
    **{name: f"foreword project on; where a folder is named: foreword config unset {name}" for name in LISTS},
    FILE: f"the repository asks for it: remove {FILE} from its root, if it is yours to remove",
}


class Policy(NamedTuple):
    """What is switched off in a project, each with the switch that does it; empty where it is on."""

    capture: str = ""
    inject: str = ""
    write: str = ""  # not even explicit requests: a project's own switch, not the setting `capture`


def off(project: Project | None, choices: Mapping[str, Any]) -> Policy:
    """Return what the user's *choices* and the project's own file switch off; every path checks this first."""
    write = inject = ""
    if project is not None:
        both, read_only, silent = (name if listed(project, choices[name]) else "" for name in LISTS)
        words = opted_out(project.root)
        write = both or read_only or (FILE if "capture" in words else "")
        inject = both or silent or (FILE if "inject" in words else "")
    return Policy(
        capture=write or ("" if choices["capture"] else "capture"),
        inject=inject or ("" if choices["inject"] else "inject"),
        write=write,
    )


def chosen(settings: object) -> dict[str, Any]:
    """Return the settings that decide here, by name; the hook carries them along."""
    return {name: getattr(settings, name) for name in CHOICES}


def listed(project: Project, entries: Sequence[str]) -> bool:
    """Tell whether a list of folders and keys names this project: its key, or a folder that holds its root."""
    return any(
        each == project.key or (each and f"{project.root}/".startswith(f"{each.rstrip('/')}/")) for each in entries
    )


def opted_out(root: str) -> tuple[str, ...]:
    """Return what a project's own file switches off; both where it cannot be read or understood."""
    path = f"{root.rstrip('/')}/{FILE}"
    if not os.path.lexists(path):
        return ()  # the ordinary case, for the price of one system call
    try:
        # Not to wait for ever where somebody put a pipe.
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            content = file.read(MOST + 1) or b""
    except OSError:
        return BOTH
    lines = {line.strip() for line in content.split(b"\n")} - {b""}
    understood = lines and len(content) <= MOST and lines <= {b"capture", b"inject"}
    return tuple(word for word in BOTH if word.encode() in lines) if understood else BOTH


def findings(off: Policy, project: Project) -> Iterator[tuple[str, str]]:
    """Yield what a project's own switches turn off, each with a hint; nothing where all is on."""
    name, write = project.name or project.key, off.write
    inject = off.inject if off.inject != "inject" else ""
    if write and write == inject:
        yield f"{name} is off ({write}): nothing is captured or injected here", HINTS[write]
        return
    if write:
        yield f"{name} is read-only ({write}): nothing is captured here", HINTS[write]
    if inject:
        yield f"{name} is silent ({inject}): no context is injected here", HINTS[inject]


def refuse_to_write(off: Policy, project: Project) -> None:
    """Raise BadRequest where nothing may be kept of a project, whoever asks."""
    if off.write:
        how = "switched off" if off.write == off.inject else "read-only"
        message = f"{project.name or project.key} is {how} ({off.write}): nothing is kept here"
        raise BadRequest(message, hint=HINTS[off.write])

"""Decide whether a project is captured and gets context, by settings and by a file of its own that opts out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from foreword.errors import BadRequest
from foreword.models import Project

FILE = ".foreword-off"  # in a project's root: switches both off, whatever it holds
BOTH = ("capture", "inject")
LISTS = ("off_projects", "read_only_projects", "silent_projects")
CHOICES = (*BOTH, *LISTS)  # settings that decide here
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
        by_file = FILE if os.path.lexists(f"{project.root.rstrip('/')}/{FILE}") else ""
        write, inject = both or read_only or by_file, both or silent or by_file
    return Policy(
        capture=write or ("" if choices["capture"] else "capture"),
        inject=inject or ("" if choices["inject"] else "inject"),
        write=write,
    )


def chosen(settings: object) -> dict[str, Any]:
    """Return the settings that decide here, by name; the hook carries them along."""
    return {name: getattr(settings, name) for name in CHOICES}


def listed(project: Project, entries: Sequence[str]) -> bool:
    """Return whether a list of folders and keys names this project: its key, or a folder that holds its root."""
    folder = f"{project.root}/"
    return any(each == project.key or (each and folder.startswith(f"{each.rstrip('/')}/")) for each in entries)


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
        message = f"{project.name or project.key} is {how} ({off.write}): nothing is stored here"
        raise BadRequest(message, hint=HINTS[off.write])

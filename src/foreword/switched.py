"""What is switched off in a project -> sentences for people: what is not done there, by what, and the way out."""

from __future__ import annotations

from collections.abc import Iterator

from foreword.errors import BadRequest
from foreword.switches import FILE, Off
from foreword.types import Project

WAYS = {
    "capture": "foreword config set capture on",
    "inject": "foreword config set inject on",
    "off_projects": "foreword project on; where a folder is named: foreword config get off_projects",
    "read_only_projects": "foreword project on; where a folder is named: foreword config get read_only_projects",
    "silent_projects": "foreword project on; where a folder is named: foreword config get silent_projects",
    FILE: f"it is the repository's own wish: remove {FILE} from its root, if it is yours to remove",
}


def findings(off: Off, project: Project) -> Iterator[tuple[str, str]]:
    """What a project's own switches keep from being done, each with the way out; nothing where all is done."""
    own = {"capture": off.write, "inject": off.inject if off.inject != "inject" else ""}
    if own["capture"] and own["capture"] == own["inject"]:
        yield f"{_name(project)} is off ({own['capture']}): nothing is kept or told here", WAYS[own["capture"]]
        return
    if own["capture"]:
        yield f"{_name(project)} is read-only ({own['capture']}): nothing is kept here", WAYS[own["capture"]]
    if own["inject"]:
        yield f"{_name(project)} is silent ({own['inject']}): agents are told nothing here", WAYS[own["inject"]]


def refuse_to_write(off: Off, project: Project) -> None:
    """BadRequest where nothing may be kept of a project, whoever asks."""
    if off.write:
        how = "switched off" if off.write == off.inject else "read-only"
        raise BadRequest(f"{_name(project)} is {how} ({off.write}): nothing is kept here", hint=WAYS[off.write])


def _name(project: Project) -> str:
    return project.name or project.key

"""Load the recorded sessions of ../shared/bench/sessions as the product's own events and turns."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from foreword.extract.actions import Action, action_of
from foreword.extract.turns import Turn, turns_of
from foreword.payloads import Delivery
from foreword.remember import read
from foreword.types import Event, Project

SESSIONS = Path(__file__).parents[2].parent / "shared" / "bench" / "sessions"
ROOT, HOME = "/home/dev/project", "/home/dev"
TEXT_CAP = 64 * 1024


@dataclass(frozen=True)
class RecordedSession:
    """One session: its file's name, and its events in order."""

    name: str
    id: str
    project: Project
    events: tuple[Event, ...]

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        """What happened, the same for every agent."""
        return tuple(found for event in self.events if (found := action_of(event, root=ROOT)))

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """The actions, grouped by prompt."""
        return turns_of(self.actions)


def load_sessions(name: str, *, folder: Path = SESSIONS) -> list[RecordedSession]:
    """Return the sessions of one project, in the order of their files."""
    project = Project(key=f"bench/{name}", name=name, root=ROOT)
    return [_load(path, project) for path in sorted((folder / name).glob("[0-9][0-9][0-9]-*.jsonl*"))]


def projects(folder: Path = SESSIONS) -> Sequence[str]:
    """Return the names of the recorded projects; none where ../shared is not there."""
    return sorted(path.name for path in folder.iterdir() if (path / "gold.json").exists()) if folder.is_dir() else []


def _load(path: Path, project: Project) -> RecordedSession:
    events = []
    for number, (name, at, payload) in enumerate(_lines(path)):
        delivery = Delivery("claude-code", name, at, payload)
        told = read(delivery, text_cap=TEXT_CAP, find_project=lambda _: project)
        if told.wanted:
            events.append(_numbered(told.event, number))
    return RecordedSession(path.name.split(".")[0], events[0].session if events else "", project, tuple(events))


def _numbered(event: Event, number: int) -> Event:
    from dataclasses import replace

    return replace(event, number=number)


def _lines(path: Path) -> Iterator[tuple[str, float, bytes]]:
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text("utf-8")
    text = text.replace("@PROJECT@", ROOT).replace("@HOME@", HOME)
    for line in text.splitlines():
        event = json.loads(line)
        yield event["event"], event["at"], json.dumps(event["payload"]).encode()

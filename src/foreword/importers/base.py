"""Define what an importer is, find one by name, and clean what it reads. The worker stores the batches.

An importer reads oldest first, so that newer memories have later places. A memory has the same uid at every reading, so
that importing twice changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, TypeVar

from foreword.capture.parse import project_at
from foreword.encoding import storable
from foreword.errors import BadRequest, ForewordError
from foreword.models import EMPTY, Change, Event, Link, Memory, Project, Session
from foreword.policy import off, refuse_to_write
from foreword.redact import redact, redact_all

Row = TypeVar("Row", Change, Session, Event, Link)

# Each source with the module and the class that read it.
SOURCES = {
    "git": ("git", "Git"),
    "files": ("files", "Files"),
    "claude-code": ("transcripts", "Transcripts"),
    "codex": ("transcripts", "Transcripts"),
    "claude-mem": ("claude_mem", "ClaudeMem"),
    "open-mem": ("claude_mem", "OpenMem"),
    "jsonl": ("jsonl", "Jsonl"),
}
OFFERED = ("files", "git", "claude-code", "codex", "claude-mem", "open-mem")  # by `init`, the quickest first
OPT_IN = ("claude-mem", "open-mem")  # other tools' stores: shown, and imported only where the user names them

MOST_TITLE = 1_000  # characters; a commit may have a subject of a megabyte
MOST_BODY = 20_000  # characters of an imported body; past that a memory is a document
# Variables that importers look at.
ENVIRON = ("HOME", "FOREWORD_OFF", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "CLAUDE_MEM_DATA_DIR")


@dataclass(frozen=True)
class Offer:
    """What a source has for a project, in a line for people: `2,431 commits`, `14 sessions of Claude Code`."""

    source: str
    about: str
    count: int


@dataclass(frozen=True)
class Batch:
    """What was read in one go; its checkpoint is stored with the last of it.

    Ends of links, and `superseded_by`, may be uids. Texts need not be redacted yet.
    """

    memories: tuple[Memory, ...] = ()
    links: tuple[Link, ...] = ()
    changes: tuple[Change, ...] = ()
    session: Session | None = None
    checkpoint: str = ""  # the next reading begins from it
    done: int = 0  # of `total`, so far
    total: int = 0  # 0 where nobody knows
    events: tuple[Event, ...] = ()
    problems: tuple[str, ...] = ()  # what could not be read, each a sentence with its place
    only_newer: bool = False  # a known memory stays as it is, unless this one was confirmed later


class Source:
    """One source of memories; *project_of* finds the project of a folder."""

    def __init__(
        self, name: str, options: Mapping[str, Any] = EMPTY, project_of: Callable[[str], Project] = project_at
    ) -> None:
        self.name, self.options = name, options
        self._project_of = project_of

    def offer(self, project: Project, *, environ: Mapping[str, str]) -> Offer | None:
        """Say what there is without reading all of it; None where there is nothing."""
        raise NotImplementedError

    def read(self, project: Project, *, environ: Mapping[str, str], checkpoint: str) -> Iterator[Batch]:
        """Read what is new since *checkpoint* (empty: everything), oldest first, a few hundred rows at a time.

        The new checkpoint comes with the last batch: an import that was interrupted reads from the top again, and
        leaves alone what it knows.
        """
        raise NotImplementedError

    def key_of(self, folder: str) -> str:
        """Return the key of a folder's project; empty where the folder can be none's."""
        try:
            return self._project_of(folder).key
        except BadRequest:
            return ""


def find(name: str, options: Mapping[str, Any] = EMPTY, *, project_of: Callable[[str], Project] = project_at) -> Source:
    """Return the source of that name with its *options*; BadRequest where there is none."""
    if name not in SOURCES:
        raise BadRequest(f"unknown source {name!r}", hint=f"one of {', '.join(SOURCES)}")
    module, kind = SOURCES[name]
    source: Source = getattr(import_module(f"foreword.importers.{module}"), kind)(name, options, project_of)
    return source


def offers(project: Project, *, environ: Mapping[str, str]) -> tuple[Offer, ...]:
    """Return what `init` can import here; a source that cannot be read offers nothing."""
    found = []
    for name in OFFERED:
        with suppress(ForewordError, OSError):
            found.append(find(name).offer(project, environ=environ))
    return tuple(each for each in found if each is not None)


def refuse_where_off(project: Project, *, choices: Mapping[str, Any], environ: Mapping[str, str]) -> None:
    """Raise BadRequest where the user or the repository switched capture off: an import is no way around that."""
    if environ.get("FOREWORD_OFF", "") not in ("", "0"):
        raise BadRequest("FOREWORD_OFF is set: nothing is imported", hint="unset FOREWORD_OFF")
    if not choices["capture"]:
        raise BadRequest("capture is switched off: nothing is imported", hint="`foreword config set capture on`")
    refuse_to_write(off(project, choices), project)


def safe(memory: Memory) -> Memory:
    """Return the memory with every text redacted, storable, and of a bounded size."""
    lists = {name: list(getattr(memory, name)) for name in ("tags", "files", "functions")}
    clean = redact_all({"title": memory.title, "body": memory.body, "detail": dict(memory.detail), **lists})
    clean_lists: dict[str, Any] = {name: tuple(storable(each) for each in clean[name]) for name in lists}
    body = storable(clean["body"])
    return replace(
        memory,
        title=storable(clean["title"])[:MOST_TITLE],
        body=body if len(body) <= MOST_BODY else f"{body[:MOST_BODY]} […]",
        detail=json.loads(json.dumps(clean["detail"], default=str)),  # as it will be loaded, so that equal is equal
        uid=redact(storable(memory.uid)),
        session=redact(storable(memory.session)),
        source=redact(storable(memory.source)),
        **clean_lists,
    )


def safe_row(row: Row) -> Row:
    """Return a change, a session, an event or a link with every text redacted and storable."""
    clean: dict[str, Any] = redact_all(vars(row))
    texts: dict[str, Any] = {name: storable(each) for name, each in clean.items() if isinstance(each, str)}
    return replace(row, **{**clean, **texts})


def timestamp(value: Any, *, default: float = 0.0) -> float:
    """Return seconds from milliseconds, seconds or an ISO date; *default* where it is none of them."""
    try:
        if isinstance(value, str) and not value.isdigit():
            date = datetime.fromisoformat(value)
            return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return default
    return number / 1000 if number > 1e11 else max(0.0, number)


def plural(count: int, noun: str) -> str:
    """Return `1 session`, `2 sessions`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"

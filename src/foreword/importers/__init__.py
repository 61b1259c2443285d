"""Import what this machine already holds: git history, project files, transcripts, exports and other tools' stores.

An importer reads everything from the beginning, oldest first, so that newer memories have later places. A memory has
the same uid at every reading, so that importing twice changes nothing. The worker stores the batches.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, TypeVar

from foreword.capture.parse import project_at
from foreword.encoding import storable
from foreword.errors import BadRequest, ForewordError
from foreword.models import Change, Link, Memory, Project, Session
from foreword.policy import off, refuse_to_write
from foreword.redact import redact_all

Row = TypeVar("Row", Memory, Change, Session, Link)

# Each source with the module and the class that read it; those that `init` offers first, the quickest at the top.
SOURCES = {
    "files": ("files", "Files"),
    "git": ("git", "Git"),
    "claude-code": ("transcripts", "Transcripts"),
    "codex": ("transcripts", "Transcripts"),
    "claude-mem": ("claude_mem", "ClaudeMem"),
    "open-mem": ("claude_mem", "OpenMem"),
    "jsonl": ("jsonl", "Jsonl"),
}
OPT_IN = ("claude-mem", "open-mem")  # other tools' stores: shown, and imported only where the user names them
MOST_TITLE = 1_000  # characters; a commit may have a subject of a megabyte
MOST_BODY = 20_000  # characters of an imported body; past that a memory is a document
# Variables that importers look at.
ENVIRON = ("HOME", "FOREWORD_OFF", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "CLAUDE_MEM_DATA_DIR")


@dataclass(frozen=True)
class Batch:
    """What was read in one go. Ends of links, and `superseded_by`, may be uids; texts need not be redacted yet."""

    memories: tuple[Memory, ...] = ()
    links: tuple[Link, ...] = ()
    changes: tuple[Change, ...] = ()
    session: Session | None = None
    done: int = 0  # of `total`, so far
    total: int = 0  # 0 where nobody knows
    problems: tuple[str, ...] = ()  # what could not be read, each a sentence with its place
    only_newer: bool = False  # a known memory stays as it is, unless this one was confirmed later


@dataclass(frozen=True)
class Source:
    """One source of memories; *environ* says where other programs keep their files, *project_of* whose a folder is."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    project_of: Callable[[str], Project] = project_at

    def offer(self, project: Project) -> str:
        """Say for people what there is, without reading all of it: `2,431 commits`; empty where there is nothing."""
        raise NotImplementedError

    def read(self, project: Project) -> Iterator[Batch]:
        """Read everything, oldest first, a few hundred rows at a time."""
        raise NotImplementedError

    def key_of(self, folder: str) -> str:
        """Return the key of a folder's project; empty where the folder can be none's."""
        try:
            return self.project_of(folder).key
        except BadRequest:
            return ""


def find(name: str, *more: Any, **named: Any) -> Source:
    """Return the source of that name, made with the other fields of `Source`; BadRequest where there is none."""
    if name not in SOURCES:
        raise BadRequest(f"unknown source {name!r}", hint=f"one of {', '.join(SOURCES)}")
    module, kind = SOURCES[name]
    source: Source = getattr(import_module(f"foreword.importers.{module}"), kind)(name, *more, **named)
    return source


def offers(project: Project, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what `init` can import here, by source; one that cannot be read offers nothing."""
    found = {}
    for name in SOURCES:
        with suppress(ForewordError, OSError):
            found[name] = find(name, environ=environ).offer(project)
    return {name: about for name, about in found.items() if about}


def refuse_where_off(project: Project, *, choices: Mapping[str, Any], environ: Mapping[str, str]) -> None:
    """Raise BadRequest where the user or the repository switched capture off: an import is no way around that."""
    if environ.get("FOREWORD_OFF", "") not in ("", "0"):
        raise BadRequest("FOREWORD_OFF is set: nothing is imported", hint="unset FOREWORD_OFF")
    if not choices["capture"]:
        raise BadRequest("capture is switched off: nothing is imported", hint="`foreword config set capture on`")
    refuse_to_write(off(project, choices), project)


def safe(row: Row) -> Row:
    """Return a row with every text redacted and storable; a memory's title and body of a bounded size."""
    values = vars(row) | ({"detail": dict(row.detail)} if isinstance(row, Memory) else {})
    text = json.dumps(redact_all(values), ensure_ascii=False, default=str)
    clean: dict[str, Any] = json.loads(storable(text))  # as it will be loaded from the store
    clean |= {name: tuple(each) for name, each in clean.items() if isinstance(each, list)}
    if isinstance(row, Memory):
        body = clean["body"]
        clean["title"] = clean["title"][:MOST_TITLE]
        clean["body"] = body if len(body) <= MOST_BODY else f"{body[:MOST_BODY]} […]"
    return replace(row, **clean)


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

"""Define what an importer is, find one by name, and clean what it reads. The worker stores the batches.

An importer reads newest first and gives each memory a uid that is the same at every reading, so that importing twice
changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Protocol, TypeVar

from foreword.capture.parse import project_at
from foreword.encoding import storable
from foreword.errors import BadRequest, ForewordError
from foreword.models import EMPTY, Change, Event, Link, Memory, Project, Session
from foreword.policy import off, refuse_to_write
from foreword.redact import redact, redact_all

Row = TypeVar("Row", Change, Session, Event, Link)

# Each source with its module, whose `source(name, options, resolver)` makes the importer.
MODULES = {
    "git": "git",
    "files": "files",
    "claude-code": "transcripts",
    "codex": "transcripts",
    "claude-mem": "claude_mem",
    "open-mem": "open_mem",
    "jsonl": "jsonl",
}
TRANSCRIPTS = tuple(name for name, module in MODULES.items() if module == "transcripts")
OFFERED = ("files", "git", "claude-code", "codex", "claude-mem", "open-mem")  # by `init`, the quickest first
OPT_IN = ("claude-mem", "open-mem")  # other tools' stores: shown, and imported only where the user names them

MOST_TITLE = 1_000  # characters; a commit may have a subject of a megabyte
MOST_BODY = 20_000  # characters of an imported body; past that a memory is a document
ENVIRON = (
    "HOME",
    "FOREWORD_OFF",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "CLAUDE_MEM_DATA_DIR",
    "XDG_DATA_HOME",
    "XDG_CONFIG_HOME",
)  # variables that importers look at


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
    sequence: str = ""  # the name of a history that is read from its newest end over many batches
    remaining: int = 0  # older ones of it still to come: places are kept free for them, so that newer stays newer
    only_newer: bool = False  # a known memory stays as it is, unless this one was confirmed later


class Source(Protocol):
    """One source of memories."""

    name: str

    def offer(self, project: Project, *, environ: Mapping[str, str]) -> Offer | None:
        """Say what there is without reading all of it; None where there is nothing."""

    def read(self, project: Project, *, environ: Mapping[str, str], checkpoint: str) -> Iterator[Batch]:
        """Read what is new since *checkpoint* (empty: everything), newest first, a few hundred rows at a time."""


class Resolver(Protocol):
    """Find the project of a folder, and the key that a key is an alias of."""

    def at(self, folder: str) -> Project: ...

    def key(self, key: str) -> str: ...


class ByFiles:
    """Resolve projects by their files alone, without the aliases that the worker knows."""

    def at(self, folder: str) -> Project:
        return project_at(folder)

    def key(self, key: str) -> str:
        return key


def find(name: str, options: Mapping[str, Any] = EMPTY, *, resolver: Resolver | None = None) -> Source:
    """Return the source of that name with its *options*; BadRequest where there is none."""
    if name not in MODULES:
        raise BadRequest(f"unknown source {name!r}", hint=f"one of {', '.join(MODULES)}")
    module = import_module(f"foreword.importers.{MODULES[name]}")
    source: Source = module.source(name, options, resolver or ByFiles())
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


# ---- checkpoints of sources that read from the newest to the oldest


class Keyed(Protocol):
    """Something with a place in time; keys sort as texts, the newest last."""

    @property
    def key(self) -> str: ...


T = TypeVar("T", bound=Keyed)
Spans = tuple[tuple[str, str], ...]  # the oldest and the newest key of each stretch that is done


def pending(items: Iterable[T], *, checkpoint: str) -> list[T]:
    """Return the items that *checkpoint* does not cover, newest first."""
    done = _spans(checkpoint)
    rest = (each for each in items if not any(low <= each.key <= high for low, high in done))
    return sorted(rest, key=lambda each: each.key, reverse=True)


def with_checkpoints(todo: Sequence[T], *, checkpoint: str) -> Iterator[tuple[T, str]]:
    """Yield each pending item with the checkpoint that covers it and all newer ones."""
    done = _spans(checkpoint)
    for each in todo:
        # A new stretch takes in those that it reaches; once everything is done, one stretch is left.
        reached = [span for span in done if each is todo[-1] or span[1] >= each.key]
        low = min([each.key, *(span[0] for span in reached)])
        high = max([todo[0].key, *(span[1] for span in reached)])
        kept = [span for span in done if span not in reached]
        yield each, json.dumps([(low, high), *kept], separators=(",", ":"))


def _spans(checkpoint: str) -> Spans:
    try:
        return tuple((str(low), str(high)) for low, high in json.loads(checkpoint or "[]"))
    except (ValueError, TypeError):  # of another version: read everything again, which changes nothing
        return ()

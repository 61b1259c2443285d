"""What lies on this machine already -> batches of memories, newest first. One source a file; the worker keeps them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Protocol, TypeVar

from foreword.capture.parse import project_at
from foreword.encoding import storable
from foreword.errors import BadRequest, ForewordError
from foreword.models import EMPTY, Change, Event, Link, Memory, Project, Session
from foreword.policy import off, refuse_to_write
from foreword.redact import redact, redact_all

T = TypeVar("T", Change, Session, Event, Link)

# Each source with the file that has it; that file's `source(name, options, resolver)` gives it.
FILES = {
    "git": "git",
    "files": "files",
    "claude-code": "transcripts",
    "codex": "transcripts",
    "claude-mem": "claude_mem",
    "open-mem": "open_mem",
    "jsonl": "jsonl",
}
TRANSCRIPTS = tuple(name for name, file in FILES.items() if file == "transcripts")  # agents whose own files we read
OFFERED = ("files", "git", "claude-code", "codex", "claude-mem", "open-mem")  # by `init`, the quickest first
ASKED = ("claude-mem", "open-mem")  # other tools' stores: shown, and taken only where somebody says yes to them

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
)  # where sources look


@dataclass(frozen=True)
class Found:
    """What a source offers in a project, in a line for people: `2,431 commits`, `14 sessions of Claude Code`."""

    source: str
    about: str
    count: int


@dataclass(frozen=True)
class Batch:
    """What was read in one go; the mark from which to go on is kept with the last of it.

    Ends of links, and `superseded_by`, may be uids. Texts need not be redacted yet.
    """

    memories: tuple[Memory, ...] = ()
    links: tuple[Link, ...] = ()
    changes: tuple[Change, ...] = ()
    session: Session | None = None
    mark: str = ""  # given back to `read` as *since_mark*
    done: int = 0  # of `total`, so far
    total: int = 0  # 0 where nobody knows
    events: tuple[Event, ...] = ()
    problems: tuple[str, ...] = ()  # what could not be read, each a sentence with its place
    row: str = ""  # the name of a row in time that is read from its newest end over many batches
    left: int = 0  # older ones of that row still to come: places are kept free for them, so that newer stays newer
    gentle: bool = False  # what is known already stays as it is, unless this was confirmed later


class Source(Protocol):
    """Something that memories can be read from. Its memories have uids that are the same at every reading."""

    name: str

    def look(self, project: Project, *, environ: Mapping[str, str]) -> Found | None:
        """What there is, without reading all of it; None where there is nothing."""

    def read(self, project: Project, *, environ: Mapping[str, str], since_mark: str) -> Iterator[Batch]:
        """What is new since *since_mark* (empty: everything), newest first, in batches of a few hundred rows."""


class Resolver(Protocol):
    """Tells whose a folder or a key is."""

    def at(self, folder: str) -> Project:
        """The project of a folder."""

    def key(self, key: str) -> str:
        """The key that this one counts as."""


class ByFiles:
    """Whose a folder is by its files alone, without what the worker knows of aliases."""

    def at(self, folder: str) -> Project:
        return project_at(folder)

    def key(self, key: str) -> str:
        return key


def find(name: str, options: Mapping[str, Any] = EMPTY, *, resolver: Resolver | None = None) -> Source:
    """The source of that name with its *options*; BadRequest where there is none."""
    if name not in FILES:
        raise BadRequest(f"unknown source {name!r}", hint=f"one of {', '.join(known())}")
    try:
        module = import_module(f"foreword.importers.{FILES[name]}")
    except ModuleNotFoundError as exc:
        if exc.name != f"foreword.importers.{FILES[name]}":
            raise
        raise BadRequest(f"{name} cannot be imported yet", hint=f"one of {', '.join(known())}") from exc
    source: Source = module.source(name, options, resolver or ByFiles())
    return source


def known() -> tuple[str, ...]:
    """The sources that this version has."""
    from importlib.util import find_spec

    return tuple(name for name, file in FILES.items() if find_spec(f"foreword.importers.{file}"))


def offers(project: Project, *, environ: Mapping[str, str]) -> tuple[Found, ...]:
    """What `init` can take here; a source that cannot be looked at offers nothing."""
    found = []
    for name in OFFERED:
        if name in known():
            with suppress(ForewordError, OSError):
                found.append(find(name).look(project, environ=environ))
    return tuple(each for each in found if each is not None)


def refuse_where_off(project: Project, *, choices: Mapping[str, Any], environ: Mapping[str, str]) -> None:
    """BadRequest where the user or the repository lets nothing be kept: imports are no way around that."""
    if environ.get("FOREWORD_OFF", "") not in ("", "0"):
        raise BadRequest("FOREWORD_OFF is set: nothing is imported", hint="unset FOREWORD_OFF")
    if not choices["capture"]:
        raise BadRequest("capture is switched off: nothing is imported", hint="`foreword config set capture on`")
    refuse_to_write(off(project, choices), project)


def safe(memory: Memory) -> Memory:
    """A memory that may be written down: every text of it redacted, storable, and of a bounded size."""
    texts = {name: getattr(memory, name) for name in ("title", "body", "detail")}
    lists = {name: list(getattr(memory, name)) for name in ("tags", "files", "functions")}
    clean = redact_all({**texts, **lists, "detail": dict(memory.detail)})
    clean_lists: dict[str, Any] = {name: tuple(storable(each) for each in clean[name]) for name in lists}
    body = storable(clean["body"])
    return replace(
        memory,
        title=storable(clean["title"])[:MOST_TITLE],
        body=body if len(body) <= MOST_BODY else f"{body[:MOST_BODY]} […]",
        detail=json.loads(json.dumps(clean["detail"], default=str)),  # as it will be read: equal is equal
        uid=redact(storable(memory.uid)),
        session=redact(storable(memory.session)),
        source=redact(storable(memory.source)),
        **clean_lists,
    )


def safe_row(item: T) -> T:
    """A change, a session or an event that may be written down: every text of it redacted."""
    clean: dict[str, Any] = redact_all(vars(item))
    texts: dict[str, Any] = {name: storable(each) for name, each in clean.items() if isinstance(each, str)}
    return replace(item, **{**clean, **texts})

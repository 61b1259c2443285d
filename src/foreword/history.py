"""A repository -> one memory per commit, and its changed files; a project without history -> a small story instead."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from foreword import git, projects
from foreword.errors import BadRequest
from foreword.types import Memory, Project

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = 40  # names kept of one commit; a rename of everything says no more with its thousandth
PATIENCE = git.PATIENCE

# Fields end with NUL, which no message and no name can hold. A record begins with a slash, which no name in git does.
FORMAT = "tformat:/%H%x00%at%x00%an%x00%s%x00%b%x00"

GIT_LOG = (
    *git.SAFELY,
    "-c", "diff.relative=false",
    "-c", "log.showRoot=true",
    "log",
    "-z", "--name-only", f"--format={FORMAT}",
    "--no-merges", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv", "--no-show-signature",
    "--encoding=UTF-8",
)  # fmt: skip

GIT_STATUS = (
    *git.SAFELY,
    "status",
    "-z", "--porcelain=v1", "--no-renames", "--untracked-files=normal", "--ignore-submodules=all",
)  # fmt: skip
CHANGED = 2000  # changed files whose times are asked for; more are a checkout gone wrong, not somebody's work

NO_WORK_TREE = ("not a git repository", "must be run in a work tree")

# Not every `Word: …`, and not BREAKING-CHANGE: a body may well end with `Note: …` or `Follow-up: …` in its own right.
TRAILER = re.compile(
    r"([a-z]+-)+(by|ids?|on|to|of|bug|issue|position|revision|request|session|status|branch|commit|url|link):\s"
    r"|(fix(es)?|close[sd]?|resolves|refs?|see|bug|issue|link|pr):\s*(#?\d|https?:|[a-z]+-\d|[0-9a-f]{7})"
    r"|\(cherry picked from commit [0-9a-f]+\)$"
    r"|\W*generated with \[?(claude code|codex|opencode)\b",
    re.IGNORECASE,
)
# Wherever it stands: people write trailers in the middle of a body, or forget the empty line after the subject.
PERSON = re.compile(
    r"(^|(?<!\s)\s++)(([a-z]+-)+by|(reply-)?to|cc):[^<\n]{0,200}<[^>\n@]{0,200}@[^>\n]{0,200}>",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True)
class Commit:
    """What `git log` tells of one commit, names cut to FILES and counted."""

    hash: str
    at: float
    author: str
    subject: str
    body: str
    files: tuple[str, ...]
    count: int


def commits(folder: str, *, limit: int = 500) -> Iterator[Memory]:
    """The newest *limit* commits of the repository around *folder*, newest first; the same commit is the same uid.

    BadRequest comes with the first step where there is no repository or no git.
    """
    project = projects.resolve(folder)
    for commit in log(project.root, limit=limit):
        yield memory_of(commit, project=project)


def log(folder: str, *revisions: str, limit: int, skip: int = 0) -> Iterator[Commit]:
    """What git tells of the commits of *revisions* (HEAD, where none are named), newest first, without merges."""
    if limit > 0:
        words = (*GIT_LOG, f"--max-count={limit}", f"--skip={skip}", *revisions, "--")
        with git.output(folder, words, patience=PATIENCE) as pieces:
            yield from _records(pieces)


def counted(folder: str, *revisions: str, limit: int, patience: float = PATIENCE) -> int:
    """How many commits `log` would tell of; 0 where there is no repository, no commit or no git."""
    words = ("rev-list", "--count", "--no-merges", f"--max-count={limit}", *(revisions or ("HEAD",)), "--")
    told = asked(folder, *words, patience=patience).strip()
    return int(told) if told.isdigit() else 0


def asked(folder: str, *words: str, patience: float = 5.0) -> str:
    """What git answers in a line or two; nothing where it fails or takes longer than *patience* seconds."""
    try:
        ended = subprocess.run(  # noqa: S603 - no shell, and the folder is absolute
            ["git", "-C", folder, *git.SAFELY, *words],  # noqa: S607
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=patience,
            env=git.environment(),
        )
    except (subprocess.SubprocessError, OSError, ValueError):
        return ""
    return git.text(ended.stdout)


def changed(folder: str, *, patience: float = 2.0) -> dict[str, float]:
    """The files that differ from the last commit, and new ones, by when each was written; nothing outside of git.

    A git that fails or takes longer than *patience* seconds is a BadRequest.
    """
    if not os.path.lexists(os.path.join(folder, ".git")):
        return {}
    command = ["git", "-C", folder, *GIT_STATUS]
    try:
        ended = subprocess.run(  # noqa: S603 - no shell, and the folder is absolute
            command,
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=patience,
            # Half a repository must not lead to one around it.
            env=git.environment() | {"GIT_CEILING_DIRECTORIES": os.path.dirname(folder)},
        )
    except subprocess.TimeoutExpired as exc:
        raise BadRequest(
            f"`git status` in {folder!r} takes longer than {patience:g} seconds, so what is changed there is unknown",
            hint=f"try `git -C {folder!r} status`",
        ) from exc
    except (subprocess.CalledProcessError, OSError, ValueError) as exc:
        said = git.text(getattr(exc, "stderr", b"") or b"") or str(exc)
        if any(words in said for words in NO_WORK_TREE):
            return {}
        raise BadRequest(
            f"git cannot tell what is changed in {folder!r}: {said.strip()[-200:]}",
            hint=f"try `git -C {folder!r} status`",
        ) from exc
    # `XY name`; a folder of nothing but new files ends with a slash.
    names = [field[3:] for field in ended.stdout.split(b"\0")[:CHANGED] if field[3:] and not field.endswith(b"/")]
    return {git.text(name): _written(os.path.join(os.fsencode(folder), name)) for name in names}


def story(project: Project, *, now: float) -> tuple[Memory, ...]:
    """A few days of an imaginary service that rents out rehearsal rooms, as memories of *project*, newest first."""
    return tuple(
        replace(
            memory,
            uid=f"story:{project.key}:{name}",
            scope=project.scope,
            project=project.key,
            source="user" if memory.trust == "user" else "story",
            created=now - age,
            confirmed=now - age,
        )
        for name, age, memory in STORY
    )


# ---- git


def _written(path: bytes) -> float:
    """When a file was written; one that is gone, never."""
    try:
        return os.lstat(path).st_mtime
    except (OSError, ValueError):
        return 0.0


def _records(pieces: Iterator[bytes]) -> Iterator[Commit]:
    fields = git.fields(pieces)
    head = next(fields, b"")
    while head:
        at, author, subject, body = (next(fields, b"") for _ in range(4))
        names: list[str] = []
        count, following = 0, b""
        for field in fields:
            if field.startswith(b"/"):
                following = field
                break
            if field:  # an empty one ends a message
                # git puts a line break between a message and its first name.
                name = field if count else field.removeprefix(b"\n")
                count += 1
                names += [git.text(name)] if count <= FILES else []
        yield Commit(
            hash=git.text(head[1:]),
            at=git.seconds(at),
            author=git.text(author),
            subject=git.text(subject),
            body=git.text(body),
            files=tuple(names),
            count=count,
        )
        head = following


# ---- a commit as a memory


def memory_of(commit: Commit, *, project: Project) -> Memory:
    """A commit as an observation: its message without trailers, and its files."""
    return Memory(
        kind="observation",
        title=PERSON.sub("", commit.subject) or _title(commit),
        body=_without_trailers(commit.body),
        uid=f"git:{project.key}:{commit.hash}",
        scope=project.scope,
        project=project.key,
        files=commit.files,
        source="git",
        trust="imported",
        created=commit.at,
        confirmed=commit.at,
        detail={"commit": commit.hash, "files": commit.count},
    )


def _title(commit: Commit) -> str:
    if not commit.files:
        return f"Commit {commit.hash[:10]} without a message"
    more = f" and {commit.count - 1} more" if commit.count > 1 else ""
    return f"Changed {commit.files[0]}{more}"


def _without_trailers(body: str) -> str:
    """The message's own words: no trailers at its end, and no line anywhere that names a person with an address."""
    lines = [line.rstrip() for line in PERSON.sub("", body).splitlines()]
    while lines:
        start = len(lines) - 1
        while start and lines[start][:1].isspace():  # a trailer may go on in indented lines
            start -= 1
        if lines[start] and not TRAILER.match(lines[start]):
            break
        del lines[start:]
    return "\n".join(lines).strip("\n")


# ---- the story

HOUR, DAY = 3600.0, 86400.0

# Name, age in seconds and content; the newest first. Each kind that a first look should show is here.
STORY: tuple[tuple[str, float, Memory], ...] = (
    (
        "handoff",
        5 * HOUR,
        Memory(
            kind="handoff",
            title="Waiting list works up to the mail; nothing is sent yet",
            body="offer_slot() picks the right person and holds the slot for 30 minutes. Nothing calls it yet.",
            files=("rooms/waiting.py", "rooms/bookings.py"),
            functions=("offer_slot", "cancel"),
            session="story-2",
            trust="agent",
            detail={
                "next": ["call offer_slot() from cancel()", "test two people who accept the same offer"],
                "blockers": ["the mail sandbox rejects our sender until the domain is verified"],
            },
        ),
    ),
    (
        "waiting-list",
        5 * HOUR,
        Memory(
            kind="summary",
            title="Added a waiting list for evenings that are full",
            tags=("waiting list", "bookings"),
            files=("rooms/waiting.py", "rooms/bookings.py", "tests/test_waiting.py"),
            functions=("offer_slot", "cancel"),
            session="story-2",
            trust="agent",
            detail={
                "request": "let bands queue for a full evening and offer them a slot that becomes free",
                "done": "table `waiting`, offer_slot() with a 30-minute hold, 7 tests",
                "learned": "a hold must count as taken in free_slots(), or the same hour is offered twice",
                "next": "send the offer by mail when a booking is cancelled",
            },
        ),
    ),
    (
        "offer-slot",
        5.5 * HOUR,
        Memory(
            kind="change",
            title="offer_slot() in rooms/waiting.py",
            files=("rooms/waiting.py",),
            functions=("offer_slot",),
            session="story-2",
            trust="tool",
            detail={
                "what": "NEW",
                "signature": "offer_slot(slot: Slot, *, now: datetime) -> Offer | None",
                "line": 41,
            },
        ),
    ),
    (
        "cancel",
        6 * HOUR,
        Memory(
            kind="change",
            title="cancel() in rooms/bookings.py",
            files=("rooms/bookings.py",),
            functions=("cancel",),
            session="story-2",
            trust="tool",
            detail={
                "what": "MODIFIED",
                "signature": "cancel(booking_id: int, *, by: Member) -> Slot",
                "line": 118,
            },
        ),
    ),
    (
        "opening-hours",
        1.2 * DAY,
        Memory(
            kind="summary",
            title="Moved opening hours out of the code into the database",
            tags=("opening hours", "admin"),
            files=("rooms/hours.py", "rooms/admin.py", "migrations/0007_hours.sql"),
            functions=("open_between",),
            session="story-1",
            trust="agent",
            detail={
                "request": "the owner wants to close on holidays without a deployment",
                "done": "table `hours` with exceptions by date, a form in /admin, open_between() reads both",
                "learned": "an exception without hours means closed, not unknown",
                "next": "show closed days in the calendar",
            },
        ),
    ),
    (
        "problem-json",
        2 * DAY,
        Memory(
            kind="correction",
            title="Errors of the API are problem+json, not plain text",
            body="Said when a new endpoint answered 409 with a bare sentence. rooms/errors.py has problem() for it.",
            files=("rooms/errors.py",),
            functions=("problem",),
            seen=2,
            trust="user",
            detail={"times": 2},
        ),
    ),
    (
        "double-booking",
        3 * DAY,
        Memory(
            kind="failure",
            title="UNIQUE constraint failed: bookings.room_id, bookings.starts_at",
            body="Two requests for one slot both saw it free; the second insert failed with a 500.",
            files=("rooms/bookings.py", "tests/test_bookings.py"),
            functions=("book",),
            session="story-1",
            seen=4,
            trust="tool",
            detail={
                "command": "pytest tests/test_bookings.py::test_two_at_once",
                "error": "sqlite3.IntegrityError: UNIQUE constraint failed: bookings.room_id, bookings.starts_at",
                "fixed_by": "book() inserts at once and answers 409 on the constraint, without asking free_slots()",
                "times": 4,
            },
        ),
    ),
    (
        "clocks-go-back",
        6 * DAY,
        Memory(
            kind="learning",
            title="Gotcha: 02:00 happens twice on the night the clocks go back",
            body="Local times cannot tell the two slots apart; starts_at in UTC can. test_slots.py has that night.",
            tags=("gotcha", "time zones"),
            files=("rooms/slots.py", "tests/test_slots.py"),
            confidence=0.8,
            seen=2,
            trust="agent",
        ),
    ),
    (
        "utc",
        9 * DAY,
        Memory(
            kind="decision",
            title="Slots are stored in UTC and shown in the venue's time zone",
            body="Only rooms/show.py converts. A venue has exactly one time zone.",
            tags=("time zones",),
            files=("rooms/slots.py", "rooms/show.py"),
            trust="user",
            detail={
                "why": "bands book across the change to summer time, and two venues lie in different zones",
                "alternatives": ["local time with an offset column", "the browser's time zone"],
            },
        ),
    ),
    (
        "whole-cents",
        12 * DAY,
        Memory(
            kind="preference",
            title="Prices are whole cents, never floats",
            files=("rooms/prices.py",),
            trust="user",
        ),
    ),
    (
        "insert-then-explain",
        16 * DAY,
        Memory(
            kind="pattern",
            title="Let the constraint decide, then explain",
            tags=("concurrency",),
            files=("rooms/bookings.py", "rooms/waiting.py"),
            functions=("book", "offer_slot"),
            trust="agent",
            detail={
                "context": "several requests want the same row",
                "problem": "asking first and writing later leaves a gap in which both are told yes",
                "solution": "write at once under a UNIQUE constraint and turn its error into a 409 that names the slot",
            },
        ),
    ),
    (
        "one-sqlite-file",
        24 * DAY,
        Memory(
            kind="decision",
            title="One SQLite file and one writer, no database server",
            tags=("database",),
            files=("rooms/db.py",),
            functions=("connect",),
            trust="user",
            detail={
                "why": "40 bookings a day on one machine, and a backup is a copy of one file",
                "alternatives": ["PostgreSQL in a container", "a hosted database"],
            },
        ),
    ),
    (
        "make-check",
        30 * DAY,
        Memory(
            kind="preference",
            title="`make check` passes before anything is called done",
            body="It runs the tests, the types and the migrations from an empty database.",
            files=("Makefile",),
            trust="user",
        ),
    ),
)

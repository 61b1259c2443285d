"""Read a repository's commits as memories, and which of its files are changed."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from foreword import projects
from foreword.code import git
from foreword.errors import BadRequest
from foreword.models import Memory, Project

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

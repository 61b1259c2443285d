"""Read a repository's commits as memories, oldest first, and list its changed files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from foreword.code import git
from foreword.encoding import plural, read_table
from foreword.extract.session import memory_of_change
from foreword.importers import Batch, Source, timestamp
from foreword.models import Change, Memory, Project

COMMITS = 50_000  # the newest of a history: ten years of a busy team, and 2 minutes
RECENT = 100  # commits whose changed functions are worth looking at; also the size of a batch
ROUTINE = 0.3  # confidence in what a machine or a habit wrote: it is found, and ranks behind everything else
FILES = 40  # names kept of one commit; a rename of everything says no more with its thousandth
FUNCTIONS = 20  # that a commit's memory names
CHANGES = 300  # functions that the newest commits changed
CHANGED = 2000  # changed files that are listed; more are a checkout gone wrong, not somebody's work

STATUS = (
    "status", "-z", "--porcelain=v1", "--branch", "--no-ahead-behind", "--no-renames", "--untracked-files=normal",
    "--ignore-submodules=all",
)  # fmt: skip

_PATTERNS: dict[str, list[str]] = {}
for _about, _, _pattern in (line.partition(": ") for line in read_table(__file__, "commits.txt")):
    _PATTERNS.setdefault(_about, []).append(_pattern)
TRAILER, PERSON, MACHINES, HABITS = (
    re.compile("|".join(_PATTERNS[about]), re.IGNORECASE | re.MULTILINE if about == "person" else re.IGNORECASE)
    for about in ("trailer", "person", "author", "subject")
)


@dataclass(frozen=True)
class Commit:
    """One commit of `git log`; `files` are cut to FILES, `count` is how many there are."""

    hash: str
    at: float
    author: str
    subject: str
    body: str
    files: tuple[str, ...]
    count: int


class Git(Source):
    """The history of a project's repository."""

    def offer(self, project: Project) -> str:
        count = len(_hashes(project.root))
        about = f"the newest {count:,} commits" if count >= COMMITS else plural(count, "commits")
        return about if count else ""

    def read(self, project: Project) -> Iterator[Batch]:
        """Yield the older commits, then the newest with the functions that they changed."""
        hashes = _hashes(project.root)
        older, newest = hashes[:-RECENT], hashes[-RECENT:]
        for start in range(0, len(older), RECENT):
            some = log(project.root, older[start : start + RECENT])
            memories = tuple(memory_of(commit, project=project) for commit in some)
            yield Batch(memories, done=start + len(some), total=len(hashes))
        if newest:
            functions = _with_functions(log(project.root, newest), project)
            yield replace(functions, done=len(hashes), total=len(hashes))


def log(folder: str, hashes: Sequence[str]) -> list[Commit]:
    """Return these commits, in that order."""
    fields = ("%H", "%at", "%an", "%s", "%b")
    return [
        Commit(hash, timestamp(at), author, subject, body, tuple(path for path, *_ in files[:FILES]), len(files))
        for (hash, at, author, subject, body), files in git.log(folder, hashes, fields)
    ]


def changed(folder: str, *, patience: float = 2.0) -> dict[str, float] | None:
    """Return the files that differ from the last commit, and new ones, by time of change; none outside of git.

    A folder of nothing but new files ends with a slash. Before the first commit git knows nothing: None. A git that
    fails or takes longer than *patience* seconds is a BadRequest.
    """
    if not os.path.lexists(os.path.join(folder, ".git")):
        return {}
    try:
        # Half a repository must not lead to one around it.
        raw = git.run(folder, STATUS, patience=patience, ceiling=os.path.dirname(folder))
    except git.NoRepository:
        return {}
    branch, *entries = raw.split(b"\0")[: CHANGED + 1]
    if branch.startswith(b"## No commits yet"):
        return None
    times = {}
    for name in (each[3:] for each in entries if each[3:]):  # `XY name`
        times[git.text(name)] = 0.0
        with suppress(OSError, ValueError):
            times[git.text(name)] = os.lstat(os.path.join(os.fsencode(folder), name)).st_mtime
    return times


def _hashes(root: str) -> list[str]:
    """Return the newest commits without merges, oldest first; none outside of git."""
    try:
        raw = git.run(root, ("rev-list", "--no-merges", f"--max-count={COMMITS}", "HEAD", "--"))
    except git.NoRepository:
        return []
    return git.text(raw).split()[::-1]


# ---- commits as memories


def memory_of(commit: Commit, *, project: Project) -> Memory:
    """Return a commit as an observation: message without trailers, and files; routine with little confidence."""
    routine = MACHINES.search(commit.author) or HABITS.match(commit.subject)
    lines = [line.rstrip() for line in PERSON.sub("", commit.body).splitlines()]
    return Memory(
        kind="observation",
        title=PERSON.sub("", commit.subject) or f"Commit {commit.hash[:10]} without a message",
        body="\n".join(line for line in lines if not TRAILER.match(line)).strip("\n"),
        uid=f"git:{project.key}:{commit.hash}",
        scope=project.scope,
        project=project.key,
        tags=("routine",) if routine else (),
        files=commit.files,
        source="git",
        trust="imported",
        confidence=ROUTINE if routine else 1.0,
        created=commit.at,
        confirmed=commit.at,
        detail={"commit": commit.hash, "files": commit.count},
    )


def _with_functions(commits: Sequence[Commit], project: Project) -> Batch:
    """Return commits with the functions that they changed, and each function as it was changed last."""
    by_hash = dict(git.changed_functions(project.root, [commit.hash for commit in commits]))
    memories: list[Memory] = []
    last: dict[tuple[str, str], Change] = {}
    for commit in commits:
        changes = by_hash.get(commit.hash, ())
        names = tuple(dict.fromkeys(change.function for change in changes))[:FUNCTIONS]
        memories.append(replace(memory_of(commit, project=project), functions=names))
        for change in changes:
            last.pop((change.file, change.function), None)
            last[change.file, change.function] = replace(change, project=project.key, at=commit.at)
    recent = list(last.values())[-CHANGES:]
    memories += [memory_of_change(change, project=project, source="git", trust="imported") for change in recent]
    return Batch(tuple(memories), changes=tuple(recent))

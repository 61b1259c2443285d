"""Read a repository's commits as memories, oldest first, and list its changed files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from foreword.code import git
from foreword.encoding import plural, read_table, timestamp
from foreword.extract.session import memory_of_change
from foreword.importers import Batch, Source
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
            memories = memories_of(older[start : start + RECENT], project)
            yield Batch(memories, done=start + len(memories), total=len(hashes))
        if newest:
            yield replace(_with_functions(newest, project), done=len(hashes), total=len(hashes))


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


def memories_of(hashes: Sequence[str], project: Project) -> list[Memory]:
    """Return these commits as observations, in that order."""
    fields = ("%H", "%at", "%an", "%s", "%b")
    return [
        memory_of(texts, [path for path, *_ in files], project=project)
        for texts, files in git.log(project.root, hashes, fields)
    ]


def memory_of(commit: Sequence[str], files: Sequence[str], *, project: Project) -> Memory:
    """Return a commit as an observation: message without trailers, and files; routine with little confidence."""
    hash, at, author, subject, body = commit
    routine = MACHINES.search(author) or HABITS.match(subject)
    lines = [line.rstrip() for line in PERSON.sub("", body).splitlines()]
    return Memory(
        kind="observation",
        title=PERSON.sub("", subject) or f"Commit {hash[:10]} without a message",
        body="\n".join(line for line in lines if not TRAILER.match(line)).strip("\n"),
        uid=f"git:{project.key}:{hash}",
        scope=project.scope,
        project=project.key,
        tags=("routine",) if routine else (),
        files=tuple(files[:FILES]),
        source="git",
        trust="imported",
        confidence=ROUTINE if routine else 1.0,
        created=timestamp(at),
        confirmed=timestamp(at),
        detail={"commit": hash, "files": len(files)},
    )


def _with_functions(hashes: Sequence[str], project: Project) -> Batch:
    """Return commits with the functions that they changed, and each function as it was changed last."""
    by_hash = dict(git.changed_functions(project.root, hashes))
    memories: list[Memory] = []
    last: dict[tuple[str, str], Change] = {}
    for commit in memories_of(hashes, project):
        changes = by_hash.get(commit.detail["commit"], ())
        names = tuple(dict.fromkeys(change.function for change in changes))[:FUNCTIONS]
        memories.append(replace(commit, functions=names))
        for change in changes:
            last.pop((change.file, change.function), None)
            last[change.file, change.function] = replace(change, project=project.key, at=commit.created)
    recent = list(last.values())[-CHANGES:]
    memories += [memory_of_change(change, project=project, source="git", trust="imported") for change in recent]
    return Batch(memories, changes=recent)

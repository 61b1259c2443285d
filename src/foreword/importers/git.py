"""Read a repository's commits as memories, oldest first, and list its changed files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from foreword import projects
from foreword.code import git
from foreword.code.commits import changed_functions
from foreword.errors import BadRequest
from foreword.extract.session import memory_of_change
from foreword.importers.base import Batch, Offer, Source
from foreword.models import Change, Link, Memory, Project

COMMITS = 50_000  # the newest of a history, unless the user says otherwise: ten years of a busy team, and 2 minutes
RECENT = 100  # commits whose changed functions are worth looking at; also the size of a batch
ROUTINE = 0.3  # confidence in what a machine or a habit wrote: it is found, and ranks behind everything else
FILES = 40  # names kept of one commit; a rename of everything says no more with its thousandth
FUNCTIONS = 20  # that a commit's memory names
CHANGES = 300  # functions that the newest commits changed
CHANGED = 2000  # changed files that are listed; more are a checkout gone wrong, not somebody's work

# Fields end with NUL, which no message and no name can hold. A record begins with a slash, which no name in git does.
FORMAT = "--format=tformat:/%H%x00%at%x00%an%x00%s%x00%b%x00"
STATUS = ("status", "-z", "--porcelain=v1", "--no-renames", "--untracked-files=normal", "--ignore-submodules=all")

# Not every `Word: …`, and not BREAKING-CHANGE: a body may well end with `Note: …` or `Follow-up: …` in its own right.
TRAILER = re.compile(
    r"([a-z]+-)+(by|ids?|on|to|of|bug|issue|position|revision|request|session|status|branch|commit|url|link):\s"
    r"|(fix(es)?|close[sd]?|resolves|refs?|see|bug|issue|link|pr):\s*(#?\d|https?:|[a-z]+-\d|[0-9a-f]{7})"
    r"|\(cherry picked from commit [0-9a-f]+\)$"
    r"|\W*generated with \[?(claude code|codex|opencode)\b",
    re.IGNORECASE,
)
# Anywhere in the text: people write trailers in the middle of a body, or forget the empty line after the subject.
PERSON = re.compile(
    r"(^|(?<!\s)\s++)(([a-z]+-)+by|(reply-)?to|cc):[^<\n]{0,200}<[^>\n@]{0,200}@[^>\n]{0,200}>",
    re.IGNORECASE | re.MULTILINE,
)
REVERTS = re.compile(r"^this reverts commit ([0-9a-f]{40})\b(?!.*\b(part|partial|partially|except)\b)", re.I | re.M)
MACHINES = re.compile(
    r"\[bot\]$|^(dependabot|renovate|greenkeeper|pyup|snyk|github[- ]actions?|pre-commit-ci|semantic-release|weblate"
    r"|allcontributors|imgbot|mergify|bors|travis|crowdin)\b",
    re.IGNORECASE,
)
HABITS = re.compile(
    r"(fixup|squash|amend)! |merge (branch|pull request|remote-tracking|tag)\b"
    r"|bump \S+ (from|to) |bump (the )?version|(build|chore)\(deps\S*\)|update (dependency|lock ?files?)\b"
    r"|lock file maintenance|(release|version|prepare|v)?:? ?v?\d+\.\d+(\.\d+)?\S*$"
    r"|(wip|(fix )?typos?|lint|format(ting)?|updates?|clean ?up|minor|tweaks?|stuff|te?mp|fix(es)?|test|\.)\W*$",
    re.IGNORECASE,
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
    """The history of a project's repository; the checkpoint is the newest commit that was read."""

    def offer(self, project: Project, *, environ: Mapping[str, str]) -> Offer | None:
        del environ  # git finds its repository by the folder
        count = len(_hashes(project.root, limit=self._most()))
        if not count:
            return None
        about = f"the newest {count:,} commits" if count >= self._most() else f"{count:,} commits"
        return Offer(source=self.name, about=about, count=count)

    def read(self, project: Project, *, environ: Mapping[str, str], checkpoint: str) -> Iterator[Batch]:
        del environ
        # Whoever says how many wants as many, also those behind what was read before.
        since = checkpoint if not self.options.get("commits") else ""
        hashes = _hashes(project.root, limit=self._most(), since=since)
        reverted: dict[str, str] = {}
        for start in range(0, len(hashes), RECENT):
            some = log(project.root, hashes[start : start + RECENT])
            reverted |= {found[1]: commit.hash for commit in some if (found := REVERTS.search(commit.body))}
            memories = tuple(_ranked(commit, project=project) for commit in some)
            yield Batch(memories, checkpoint=checkpoint, done=start + len(some), total=len(hashes))
        if not hashes:
            return
        done = len(hashes)
        functions = _functions(log(project.root, hashes[: -RECENT - 1 : -1]), project)
        yield replace(functions, checkpoint=checkpoint, done=done, total=done)
        undone = {hash: by for hash, by in reverted.items() if by not in reverted}  # else it was taken back itself
        memories, links = _superseded(log(project.root, _known(project.root, undone)), undone, project=project)
        yield Batch(memories, links, checkpoint=hashes[-1], done=done, total=done)

    def _most(self) -> int:
        most = self.options.get("commits") or COMMITS
        if type(most) is not int or most < 1:  # not isinstance: true is an int to Python
            raise BadRequest("`commits` must be a whole number from 1 on", hint=f"leave it out for {COMMITS:,}")
        return most


# ---- git


def commits(folder: str, *, limit: int = 500) -> Iterator[Memory]:
    """Yield the newest *limit* commits of the repository around *folder* as memories, newest first.

    BadRequest where there is no repository or no git.
    """
    project = projects.resolve(folder)
    words = ("rev-list", "--no-merges", f"--max-count={max(0, limit)}", "HEAD", "--")
    for commit in log(project.root, git.text(git.run(project.root, words)).split()):
        yield memory_of(commit, project=project)


def log(folder: str, hashes: Sequence[str]) -> list[Commit]:
    """Return these commits, in that order."""
    if not hashes:
        return []
    raw = git.run(folder, (*git.LOG, "--name-only", FORMAT), stdin="\n".join(hashes).encode())
    return list(_records(raw))


def _hashes(root: str, *, limit: int, since: str = "") -> list[str]:
    """Return the newest commits without merges that *since* does not reach, oldest first; none outside of git."""
    known = [f"^{hash}" for hash in _known(root, [since] if since else [])]
    words = ("rev-list", "--no-merges", f"--max-count={limit}", "HEAD", *known, "--")
    try:
        return git.text(git.run(root, words)).split()[::-1]
    except git.NoRepository:
        return []


def _known(root: str, hashes: Iterable[str]) -> list[str]:
    """Return those of these commits that the repository has."""
    wanted = [hash for hash in hashes if re.fullmatch(r"[0-9a-f]{40,64}", hash)]
    raw = git.run(root, ("cat-file", "--batch-check"), stdin="\n".join(wanted).encode()) if wanted else b""
    return [line.split()[0] for line in git.text(raw).splitlines() if " commit " in line]


def changed(folder: str, *, patience: float = 2.0) -> dict[str, float]:
    """Return the files that differ from the last commit, and new ones, by time of change; none outside of git.

    A git that fails or takes longer than *patience* seconds is a BadRequest.
    """
    if not os.path.lexists(os.path.join(folder, ".git")):
        return {}
    try:
        # Half a repository must not lead to one around it.
        raw = git.run(folder, STATUS, patience=patience, ceiling=os.path.dirname(folder))
    except git.NoRepository:
        return {}
    # `XY name`; a folder of nothing but new files ends with a slash.
    names = [each[3:] for each in raw.split(b"\0")[:CHANGED] if each[3:] and not each.endswith(b"/")]
    return {git.text(name): _modified(os.path.join(os.fsencode(folder), name)) for name in names}


def _modified(path: bytes) -> float:
    try:
        return os.lstat(path).st_mtime
    except (OSError, ValueError):
        return 0.0


def _records(raw: bytes) -> Iterator[Commit]:
    fields = iter(raw.split(b"\0"))
    head = next(fields, b"")
    while head:
        at, author, subject, body = (next(fields, b"") for _ in range(4))
        names: list[bytes] = []
        following = b""
        for each in fields:
            if each.startswith(b"/"):
                following = each
                break
            # git puts a line break between a message and its first name; an empty field ends a message.
            names += [each if names else each.removeprefix(b"\n")] if each else []
        yield Commit(
            hash=git.text(head[1:]),
            at=git.seconds(at),
            author=git.text(author),
            subject=git.text(subject),
            body=git.text(body),
            files=tuple(git.text(name) for name in names[:FILES]),
            count=len(names),
        )
        head = following


# ---- commits as memories


def memory_of(commit: Commit, *, project: Project) -> Memory:
    """Return a commit as an observation: its message without trailers, and its files."""
    return Memory(
        kind="observation",
        title=PERSON.sub("", commit.subject) or f"Commit {commit.hash[:10]} without a message",
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


def _without_trailers(body: str) -> str:
    """Return the message without trailers at its end and without lines that name a person with an address."""
    lines = [line.rstrip() for line in PERSON.sub("", body).splitlines()]
    while lines:
        start = len(lines) - 1
        while start and lines[start][:1].isspace():  # a trailer may go on in indented lines
            start -= 1
        if lines[start] and not TRAILER.match(lines[start]):
            break
        del lines[start:]
    return "\n".join(lines).strip("\n")


def _superseded(
    commits: Sequence[Commit], reverted: Mapping[str, str], *, project: Project
) -> tuple[tuple[Memory, ...], tuple[Link, ...]]:
    """Return reverted commits as memories that the commits which took them back supersede."""
    by = {commit.hash: f"git:{project.key}:{reverted[commit.hash]}" for commit in commits}
    memories = tuple(
        replace(_ranked(commit, project=project), status="superseded", superseded_by=by[commit.hash])
        for commit in commits
    )
    links = tuple(Link(source=memory.superseded_by, relation="supersedes", target=memory.uid) for memory in memories)
    return memories, links


def _ranked(commit: Commit, *, project: Project) -> Memory:
    routine = MACHINES.search(commit.author) or HABITS.match(commit.subject)
    return replace(
        memory_of(commit, project=project),
        tags=("routine",) if routine else (),
        confidence=ROUTINE if routine else 1.0,
    )


def _functions(newest: Sequence[Commit], project: Project) -> Batch:
    """Return the newest commits again with the functions that they changed, and each function as last changed."""
    by_hash = dict(changed_functions(project.root, [commit.hash for commit in newest]))
    memories: list[Memory] = []
    last: dict[tuple[str, str], Change] = {}
    for commit in newest:
        changes = by_hash.get(commit.hash, ())
        names = tuple(dict.fromkeys(change.function for change in changes))[:FUNCTIONS]
        if names:
            memories.append(replace(_ranked(commit, project=project), functions=names))
        for change in changes:
            last.setdefault((change.file, change.function), replace(change, project=project.key, at=commit.at))
    recent = list(last.values())[:CHANGES]
    memories += [memory_of_change(change, project=project, source="git", trust="imported") for change in recent]
    return Batch(tuple(memories), changes=tuple(recent))

"""Read a repository's commits as memories, newest first, and list its changed files.

New commits since the last import come first, then what is left of an import that was interrupted.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from foreword import projects
from foreword.code import changed_functions, git
from foreword.errors import BadRequest
from foreword.extract.session import memory_of_change
from foreword.importers.base import Batch, Offer, Resolver
from foreword.models import Change, Link, Memory, Project

COMMITS = 50_000  # the newest of a history, unless the user says otherwise: ten years of a busy team, and 2 minutes
RECENT = 100  # commits whose changed functions are worth looking at; also the size of a batch
COUNT_SECONDS = 3.0
MOST_TIPS = 20  # branches and clones whose ends are remembered
MOST_REVERTED = 500
ROUTINE = 0.3  # confidence in what a machine or a habit wrote: it is found, and ranks behind everything else
FILES = 40  # names kept of one commit; a rename of everything says no more with its thousandth
FUNCTIONS = 20  # that a commit's memory names
CHANGES = 300  # functions that the newest commits changed
CHANGED = 2000  # changed files that are listed; more are a checkout gone wrong, not somebody's work
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
NO_WORK_TREE = ("not a git repository", "must be run in a work tree")

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
CONVENTIONAL = re.compile(r"([a-z]{2,12})(?:\(([\w ./,:-]{1,40})\))?(!?): \S", re.IGNORECASE)
# The word in front of the colon, and the tag that it becomes.
TYPES = {"feature": "feat", "bugfix": "fix", "hotfix": "fix", "doc": "docs", "tests": "test"} | {
    name: name
    for name in ("feat", "fix", "docs", "style", "refactor", "perf", "test", "build", "ci", "chore", "revert", "deps")
}
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
LOCKFILES = re.compile(
    r"(^|/)(package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?|poetry\.lock|uv\.lock|pdm\.lock"
    r"|Pipfile\.lock|Cargo\.lock|Gemfile\.lock|composer\.lock|go\.sum|mix\.lock|pubspec\.lock|flake\.lock|Podfile\.lock)$"
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


def source(_: str, options: Mapping[str, Any], _resolver: Resolver) -> Git:
    most = options.get("commits") or COMMITS
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise BadRequest("`commits` must be a whole number from 1 on", hint=f"leave it out for {COMMITS:,}")
    return Git(most=most)


class Git:
    """The history of a project's repository."""

    name = "git"

    def __init__(self, *, most: int = COMMITS) -> None:
        self._most = most

    def offer(self, project: Project, *, environ: Mapping[str, str]) -> Offer | None:
        del environ  # git finds its repository by the folder
        if not _head(project.root):
            return None
        count = _count(project.root, limit=self._most, patience=COUNT_SECONDS)
        about = f"the newest {count:,} commits" if count >= self._most else f"{count:,} commits"
        return Offer(source=self.name, about=about if count else "a git history", count=count)

    def read(self, project: Project, *, environ: Mapping[str, str], checkpoint: str) -> Iterator[Batch]:
        del environ
        root, head = project.root, _head(project.root)
        if not head:
            return
        progress = _Progress.load(checkpoint, root, head=head)
        counts = [_count(root, *walk.revisions(root), limit=self._most) for walk in progress.walks]
        done, total = sum(walk.done for walk in progress.walks), sum(counts)
        for number, walk in enumerate(progress.walks):
            log_of_walk = log(root, *walk.revisions(root), skip=walk.done, limit=max(0, self._most - walk.done))
            while commits := list(islice(log_of_walk, RECENT)):
                walk.done += len(commits)
                done += len(commits)
                memories, links = _memories(commits, project=project, reverted=progress.reverted)
                yield Batch(
                    memories,
                    links,
                    checkpoint=progress.dump(),
                    done=done,
                    total=max(done, total),
                    sequence=f"git:{project.key}:{walk.tip}",
                    remaining=max(0, counts[number] - walk.done),
                )
                if number == 0 and walk.done == len(commits):  # after the first, which somebody waits for
                    yield _functions(project, walk, progress, done=done, total=max(done, total), most=self._most)
            if number == 0 and len(progress.walks) + len(progress.tips) > 1:
                yield from _late_reverts(project, progress, done=done, total=max(done, total))
            walk.ended = walk.done < self._most
        progress.end()
        yield Batch(checkpoint=progress.dump(), done=done, total=done)


@dataclass
class _Walk:
    """One way down the history: from a commit, without what other commits reach; `done` commits of it are read."""

    tip: str
    without: list[str]
    done: int = 0
    ended: bool = False

    def revisions(self, root: str) -> tuple[str, ...]:
        return (self.tip, *(f"^{tip}" for tip in self.without if _exists(root, tip)))


@dataclass
class _Progress:
    """The checkpoint of a repository: the tips of what is read, walks that are not finished, reverts still to meet."""

    tips: list[str] = field(default_factory=list)
    walks: list[_Walk] = field(default_factory=list)
    reverted: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, checkpoint: str, root: str, *, head: str) -> _Progress:
        try:
            saved = json.loads(checkpoint) if checkpoint else {}
            walks = [_Walk(str(tip), list(without), int(done)) for tip, without, done in saved.get("walks", [])]
            progress = cls(list(saved.get("tips", [])), walks, dict(saved.get("reverted", {})))
        except (ValueError, TypeError, AttributeError):
            progress = cls()  # of some other version: reading again is harmless
        progress.walks = [walk for walk in progress.walks if _exists(root, walk.tip)]
        for walk in progress.walks:
            if not all(_exists(root, tip) for tip in walk.without):
                walk.done = 0  # history was rewritten: what was counted then is something else now
        ends = [*(walk.tip for walk in progress.walks), *progress.tips]
        if head not in ends:
            progress.walks.insert(0, _Walk(head, ends))
        return progress

    def end(self) -> None:
        self.tips = [*(walk.tip for walk in self.walks if walk.ended), *self.tips][:MOST_TIPS]
        self.walks = [walk for walk in self.walks if not walk.ended]
        self.reverted = self.reverted if self.walks else {}

    def dump(self) -> str:
        reverted = dict(islice(self.reverted.items(), MOST_REVERTED))
        walks = [[walk.tip, walk.without, walk.done] for walk in self.walks]
        return json.dumps({"tips": self.tips, "walks": walks, "reverted": reverted})


# ---- git


def commits(folder: str, *, limit: int = 500) -> Iterator[Memory]:
    """Yield the newest *limit* commits of the repository around *folder* as memories, newest first.

    The first step raises BadRequest where there is no repository or no git.
    """
    project = projects.resolve(folder)
    for commit in log(project.root, limit=limit):
        yield memory_of(commit, project=project)


def log(folder: str, *revisions: str, limit: int, skip: int = 0) -> Iterator[Commit]:
    """Yield the commits of *revisions* (HEAD, where none are named), newest first, without merges."""
    if limit > 0:
        words = (*GIT_LOG, f"--max-count={limit}", f"--skip={skip}", *revisions, "--")
        with git.output(folder, words, patience=PATIENCE) as pieces:
            yield from _records(pieces)


def changed(folder: str, *, patience: float = 2.0) -> dict[str, float]:
    """Return the files that differ from the last commit, and new ones, by time of change; none outside of git.

    A git that fails or takes longer than *patience* seconds is a BadRequest.
    """
    if not os.path.lexists(os.path.join(folder, ".git")):
        return {}
    try:
        # Half a repository must not lead to one around it.
        raw = _run(folder, GIT_STATUS, patience=patience, ceiling=os.path.dirname(folder))
    except subprocess.TimeoutExpired as exc:
        raise BadRequest(
            f"`git status` in {folder!r} takes longer than {patience:g} seconds, so what is changed there is unknown",
            hint=f"try `git -C {folder!r} status`",
        ) from exc
    except (subprocess.CalledProcessError, OSError, ValueError) as exc:
        error = git.text(getattr(exc, "stderr", b"") or b"") or str(exc)
        if any(words in error for words in NO_WORK_TREE):
            return {}
        raise BadRequest(
            f"git cannot tell what is changed in {folder!r}: {error.strip()[-200:]}",
            hint=f"try `git -C {folder!r} status`",
        ) from exc
    # `XY name`; a folder of nothing but new files ends with a slash.
    names = [each[3:] for each in raw.split(b"\0")[:CHANGED] if each[3:] and not each.endswith(b"/")]
    return {git.text(name): _modified(os.path.join(os.fsencode(folder), name)) for name in names}


def _modified(path: bytes) -> float:
    try:
        return os.lstat(path).st_mtime
    except (OSError, ValueError):
        return 0.0


def _run(folder: str, words: Sequence[str], *, patience: float, ceiling: str = "") -> bytes:
    ended = subprocess.run(  # noqa: S603 - no shell, and the folder is absolute
        ["git", "-C", folder, *words],  # noqa: S607
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=patience,
        env=git.environment() | ({"GIT_CEILING_DIRECTORIES": ceiling} if ceiling else {}),
    )
    return ended.stdout


def _query(folder: str, *words: str, patience: float = 5.0) -> str:
    """Return git's short answer; nothing where it fails or takes longer than *patience* seconds."""
    try:
        return git.text(_run(folder, (*git.SAFELY, *words), patience=patience)).strip()
    except (subprocess.SubprocessError, OSError, ValueError):
        return ""


def _count(folder: str, *revisions: str, limit: int, patience: float = PATIENCE) -> int:
    words = ("rev-list", "--count", "--no-merges", f"--max-count={limit}", *(revisions or ("HEAD",)), "--")
    answer = _query(folder, *words, patience=patience)
    return int(answer) if answer.isdigit() else 0


def _head(root: str) -> str:
    return _query(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")


def _exists(root: str, hash: str) -> bool:
    return bool(_query(root, "rev-parse", "--verify", "--quiet", f"{hash}^{{commit}}"))


def _records(pieces: Iterator[bytes]) -> Iterator[Commit]:
    fields = git.fields(pieces)
    head = next(fields, b"")
    while head:
        at, author, subject, body = (next(fields, b"") for _ in range(4))
        names: list[str] = []
        count, following = 0, b""
        for each in fields:
            if each.startswith(b"/"):
                following = each
                break
            if each:  # an empty one ends a message
                # git puts a line break between a message and its first name.
                name = each if count else each.removeprefix(b"\n")
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


# ---- commits as memories


def memory_of(commit: Commit, *, project: Project) -> Memory:
    """Return a commit as an observation: its message without trailers, and its files."""
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


def _memories(
    commits: Sequence[Commit], *, project: Project, reverted: dict[str, str]
) -> tuple[tuple[Memory, ...], tuple[Link, ...]]:
    """Return the commits as memories; a commit that a later one reverts is superseded by it."""
    memories, links = [], []
    for commit in commits:
        by = reverted.pop(commit.hash, "")
        memory = _ranked(commit, project=project)
        if by:
            later = f"git:{project.key}:{by}"
            memory = replace(memory, status="superseded", superseded_by=later)
            links.append(Link(source=later, relation="supersedes", target=memory.uid))
        elif found := REVERTS.search(commit.body):
            reverted[found[1]] = commit.hash
        memories.append(memory)
    return tuple(memories), tuple(links)


def _ranked(commit: Commit, *, project: Project) -> Memory:
    only_locks = bool(commit.files) and all(LOCKFILES.search(file) for file in commit.files)
    routine = MACHINES.search(commit.author) or HABITS.match(commit.subject) or only_locks
    return replace(
        memory_of(commit, project=project),
        tags=(*_tags(commit.subject), *(("routine",) if routine else ())),
        confidence=ROUTINE if routine else 1.0,
    )


def _tags(subject: str) -> tuple[str, ...]:
    """Return feat, api and breaking for `feat(api)!: …`."""
    found = CONVENTIONAL.match(subject)
    kind = TYPES.get(found[1].lower()) if found else None
    if not found or not kind:
        return ()
    return tuple(dict.fromkeys((kind, *filter(None, ((found[2] or "").strip(), "breaking" if found[3] else "")))))


def _functions(project: Project, walk: _Walk, progress: _Progress, *, done: int, total: int, most: int) -> Batch:
    """Read the newest commits again with the functions that they changed; and each function as last changed."""
    newest = list(log(project.root, *walk.revisions(project.root), limit=min(RECENT, most)))
    by_hash = {each.hash: each for each in changed_functions(project.root, limit=len(newest), revisions=walk.tip)}
    memories: list[Memory] = []
    last: dict[tuple[str, str], Change] = {}
    for commit in newest:
        changes = by_hash[commit.hash].changes if commit.hash in by_hash else ()
        names = tuple(dict.fromkeys(change.function for change in changes))[:FUNCTIONS]
        if names:
            memories.append(replace(_ranked(commit, project=project), functions=names))
        for change in changes:
            last.setdefault((change.file, change.function), replace(change, project=project.key, at=commit.at))
    recent = list(last.values())[:CHANGES]
    memories += [memory_of_change(change, project=project, source="git", trust="imported") for change in recent]
    return Batch(tuple(memories), changes=tuple(recent), checkpoint=progress.dump(), done=done, total=total)


def _late_reverts(project: Project, progress: _Progress, *, done: int, total: int) -> Iterator[Batch]:
    """Supersede commits that were imported long ago and are reverted only now."""
    root, tip = project.root, progress.walks[0].tip
    gone = [
        hash
        for hash in progress.reverted
        if _exists(root, hash) and not _query(root, "rev-list", "-1", hash, f"^{tip}")
    ]
    if gone:
        commits = list(log(root, "--no-walk=unsorted", *gone, limit=len(gone)))
        memories, links = _memories(commits, project=project, reverted=progress.reverted)
        yield Batch(memories, links, checkpoint=progress.dump(), done=done, total=total)

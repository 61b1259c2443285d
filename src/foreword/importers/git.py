"""A repository -> its commits as memories, newest first: what came since the last time, then the rest of the old."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from foreword.code import changed_functions
from foreword.errors import BadRequest
from foreword.extract.changes import memory_of_change
from foreword.importers import Batch, Found, Resolver
from foreword.importers.history import Commit, asked, counted, log, memory_of
from foreword.models import Change, Link, Memory, Project

COMMITS = 50_000  # the newest of a history, unless told otherwise: ten years of a busy team, and 2 minutes of work
RECENT = 100  # commits whose changed functions are worth looking at
FIRST, ROWS = RECENT, 100  # commits of the first batch, whose functions come next, and of the others
COUNT_SECONDS = 3.0
MOST_TIPS = 20  # branches and clones whose ends are remembered
MOST_REVERTED = 500
ROUTINE = 0.3  # confidence in what a machine or a habit wrote: it is found, and stands behind everything else
FUNCTIONS = 20  # that a commit's memory names
CHANGES = 300  # functions that the newest commits changed

CONVENTIONAL = re.compile(r"([a-z]{2,12})(?:\(([\w ./,:-]{1,40})\))?(!?): \S", re.IGNORECASE)
# What people write in front of a colon, and the tag that it becomes.
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


def source(_: str, options: Mapping[str, Any], _resolver: Resolver) -> Git:
    most = options.get("commits") or COMMITS
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise BadRequest("`commits` must be a whole number from 1 on", hint=f"leave it out for {COMMITS:,}")
    return Git(most=most)


class Git:
    """The history of a project's repository; its mark tells which walks over it are done, and how far others came."""

    name = "git"

    def __init__(self, *, most: int = COMMITS) -> None:
        self._most = most

    def look(self, project: Project, *, environ: Mapping[str, str]) -> Found | None:
        del environ  # git finds its repository by the folder
        if not _head(project.root):
            return None
        count = counted(project.root, limit=self._most, patience=COUNT_SECONDS)
        about = f"the newest {count:,} commits" if count >= self._most else f"{count:,} commits"
        return Found(source=self.name, about=about if count else "a git history", count=count)

    def read(self, project: Project, *, environ: Mapping[str, str], since_mark: str) -> Iterator[Batch]:
        del environ
        head = _head(project.root)
        if not head:
            return
        place = _Place.of(since_mark, project.root, head=head)
        counts = [counted(project.root, *walk.revisions(project.root), limit=self._most) for walk in place.walks]
        done, total = sum(walk.done for walk in place.walks), sum(counts)
        for number, walk in enumerate(place.walks):
            for commits in self._read(project.root, walk):
                walk.done += len(commits)
                done += len(commits)
                memories, links = _memories(commits, project=project, reverted=place.reverted)
                yield Batch(
                    memories,
                    links,
                    mark=place.mark(),
                    done=done,
                    total=max(done, total),
                    row=f"git:{project.key}:{walk.tip}",
                    left=max(0, counts[number] - walk.done),
                )
                if number == 0 and walk.done == len(commits):  # behind the first, which somebody waits for
                    yield _functions(project, walk, place, done=done, total=max(done, total), most=self._most)
            if number == 0 and len(place.walks) + len(place.tips) > 1:
                yield from _late_reverts(project, place, done=done, total=max(done, total))
            walk.ended = walk.done < self._most
        place.end(shallow=asked(project.root, "rev-parse", "--is-shallow-repository").strip() == "true")
        yield Batch(mark=place.mark(), done=done, total=done)

    def _read(self, root: str, walk: _Walk) -> Iterator[list[Commit]]:
        commits = log(root, *walk.revisions(root), skip=walk.done, limit=max(0, self._most - walk.done))
        size = ROWS if walk.done else FIRST
        while some := list(islice(commits, size)):
            yield some
            size = ROWS


class _Walk:
    """One way down the history: from a commit, without what lies below others, so many commits of it read."""

    def __init__(self, tip: str, without: Sequence[str], done: int = 0) -> None:
        self.tip, self.without, self.done, self.ended = tip, list(without), done, False

    def revisions(self, root: str) -> tuple[str, ...]:
        return (self.tip, *(f"^{tip}" for tip in self.without if _is_there(root, tip)))


class _Place:
    """How far the reading of a repository came: ends of what is read, walks that are not, reverts still to be met."""

    def __init__(self, tips: list[str], walks: list[_Walk], reverted: dict[str, str]) -> None:
        self.tips, self.walks, self.reverted, self.shallow = tips, walks, reverted, False

    @classmethod
    def of(cls, mark: str, root: str, *, head: str) -> _Place:
        try:
            told = json.loads(mark) if mark else {}
            walks = [_Walk(*each) for each in told.get("walks", [])]
            place = cls(list(told.get("tips", [])), walks, dict(told.get("reverted", {})))
            place.shallow = bool(told.get("shallow"))
        except (ValueError, TypeError, AttributeError):
            place = cls([], [], {})  # a mark of some other version: reading again is harmless
        if place.shallow and asked(root, "rev-parse", "--is-shallow-repository").strip() != "true":
            place = cls([], [], {})  # the rest was fetched since, and lies between what was read
        place.walks = [walk for walk in place.walks if _is_there(root, walk.tip)]
        for walk in place.walks:
            if not all(_is_there(root, tip) for tip in walk.without):
                walk.done = 0  # history was rewritten: what was counted then is something else now
        ends = [*(walk.tip for walk in place.walks), *place.tips]
        if head not in ends:
            place.walks.insert(0, _Walk(head, ends))
        return place

    def end(self, *, shallow: bool) -> None:
        self.tips = [*(walk.tip for walk in self.walks if walk.ended), *self.tips][:MOST_TIPS]
        self.walks = [walk for walk in self.walks if not walk.ended]
        self.reverted = self.reverted if self.walks else {}
        self.shallow = shallow

    def mark(self) -> str:
        reverted = dict(islice(self.reverted.items(), MOST_REVERTED))
        walks = [[walk.tip, walk.without, walk.done] for walk in self.walks]
        return json.dumps({"tips": self.tips, "walks": walks, "reverted": reverted, "shallow": self.shallow})


def _functions(project: Project, walk: _Walk, place: _Place, *, done: int, total: int, most: int) -> Batch:
    """The newest commits again, with the functions that they changed; and each function as it was changed last."""
    newest = list(log(project.root, *walk.revisions(project.root), limit=min(RECENT, most)))
    told = {each.hash: each for each in changed_functions(project.root, limit=len(newest), revisions=walk.tip)}
    memories: list[Memory] = []
    last: dict[tuple[str, str], Change] = {}
    for commit in newest:
        changes = told[commit.hash].changes if commit.hash in told else ()
        names = tuple(dict.fromkeys(change.function for change in changes))[:FUNCTIONS]
        if names:
            memories.append(replace(_memory(commit, project=project), functions=names))
        for change in changes:
            last.setdefault((change.file, change.function), replace(change, project=project.key, at=commit.at))
    recent = list(last.values())[:CHANGES]
    memories += [memory_of_change(change, project=project, source="git", trust="imported") for change in recent]
    return Batch(tuple(memories), changes=tuple(recent), mark=place.mark(), done=done, total=total)


def _memories(
    commits: Sequence[Commit], *, project: Project, reverted: dict[str, str]
) -> tuple[tuple[Memory, ...], tuple[Link, ...]]:
    """The commits as memories; one that a later commit took back is superseded by it."""
    memories, links = [], []
    for commit in commits:
        by = reverted.pop(commit.hash, "")
        memory = _memory(commit, project=project)
        if by:
            later = f"git:{project.key}:{by}"
            memory = replace(memory, status="superseded", superseded_by=later)
            links.append(Link(source=later, relation="supersedes", target=memory.uid))
        elif found := REVERTS.search(commit.body):
            reverted[found[1]] = commit.hash
        memories.append(memory)
    return tuple(memories), tuple(links)


def _memory(commit: Commit, *, project: Project) -> Memory:
    routine = MACHINES.search(commit.author) or HABITS.match(commit.subject) or _only_locks(commit)
    return replace(
        memory_of(commit, project=project),
        tags=(*_tags(commit.subject), *(("routine",) if routine else ())),
        confidence=ROUTINE if routine else 1.0,
    )


def _only_locks(commit: Commit) -> bool:
    return bool(commit.files) and all(LOCKFILES.search(file) for file in commit.files)


def _tags(subject: str) -> tuple[str, ...]:
    """`feat(api)!: …` -> feat, api, breaking."""
    found = CONVENTIONAL.match(subject)
    kind = TYPES.get(found[1].lower()) if found else None
    if not found or not kind:
        return ()
    return tuple(dict.fromkeys((kind, *filter(None, ((found[2] or "").strip(), "breaking" if found[3] else "")))))


def _late_reverts(project: Project, place: _Place, *, done: int, total: int) -> Iterator[Batch]:
    """What was read long ago and is taken back only now."""
    root, tip = project.root, place.walks[0].tip
    gone = [
        hash for hash in place.reverted if _is_there(root, hash) and not asked(root, "rev-list", "-1", hash, f"^{tip}")
    ]
    if gone:
        commits = list(log(root, "--no-walk=unsorted", *gone, limit=len(gone)))
        memories, links = _memories(commits, project=project, reverted=place.reverted)
        yield Batch(memories, links, mark=place.mark(), done=done, total=total)


def _head(root: str) -> str:
    return asked(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").strip()


def _is_there(root: str, hash: str) -> bool:
    return bool(asked(root, "rev-parse", "--verify", "--quiet", f"{hash}^{{commit}}"))

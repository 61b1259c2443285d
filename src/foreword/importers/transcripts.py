"""Transcripts that Claude Code and Codex left on the disk -> what this project's sessions came to, newest first."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from foreword.capture.parse import project_at
from foreword.code import changes
from foreword.encoding import storable
from foreword.errors import BadRequest
from foreword.extract.actions import Action
from foreword.extract.session import extract_session
from foreword.importers import Batch, Found, Resolver
from foreword.importers.checkpoints import left, marked
from foreword.importers.transcript_reader import Peek, actions, peek
from foreword.models import Change, Link, Memory, Project, Session
from foreword.projects import remote
from foreword.redact import redact
from foreword.redact.files import denied

QUIET = 300.0  # seconds without a new line after which a session may be taken for finished; an agent thinks for minutes
NAME = 200  # characters of a folder's name that Claude Code keeps of a longer path


class Distilled(Protocol):
    """What the actions of a session come to."""

    @property
    def memories(self) -> tuple[Memory, ...]: ...
    @property
    def links(self) -> tuple[Link, ...]: ...
    @property
    def changes(self) -> tuple[Change, ...]: ...


class Distil(Protocol):
    """Actions -> what they come to."""

    def __call__(self, actions: Iterable[Action], *, session: Session, project: Project) -> Distilled: ...


def source(name: str, options: Mapping[str, Any], resolver: Resolver) -> Transcripts:
    del options
    # Files as they are now tell nothing of an old session: what it told itself must do.
    return Transcripts(
        name,
        distil=partial(extract_session, changes_of=lambda edit: () if denied(edit.file) else changes([edit])),
        find_project=resolver.at,
        counts_as=resolver.key,
    )


@dataclass(frozen=True)
class Transcript:
    """One file of this project; its key is when it was written last."""

    path: str
    key: str
    peek: Peek
    live: bool  # still being written


class Transcripts:
    """The sessions of one agent."""

    def __init__(
        self,
        name: str,
        *,
        distil: Distil,
        now: Callable[[], float] = time.time,
        find_project: Callable[[str], Project] = project_at,
        counts_as: Callable[[str], str] = str,
    ) -> None:
        """*name* is a host's."""
        self.name = name
        self.notes: list[str] = []  # what was left out, in sentences
        self._distil = distil
        self._now = now
        self._find_project = find_project
        self._counts_as = counts_as
        self._keys: dict[str, str] = {}

    def look(self, project: Project, *, environ: Mapping[str, str]) -> Found | None:
        """How many sessions of this project there are, told by the two ends of each file."""
        found = self._files(project, environ=environ)
        waiting = sum(each.live for each in found)
        count = len(found) - waiting
        if not found:
            return None
        about = f"{_several(count, 'session')} of {LABELS[self.name]}"
        later = f"; {_several(waiting, 'session')} still going on, for next time" if waiting else ""
        return Found(source=self.name, about=about + later, count=count)

    def read(self, project: Project, *, environ: Mapping[str, str], since_mark: str) -> Iterator[Batch]:
        """One batch a session; one that is still being written brings no memories."""
        self.notes = []
        found = self._files(project, environ=environ)
        waiting = sum(each.live for each in found)
        if waiting:
            self.notes.append(f"{_several(waiting, 'session')} still going on; import again when it has ended")
        todo = left((each for each in found if not each.live), mark=since_mark)
        if not todo and self.notes:
            yield Batch(mark=since_mark, problems=tuple(self.notes))  # else nobody would be told
        noted = 0
        for done, (each, mark) in enumerate(marked(todo, mark=since_mark), 1):
            batch = self._session(each, project, found=found)
            problems, noted = tuple(self.notes[noted:]), len(self.notes)
            kept = batch.memories if done == 1 else tuple(each for each in batch.memories if each.kind != "handoff")
            # What older sessions left to do, the newest knows better.
            yield replace(batch, memories=kept, mark=mark, done=done, total=len(todo), problems=problems)

    def _session(self, file: Transcript, project: Project, *, found: list[Transcript]) -> Batch:
        look = file.peek
        session = Session(
            id=look.session,
            host=self.name,
            project=project.key,
            cwd=redact(look.cwd),
            started=look.started,
            last=look.last,
            ended=look.last,
        )
        spoiled = _Tally()
        told = _Tally()
        try:
            repeated = {
                action.id
                for origin in _origins(file, found)
                for action in actions(origin.path, host=self.name, root=project.root)
                if action.id
            }
            happened = actions(
                file.path,
                host=self.name,
                root=project.root,
                here=lambda cwd: cwd == look.cwd or self._key(cwd) == project.key,
                seen=repeated,
                spoiled=spoiled,
            )
            came = self._distil(told.through(happened), session=session, project=project)
        except OSError as exc:
            self.notes.append(f"{file.path} cannot be read: {exc.strerror or exc}")
            return Batch()
        if spoiled.count:
            self.notes.append(f"{_several(spoiled.count, 'line')} of {file.path} could not be read")
        if not told.count:
            return Batch()
        started = told.first if repeated else look.started
        return Batch(
            memories=tuple(came.memories),
            links=tuple(came.links),
            changes=tuple(came.changes),
            session=replace(session, started=started, last=told.last, ended=told.last, events=told.count),
        )

    # ---- whose is it

    def _files(self, project: Project, *, environ: Mapping[str, str]) -> list[Transcript]:
        paths = _claude(project, environ, self._is_ours) if self.name == "claude-code" else _codex(environ)
        found = []
        for path in paths:
            with contextlib.suppress(OSError):  # gone since it was listed
                written = os.stat(path).st_mtime_ns
                look = peek(path, host=self.name)
                if look and not look.inner and self._is_ours(look, project):
                    key = f"{written:020d} {os.path.basename(path)}"
                    live = abs(self._now() - written / 1e9) < QUIET
                    found.append(Transcript(path=path, key=key, peek=look, live=live))
        return sorted(found, key=lambda each: each.key, reverse=True)

    def _is_ours(self, look: Peek, project: Project) -> bool:
        """By its folder alone; the repository's address counts where that folder is gone."""
        if look.remote and not os.path.isdir(look.cwd):
            return project.key == self._counts_as("git:" + storable(remote(look.remote)))
        return self._key(look.cwd) == project.key

    def _key(self, cwd: str) -> str:
        if cwd not in self._keys:
            try:
                self._keys[cwd] = self._find_project(cwd).key
            except BadRequest:
                self._keys[cwd] = ""
        return self._keys[cwd]


LABELS = {"claude-code": "Claude Code", "codex": "Codex"}


class _Tally:
    """Counts what passes."""

    def __init__(self) -> None:
        self.count = 0
        self.first = self.last = 0.0

    def __call__(self) -> None:
        self.count += 1

    def through(self, passing: Iterable[Action]) -> Iterator[Action]:
        for action in passing:
            self.first = self.first or action.at
            self.last = action.at
            self.count += 1
            yield action


def _origins(file: Transcript, found: list[Transcript]) -> list[Transcript]:
    """The sessions whose lines a resumed or forked one repeats: what both tell is the older one's."""

    def order(each: Transcript) -> tuple[bool, str]:
        return bool(each.peek.parent), each.key

    return [
        each
        for each in found
        if each is not file
        and (
            each.peek.session == file.peek.parent
            or (each.peek.first == file.peek.first != "" and order(each) < order(file))
        )
    ]


# ---- where they lie


def _claude(project: Project, environ: Mapping[str, str], is_ours: Callable[[Peek, Project], bool]) -> Iterator[str]:
    """Files in folders that are called like one of the project's, and in those whose newest file is of the project.

    Two folders may be called the same, so that this says only where to look.
    """
    top = environ.get("CLAUDE_CONFIG_DIR") or os.path.join(environ.get("HOME", ""), ".claude")
    names = tuple(claude_folder(place)[:NAME] for place in (project.root, *_worktrees(project.root)))
    for folder in _folders(os.path.join(top, "projects")):
        files = [
            os.path.join(folder.path, name)
            for name in _listed(folder.path)
            if name.endswith(".jsonl") and not name.startswith("agent-")  # sub-agents' own, in older versions
        ]
        if not files:
            continue
        if folder.name.startswith(names):
            yield from files
            continue
        with contextlib.suppress(OSError):
            newest = peek(max(files, key=os.path.getmtime), host="claude-code")
            if newest and is_ours(newest, project):
                yield from files


def claude_folder(path: str) -> str:
    """What Claude Code calls the folder in which it keeps the transcripts of *path*."""
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in path)


def _codex(environ: Mapping[str, str]) -> Iterator[str]:
    top = environ.get("CODEX_HOME") or os.path.join(environ.get("HOME", ""), ".codex")
    for part in ("sessions", "archived_sessions"):
        for folder, _, names in os.walk(os.path.join(top, part)):
            yield from (os.path.join(folder, n) for n in names if n.startswith("rollout-") and n.endswith(".jsonl"))


def _worktrees(root: str) -> list[str]:
    """The other folders in which the same repository is checked out."""
    git = os.path.join(root, ".git")
    with contextlib.suppress(OSError):
        if os.path.isfile(git):  # one of them itself: gitdir: MAIN/.git/worktrees/NAME
            with open(git, encoding="utf-8", errors="replace") as file:
                git = os.path.dirname(os.path.dirname(os.path.join(root, file.read(4096).partition(": ")[2].strip())))
    found = [os.path.dirname(git)] if git.endswith(".git") else []
    for each in _folders(os.path.join(git, "worktrees")):
        with contextlib.suppress(OSError), open(os.path.join(each.path, "gitdir"), errors="replace") as file:
            found.append(os.path.dirname(file.read(4096).strip()))
    return [place for place in found if place and place != root]


def _folders(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return sorted((each for each in entries if each.is_dir()), key=lambda each: each.name)
    except OSError:
        return []


def _listed(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def _several(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"

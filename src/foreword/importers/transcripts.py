"""Find the transcripts of Claude Code and Codex that are this project's, and extract their sessions, newest first."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from foreword.capture.parse import project_at
from foreword.code import changes
from foreword.encoding import storable
from foreword.errors import BadRequest
from foreword.extract.actions import Action
from foreword.extract.session import Extraction, extract_session
from foreword.importers.base import Batch, Offer, Resolver, pending, plural, with_checkpoints
from foreword.importers.transcript_reader import Peek, actions, peek
from foreword.models import Change, Edit, Project, Session
from foreword.projects import remote
from foreword.redact import redact
from foreword.redact.files import denied

QUIET = 300.0  # seconds without a new line after which a session may be taken for finished; an agent thinks for minutes
NAME = 200  # characters of a folder's name that Claude Code keeps of a longer path


def source(name: str, options: Mapping[str, Any], resolver: Resolver) -> Transcripts:
    del options
    return Transcripts(name, find_project=resolver.at, resolve_key=resolver.key)


@dataclass(frozen=True)
class Transcript:
    """One file of this project; its key is when it was written last."""

    path: str
    key: str
    peek: Peek
    live: bool  # still being written


class Extract(Protocol):
    """Turn the actions of a session into memories."""

    def __call__(self, actions: Iterable[Action], *, session: Session, project: Project) -> Extraction: ...


class Transcripts:
    """The sessions of one agent; *name* is the agent's."""

    def __init__(
        self,
        name: str,
        *,
        extract: Extract | None = None,
        now: Callable[[], float] = time.time,
        find_project: Callable[[str], Project] = project_at,
        resolve_key: Callable[[str], str] = str,
    ) -> None:
        self.name = name
        self.notes: list[str] = []  # what was left out, in sentences
        self._extract = extract or _extract
        self._now = now
        self._find_project = find_project
        self._resolve_key = resolve_key
        self._keys: dict[str, str] = {}

    def offer(self, project: Project, *, environ: Mapping[str, str]) -> Offer | None:
        """Count the sessions of this project, by the two ends of each file."""
        found = self._files(project, environ=environ)
        waiting = sum(each.live for each in found)
        count = len(found) - waiting
        if not found:
            return None
        about = f"{plural(count, 'session')} of {LABELS[self.name]}"
        later = f"; {plural(waiting, 'session')} still going on, for next time" if waiting else ""
        return Offer(source=self.name, about=about + later, count=count)

    def read(self, project: Project, *, environ: Mapping[str, str], checkpoint: str) -> Iterator[Batch]:
        """Yield one batch a session, without those that are still being written."""
        self.notes = []
        found = self._files(project, environ=environ)
        waiting = sum(each.live for each in found)
        if waiting:
            self.notes.append(f"{plural(waiting, 'session')} still going on; import again when it has ended")
        todo = pending((each for each in found if not each.live), checkpoint=checkpoint)
        if not todo and self.notes:
            yield Batch(checkpoint=checkpoint, problems=tuple(self.notes))  # else nobody would see them
        noted = 0
        for done, (each, reached) in enumerate(with_checkpoints(todo, checkpoint=checkpoint), 1):
            batch = self._session(each, project, found=found)
            problems, noted = tuple(self.notes[noted:]), len(self.notes)
            kept = batch.memories if done == 1 else tuple(each for each in batch.memories if each.kind != "handoff")
            # What older sessions left open, the newest knows better.
            yield replace(batch, memories=kept, checkpoint=reached, done=done, total=len(todo), problems=problems)

    def _session(self, file: Transcript, project: Project, *, found: list[Transcript]) -> Batch:
        header = file.peek
        session = Session(
            id=header.session,
            host=self.name,
            project=project.key,
            cwd=redact(header.cwd),
            started=header.started,
            last=header.last,
            ended=header.last,
        )
        spoiled = _Tally()
        seen = _Tally()
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
                here=lambda cwd: cwd == header.cwd or self._key(cwd) == project.key,
                seen=repeated,
                spoiled=spoiled,
            )
            extraction = self._extract(seen.through(happened), session=session, project=project)
        except OSError as exc:
            self.notes.append(f"{file.path} cannot be read: {exc.strerror or exc}")
            return Batch()
        if spoiled.count:
            self.notes.append(f"{plural(spoiled.count, 'line')} of {file.path} could not be read")
        if not seen.count:
            return Batch()
        started = seen.first if repeated else header.started
        return Batch(
            memories=tuple(extraction.memories),
            links=tuple(extraction.links),
            changes=tuple(extraction.changes),
            session=replace(session, started=started, last=seen.last, ended=seen.last, events=seen.count),
        )

    def _files(self, project: Project, *, environ: Mapping[str, str]) -> list[Transcript]:
        paths = _claude(project, environ, self._is_ours) if self.name == "claude-code" else _codex(environ)
        found = []
        for path in paths:
            with contextlib.suppress(OSError):  # gone since it was listed
                written = os.stat(path).st_mtime_ns
                header = peek(path, host=self.name)
                if header and not header.inner and self._is_ours(header, project):
                    key = f"{written:020d} {os.path.basename(path)}"
                    live = abs(self._now() - written / 1e9) < QUIET
                    found.append(Transcript(path=path, key=key, peek=header, live=live))
        return sorted(found, key=lambda each: each.key, reverse=True)

    def _is_ours(self, header: Peek, project: Project) -> bool:
        """Decide by the folder; by the repository's address where that folder is gone."""
        if header.remote and not os.path.isdir(header.cwd):
            return project.key == self._resolve_key("git:" + storable(remote(header.remote)))
        return self._key(header.cwd) == project.key

    def _key(self, cwd: str) -> str:
        if cwd not in self._keys:
            try:
                self._keys[cwd] = self._find_project(cwd).key
            except BadRequest:
                self._keys[cwd] = ""
        return self._keys[cwd]


LABELS = {"claude-code": "Claude Code", "codex": "Codex"}


def _extract(actions: Iterable[Action], *, session: Session, project: Project) -> Extraction:
    def changes_of(edit: Edit) -> Sequence[Change]:
        # By the session's own record alone: the files of today say nothing about an old session.
        return () if denied(edit.file) else changes([edit])

    return extract_session(actions, session=session, project=project, changes_of=changes_of)


class _Tally:
    """Count what passes, and note the first and the last time."""

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
    """Return the sessions whose lines a resumed or forked one repeats: what both hold is the older one's."""

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
    """Yield the files in folders named like one of the project's, and in those whose newest file is of the project.

    Two folders may have the same name, so that this says only where to look.
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
    """Return the name of the folder in which Claude Code keeps the transcripts of *path*."""
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in path)


def _codex(environ: Mapping[str, str]) -> Iterator[str]:
    top = environ.get("CODEX_HOME") or os.path.join(environ.get("HOME", ""), ".codex")
    for part in ("sessions", "archived_sessions"):
        for folder, _, names in os.walk(os.path.join(top, part)):
            yield from (os.path.join(folder, n) for n in names if n.startswith("rollout-") and n.endswith(".jsonl"))


def _worktrees(root: str) -> list[str]:
    """Return the other folders in which the same repository is checked out."""
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

"""A folder or a key -> the one project that it counts as, for reading and writing alike; where projects were seen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from foreword.capture.parse import project_at
from foreword.capture.payload import HookCall
from foreword.errors import StoreError
from foreword.models import EMPTY, Change, Event, Injection, Memory, Project, Session
from foreword.redact import redact
from foreword.store import Store
from foreword.store.projects import counts_as

if TYPE_CHECKING:
    from foreword.models import KnownProject

T = TypeVar("T", HookCall, Injection, Session, Event, Change, Memory)

FRESH = 2.0  # seconds: a new remote or `git init` counts after this
MOST = 1000  # folders that are kept in mind
ON_ITS_WAY = 30.0  # seconds: what was read before a merge is written long before that
AGAIN = 3600.0  # seconds until it is written down again that a project was seen


class Registry:
    """Resolves every folder and every key, so that an alias counts wherever a project is named."""

    def __init__(self, *, store: Callable[[], Store], now: Callable[[], float] = time.time) -> None:
        self._store = store
        self._now = now
        self._found: dict[str, tuple[float, Project]] = {}  # by folder, as the files say
        self._raw: dict[str, str] = {}  # root -> its key before aliases
        self._seen: dict[tuple[str, str], float] = {}  # key and root -> when that was written down
        self._due: dict[tuple[str, str], Project] = {}  # to be written down
        self._merged: dict[str, tuple[float, str]] = {}  # key -> until when, into which
        self._writing = threading.Lock()  # who finds nothing due may read what another has just written

    def at(self, folder: str) -> Project:
        """The project of a folder, remembered for a moment: a session asks for the same one at every event."""
        now = time.monotonic()
        known = self._found.get(folder)
        if known is None or now - known[0] > FRESH:
            if len(self._found) > MOST:
                self._found.clear()
                self._raw.clear()
            known = self._found[folder] = (now, project_at(folder))
            self._raw[known[1].root] = known[1].key
        return self.counted(known[1])

    def seen_at(self, folder: str) -> Project:
        """The same, where something is about to be kept there."""
        project = self.at(folder)
        self.saw(project)
        return project

    def counted(self, project: Project) -> Project:
        """The project that this one counts as, under the name that people gave it."""
        known = self.known()
        key = self.key(project.key)
        name = known[key].name if key in known else ""
        return replace(project, key=key, name=name or project.name)

    def named(self, key: str) -> Project:
        """The project of a key, which it counts as, with its name and its root as far as they are known."""
        key = self.key(key)
        known = self.known().get(key)
        return Project(key=key, name=known.name if known else "", root=known.root if known else "")

    def key(self, key: str) -> str:
        """The key that this one counts as."""
        return counts_as(key, self.known())

    def own(self, told: T) -> T:
        """Something that names a project, with the key which that counts as."""
        key = self.key(told.project)
        if key == told.project:
            return told
        if isinstance(told, Memory) and told.scope == f"project:{told.project}":
            return replace(told, project=key, scope=f"project:{key}")  # type: ignore[call-arg]
        return replace(told, project=key)

    def raw(self, project: Project) -> str:
        """The key that a project's folder has by itself, whatever it counts as."""
        return self._raw.get(project.root, project.key)

    def saw(self, project: Project | None) -> None:
        """Keep in mind that something happened in a project; nobody waits until it is written down."""
        if project is None or not project.key:
            return
        looked = bool(project.name)  # without a name nobody looked: it is some folder in it
        key, root = (self.raw(project), project.root) if looked else (project.key, "")
        before = self._seen.get((key, root))
        if before is not None and 0 <= self._now() - before < AGAIN:
            return
        if len(self._seen) > MOST:
            self._seen.clear()
        self._seen[key, root] = self._now()
        if looked or key not in self.known():
            root = root if redact(root) == root else ""  # a folder's name may look like a secret
            self._due[key, root] = Project(key=key, name=project.name if key == project.key else "", root=root)

    def note(self) -> None:
        """Write down what was seen, when it is new and then once an hour; what a merge missed is brought along."""
        with self._writing:
            self._note()

    def _note(self) -> None:
        if self._due:
            due, self._due = self._due, {}
            try:
                self._store().projects.see(list(due.values()), at=self._now())
            except StoreError:
                for place in due:  # nobody waits for it again and again: it is due when something happens there
                    self._seen.pop(place, None)
                raise
        for key, (until, into) in tuple(self._merged.items()):
            self._store().projects.merge_late_rows(key, into=into)
            if time.monotonic() > until:
                del self._merged[key]

    def merged(self, key: str, *, into: str) -> None:
        """A project became another: what was on its way to the old one is looked for a while."""
        self._merged[key] = (time.monotonic() + ON_ITS_WAY, into)

    def known(self) -> Mapping[str, KnownProject]:
        try:
            return self._store().projects.all()
        except StoreError:
            return EMPTY

"""Find the project of a folder or key, aliases resolved; list, describe and merge projects."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from foreword import policy
from foreword.capture.parse import project_at
from foreword.capture.payload import HookCall
from foreword.errors import BadRequest, NotFound, StoreError
from foreword.models import EMPTY, Change, Event, Injection, KnownProject, Memory, Project, ProjectContents, Session
from foreword.policy import LISTS, Policy, chosen, listed
from foreword.redact import redact
from foreword.store.projects import counts_as, names
from foreword.worker import serialize
from foreword.worker.services import Services

if TYPE_CHECKING:
    from foreword.worker.app import App

T = TypeVar("T", HookCall, Injection, Session, Event, Change, Memory)

FRESH = 2.0  # seconds: a new remote or `git init` counts after this
MOST_FOLDERS = 1000  # folders whose project is kept in memory
SEEN_EVERY = 3600.0  # seconds until it is stored again that a project was seen
FACTS = ("role", "contracts", "depends_on")
LIST_HINT = "`foreword project list` shows all of them"


class ProjectRegistry:
    """Resolves every folder and every key, so that an alias counts wherever a project is named."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._by_folder: dict[str, tuple[float, Project]] = {}  # before aliases
        self._raw: dict[str, str] = {}  # root -> its key before aliases
        self._seen: dict[tuple[str, str], float] = {}  # key and root -> when that was stored
        self._unstored: dict[tuple[str, str], Project] = {}
        self._storing = threading.Lock()  # whoever finds nothing to store may read what another has just stored

    # -- lookups ------------------------------------------------------------------------------------------------
    def at(self, folder: str) -> Project:
        """Return the project of a folder, cached for a moment: a session asks for the same one at every event."""
        now = time.monotonic()
        known = self._by_folder.get(folder)
        if known is None or now - known[0] > FRESH:
            if len(self._by_folder) > MOST_FOLDERS:
                self._by_folder.clear()
                self._raw.clear()
            known = self._by_folder[folder] = (now, project_at(folder))
            self._raw[known[1].root] = known[1].key
        found = self.named(known[1].key)  # another one, where it is an alias; with the name that people gave it
        return replace(known[1], key=found.key, name=found.name or known[1].name)

    def key_at(self, folder: str) -> str:
        """Return the key of a folder's project; empty without a folder."""
        return self.at(folder).key if folder else ""

    def seen_at(self, folder: str) -> Project:
        """Return the project of a folder where something is about to be kept."""
        project = self.at(folder)
        self.saw(project)
        return project

    def named(self, key: str) -> Project:
        """Return the project that a key counts as, with its name and root as far as they are known."""
        known = self.known()
        key = counts_as(key, known)
        about = known.get(key)
        return Project(key=key, name=about.name if about else "", root=about.root if about else "")

    def of_session(self, key: str, folder: str, *, root: str = "") -> Project:
        """Return the project of a session's folder if it has this key; else one of which only the key is known."""
        with suppress(BadRequest):
            found = self.at(folder)
            if found.key == key:
                return found
        return Project(key=key, name="", root=root)

    def raw_key(self, project: Project) -> str:
        """Return the key that a project's folder has by itself, whatever it counts as."""
        return self._raw.get(project.root, project.key)

    def resolve(self, item: T) -> T:
        """Return something that names a project, with the key which that counts as."""
        key = self.named(item.project).key
        if key == item.project:
            return item
        if isinstance(item, HookCall | Event):
            return item._replace(project=key)
        if isinstance(item, Memory) and item.scope == f"project:{item.project}":
            return replace(item, project=key, scope=f"project:{key}")  # type: ignore[call-arg]
        return replace(item, project=key)

    def known(self) -> Mapping[str, KnownProject]:
        try:
            return self._services.store.projects.all()
        except StoreError:
            return EMPTY

    # -- policy -------------------------------------------------------------------------------------------------
    def policy(self, project: Project | None) -> Policy:
        """Return what is switched off in a project; one that a hook named by its key alone is looked up."""
        if project is not None and not project.name:
            project = self.of_session(project.key, project.root, root=project.root)
        return policy.off(project, chosen(self._services.settings))

    # -- what was seen ------------------------------------------------------------------------------------------
    def saw(self, project: Project | None) -> None:
        """Remember that something happened in a project; nobody waits until it is stored."""
        if project is None or not project.key:
            return
        has_name = bool(project.name)  # without one it is any folder in it
        key, root = (self.raw_key(project), project.root) if has_name else (project.key, "")
        now = self._services.now()
        if 0 <= now - self._seen.get((key, root), -SEEN_EVERY) < SEEN_EVERY:
            return
        if len(self._seen) > MOST_FOLDERS:
            self._seen.clear()
        self._seen[key, root] = now
        if has_name or key not in self.known():
            root = root if redact(root) == root else ""  # a folder's name may look like a secret
            self._unstored[key, root] = Project(key=key, name=project.name if key == project.key else "", root=root)

    def store_seen(self) -> None:
        """Store which projects were seen; where that fails, they wait for the next time."""
        with self._storing:
            if seen := dict(self._unstored):
                self._services.store.projects.see(list(seen.values()), at=self._services.now())
                for place in seen:
                    self._unstored.pop(place, None)


# ---- handlers


def list_projects(app: App) -> dict[str, Any]:
    """Return every project that was seen or has something kept, the last one first, with what aliases count as.

    `label` tells apart those that have the same name.
    """
    known, held = _known(app)
    label = names(known, also=held)
    rows = [{**_row(key, known, held), "label": label(key)} for key in {*known, *held}]
    return {"projects": sorted(rows, key=lambda row: (-row["last"], row["key"]))}


def show_project(app: App, *, of: str = "", project_path: str = "") -> dict[str, Any]:
    """Return all that is known of one project, and what might be done about it."""
    app.follow_settings()  # `project off` changed them a moment ago: then nothing more is captured or injected
    known, held = _known(app)
    folder = of if of.startswith("/") else "" if of else project_path
    project = app.projects.named(_key(of, known, held)) if of and not folder else app.projects.at(folder)
    aliases = sorted(key for key, each in known.items() if each.alias_of == project.key)
    row = _row(project.key, known, held)
    roots = [root for key in (project.key, *aliases) if key in known for root in known[key].roots]
    uid = f"prj:{project.key}"  # of the memory that describes it
    same = app.store.memories.get_by_uid([uid])
    facts = next((each for each in same if (each.status, each.scope) == ("active", project.scope)), None)
    # Other keys of the same folder: a remote that came or changed, a repository that was made.
    hints = [
        f"this folder was known as {key} ({held[key].memories} memories): `foreword project merge {key}`"
        for key, each in known.items()
        if project.root and project.root in each.roots and key in held and held[key].memories
        if counts_as(key, known) != project.key
    ]
    return {
        **row,
        "name": row["name"] or project.name,
        "roots": list(dict.fromkeys(roots)),
        "kinds": dict(held[project.key].kinds) if project.key in held else {},
        "aliases": aliases,
        "facts": {name: facts.detail[name] for name in FACTS if facts and facts.detail.get(name)},
        "uid": uid,
        "switches": _switches(app, project, aliases),
        "hints": hints,
    }


def merge_project(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Move everything of another project here, and let its key count as this one from now on."""
    name = serialize.text(body, "other")
    if not name:
        raise BadRequest("name another project", hint=f"give its folder or its key; {LIST_HINT}")
    registry = app.projects
    project = registry.seen_at(serialize.text(body, "project_path"))
    registry.store_seen()
    other = registry.raw_key(registry.at(name)) if name.startswith("/") else _key(name, *_known(app))
    counted = registry.named(other).key
    if project.key in (other, counted):
        raise BadRequest(f"{other} is this project already", hint=f"name another project; {LIST_HINT}")
    if counted != other:
        raise BadRequest(f"{other} is merged into {counted}", hint="merge that project")
    if _switches(app, registry.named(other), ()) != _switches(app, project, ()):
        raise BadRequest(
            f"{other} and {project.key} are not switched alike",
            hint="give both the same state by `foreword project off` or `on`: merging must not switch capture on",
        )
    if app.imports.is_busy(other, project.key):
        raise BadRequest("an import of one of them is running", hint="wait until it is done, and merge then")
    merge = app.store.projects.merge
    entry = app.extraction.apart(lambda: merge(other, into=project.key, who="user", at=app.now())).result()
    return {**entry.patch["moved"], "entry": entry.number}


def _known(app: App) -> tuple[Mapping[str, KnownProject], Mapping[str, ProjectContents]]:
    with suppress(StoreError):  # a store that is locked can be read
        app.projects.store_seen()
    return app.projects.known(), app.store.projects.contents()


def _key(name: str, known: Mapping[str, KnownProject], held: Mapping[str, ProjectContents]) -> str:
    if name in known or name in held:
        return name
    keys = [key for key, each in known.items() if each.name == name and not each.alias_of]
    if len(keys) == 1:
        return keys[0]
    if keys:
        raise BadRequest(f"several projects have the name {name}", hint=f"name one of {', '.join(sorted(keys))}")
    raise NotFound(f"unknown project {name[:200]!r}", hint=LIST_HINT)


def _row(key: str, known: Mapping[str, KnownProject], held: Mapping[str, ProjectContents]) -> dict[str, Any]:
    about = known.get(key, KnownProject(key))
    has = held.get(key, ProjectContents())
    return {
        **{name: getattr(about, name) for name in ("key", "name", "root", "alias_of", "first")},
        "memories": has.memories,
        "sessions": has.sessions,
        "last": max(about.last, has.last),
    }


def _switches(app: App, project: Project, aliases: Sequence[str]) -> dict[str, bool]:
    """Return for each list of switched-off projects whether it names this one or an alias of it."""
    same = [replace(project, key=key) for key in (project.key, *aliases)]
    return {name: any(listed(each, getattr(app.settings, name)) for each in same) for name in LISTS}

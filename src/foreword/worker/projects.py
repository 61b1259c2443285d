"""What people ask and say of projects -> what is known of each, its facts, and which counts as which."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from foreword.audit import AuditEntry, MemoryChange
from foreword.config import Settings
from foreword.errors import BadRequest, NotFound, StoreError
from foreword.extract.merge import merge
from foreword.models import Memory, Project, moved, texts
from foreword.policy import LISTS, chosen, listed, off, refuse_to_write
from foreword.redact import redact
from foreword.store import Store
from foreword.worker import requests
from foreword.worker.project_lookup import Registry
from foreword.worker.requests import text

if TYPE_CHECKING:
    from foreword.models import KnownProject, ProjectContents

FACTS = ("role", "contracts", "depends_on", "related")
MOST_FACTS = 20  # of one sort
LIST = "`foreword project list` tells which there are"


class Projects:
    """Answers for one store, through the one registry."""

    def __init__(
        self,
        *,
        store: Callable[[], Store],
        registry: Registry,
        settings: Callable[[], Settings],
        alone: Callable[[Callable[[], Any]], Any],
        importing: Callable[..., bool],
        now: Callable[[], float],
    ) -> None:
        self._store, self._registry, self._settings = store, registry, settings
        self._alone = alone  # while nothing is distilled
        self._importing = importing
        self._now = now

    def every(self) -> dict[str, Any]:
        """Every project that was seen or has something kept, the last one first; aliases with what they count as."""
        known, held = self._known()
        rows = [self._row(key, known, held) for key in {*known, *held}]
        return {"projects": sorted(rows, key=lambda row: (-row["last"], row["key"]))}

    def show(self, *, of: str = "", project_path: str = "") -> dict[str, Any]:
        """All that is known of one project, and what might be done about it."""
        project = self._named(of, project_path=project_path)
        known, held = self._known()
        aliases = sorted(key for key, each in known.items() if each.alias_of == project.key)
        told = self._row(project.key, known, held)
        roots = [root for key in (project.key, *aliases) if key in known for root in known[key].roots]
        facts = self._facts(project.key)
        return {
            **told,
            "name": told["name"] or project.name,
            "roots": list(dict.fromkeys(roots)),
            "kinds": dict(held[project.key].kinds) if project.key in held else {},
            "aliases": aliases,
            "facts": {name: facts.detail[name] for name in FACTS if facts and facts.detail.get(name)},
            "memory": facts.id if facts else "",
            "switches": self._switches(project, aliases),
            "hints": self._hints(project, known, held),
        }

    def say(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """What a project is: its role, contracts, dependencies and related projects, in one memory; its name."""
        project = self._named("", project_path=text(told, "project_path"))
        given: dict[str, Any] = {name: told[name] for name in FACTS if told.get(name) is not None}
        name = redact(text(told, "name")).strip()
        if not given and not name:
            raise BadRequest("nothing is to be set", hint="give --role, --contract, --depends-on, --related or --name")
        if name:
            self._registry.saw(project)
            self._registry.note()
            self._store().projects.rename(project.key, name)
        if given:
            refuse_to_write(off(project, chosen(self._settings())), project)
            self._keep(project, {sort: self._said(sort, given, project) for sort in given})
        return self.show(of=project.key)

    def alias(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Let another folder or key count as this project from now on."""
        project = self._named("", project_path=text(told, "project_path"))
        other = self._other(text(told, "other"))
        self._refuse_other(other, project)
        has = self._store().projects.row_counts(other)
        if has["memories"] or has["sessions"]:
            raise BadRequest(
                f"{other} has {has['memories']} memories and {has['sessions']} sessions of its own",
                hint=f"`foreword project merge {other}` moves them here",
            )
        self._registry.saw(project)
        self._registry.note()
        entry = self._store().projects.alias(other, of=project.key, who="user", at=self._now())
        return {"alias": other, "of": project.key, "entry": entry.number}

    def unalias(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Let a folder or key count as itself again; what was kept meanwhile stays where it is."""
        other = self._other(text(told, "other"))
        if self._registry.key(other) == other:
            raise BadRequest(f"{other} is no alias", hint="`foreword project show` lists a project's aliases")
        was = self._registry.key(other)
        entry = self._store().projects.alias(other, of="", who="user", at=self._now())
        return {"alias": other, "of": "", "was": was, "entry": entry.number}

    def merge(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Move everything of another project here, and let its key count as this one; *dry_run* only tells."""
        project = self._named("", project_path=text(told, "project_path"))
        other = self._other(text(told, "other"))
        self._refuse_other(other, project)
        store = self._store()
        rows = dict(store.projects.row_counts(other))
        about = {"from": other, "into": project.key, "name": project.name}
        if told.get("dry_run"):
            return {**about, "rows": rows, "united": self._same(other, project), "entry": 0}
        if self._importing(other, project.key):
            raise BadRequest("an import of one of them is running", hint="wait until it is done, and merge then")
        self._registry.saw(project)
        self._registry.note()
        got = self._alone(
            lambda: store.projects.merge(other, into=project.key, unite=united, who="user", at=self._now())
        )
        self._registry.merged(other, into=project.key)
        return {**about, "rows": dict(got.rows), "united": got.united, "entry": got.entry.number}

    # -- which project ------------------------------------------------------------------------------------------
    def _named(self, told: str, *, project_path: str) -> Project:
        """The project of a folder, a key or a name, as which it counts."""
        if not told:
            return self._registry.at(project_path)
        if told.startswith("/"):
            return self._registry.at(told)
        known, held = self._known()
        key = self._registry.key(self._key(told, known, held))
        about = known.get(key)
        return Project(key=key, name=about.name if about else "", root=about.root if about else "")

    def _other(self, told: str) -> str:
        """The key of a folder by itself, or one that is known, or that of a name which only one project has."""
        if not told:
            raise BadRequest("another project must be named", hint="give its folder or its key; " + LIST)
        if told.startswith("/"):
            project = self._registry.at(told)
            return self._registry.raw(project)
        return self._key(told, *self._known())

    def _key(self, told: str, known: Mapping[str, KnownProject], held: Mapping[str, ProjectContents]) -> str:
        if told in known or told in held:
            return told
        named = [key for key, each in known.items() if each.name == told and not each.alias_of]
        if len(named) == 1:
            return named[0]
        if named:
            raise BadRequest(f"several projects are called {told}", hint=f"name one of {', '.join(sorted(named))}")
        raise NotFound(f"no project is known as {told[:200]!r}", hint=LIST)

    def _refuse_other(self, other: str, project: Project) -> None:
        counts_as = self._registry.key(other)
        if project.key in (other, counts_as):
            raise BadRequest(f"{other} is this project already", hint="name another one; " + LIST)
        if counts_as != other:
            raise BadRequest(f"{other} counts as {counts_as}", hint=f"`foreword project unalias {other}` first")
        about = self._registry.known().get(other)
        theirs = self._switches(Project(key=other, name="", root=about.root if about else ""), ())
        ours = self._switches(project, ())
        if theirs != ours:
            raise BadRequest(
                f"{other} and {project.key} are not switched alike ({_told(theirs)}; {_told(ours)})",
                hint="`foreword project off` and `on` make them alike: what is off must not come on by this",
            )

    # -- what is known of one -----------------------------------------------------------------------------------
    def _known(self) -> tuple[Mapping[str, KnownProject], Mapping[str, ProjectContents]]:
        with suppress(StoreError):  # one that is locked can be read
            self._registry.note()
        return self._registry.known(), self._store().projects.contents()

    def _row(self, key: str, known: Mapping[str, KnownProject], held: Mapping[str, ProjectContents]) -> dict[str, Any]:
        about, has = known.get(key), held.get(key)
        return {
            "key": key,
            "name": about.name if about else "",
            "root": about.root if about else "",
            "alias_of": about.alias_of if about else "",
            "memories": has.memories if has else 0,
            "sessions": has.sessions if has else 0,
            "first": about.first if about else 0.0,
            "last": max(about.last if about else 0.0, has.last if has else 0.0),
        }

    def _switches(self, project: Project, aliases: Sequence[str]) -> dict[str, bool]:
        named = [replace(project, key=key) for key in (project.key, *aliases)]
        lists = {name: getattr(self._settings(), name) for name in LISTS}
        return {name: any(listed(each, entries) for each in named) for name, entries in lists.items()}

    def _hints(
        self, project: Project, known: Mapping[str, KnownProject], held: Mapping[str, ProjectContents]
    ) -> list[str]:
        """The same folder under another key: a remote that came or changed, a repository that was made."""
        return [
            f"this folder was known as {key} ({held[key].memories} memories): `foreword project merge {key}`"
            for key, each in known.items()
            if project.root and project.root in each.roots and key in held and held[key].memories
            if self._registry.key(key) != project.key
        ]

    def _facts(self, key: str) -> Memory | None:
        found = self._store().memories.get_by_uid([f"prj:{key}"])
        return next((each for each in found if each.status == "active" and each.scope == f"project:{key}"), None)

    # -- what is said of one ------------------------------------------------------------------------------------
    def _said(self, sort: str, told: Mapping[str, Any], project: Project) -> Any:
        if sort == "role":
            return redact(text(told, "role")).strip()
        given = [each.strip() for each in requests.texts(told, sort) if each.strip()]
        if len(given) > MOST_FACTS:
            raise BadRequest(f"`{sort}` must be a list of at most {MOST_FACTS} texts", hint="say the most important")
        return [self._related(each, project) if sort == "related" else redact(each) for each in given]

    def _related(self, told: str, project: Project) -> str:
        """The name of a related project; of its memory nothing is ever told."""
        other = self._named(told, project_path="")
        if other.key == project.key:
            raise BadRequest("a project is not related to itself", hint="name another one; " + LIST)
        return redact(other.name or other.key)

    def _keep(self, project: Project, given: Mapping[str, Any]) -> AuditEntry:
        uid, now = f"prj:{project.key}", self._now()
        before = next(iter(self._store().memories.get_by_uid([uid])), None)
        old = before.detail if before and before.status == "active" else {}
        detail = {name: told for name, told in {**old, **given}.items() if told}
        title = str(detail.get("role") or project.name or project.key)
        if before is not None:
            after = replace(before, title=title, detail=detail, status="active", confirmed=now, superseded_by="")
            memory_change = MemoryChange("project", f"facts of {project.key}", changed=((before, after),))
        else:
            new = Memory("project", title, uid=uid, scope=project.scope, project=project.key, detail=detail)
            memory_change = MemoryChange(
                "project", f"facts of {project.key}", new=(replace(new, created=now, confirmed=now),)
            )
        [entry] = self._store().audit.apply([memory_change], who="user", at=now)
        return entry

    def _same(self, other: str, project: Project) -> int:
        """How many memories of another project this one has as well."""
        store, after, same = self._store(), 0, 0
        while page := store.memories.page(after=after, scopes=(f"project:{other}",)):
            after = page[-1][0]
            there = [
                moved(each.uid, old=other, new=project.key, kind=each.kind, title=each.title)
                for _, each in page
                if each.status == "active"
            ]
            same += len(
                store.memories.get_by_uid([uid for uid in there if project.key in uid or uid.startswith("agent-")])
            )
        return same


def united(known: Memory, other: Memory) -> Memory:
    """Two memories that say the same of what became one project, with the evidence of both."""
    older, newer = sorted((known, other), key=lambda each: each.confirmed)
    both = merge(older, newer)
    lists = {
        name: list(dict.fromkeys((*texts(known.detail, name), *texts(other.detail, name))))
        for name in (("contracts", "depends_on", "related") if known.kind == "project" else ())
    }
    counted = "seen_in" in both.detail
    return replace(
        both,
        created=min(known.created, other.created),
        seen=both.seen if counted else known.seen + other.seen,
        pinned=known.pinned,
        used=known.used,
        ignored=known.ignored,
        detail={**both.detail, **{name: told for name, told in lists.items() if told}},
    )


def _told(switches: Mapping[str, bool]) -> str:
    return ", ".join(name for name, on in switches.items() if on) or "nothing is off"

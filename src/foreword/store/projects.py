"""The projects that were seen: where, under which name, which counts as which; and one merged into another."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from foreword.encoding import dumps
from foreword.models import KnownProject, Project, ProjectContents, moved
from foreword.store.sql import Repository, transaction

if TYPE_CHECKING:
    from foreword.audit import AuditEntry
    from foreword.store import Store

MOST_ROOTS = 20  # folders of one project; whoever has more clones has forgotten the first
TABLES = ("sessions", "events", "changes", "injections", "log")  # that name a project, besides memories


class Projects(Repository):
    """All projects."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._known: tuple[int, Mapping[str, KnownProject]] = (-1, {})  # as they were read last, at which commit

    def all(self) -> Mapping[str, KnownProject]:
        """Return the projects that were seen, by key; another object whenever that has changed."""
        commits = self._db.commits
        if self._known[0] != commits:
            fresh = self._read()
            self._known = (commits, self._known[1] if fresh == self._known[1] else fresh)
        return self._known[1]

    def contents(self) -> dict[str, ProjectContents]:
        """Return what is kept of each project, by key; also of projects that nobody saw."""
        kinds: dict[str, dict[str, int]] = {}
        for scope, kind, many in self._all(
            # Over the index of active memories alone.
            """SELECT o.scope, m.kind, m.many FROM owners o JOIN
            (SELECT owner, kind, count(*) AS many FROM memories WHERE status = 'active' GROUP BY owner, kind) m
            ON m.owner = o.number WHERE o.scope LIKE 'project:%' ORDER BY 1, 2"""
        ):
            kinds.setdefault(scope.removeprefix("project:"), {})[kind] = many
        rows = self._all("SELECT project, count(*), max(last) FROM sessions WHERE project <> '' GROUP BY project")
        sessions = {project: (many, last) for project, many, last in rows}
        return {key: ProjectContents(kinds.get(key, {}), *sessions.get(key, (0, 0.0))) for key in {*kinds, *sessions}}

    @transaction
    def see(self, projects: Sequence[Project], *, at: float) -> None:
        """Note where projects were seen, and under which name the first time."""
        known = self._read()
        for project in projects:
            before = known.get(project.key, KnownProject(project.key))
            roots = tuple(dict.fromkeys(filter(None, (project.root, *before.roots))))[:MOST_ROOTS]
            known[project.key] = before._replace(roots=roots)  # another folder of it may follow
            self._db.execute(
                """INSERT INTO projects (key, name, root, roots, first, last) VALUES (?, ?, ?, ?, ?, ?)
                ON CONFLICT (key) DO UPDATE SET root = excluded.root, roots = excluded.roots,
                name = CASE WHEN name = '' THEN excluded.name ELSE name END, last = max(last, excluded.last)""",
                (project.key, project.name, project.root or before.root, dumps(roots), at, at),
            )

    @transaction
    def merge(self, key: str, *, into: str, who: str, at: float) -> AuditEntry:
        """Make everything of a project another's, all or nothing, and its key an alias; this cannot be undone."""
        rows = self._move(key, into)
        for other in (key, *(other for other, known in self._read().items() if known.alias_of == key)):
            self._db.execute(
                "INSERT INTO projects (key, alias_of) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET alias_of = ?2",
                (other, into),
            )
        from foreword.store.audit import MERGE  # late: a hook without a worker pays for every import

        patch = {"moved": {"from": key, "into": into, "rows": rows}}
        return self._store.audit.note(MERGE, f"{key} into {into}", patch, who=who, at=at, project=into, ids=())

    def _read(self) -> dict[str, KnownProject]:
        rows = self._all("SELECT key, name, root, roots, alias_of, first, last FROM projects ORDER BY key")
        values: Iterable[Any] = ((*row[:3], tuple(json.loads(row[3])), *row[4:]) for row in rows)
        return {row[0]: KnownProject(*row) for row in values}

    # -- inside a change ----------------------------------------------------------------------------------------
    def _move(self, key: str, into: str) -> dict[str, int]:
        """Give every row of a project to another; return their number by table.

        Uids become those of the new project. A memory that it has already supersedes the one that comes.
        """
        self._db.flush()
        after = memories = 0
        while page := self._store.memories.page(after=after, scopes=(f"project:{key}",)):
            for _, memory in page:
                uid = moved(memory.uid, old=key, new=into, kind=memory.kind, title=memory.title)
                known = self._store.memories.get_by_uid([uid]) if uid != memory.uid else ()
                change: dict[str, str] = {}
                if not known:
                    self._db.execute("UPDATE memories SET uid = ? WHERE id = ?", (uid, memory.id))
                    change = {"uid": uid}
                elif memory.status == "active":
                    change = {"status": "superseded", "superseded_by": known[0].id}
                self._store.memories.put([replace(memory, scope=f"project:{into}", **change)])  # type: ignore[arg-type]
            after, memories = page[-1][0], memories + len(page)
        rows = {}
        for table in ("memories", *TABLES):
            # Of a function that one session changed in both, the other's row stays as it is.
            self._db.execute(f"UPDATE OR IGNORE {table} SET project = ? WHERE project = ?", (into, key))
            rows[table] = self._db.connection.changes()
        return {**rows, "memories": memories}


def counts_as(key: str, known: Mapping[str, KnownProject]) -> str:
    """Return the key that this one counts as: another one's, where it is an alias."""
    return (known[key].alias_of if key in known else "") or key


def names(known: Mapping[str, KnownProject], *, also: Iterable[str] = ()) -> Callable[[str], str]:
    """Return what people call each project, by its key; of several with one name, also how their keys end.

    *also* are keys of which something is kept, though nobody has noted yet that they were seen.
    """
    same: dict[str, list[str]] = {}
    for key in dict.fromkeys((*known, *also)):
        if key not in known or not known[key].alias_of:
            same.setdefault(_called(key, known), []).append(key)

    def name(key: str) -> str:
        own = _called(key, known)
        end = "/".join(key.split("/")[-2:])
        return f"{own} ({end})" if any(other != key for other in same.get(own, ())) else own

    return name


def _called(key: str, known: Mapping[str, KnownProject]) -> str:
    """Return a project's name; of one that nobody named yet, how its key ends."""
    return (known[key].name if key in known else "") or key.rpartition("/")[2] or key

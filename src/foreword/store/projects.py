"""The projects that were seen: where, under which name, which counts as which; and one merged into another."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from foreword.audit import AuditEntry
from foreword.encoding import dumps
from foreword.errors import BadRequest
from foreword.models import KnownProject, Memory, Project, ProjectContents, moved
from foreword.store.audit import ALIAS, MERGE
from foreword.store.sql import Repository, transaction

if TYPE_CHECKING:
    from foreword.store import Store

MOST_ROOTS = 20  # folders of one project; whoever has more clones has forgotten the first
TABLES = ("sessions", "events", "changes", "injections", "no_context", "log")  # that name a project, besides memories


class Merged(NamedTuple):
    """What a merge moved, by table, and how many memories became one with another."""

    rows: Mapping[str, int]
    united: int
    entry: AuditEntry


class Projects(Repository):
    """All projects."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._known: tuple[int, Mapping[str, KnownProject]] = (-1, {})  # as they were read last, at which commit

    def resolve(self, project: Project) -> Project:
        """Return the project that this one counts as: itself, or the one that it is an alias of, with its name."""
        rows = self._all(
            """SELECT t.key, t.name FROM projects p JOIN projects t ON t.key = coalesce(nullif(p.alias_of, ''), p.key)
            WHERE p.key = ?""",
            (project.key,),
        )
        return replace(project, key=rows[0][0], name=rows[0][1] or project.name) if rows else project

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

    def row_counts(self, key: str) -> dict[str, int]:
        """Return how many rows of every table are a project's, whatever their status."""
        self._db.flush()
        of_scope = "owner = (SELECT number FROM owners WHERE scope = 'project:' || ?)"
        where = {"memories": of_scope, **dict.fromkeys(TABLES, "project = ?")}
        return {
            table: self._all(f"SELECT count(*) FROM {table} WHERE {each}", (key,))[0][0]
            for table, each in where.items()
        }

    @transaction
    def see(self, projects: Sequence[Project], *, at: float) -> None:
        """Note where projects were seen, and under which name the first time."""
        known = self._read()
        for project in projects:
            before = known.get(project.key, KnownProject(project.key))
            roots = tuple(dict.fromkeys(filter(None, (project.root, *before.roots))))[:MOST_ROOTS]
            self._db.execute(
                """INSERT INTO projects (key, name, root, roots, first, last) VALUES (?, ?, ?, ?, ?, ?)
                ON CONFLICT (key) DO UPDATE SET root = excluded.root, roots = excluded.roots,
                name = CASE WHEN name = '' THEN excluded.name ELSE name END, last = max(last, excluded.last)""",
                (project.key, project.name, project.root or before.root, dumps(roots), at, at),
            )

    @transaction
    def alias(self, key: str, *, of: str, who: str, at: float) -> AuditEntry:
        """Let a project count as another from now on, or with none named as itself again; logged, and can be undone.

        No alias leads to another one.
        """
        known = self._read()
        if of and known.get(of, KnownProject(of)).alias_of:
            raise BadRequest(f"{of} is itself an alias", hint=f"name {known[of].alias_of}")
        if of and (of == key or any(each.alias_of == key for each in known.values())):
            raise BadRequest(f"{key} has aliases of its own, or is the same", hint="`foreword project merge` moves all")
        before = known.get(key, KnownProject(key)).alias_of
        self._point(key, of)
        why = f"{key} counts as {of}" if of else f"{key} counts as itself"
        patch = {"alias": [key, before, of]}
        return self._store.audit.note(ALIAS, why, patch, who=who, at=at, project=of or before or key, ids=())

    @transaction
    def merge(self, key: str, *, into: str, unite: Callable[[Memory, Memory], Memory], who: str, at: float) -> Merged:
        """Make everything of a project another's, all or nothing, and its key an alias; logged, and cannot be undone.

        Uids become those of the new project. Where one exists there already, *unite* puts the two together, the known
        one first; the one that came stays as superseded by it.
        """
        rows = self.row_counts(key)
        pairs = self._move(key, into)
        for winner, loser in pairs:
            self._unite(winner, loser, unite)
        for other, known in self._read().items():
            if known.alias_of == key:
                self._point(other, into)
        self._point(key, into)
        patch = {"moved": {"from": key, "into": into, "rows": rows}}
        about = [id for pair in pairs for id in pair]
        entry = self._store.audit.note(MERGE, f"{key} into {into}", patch, who=who, at=at, project=into, ids=about)
        return Merged(rows, len(pairs), entry)

    def _read(self) -> dict[str, KnownProject]:
        rows = self._all("SELECT key, name, root, roots, alias_of, first, last FROM projects ORDER BY key")
        values: Iterable[Any] = ((*row[:3], tuple(json.loads(row[3])), *row[4:]) for row in rows)
        return {row[0]: KnownProject(*row) for row in values}

    # -- inside a change ----------------------------------------------------------------------------------------
    def _move(self, key: str, into: str) -> list[tuple[str, str]]:
        """Give every row of a project to another; return the memories that exist there already, in pairs."""
        pairs: list[tuple[str, str]] = []
        after = 0
        while page := self._store.memories.page(after=after, scopes=(f"project:{key}",)):
            for _, memory in page:
                uid = moved(memory.uid, old=key, new=into, kind=memory.kind, title=memory.title)
                taken = self._all("SELECT id FROM memories WHERE uid = ?", (uid,)) if uid != memory.uid else []
                if taken:
                    pairs += [(taken[0][0], memory.id)] if memory.status == "active" else []
                    uid = memory.uid
                self._db.execute("UPDATE memories SET uid = ? WHERE id = ?", (uid, memory.id))
                self._store.memories.put([replace(memory, uid=uid, scope=f"project:{into}")])
            after = page[-1][0]
        for table in ("memories", *TABLES):
            # Of a function that one session changed in both, the other's row stays as it is.
            self._db.execute(f"UPDATE OR IGNORE {table} SET project = ? WHERE project = ?", (into, key))
        return pairs

    def _unite(self, winner: str, loser: str, unite: Callable[[Memory, Memory], Memory]) -> None:
        """Put two memories of the same uid together; the one that was moved stays, superseded, and so do its links."""
        known, other = self._store.memories.by_id([winner, loser])
        both = replace(unite(known, other), id=known.id, uid=known.uid, scope=known.scope, project=known.project)
        self._store.memories.put([both, replace(other, status="superseded", superseded_by=known.id)])
        self._db.execute(
            "UPDATE memories SET used = used + ?, ignored = ignored + ?, pinned = max(pinned, ?) WHERE id = ?",
            (other.used, other.ignored, int(other.pinned), winner),
        )

    def _point(self, key: str, of: str) -> None:
        sql = "INSERT INTO projects (key, alias_of) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET alias_of = ?2"
        self._db.execute(sql, (key, of))


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

"""Projects -> what is known of each, which counts as which; one moved into another."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from foreword.audit import AuditEntry
from foreword.encoding import storable
from foreword.errors import BadRequest
from foreword.models import Memory, Project, moved
from foreword.store.finding import SEQUENCE_BITS
from foreword.store.log import LogWriter
from foreword.store.reading import Reader

MERGE, ALIAS = "merge project", "alias project"  # as the log calls them
MOST_ROOTS = 20  # folders of one project; whoever has more clones has forgotten the first
ROWS = 2_000  # memories whose words are moved at a time: some megabytes
NAMING = ("sessions", "events", "changes", "injections", "silences", "log")  # tables that name a project too
LOW = (1 << SEQUENCE_BITS) - 1

Words = tuple[int, Sequence[str], Sequence[Any] | None]  # as the words index takes them


@dataclass(frozen=True)
class Known:
    """A project that was seen: under which name and where, and as which other one it counts."""

    key: str
    name: str = ""
    root: str = ""
    roots: tuple[str, ...] = ()  # the last first
    alias_of: str = ""
    first: float = 0.0
    last: float = 0.0


def counts_as(key: str, known: Mapping[str, Known]) -> str:
    """The key that this one counts as: another one's, where it is an alias."""
    return (known[key].alias_of if key in known else "") or key


def names(known: Mapping[str, Known], *, also: Iterable[str] = ()) -> Callable[[str], str]:
    """What people call each project; where several have one name, also how its key ends otherwise than theirs.

    *also* are keys of which something is kept, though nobody has noted yet that they were seen.
    """
    same: dict[str, list[str]] = {}
    for key in dict.fromkeys((*known, *also)):
        if key not in known or not known[key].alias_of:
            same.setdefault(_called(key, known), []).append(key)

    def name(key: str) -> str:
        own = _called(key, known)
        others = [other for other in same.get(own, ()) if other != key]
        return f"{own} ({_apart(key, others)})" if others else own

    return name


def _called(key: str, known: Mapping[str, Known]) -> str:
    """Its name; of one that nobody named yet, how its key ends."""
    return (known[key].name if key in known else "") or key.rpartition("/")[2] or key


def _apart(key: str, others: Sequence[str]) -> str:
    parts = key.split("/")
    ends = ("/".join(parts[-length:]) for length in range(2, len(parts)))
    return next((end for end in ends if not any(other.endswith(f"/{end}") for other in others)), key)


@dataclass(frozen=True)
class Held:
    """What is kept of a project: its active memories by kind, its sessions, and when the last of those was."""

    kinds: Mapping[str, int] = field(default_factory=dict, hash=False)
    sessions: int = 0
    last: float = 0.0

    @property
    def memories(self) -> int:
        return sum(self.kinds.values())


@dataclass(frozen=True)
class Moved:
    """What a merge moved, by table, and how many memories became one with another."""

    rows: Mapping[str, int]
    united: int
    entry: AuditEntry


class RegistryReader(Reader):
    """Asks which projects there are."""

    def registry(self) -> dict[str, Known]:
        rows = self._all("SELECT key, name, root, roots, alias_of, first, last FROM projects ORDER BY key", ())
        return {row[0]: _known(row) for row in rows}

    def held(self) -> dict[str, Held]:
        """By key, also of projects that nobody saw since they are written down."""
        kinds: dict[str, dict[str, int]] = {}
        for scope, kind, many in self._all(
            # Over the index of active memories alone.
            """SELECT o.scope, m.kind, m.many FROM owners o JOIN
            (SELECT owner, kind, count(*) AS many FROM memories WHERE status = 'active' GROUP BY owner, kind) m
            ON m.owner = o.number WHERE o.scope LIKE 'project:%' ORDER BY 1, 2""",
            (),
        ):
            kinds.setdefault(scope.removeprefix("project:"), {})[kind] = many
        rows = self._all("SELECT project, count(*), max(last) FROM sessions WHERE project <> '' GROUP BY project", ())
        sessions = {project: (many, last) for project, many, last in rows}
        return {key: Held(kinds.get(key, {}), *sessions.get(key, (0, 0.0))) for key in {*kinds, *sessions}}

    def of_project(self, key: str) -> dict[str, int]:
        """How many rows of every table are a project's, whatever their status."""
        scoped = f"SELECT count(*) FROM memories WHERE owner = {_OWNER}"
        found = {"memories": int(self._all(scoped, (f"project:{key}",))[0][0])}
        for table in NAMING:
            found[table] = int(self._all(f"SELECT count(*) FROM {table} WHERE project = ?", (key,))[0][0])
        return found


class RegistryWriter:
    """Writes which projects there are, inside the transaction of whoever calls."""

    def __init__(
        self,
        execute: Callable[..., Any],
        *,
        keep: Callable[..., tuple[Memory, ...]],
        index: Callable[[Sequence[Words]], None],
        owner: Callable[[str], int],
        guarded: Callable[[Callable[[], object]], None],
        logging: LogWriter,
        failures: tuple[type[Exception], ...],
    ) -> None:
        self._execute = execute
        self._keep = keep
        self._index = index
        self._owner = owner
        self._guarded = guarded  # a damaged table of vectors or code costs itself alone
        self._logging = logging
        self._reader = RegistryReader(execute, failures=failures)
        logging.ways_back[ALIAS] = self._unalias

    def see(self, projects: Sequence[Project], *, at: float) -> None:
        """Note where projects were seen, and under which name the first time."""
        known = self._reader.registry()
        for project in projects:
            before = known.get(project.key, Known(project.key))
            roots = tuple(dict.fromkeys(filter(None, (project.root, *before.roots))))[:MOST_ROOTS]
            self._execute(
                """INSERT INTO projects (key, name, root, roots, first, last) VALUES (?, ?, ?, ?, ?, ?)
                ON CONFLICT (key) DO UPDATE SET root = excluded.root, roots = excluded.roots,
                name = CASE WHEN name = '' THEN excluded.name ELSE name END, last = max(last, excluded.last)""",
                (
                    *(storable(project.key), storable(project.name), storable(project.root or before.root)),
                    *(storable(json.dumps(roots, ensure_ascii=False)), at, at),
                ),
            )

    def call(self, key: str, name: str) -> None:
        """Give a project a name for people."""
        sql = "INSERT INTO projects (key, name) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET name = excluded.name"
        self._execute(sql, (storable(key), storable(name)))

    def alias(self, key: str, *, of: str, who: str, at: float) -> AuditEntry:
        """Let a project count as another from now on, or with none named as itself again; no alias leads to another."""
        known = self._reader.registry()
        if of and known.get(of, Known(of)).alias_of:
            raise BadRequest(f"{of} is itself an alias", hint=f"name {known[of].alias_of}")
        if of and (of == key or any(each.alias_of == key for each in known.values())):
            raise BadRequest(f"{key} has aliases of its own, or is the same", hint="`foreword project merge` moves all")
        before = known.get(key, Known(key)).alias_of
        self._point(key, of)
        why = f"{key} counts as {of}" if of else f"{key} counts as itself"
        patch = {"alias": [key, before, of]}
        return self._logging.note(ALIAS, why, patch, who=who, at=at, project=of or before or key, ids=())

    def merge(self, key: str, *, into: str, unite: Callable[[Memory, Memory], Memory], who: str, at: float) -> Moved:
        """Make everything of a project another's; of memories that are the same there, the evidence is put together."""
        rows = self._reader.of_project(key)
        pairs = self._move(key, into)
        for winner, loser in pairs:
            self._unite(winner, loser, unite)
        self._add_up(key, into)
        for other, known in self._reader.registry().items():
            if known.alias_of == key:
                self._point(other, into)
        self._point(key, into)
        patch = {"moved": {"from": key, "into": into, "rows": rows}}
        about = [id for pair in pairs for id in pair]
        entry = self._logging.note(MERGE, f"{key} into {into}", patch, who=who, at=at, project=into, ids=about)
        return Moved(rows, len(pairs), entry)

    def gather(self, key: str, *, into: str) -> None:
        """Bring along what was written under a key in the moment it became an alias; nothing once it is none again."""
        if self._reader.registry().get(key, Known(key)).alias_of == into:
            self._move(key, into)

    # -- a merge, step by step ----------------------------------------------------------------------------------
    def _move(self, key: str, into: str) -> list[tuple[str, str]]:
        """Give every row of a project to another; return the memories that exist there already, in pairs."""
        sql = f"SELECT id FROM memories WHERE owner = {_OWNER} ORDER BY place"
        ids = [id for (id,) in self._execute(sql, (f"project:{key}",))]
        pairs = self._rename(ids, old=key, new=into)
        if ids:
            self._carry(ids, scope=f"project:{into}")
        for table in ("memories", *NAMING):
            # Of a function that one session changed in both, the other's row stays where nobody looks.
            self._execute(f"UPDATE OR IGNORE {table} SET project = ? WHERE project = ?", (into, key))
        return pairs

    def _rename(self, ids: Sequence[str], *, old: str, new: str) -> list[tuple[str, str]]:
        """Give memories the uids that they have in their new project; those that exist there already, in pairs."""
        pairs: list[tuple[str, str]] = []
        sql = "SELECT uid, kind, title, status FROM memories WHERE id = ?"
        for id in ids:
            [(uid, kind, title, status)] = list(self._execute(sql, (id,)))
            there = moved(uid, old=old, new=new, kind=kind, title=title)
            taken = list(self._execute("SELECT id FROM memories WHERE uid = ?", (there,))) if there != uid else []
            if taken and status == "active":
                pairs.append((taken[0][0], id))
            elif not taken and there != uid:
                self._execute("UPDATE memories SET uid = ? WHERE id = ?", (there, id))
        return pairs

    def _unite(self, winner: str, loser: str, unite: Callable[[Memory, Memory], Memory]) -> None:
        """Put two memories of the same uid together; the one that was moved stays, superseded, and so do its links."""
        known, other = self._reader.by_id([winner, loser])
        both = replace(unite(known, other), id=known.id, uid=known.uid, scope=known.scope, project=known.project)
        self._keep([both, replace(other, status="superseded", superseded_by=known.id)], (), ())
        self._execute(
            "UPDATE memories SET used = used + ?, ignored = ignored + ?, pinned = max(pinned, ?) WHERE id = ?",
            (other.used, other.ignored, int(other.pinned), winner),
        )

    def _carry(self, ids: Sequence[str], *, scope: str) -> None:
        """Give memories places in another scope's range, in the order they had, with words, vectors and code."""
        owner = self._owner(scope)
        [(above,)] = list(self._execute("SELECT newest FROM owners WHERE number = ?", (owner,)))
        highest = above
        for some in _parts(ids, ROWS):
            marks = ",".join("?" * len(some))
            sql = f"SELECT place, id, title, body, tags, files, split FROM memories WHERE id IN ({marks})"
            rows = list(self._execute(sql, tuple(some)))
            places = {row[0]: owner << SEQUENCE_BITS | above + (row[0] & LOW) for row in rows}
            highest = max(highest, *(place & LOW for place in places.values()))
            for row in rows:
                sql = "UPDATE memories SET place = ?, owner = ? WHERE place = ?"
                self._execute(sql, (places[row[0]], owner, row[0]))
            self._index([(places[row[0]], row[2:], row) for row in rows])
            self._guarded(partial(self._carry_vectors, places))
            self._guarded(partial(self._carry_code, places))
        self._execute("UPDATE owners SET newest = ? WHERE number = ?", (highest, owner))

    def _carry_vectors(self, places: Mapping[int, int]) -> None:
        for old, new in places.items():  # with a new number: an index in memory reads what is new
            sql = "INSERT INTO vectors (place, model, scale, blob) SELECT ?, model, scale, blob FROM vectors"
            self._execute(f"{sql} WHERE place = ?", (new, old))
            self._execute("DELETE FROM vectors WHERE place = ?", (old,))

    def _carry_code(self, places: Mapping[int, int]) -> None:
        sql = "SELECT unit, place FROM code WHERE place BETWEEN ? AND ?"
        for unit, place in list(self._execute(sql, (min(places), max(places)))):
            if place in places:
                self._execute("UPDATE code SET place = ? WHERE unit = ? AND place = ?", (places[place], unit, place))

    def _add_up(self, key: str, into: str) -> None:
        sql = """INSERT INTO tallies SELECT day, ?, what, number FROM tallies WHERE project = ?
            ON CONFLICT (day, project, what) DO UPDATE SET number = number + excluded.number"""
        self._execute(sql, (into, key))
        self._execute("DELETE FROM tallies WHERE project = ?", (key,))

    def _point(self, key: str, of: str) -> None:
        sql = "INSERT INTO projects (key, alias_of) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET alias_of = ?2"
        self._execute(sql, (key, of))

    def _unalias(self, entry: AuditEntry) -> None:
        key, before, _ = entry.patch["alias"]
        self._point(key, before)


_OWNER = "(SELECT number FROM owners WHERE scope = ?)"


def _known(row: Sequence[Any]) -> Known:
    values: tuple[Any, ...] = (*row[:3], tuple(json.loads(row[3])), *row[4:])
    return Known(*values)


def _parts(given: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (given[start : start + size] for start in range(0, len(given), size))

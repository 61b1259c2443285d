"""The memories with all that is derived from them: words index, index of code, sightings, vectors; links and access."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from foreword.encoding import dumps, storable
from foreword.errors import BadRequest, DamagedIndex
from foreword.models import BASE32, KINDS, Link, Memory, Vector, named
from foreword.store.sql import (
    EACH,
    FIELDS,
    FROM,
    MEMORY,
    SEQUENCE_BITS,
    Repository,
    as_json,
    encoded,
    marks,
    memory_of,
    texts,
    transaction,
)
from foreword.terms import split, text_in

if TYPE_CHECKING:
    from foreword.store import Store

MOST = 20_000  # more of one question are beyond any use
MOST_DETAIL = 4_000  # characters of a detail that are looked for: the error, the reason, the fix
NO_SESSION = ("", "earlier")  # keys of `seen_in` that stand for no single session

# What a session came to: its own, and what later ones saw again. Of two memories that are one by now, that one.
# The plus keeps SQLite to one walk along the index of the session; `<> ''` lets the partial one be used.
OF_SESSION = """SELECT m.place, m.created, m.id FROM memories m
 WHERE m.session = ?1 AND m.session <> '' AND +m.status <> 'forgotten' AND NOT (m.superseded_by <> '' AND EXISTS
 (SELECT 1 FROM sightings n WHERE n.session = m.session AND n.memory = m.superseded_by))
 UNION ALL SELECT m.place, m.created, m.id FROM sightings s CROSS JOIN memories m ON m.id = s.memory
 WHERE s.session = ?1 AND s.session <> m.session AND +m.status <> 'forgotten'"""
# Which memory names which file or function.
NAMED = """SELECT m.place, n.value AS name FROM memories m, json_each(m.files) n
 UNION SELECT m.place, n.value AS name FROM memories m, json_each(m.functions) n"""
_BY_UID = "(SELECT id FROM memories WHERE uid = ?)"
WORDS = "title, body, tags, files, split"  # the columns of the words index


# A memory whose row was written: it, its place, the texts for its index, its vector, and its row from before.
Written = tuple[Memory, int, tuple[str, ...], Vector | None, Sequence[Any]]


def random_letter(letters: str) -> str:
    """Return one of 32 letters; `secrets` would do it too, and cost a hook without a worker 2 ms to import."""
    return letters[os.urandom(1)[0] % len(letters)]


class Memories(Repository):
    """The memories, read by id, kind, time and session, and written."""

    choose: Callable[[str], str] = staticmethod(random_letter)  # the characters of new ids

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._without_vector = 0  # grows whenever a memory is kept without a vector
        self._all_have_vectors: tuple[object, ...] = ()  # the model and the count above at which nothing was lacking

    def get(self, ids: Sequence[str], *, forgotten: bool = False) -> tuple[Memory, ...]:
        """Return the memories with these ids, in this order; those that are being *forgotten* only where asked for."""
        found = {each.id: each for each in self._named("id", ids) if forgotten or each.status != "forgotten"}
        return tuple(found[id] for id in dict.fromkeys(ids) if id in found)

    def get_by_uid(self, uids: Sequence[str]) -> tuple[Memory, ...]:
        """Return the memories with these uids, in this order, without those that do not exist."""
        found = {memory.uid: memory for memory in self._named("uid", uids)}
        return tuple(found[uid] for uid in dict.fromkeys(uids) if uid in found)

    def page(self, *, after: int = 0, scopes: Sequence[str] = (), limit: int = 500) -> tuple[tuple[int, Memory], ...]:
        """Return the next memories behind place *after*, each with its place, of any status; all scopes if none."""
        of_scopes = f"AND o.scope IN ({marks(scopes)})" if scopes else ""
        where = f"m.place > ? AND m.status <> 'forgotten' {of_scopes} ORDER BY m.place LIMIT ?"
        rows = self._all(f"SELECT {MEMORY}, m.place {FROM} WHERE {where}", (after, *scopes, limit))
        return tuple((row[-1], memory_of(row)) for row in rows)

    def neighbours(self, memory: Memory, *, scope: str, limit: int) -> tuple[tuple[Memory, ...], tuple[Memory, ...]]:
        """Return what came just before and just after a memory in a scope, active ones only, each side oldest first."""
        before, after = (
            self._memories(
                f"""o.scope = ? AND m.status = 'active' AND (m.created, m.id) {beyond} (?, ?)
                ORDER BY m.created {order}, m.id {order} LIMIT ?""",
                (scope, memory.created, memory.id, limit),
            )
            for beyond, order in (("<", "DESC"), (">", "ASC"))
        )
        return before[::-1], after

    def list(
        self, kinds: Sequence[str], *, scopes: Sequence[str] = (), statuses: Sequence[str] = (), limit: int = MOST
    ) -> tuple[Memory, ...]:
        """Return the memories of these kinds, newest first; of all scopes if none, and of any status if none."""
        # Spelt out for the partial index, which a parameter would not let SQLite use.
        status = "m.status = 'active'" if tuple(statuses) == ("active",) else "m.status <> 'forgotten'"
        of_statuses = f"AND m.status IN ({marks(statuses)})" if statuses else ""
        of_scopes = f"AND o.scope IN ({marks(scopes)})" if scopes else ""
        return self._memories(
            f"""{status} {of_statuses} {of_scopes} AND m.kind IN ({marks(kinds)})
            ORDER BY m.created DESC, m.id DESC LIMIT ?""",
            (*statuses, *scopes, *kinds, limit),
        )

    def of_session(self, session: str, *, limit: int = 500) -> tuple[Memory, ...]:
        """Return what a session has come to or seen, of any status, oldest first; also what later ones saw again."""
        rows = self._all(f"SELECT place FROM ({OF_SESSION}) ORDER BY created, id LIMIT ?2", (session, limit))
        found = self._memories_at([place for (place,) in rows])
        return tuple(found[place] for (place,) in rows if place in found)  # what went meanwhile is gone

    def links(self, id: str) -> tuple[Link, ...]:
        """Return every edge that begins or ends at this memory."""
        columns = "SELECT source, relation, target FROM links"
        sql = f"{columns} WHERE source = ?1 UNION {columns} WHERE target = ?1 ORDER BY 1, 2, 3"
        return tuple(Link(*row) for row in self._all(sql, (id,)))

    def accessed(self, session: str, *, since: float = 0.0) -> tuple[tuple[str, float], ...]:
        """Return the ids that a session fetched from then on, each with its time."""
        self._db.flush()
        sql = "SELECT memory, at FROM access WHERE session = ?1 AND session <> '' AND at >= ?2 ORDER BY at, memory"
        return tuple(tuple(row) for row in self._all(sql, (session, since)))

    def _named(self, column: str, names: Sequence[str]) -> tuple[Memory, ...]:
        return self._memories(f"m.{column} IN {EACH}", (dumps(names),))

    def _memories(self, where: str, parameters: Sequence[Any]) -> tuple[Memory, ...]:
        return tuple(map(memory_of, self._all(f"SELECT {MEMORY} {FROM} WHERE {where}", parameters)))

    # -- writing ------------------------------------------------------------------------------------------------
    @transaction
    def put(
        self, memories: Sequence[Memory], *, links: Sequence[Link] = (), imported: bool = False
    ) -> tuple[Memory, ...]:
        """Write *memories*, new or changed (by uid), and return them with their ids.

        Those that were forgotten are left out. Ends of links may be uids, and of an import `superseded_by`, too.
        """
        written = [each for memory in memories if (each := self._put_one(memory, imported=imported))]
        try:
            self._index(written)
        except self._db.damaged as exc:
            self._db.trouble["index"] = f"the search index cannot be written: {exc}"
            raise DamagedIndex(self._db.trouble["index"], hint="run `foreword index`") from exc
        kept = tuple(each[0] for each in written)
        at = kept[0].confirmed if kept else 0.0
        ends = [(link.source, link.source, link.relation, link.target, link.target, at) for link in links]
        sql = f"INSERT OR IGNORE INTO links VALUES (ifnull({_BY_UID}, ?), ?, ifnull({_BY_UID}, ?), ?)"
        self._db.execute_many(sql, ends)
        if imported:
            sql = f"UPDATE memories SET superseded_by = ifnull({_BY_UID}, superseded_by) WHERE id = ?"
            self._db.execute_many(sql, [(each.superseded_by, each.id) for each in kept if each.superseded_by])
        return kept

    @transaction
    def add_vectors(self, memories: Sequence[Memory], vectors: Sequence[Vector]) -> int:
        """Give vectors to memories that have none, unless a text has changed since; return how many were given."""
        added = 0
        for memory, vector in zip(memories, vectors, strict=True):
            sql = f"SELECT place, {WORDS} FROM memories WHERE id = ?"
            row = self._db.execute(sql, (memory.id,)).fetchone()
            if row is not None and tuple(row[1:]) == indexed_texts(memory):
                self._put_vector(row[0], vector)
                added += 1
        return added

    def without_vectors(self, model: str, *, limit: int = 100) -> tuple[Memory, ...]:
        """Return active memories that have no vector of this model, newest first."""
        # Asked every second: to look through all memories for nothing is done once.
        state = (model, self._without_vector)
        if self._all_have_vectors == state:
            return ()
        self._db.flush()  # a memory that was counted may not be committed yet, and would be missed for good
        found = self._memories(
            """m.status = 'active' AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.place = m.place AND v.model = ?)
            ORDER BY m.place DESC LIMIT ?""",
            (model, limit),
        )
        if not found:
            self._all_have_vectors = state
        return found

    def record_access(self, ids: Iterable[str], *, how: str, at: float, session: str = "") -> None:
        """Note that somebody fetched these memories; it may be written a moment later."""
        rows = [(id, at, how, session) for id in ids]
        self._db.write_later(self._db.execute_many, "INSERT INTO access VALUES (?, ?, ?, ?)", rows)

    # -- inside a change ----------------------------------------------------------------------------------------
    def _put_one(self, memory: Memory, *, imported: bool) -> Written | None:
        """Write the row of a memory; what is derived from it follows in `_index`."""
        if memory.kind not in KINDS:
            raise BadRequest(f"unknown kind {memory.kind!r}", hint=f"one of {', '.join(KINDS)}")
        memory = replace(
            memory, scope=memory.scope or f"project:{memory.project}", uid=storable(memory.uid) or os.urandom(16).hex()
        )
        old = self._db.execute(
            f"SELECT place, {WORDS}, owner, id, functions, pinned, used, ignored FROM memories WHERE uid = ?",
            (memory.uid,),
        ).fetchone()
        if old is None and self._store.tombstones.refuses(memory, imported=imported):
            return None
        owner, words, vector = self._owner(memory.scope), indexed_texts(memory), None
        if old is None:
            # The id that an imported memory brings is kept where it is free.
            id = memory.id if memory.id.startswith(f"{KINDS[memory.kind]}-") else ""
            while not id or self._db.execute("SELECT 1 FROM memories WHERE id = ?", (id,)).get:
                id = f"{KINDS[memory.kind]}-{''.join(self.choose(BASE32) for _ in range(8))}"
            memory, place = replace(memory, id=id), self._new_place(owner)
        else:
            # A memory that moves to another scope moves to that scope's range.
            place = old[0] if old[6] == owner else self._new_place(owner)
            # Whoever writes it again does not say whether it is pinned and used.
            memory = replace(memory, id=old[7], pinned=old[9] == 1, used=old[10], ignored=old[11])
            if tuple(old[1:6]) == words:  # the same text means the same
                kept = self._db.execute("SELECT model, scale, blob FROM vectors WHERE place = ?", old[:1]).fetchone()
                vector = Vector(*kept) if kept else None
            self._db.execute("DELETE FROM memories WHERE place = ?", old[:1])
        row = {name: encoded(getattr(memory, name)) for name in FIELDS if name != "scope"}
        row |= {"place": place, "owner": owner, "split": words[4]}
        sql = f"INSERT INTO memories ({', '.join(row)}) VALUES (:{', :'.join(row)})"
        self._db.execute(sql, row)
        return memory, place, words, vector, old or ()

    def _index(self, written: Sequence[Written]) -> None:
        """Derive words, code, sightings and vectors; a damaged index lets nothing be written until it is rebuilt."""
        self._without_vector += sum(vector is None for _, _, _, vector, _ in written)
        many, unit = self._db.execute_many, "(SELECT number FROM units WHERE name = ?)"
        for memory, place, words, vector, old in written:
            if old:
                sql = f"INSERT INTO words (words, rowid, {WORDS}) VALUES ('delete', ?, ?, ?, ?, ?, ?)"
                self._db.execute(sql, old[:6])
                self._db.execute("DELETE FROM sightings WHERE memory = ?", (memory.id,))
            self._db.execute(f"INSERT INTO words (rowid, {WORDS}) VALUES (?, ?, ?, ?, ?, ?)", (place, *words))
            gone = [*texts(old[4]), *texts(old[8])] if old else []
            names = [*memory.files, *memory.functions]
            many(f"DELETE FROM code WHERE unit = {unit} AND place = ?", [(name, old[0]) for name in gone])
            many("INSERT OR IGNORE INTO units (name) VALUES (?)", [(name,) for name in names])
            many(f"INSERT OR IGNORE INTO code VALUES ({unit}, ?)", [(name, place) for name in names])
            # A name goes with the last memory that has it.
            unused = "NOT EXISTS (SELECT 1 FROM code WHERE unit = number)"
            many(f"DELETE FROM units WHERE name = ? AND {unused}", [(name,) for name in gone])
            # What was learned over sessions is of none.
            seen_in = [*named(memory.detail, "seen_in")] if memory.session else []
            earlier = [(each, memory.id) for each in seen_in if each not in (*NO_SESSION, memory.session)]
            many("INSERT OR IGNORE INTO sightings VALUES (?, ?)", earlier)
            if vector is not None:
                self._put_vector(place, vector)
        # Here a damage belongs to this change; at the commit, FTS5 would find it too late.
        self._db.execute("INSERT INTO words (words) VALUES ('flush')")

    def _put_vector(self, place: int, vector: Vector) -> None:
        sql = "INSERT OR REPLACE INTO vectors (place, model, scale, blob) VALUES (?, ?, ?, ?)"
        self._db.execute(sql, (place, vector.model, vector.scale, vector.data))

    def _owner(self, scope: str) -> int:
        """Return the number of a scope, which it is given where it has none, as part of a change."""
        self._db.execute("INSERT OR IGNORE INTO owners (scope) VALUES (?)", (scope,))
        return int(self._db.execute("SELECT number FROM owners WHERE scope = ?", (scope,)).get)

    def _new_place(self, owner: int) -> int:
        sql = "UPDATE owners SET newest = newest + 1 WHERE number = ? RETURNING newest"
        return owner << SEQUENCE_BITS | int(self._db.execute(sql, (owner,)).get)


def indexed_texts(memory: Memory) -> tuple[str, str, str, str, str]:
    """Return the texts that the words index covers, in its order."""
    title, body = storable(memory.title), storable(memory.body)
    tags, files = as_json(memory.tags), as_json(memory.files)
    # A function's whole name is a word too, not only its parts; and why something was decided is looked for as well.
    names = " ".join((*memory.functions, text_in(memory.detail)[:MOST_DETAIL])).strip()
    return title, body, tags, files, storable(f"{names} {split(f'{title} {body} {tags} {files} {names}')}".strip())


def split_of(row: Mapping[str, Any]) -> str:
    """Return the column `split` of a memory's row."""
    tags, files, functions = (texts(row[name]) for name in ("tags", "files", "functions"))
    about = {"tags": tags, "files": files, "functions": functions, "detail": json.loads(row["detail"])}
    return indexed_texts(Memory("note", row["title"], row["body"], **about))[4]

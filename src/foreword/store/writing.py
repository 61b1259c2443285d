"""Events, memories, links, sessions, injections -> rows, and what memories are found by: words, code, vectors."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from foreword.encoding import dumps, storable
from foreword.errors import BadRequest
from foreword.models import BASE32, GOING_ON, KINDS, Change, Event, Injection, Link, Memory, Session, Vector
from foreword.store import sightings
from foreword.store.commits import Commits
from foreword.store.finding import SEQUENCE_BITS, bound
from foreword.terms import split, text_in

if TYPE_CHECKING:
    from foreword.store.judged import JudgedWriter
    from foreword.store.ledger import Spending
    from foreword.store.silences import Silence
    from foreword.store.tombstones import Tombstones

_Words = tuple[int, Sequence[str], Sequence[Any] | None]  # a memory's place, its texts, and its row before

SAME_EVENT_SECONDS = (
    10.0  # two hooks registered for one event tell it within seconds; a person repeating it takes longer
)
MOST_DETAIL = 4_000  # characters of a detail that are looked for: the error, the reason, the fix
# What a damaged index raises; garbage where a size should be asks for more memory than there is.
DAMAGED = (apsw.SQLError, apsw.CorruptError, apsw.ConstraintError, apsw.NoMemError)


class Writing(Commits):
    """What is written; all of it runs in one thread at a time, the one whose turn it is."""

    _tombstones: Tombstones
    _judged: JudgedWriter

    def __init__(self, path: Path, *, choose: Callable[[str], str] = secrets.choice) -> None:
        super().__init__(path)
        self._choose = choose  # the characters of new ids
        self._bare = 0  # grows whenever a memory is kept without a vector

    def _append(self, event: Event) -> bool:
        if self._tombstones.refuses_event(event):
            return False
        near = () if event.lasting else (event.at - SAME_EVENT_SECONDS, event.at + SAME_EVENT_SECONDS)
        told = f"SELECT 1 FROM events WHERE key = ? {'AND at BETWEEN ? AND ?' if near else ''} LIMIT 1"
        if self._db.execute(told, (event.key, *near)).fetchone():
            return False
        payload = storable(json.dumps(event.payload, ensure_ascii=False, separators=(",", ":")))
        self._db.execute(
            """INSERT INTO events (key, host, name, kind, session, project, cwd, at, payload)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (event.key, *map(storable, _who(event)), event.at, payload),
        )
        if event.session:
            self._see_session(event, number=self._db.last_insert_rowid())
        return True

    def _see_session(self, event: Event, *, number: int) -> None:
        # A context window begins with a start, a clear and a compaction; a resumed one goes on.
        # Most hosts tell a compaction by an event of its own and start nothing afterwards.
        starts = event.kind == "session_start" and event.payload.get("source") not in GOING_ON
        begins = starts or event.kind == "compaction"
        self._db.execute(
            """INSERT INTO sessions (id, host, project, cwd, started, last, ended, window, events, newest)
            VALUES (:id, :host, :project, :cwd, :at, :at, :ended, CASE WHEN :begins THEN :at ELSE 0 END, 1, :number)
            ON CONFLICT (id) DO UPDATE SET last = max(last, :at), started = min(started, :at), events = events + 1,
              newest = :number,
              ended = CASE WHEN :at >= last THEN :ended ELSE ended END,
              project = CASE WHEN project = '' THEN :project ELSE project END,
              window = CASE WHEN :begins AND :at > window THEN :at ELSE window END""",
            {
                "id": storable(event.session),
                "host": storable(event.host),
                "project": storable(event.project),
                "cwd": storable(event.cwd),
                "at": event.at,
                "ended": event.at if event.kind == "session_end" else 0.0,
                "begins": begins,
                "number": number,
            },
        )

    def _keep(
        self,
        memories: Sequence[Memory],
        links: Sequence[Link],
        vectors: Sequence[Vector | None],
        places: Iterable[int] = (),
        brought: bool = False,
    ) -> tuple[Memory, ...]:
        given, free = vectors or (None,) * len(memories), iter(places)
        tried = (self._put_one(memory, vector, free, brought) for memory, vector in zip(memories, given, strict=True))
        put = [each for each in tried if each is not None]
        self._index_words([words for _, words in put])
        kept = tuple(memory for memory, _ in put)
        self._link(links, at=kept[0].confirmed if kept else 0.0)
        return kept

    def _link(self, links: Sequence[Link], *, at: float) -> None:
        """Keep links; an end may be a uid, for what is new has no id yet that somebody could name."""
        ends = [(link.source, link.source, link.relation, link.target, link.target, at) for link in links]
        self._many(f"INSERT OR IGNORE INTO links VALUES (ifnull({BY_UID}, ?), ?, ifnull({BY_UID}, ?), ?)", ends)

    def _put_one(
        self, memory: Memory, vector: Vector | None, places: Iterator[int], brought: bool
    ) -> tuple[Memory, _Words] | None:
        memory = replace(
            memory, scope=memory.scope or f"project:{memory.project}", uid=storable(memory.uid) or secrets.token_hex(16)
        )
        if memory.kind not in KINDS:
            raise BadRequest(f"unknown kind {memory.kind!r}", hint=f"one of {', '.join(KINDS)}")
        old = self._db.execute(
            """SELECT place, id, title, body, tags, files, split, owner, functions, pinned, used, ignored
            FROM memories WHERE uid = ?""",
            (memory.uid,),
        ).fetchone()
        if old is None and self._tombstones.refuses(memory, brought=brought):
            return None
        owner, texts = self._owner(memory.scope), indexed(memory)
        if old is None:
            memory, place = replace(memory, id=self._free_id(memory)), next(places, 0) or self._new_place(owner)
        else:
            # A memory that moves to another scope moves to that scope's range.
            place = old[0] if old[7] == owner else self._new_place(owner)
            # What was made of it is not for whoever says it again to tell.
            memory = replace(memory, id=old[1], pinned=old[9] == 1, used=old[10], ignored=old[11])
            if vector is None and tuple(old[2:7]) == texts:
                vector = self._vector_at(old[0])  # the same text means the same
            self._remove(old[0])
        self._db.execute(
            f"INSERT INTO memories ({MEMORY_COLUMNS}) VALUES ({','.join('?' * len(MEMORY_COLUMNS.split(',')))})",
            row_of_memory(memory, place=place, owner=owner, texts=texts),
        )
        self._index_code(memory, place, before=(old[0], old[5], old[8]) if old else None)
        self._note_sightings(memory, known=old is not None)
        self._put_vector(place, vector)
        return memory, (place, texts, old)

    def _remove(self, place: int) -> None:
        """Take a memory away, and what hangs on it; a broken table of vectors must not keep it from changing."""
        sql = "DELETE FROM memories WHERE place = ?"
        try:
            self._undoable(lambda: self._db.execute(sql, (place,)))
        except DAMAGED:
            if not self._db.in_transaction:
                raise
            self._db.execute("DROP TRIGGER IF EXISTS vectors_gone")
            self._db.execute(sql, (place,))

    def _index_code(self, memory: Memory, place: int, *, before: tuple[int, str, str] | None) -> None:
        """Note which files and functions a memory names; damaged tables must not cost the memory."""
        try:
            self._undoable(lambda: self._name_code(memory, place, before=before))
        except DAMAGED as exc:
            self._trouble["code"] = f"what names which code cannot be written: {exc}"
            if not self._db.in_transaction:
                raise  # the whole of it is gone, and is tried again

    def _name_code(self, memory: Memory, place: int, *, before: tuple[int, str, str] | None) -> None:
        """Put a memory's names in the place of those it had *before*: where it was, its files, its functions."""
        was, *lists = before or (0,)
        gone = [name for each in lists for name in texts_of(each)]
        names = [*memory.files, *memory.functions]
        by_name = "(SELECT number FROM units WHERE name = ?)"
        self._many(f"DELETE FROM code WHERE unit = {by_name} AND place = ?", [(name, was) for name in gone])
        self._many("INSERT OR IGNORE INTO units (name) VALUES (?)", [(name,) for name in names])
        self._many(f"INSERT OR IGNORE INTO code VALUES ({by_name}, ?)", [(name, place) for name in names])
        # A name goes with the last memory that has it.
        unused = "NOT EXISTS (SELECT 1 FROM code WHERE unit = number)"
        self._many(f"DELETE FROM units WHERE name = ? AND {unused}", [(name,) for name in gone])

    def _note_sightings(self, memory: Memory, *, known: bool) -> None:
        """Note which other sessions saw a memory; a damaged table must not cost the memory."""
        if not known and not sightings.elsewhere(memory):
            return
        try:
            self._undoable(lambda: sightings.put(self._db.execute, memory, known=known))
        except DAMAGED as exc:
            self._trouble["sightings"] = f"which session saw what cannot be written: {exc}"
            if not self._db.in_transaction:
                raise

    def _guarded(self, work: Callable[[], object]) -> None:
        """Do *work* on tables that are made from others; damaged, they must not cost more than themselves."""
        try:
            self._undoable(work)
        except DAMAGED:
            if not self._db.in_transaction:
                raise

    def _vector_at(self, place: int) -> Vector | None:
        with suppress(*DAMAGED):
            row = self._db.execute("SELECT model, scale, blob FROM vectors WHERE place = ?", (place,)).fetchone()
            return Vector(*row) if row else None
        return None

    def _put_vector(self, place: int, vector: Vector | None) -> None:
        """Write a vector beside its memory; where there is none, or no table, the memory is kept all the same."""
        sql = "INSERT OR REPLACE INTO vectors (place, model, scale, blob) VALUES (?, ?, ?, ?)"
        if vector is not None:
            row = (place, vector.model, vector.scale, vector.data)
            try:
                self._undoable(lambda: self._db.execute(sql, row))
            except DAMAGED:
                if not self._db.in_transaction:
                    raise
            else:
                return
        self._bare += 1

    def _add_vector(self, memory: Memory, vector: Vector) -> bool:
        """Write the vector of a memory, unless its text has changed since it was read."""
        row = self._db.execute(
            "SELECT place, title, body, tags, files, split FROM memories WHERE id = ?", (storable(memory.id),)
        ).fetchone()
        if row is None or tuple(row[1:]) != indexed(memory):
            return False
        self._put_vector(row[0], vector)
        return True

    def _index_words(self, changes: Sequence[_Words]) -> None:
        """Put the words of memories into the index; a damaged index must not cost the memories."""
        if "index" in self._trouble:
            self._fall_behind()
            return
        try:
            self._undoable(lambda: self._change_words(changes))
        except DAMAGED as exc:
            self._trouble["index"] = f"the words index cannot be written: {exc}"
            if not self._db.in_transaction:
                raise  # the whole of it is gone; the commit is tried again, now without the index
            self._fall_behind()

    def _change_words(self, changes: Sequence[_Words]) -> None:
        columns = "rowid, title, body, tags, files, split"
        for place, texts, old in changes:
            if old is not None:
                gone = f"INSERT INTO words (words, {columns}) VALUES ('delete', ?, ?, ?, ?, ?, ?)"
                self._db.execute(gone, (old[0], *old[2:7]))
            self._db.execute(f"INSERT INTO words ({columns}) VALUES (?, ?, ?, ?, ?, ?)", (place, *texts))
        # Here a damage can still be undone; at the end of the savepoint, FTS5 would find it too late.
        self._db.execute("INSERT INTO words (words) VALUES ('flush')")

    def _fall_behind(self) -> None:
        """Note in the database that the index lacks something, which it would not show after a restart."""
        with suppress(apsw.SQLError):  # `meta` itself may be missing, and that is told already
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('index', ?)", (self._trouble["index"],))

    def _owner(self, scope: str) -> int:
        self._db.execute("INSERT OR IGNORE INTO owners (scope) VALUES (?)", (storable(scope),))
        return int(self._db.execute("SELECT number FROM owners WHERE scope = ?", (storable(scope),)).get)

    def _new_place(self, owner: int) -> int:
        newest = self._db.execute(
            "UPDATE owners SET newest = newest + 1 WHERE number = ? RETURNING newest", (owner,)
        ).get
        return int(owner << SEQUENCE_BITS | newest)

    def _free_id(self, memory: Memory) -> str:
        taken = "SELECT 1 FROM memories WHERE id = ?"
        ours = memory.id.startswith(f"{KINDS[memory.kind]}-")
        return memory.id if ours and not self._db.execute(taken, (memory.id,)).get else self._new_id(memory.kind)

    def _new_id(self, kind: str) -> str:
        while True:
            id = f"{KINDS[kind]}-{''.join(self._choose(BASE32) for _ in range(8))}"
            if self._db.execute("SELECT 1 FROM memories WHERE id = ?", (id,)).fetchone() is None:
                return id

    def _keep_linked(
        self, memories: Sequence[Memory], links: Sequence[Link], *, row: tuple[str, int], at: float
    ) -> tuple[Memory, ...]:
        """Keep memories that may speak of others by their uids, also of those that were kept long ago."""
        memories = sorted(memories, key=lambda memory: memory.created)  # a higher place is a newer memory
        kept = self._keep(memories, (), (), places=self._places_in(row, memories, at=at), brought=True)
        self._link(links, at=at)
        told = [(each.superseded_by, each.id) for each in kept if each.superseded_by]
        self._many(f"UPDATE memories SET superseded_by = ifnull({BY_UID}, superseded_by) WHERE id = ?", told)
        return kept

    def _places_in(self, row: tuple[str, int], memories: Sequence[Memory], *, at: float) -> Sequence[int]:
        """Places below those that this row had before; it is given room for all that is to come when it begins."""
        name, left = f"places:{row[0]}", row[1]
        scopes = {memory.scope or f"project:{memory.project}" for memory in memories}
        if not row[0] or len(scopes) != 1:
            return ()
        held = self._db.execute("SELECT text FROM marks WHERE name = ?", (name,)).get
        lowest, room = map(int, held.split()) if held else (0, 0)
        if room < len(memories):
            owner, room = self._owner(scopes.pop()), len(memories) + left
            grown = "UPDATE owners SET newest = newest + ? WHERE number = ? RETURNING newest"
            lowest = (owner << SEQUENCE_BITS | int(self._db.execute(grown, (room, owner)).get)) + 1
        lowest, room = lowest - len(memories), room - len(memories)
        if left:
            self._many("INSERT OR REPLACE INTO marks VALUES (?, ?, ?)", [(name, f"{lowest} {room}", at)])
        else:
            self._many("DELETE FROM marks WHERE name = ?", [(name,)])
        return range(lowest, lowest + len(memories))

    def _settle(
        self, session: Session, upto: int, memories: Sequence[Memory], links: Sequence[Link], changes: Sequence[Change]
    ) -> tuple[Memory, ...]:
        kept = self._keep(memories, links, ())
        self._note_changes(changes)
        if self._tombstones.refuses_session(session.id, last=session.last):
            return kept
        row = vars(session)
        self._many(
            """INSERT INTO sessions (id, host, project, cwd, started, last, ended, events, newest, distilled)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0)
            ON CONFLICT (id) DO UPDATE SET started = min(started, excluded.started), last = max(last, excluded.last),
              events = max(events, excluded.events)""",
            [[row[name] for name in ("id", "host", "project", "cwd", "started", "last", "ended", "events")]],
        )
        self._many("UPDATE sessions SET distilled = max(distilled, ?) WHERE id = ?", [(upto, session.id)])
        return kept

    def _note_changes(self, changes: Sequence[Change]) -> None:
        self._many(
            """INSERT INTO changes (project, file, function, what, signature, line, end_line, session, at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (project, session, file, function) DO UPDATE SET
            what = excluded.what, signature = excluded.signature, line = excluded.line, end_line = excluded.end_line,
            at = excluded.at WHERE excluded.at >= changes.at""",
            [tuple(vars(change).values()) for change in changes if not self._tombstones.refuses_change(change)],
        )

    def _record(self, injection: Injection) -> None:
        # A worker that was late may answer a hook which has long answered by itself: what the hook says was seen.
        known = self._db.execute("SELECT away FROM injections WHERE id = ?", (injection.id,)).get
        if known and not injection.away:
            return
        if injection.away:  # then a late worker may have taken it for a silence
            gone = "DELETE FROM silences WHERE id = ?"
            self._guarded(lambda: self._db.execute(gone, (injection.id,)))
        said = self._judged.verdicts(injection.id)
        self._many("DELETE FROM injection_items WHERE injection = ?", [(injection.id,)])
        row = (
            *(injection.id, injection.trigger, injection.session, injection.project, injection.host, injection.at),
            *(injection.tokens, injection.budget, injection.build_ms),
            *(dumps(injection.layers), dumps(injection.skipped), injection.source, injection.form),
            *(dumps(injection.terms), dumps(injection.files), injection.away),
        )
        self._many(
            """INSERT OR REPLACE INTO injections (id, moment, session, project, host, at, tokens, budget, build_ms,
            layers, skipped, source, form, terms, files, away)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            [row],
        )
        texts = "INSERT OR REPLACE INTO injection_texts VALUES (?, ?)"
        try:  # the words are for people; that a memory was given must be known
            self._undoable(lambda: self._many(texts, [(injection.id, injection.text)]))
        except DAMAGED:
            if not self._db.in_transaction:
                raise
        self._many(
            """INSERT OR REPLACE INTO injection_items (injection, number, memory, layer, score, tokens, why)
            VALUES (?, ?, ?, ?, ?, ?, ?)""",
            [
                (injection.id, number, item.memory, item.layer, item.score, item.tokens, dumps(item.why))
                for number, item in enumerate(injection.items)
            ],
        )
        self._judged.judge(said)

    def _note_silences(self, silences: Sequence[Silence]) -> None:
        from foreword.store.silences import put

        for each in silences:
            if not self._tombstones.refuses_session(each.session, last=each.at):
                put(self._db.execute, each)

    def _spend(self, entry: Spending) -> Spending:
        from foreword.store.ledger import PUT

        self._db.execute(PUT, bound(tuple(vars(entry).values())))
        return entry if entry.number else replace(entry, number=self._db.last_insert_rowid())


BY_UID = "(SELECT id FROM memories WHERE uid = ?)"
MEMORY_COLUMNS = """place, id, uid, owner, kind, title, body, tags, files, functions, split, project, session, source,
 trust, confidence, seen, created, confirmed, status, superseded_by, pinned, used, ignored, detail"""


def row_of_memory(memory: Memory, *, place: int, owner: int, texts: Sequence[str]) -> tuple[Any, ...]:
    title, body, tags, files, words = texts
    return (
        *(
            place,
            memory.id,
            storable(memory.uid),
            owner,
            memory.kind,
            title,
            body,
            tags,
            files,
            listed(memory.functions),
        ),
        *(words, storable(memory.project), storable(memory.session), storable(memory.source), memory.trust),
        *(memory.confidence, memory.seen, memory.created, memory.confirmed, memory.status, memory.superseded_by),
        *(int(memory.pinned), memory.used, memory.ignored),
        storable(json.dumps(dict(memory.detail), ensure_ascii=False, separators=(",", ":"))),
    )


def indexed(memory: Memory) -> tuple[str, str, str, str, str]:
    """The texts that the words index covers, in its order."""
    title, body = storable(memory.title), storable(memory.body)
    tags, files = listed(memory.tags), listed(memory.files)
    # A function's whole name is a word too, not only its parts; and why something was decided is looked for as well.
    named = " ".join((*memory.functions, text_in(memory.detail)[:MOST_DETAIL])).strip()
    return title, body, tags, files, storable(f"{named} {split(f'{title} {body} {tags} {files} {named}')}".strip())


def texts_of(stored: str) -> tuple[str, ...]:
    """The texts of a stored list; what some other hand wrote as no list has none."""
    try:
        told = json.loads(stored)
    except ValueError:
        return ()
    return tuple(each for each in told if isinstance(each, str)) if isinstance(told, list) else ()


def listed(texts: Sequence[str]) -> str:
    """A list of texts as it is stored."""
    return storable(json.dumps(list(texts), ensure_ascii=False, separators=(",", ":")))


def _who(event: Event) -> tuple[str, ...]:
    return event.host, event.name, event.kind, event.session, event.project, event.cwd

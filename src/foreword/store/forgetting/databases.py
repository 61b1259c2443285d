"""A database, the live one or a copy, and what goes -> the same without it, with a tombstone for everything."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import apsw

from foreword.errors import StoreError
from foreword.store import scrub
from foreword.store.forgetting.cutting import Cutter
from foreword.store.forgetting.going import LIST, UNFINISHED, Doomed, Execute, all_tables, as_list, remove
from foreword.store.log import LogWriter
from foreword.store.reading import Reader
from foreword.store.tombstones import KEY, SQL, Tombstones, texts_of
from foreword.traces import MARK
from foreword.types import EMPTY
from foreword.uids import moved

T = TypeVar("T")

MAGIC = b"SQLite format 3\0"  # how each of them begins
PAGE = 64 * 1024


@dataclass(frozen=True)
class Stones:
    """The tombstones of a database, and their key."""

    key: str
    rows: tuple[tuple[bytes, str, float], ...]


class Forgetter:
    """What the live database does of it; a step each, so that one that was killed is taken again."""

    def __init__(
        self,
        *,
        path: Path,
        write: Callable[[Callable[[], Any]], Any],
        let_go: Callable[[], None],
        reader: Callable[[], AbstractContextManager[apsw.Connection]],
        execute: Execute,
        tombstones: Tombstones,
        logging: LogWriter,
    ) -> None:
        self._path, self._write, self._let_go, self._reader = path, write, let_go, reader
        self._execute, self._tombstones, self._logging = execute, tombstones, logging

    def ask(self, question: Callable[[Execute], T]) -> T:
        with self._reader() as connection:
            return question(connection.execute)

    def begin(self, going: Doomed, *, at: float) -> int:
        """Note what is to go, hide it and bury it, all or nothing; from here on it is never shown or told again."""

        def work() -> int:
            known = {**_known(going), "at": at}
            self._execute("INSERT OR REPLACE INTO marks VALUES (?, ?, ?)", (UNFINISHED, json.dumps(known), at))
            self._execute(f"UPDATE memories SET status = 'forgotten' WHERE uid IN {LIST}", (as_list(going.uids),))
            return bury(self._execute, self._tombstones, going, at=at)

        count: int = self._write(work)
        self._let_go()  # what tells of it and is not written yet
        return count

    def unfinished(self) -> Mapping[str, Any]:
        """What an earlier worker was about to forget; nothing where all is done."""
        noted = self.ask(lambda execute: list(execute("SELECT text FROM marks WHERE name = ?", (UNFINISHED,))))
        told: Mapping[str, Any] = json.loads(noted[0][0]) if noted else EMPTY
        return told

    def cut_done(self, cutter: Cutter, *, at: float) -> int:
        """What was cut cannot be told again, and no import knows better."""

        def work() -> int:
            self._tombstones.bury("cut", sorted(cutter.cut), at=at)
            return rekey(self._execute, self._tombstones, at=at)

        count: int = self._write(work)
        return count

    def remove(self, going: Doomed) -> Counter[str]:
        """The rows go at last, and with them the names in the note: only sweeping is left."""

        def work() -> Counter[str]:
            removed = remove(self._execute, going)
            self._execute("UPDATE marks SET text = ? WHERE name = ?", (json.dumps({"sweep": True}), UNFINISHED))
            return removed

        removed: Counter[str] = self._write(work)
        return removed

    def end(
        self, receipt: Mapping[str, Any], *, who: str, why: str, at: float, ids: Sequence[str], project: str = ""
    ) -> int:
        """Keep the receipt in the log, and drop the note."""

        def work() -> int:
            self._execute("DELETE FROM marks WHERE name = ?", (UNFINISHED,))
            patch = {"receipt": dict(receipt)}
            entry = self._logging.note("forget", why, patch, who=who, at=at, project=project, ids=ids)
            return entry.number

        number: int = self._write(work)
        return number

    def stones(self) -> Stones:
        """All tombstones, for the copies of this database."""
        return self.ask(stones_of)

    def pieces(self) -> Iterator[bytes]:
        """The bytes of the file, read by SQLite: to open and close it besides would drop its locks."""
        file = apsw.VFSFile("", str(self._path), [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0])
        try:
            size = file.xFileSize()
            for at in range(0, size, PAGE):
                yield file.xRead(min(PAGE, size - at), at)
        finally:
            file.xClose()


def stones_of(execute: Execute) -> Stones:
    ((key,),) = list(execute("SELECT value FROM meta WHERE key = ?", (KEY,)))
    return Stones(key, tuple(execute("SELECT hash, what, at FROM tombstones")))


def made(execute: Execute) -> bytes:
    """What is of our own making and may spell anything: stems, which no text has, and tombstones, as they are stored.

    A hash of noise is noise: of thousands, one in a hundred times one has six letters of what it hides.
    """
    stones = stones_of(execute)
    rows = (hash + what.encode() + struct.pack(">d", at) for hash, what, at in stones.rows)
    return b"\n".join([words_of(execute).encode("utf-8", "replace"), stones.key.encode(), *rows])


def words_of(execute: Execute) -> str:
    """Every word of the words index."""
    with suppress(apsw.Error):
        execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab(main, words, row)")
        return "\n".join(term for (term,) in execute("SELECT term FROM temp.vocabulary"))
    return ""


class Copy:
    """A backup, or any other database of ours in the home that nobody has open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
            self._db.set_busy_timeout(1000)
            self._db.execute("SELECT 1 FROM memories, meta LIMIT 1").fetchall()  # else it is none of ours
        except apsw.Error as exc:
            raise StoreError(f"no database of ours that can be read: {exc}", hint="remove it by hand") from exc

    def ask(self, question: Callable[[Execute], T]) -> T:
        return question(self._db.execute)

    def forget(self, going: Doomed, cutter: Cutter, *, stones: Stones, at: float) -> Counter[str]:
        """Its rows and its traces, with the same tombstones; all of it, or it is done again."""
        db = self._db
        db.pragma("journal_mode", "delete")
        tombstones = Tombstones(db.execute, failures=(apsw.Error,))
        with db:
            db.execute(SQL)
            db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (KEY, stones.key))
            db.executemany("INSERT OR REPLACE INTO tombstones VALUES (?, ?, ?)", stones.rows)
            bury(db.execute, tombstones, going, at=at)
            after: Sequence[Any] = ()
            changed: Counter[str] = Counter()
            while True:
                planned = scrub.plan(db.execute, after=after, cleaner=cutter)
                scrub.apply(db.execute, planned)
                changed[planned.found.table] += planned.found.changed
                after = planned.found.after
                if not after:
                    break
            tombstones.bury("cut", sorted(cutter.cut), at=at)
            rekey(db.execute, tombstones, at=at)
            changed += remove(db.execute, going)
            if "marks" in all_tables(db.execute):
                db.execute("DELETE FROM marks WHERE name = ?", (UNFINISHED,))
        scrub.sweep(db)
        return +changed

    def close(self) -> None:
        self._db.close()


def rekey(execute: Execute, tombstones: Tombstones, *, at: float) -> int:
    """Events that were cut lose the hash of what they were: a tombstone knows it, and nobody can guess from it."""
    sql = "SELECT number, key FROM events WHERE instr(payload, ?) AND key NOT LIKE 'cut:%'"
    rows = list(execute(sql, (MARK,)))
    tombstones.bury("event", (key for _, key in rows), at=at)
    for number, _ in rows:
        execute("UPDATE events SET key = ? WHERE number = ?", (f"cut:{number}", number))
    return len(rows)


def bury(execute: Execute, tombstones: Tombstones, going: Doomed, *, at: float) -> int:
    """A tombstone for everything that goes."""
    memories = Reader(execute, failures=(apsw.Error,)).by_uid(list(going.uids)) if _is_new(execute) else ()
    loose = f"SELECT key FROM events WHERE session = '' AND project IN {LIST}"
    return (
        tombstones.bury("memory", (*going.uids, *_under_other_keys(execute, going)), at=at)
        + tombstones.bury("text", (text for memory in memories for text in texts_of(memory)), at=at)
        + tombstones.bury("session", going.sessions, at=at)
        + tombstones.bury("event", [key for (key,) in execute(loose, (as_list(going.projects),))], at=at)
    )


def _under_other_keys(execute: Execute, going: Doomed) -> Iterator[str]:
    """The uids that the same memories would have under the other keys of their projects."""
    if "projects" not in all_tables(execute):
        return
    pairs = list(execute("SELECT key, alias_of FROM projects WHERE alias_of <> ''"))
    sql = f"SELECT uid, kind, title, project FROM memories WHERE uid IN {LIST}"
    for uid, kind, title, project in execute(sql, (as_list(going.uids),)) if pairs else ():
        for key in {key for pair in pairs for key in pair if project in pair} - {project}:
            yield moved(uid, old=project, new=key, kind=kind, title=title)


def _is_new(execute: Execute) -> bool:
    return "pinned" in {each[1] for each in execute("PRAGMA table_info(memories)")}


def _known(going: Doomed) -> dict[str, Any]:
    return {"ids": list(going.ids), "sessions": list(going.sessions), "projects": list(going.projects)}

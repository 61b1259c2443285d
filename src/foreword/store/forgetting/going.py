"""What is to be forgotten -> its rows, its traces in other rows, and a database without either. Any schema of ours.

Rows are counted and removed by the same conditions, so that what was shown before is what goes. What others hold of it
is cut by `scrub.py`, which looks at every text of every table; here is which rule counts for which text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, TypeVar

import apsw

from foreword.errors import StoreError
from foreword.store import scrub
from foreword.store.log import LogWriter
from foreword.store.reading import Reader
from foreword.store.tombstones import KEY, SQL, Tombstones, texts_of
from foreword.traces import MARK, Traces, folded
from foreword.types import BASE32, EMPTY, Memory
from foreword.uids import moved
from foreword.values import replace, value
from foreword.words import told_in

T = TypeVar("T")
Execute = Callable[..., Any]

UNFINISHED = "forgetting"  # the mark that a killed worker finds
HALF = 0.5  # of its windows: then a memory that was merged says the same
MOST_PROMPTS = 64 * 1024  # characters of a session's prompts that are looked for elsewhere
JOINED = 256 * 1024  # bytes that are looked through at once
PAGE = 64 * 1024
TEXTS = ("title", "body", "tags", "detail")  # of a memory; files and functions are the repository's words
# What hosts told, what was given and what is noted: nobody's memory, so that everything which tells goes.
RAW = frozenset(
    [
        *(("events", "payload"), ("injection_texts", "text"), ("injections", "terms"), ("injections", "files")),
        *(("injections", "skipped"), ("injections", "layers"), ("log", "why"), ("log", "patch"), ("marks", "text")),
        *(("ledger", "outcome"), ("ledger", "purpose")),
    ]
)
MAGIC = b"SQLite format 3\0"


@value
class Doomed:
    """What goes: memories, and all of some sessions and projects. *near* are the sessions that memories came from."""

    uids: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    near: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.uids or self.sessions or self.projects)


@value
class Going:
    """What forgetting would come to: rows by table, memories by their titles, and whose transcripts tell it too."""

    tables: Mapping[str, int]
    memories: tuple[Memory, ...]
    transcripts: tuple[str, ...]
    hosts: Mapping[str, str]  # session -> host


@value
class Stones:
    """The tombstones of a database, and their key."""

    key: str
    rows: tuple[tuple[bytes, str, float], ...]


# ---- what goes


def doomed(
    execute: Execute, *, ids: Sequence[str] = (), session: str = "", projects: Sequence[str] = (), match: str = ""
) -> Doomed:
    """The memories of these ids, of a session, of projects, or of projects and with these words."""
    words = match.casefold().split()
    sql = """SELECT m.uid, m.id, m.session, m.title, m.body, m.tags, m.detail
        FROM memories m LEFT JOIN owners o ON o.number = m.owner WHERE"""
    if words:
        rows = execute(f"{sql} o.scope IN {_LIST}", (_json([f"project:{each}" for each in projects]),))
        found = [row for row in rows if _has(row[3:], words)]
    elif session:
        found = list(execute(f"{sql} m.session = ?", (session,)))
    elif projects:
        scopes = [f"project:{each}" for each in projects]
        found = list(execute(f"{sql} m.project IN {_LIST} OR o.scope IN {_LIST}", (_json(projects), _json(scopes))))
    else:
        found = list(execute(f"{sql} m.id IN {_LIST}", (_json(ids),)))
    whole = () if words else tuple(projects)
    sessions = {session} if session else set()
    if whole:
        sessions |= {id for (id,) in execute(f"SELECT id FROM sessions WHERE project IN {_LIST}", (_json(whole),))}
    found += _made_of(execute, found, sessions)
    return Doomed(
        uids=tuple(row[0] for row in found),
        ids=tuple(row[1] for row in found),
        sessions=tuple(sorted(sessions)),
        projects=whole,
        near=tuple(sorted({row[2] for row in found if row[2]} | sessions)),
    )


def _made_of(execute: Execute, found: Sequence[Sequence[Any]], sessions: Set[str]) -> list[Sequence[Any]]:
    """What was learned from these memories or sessions, and from nothing that stays."""
    uids = {row[0] for row in found}
    known = {id for (id,) in execute("SELECT id FROM sessions")} - sessions if sessions else set()
    more = []
    for row in execute(
        """SELECT uid, id, session, title, body, tags, detail FROM memories
        WHERE kind IN ('pattern', 'learning', 'preference') AND detail LIKE '%"seen_in"%'"""
    ):
        detail = json.loads(row[6]) if row[0] not in uids else {}
        sources, seen = detail.get("from"), detail.get("seen_in")
        if isinstance(sources, list) and sources:
            made = uids.issuperset(each for each in sources if isinstance(each, str))
        else:
            said = set(seen) if isinstance(seen, dict) and not row[2] else set()
            made = not said.isdisjoint(sessions) and said.isdisjoint(known)
        more += [row] if made else []
    return more


def known_as(execute: Execute, going: Doomed) -> Doomed:
    """With the uids and ids that the same memories have here: a merge of projects gives them others."""
    sql = f"SELECT uid, id FROM memories WHERE uid IN {_LIST} OR id IN {_LIST}"
    rows = list(execute(sql, (_json(going.uids), _json(going.ids))))
    uids = dict.fromkeys((*going.uids, *(uid for uid, _ in rows)))
    return replace(going, uids=tuple(uids), ids=tuple(dict.fromkeys((*going.ids, *(id for _, id in rows)))))


def projects(execute: Execute, key: str) -> tuple[str, ...]:
    """A project that anything is known of, and its aliases; none where nothing is."""
    known = execute(
        """SELECT 1 FROM owners WHERE scope = 'project:' || ?1 UNION SELECT 1 FROM sessions WHERE project = ?1
        UNION SELECT 1 FROM projects WHERE key = ?1""",
        (key,),
    )
    aliases = execute("SELECT key FROM projects WHERE alias_of = ? ORDER BY key", (key,))
    return (key, *(alias for (alias,) in aliases)) if list(known) else ()


def with_merged(execute: Execute, going: Doomed, traces: Traces) -> Doomed:
    """With what was merged into it and says the same; what only gave way to it is another memory."""
    rows = list(
        execute(
            f"""SELECT uid, id, session, title, body, tags, detail, superseded_by FROM memories
            WHERE superseded_by <> '' AND NOT uid IN {_LIST}""",
            (_json(going.uids),),
        )
    )
    ids = set(going.ids)
    while more := [
        row for row in rows if row[7] in ids and row[1] not in ids and traces.share(_told(row[3:7])) >= HALF
    ]:
        ids |= {row[1] for row in more}
        going = replace(
            going,
            uids=(*going.uids, *(row[0] for row in more)),
            ids=(*going.ids, *(row[1] for row in more)),
            near=tuple(sorted({*going.near, *(row[2] for row in more if row[2])})),
        )
    return going


def told(execute: Execute, going: Doomed) -> Iterator[str]:
    """Every text of what goes: as it is, as the log knows it from before, and what its sessions were asked."""
    for row in execute(f"SELECT {', '.join(TEXTS)} FROM memories WHERE uid IN {_LIST}", (_json(going.uids),)):
        yield from _told(row)
    if "log" in _tables(execute):
        named = f"SELECT DISTINCT l.patch FROM log l JOIN log_memories USING (number) WHERE memory IN {_LIST}"
        for (patch,) in execute(named, (_json(going.ids),)):
            changed = json.loads(patch).get("changed", {})
            for id in set(changed) & set(going.ids):
                for field in set(changed[id]) & set(TEXTS):
                    yield from _strings(changed[id][field])
    for session in going.sessions:
        room = MOST_PROMPTS
        for (payload,) in execute("SELECT payload FROM events WHERE session = ? AND kind = 'prompt'", (session,)):
            with suppress(ValueError):
                prompt = json.loads(payload).get("prompt")
                if isinstance(prompt, str) and room > 0:
                    yield prompt[:room]
                    room -= len(prompt)
    if going.sessions:
        for (detail,) in execute("SELECT detail FROM memories WHERE detail LIKE '%\"fixed_in\"%'"):
            yield from _fixes(_object(detail), going.sessions)


def going_of(execute: Execute, going: Doomed) -> Going:
    """What would go, by table; whose own files tell it too."""
    reader = Reader(execute, failures=(apsw.Error,))
    memories = reader.by_uid(list(going.uids))
    counts = {table: sum(_count(execute, table, *each) for each in some) for table, some in _conditions(going).items()}
    present = _tables(execute)
    paths: set[str] = set()
    hosts: dict[str, str] = {}
    for session in going.near:
        sql = """SELECT DISTINCT json_extract(payload, '$.transcript_path') FROM events
            WHERE session = ? AND json_valid(payload)"""
        paths |= {path for (path,) in execute(sql, (session,)) if isinstance(path, str) and path}
        hosts |= dict(execute("SELECT id, host FROM sessions WHERE id = ?", (session,)))
    shown = {table: count for table, count in counts.items() if count and table in present}
    return Going(tables=shown, memories=memories, transcripts=tuple(sorted(paths)), hosts=hosts)


def remove(execute: Execute, going: Doomed) -> Counter[str]:
    """Take its rows away, inside the transaction of whoever calls; how many, by table."""
    present = _tables(execute)
    removed: Counter[str] = Counter()
    _unindex(execute, going)
    removed["changes"] += _remove_changes(execute, going)
    for table, some in _conditions(going).items():
        for where, given in some if table in present else ():
            removed[table] += _count(execute, table, where, given)
            execute(f"DELETE FROM {table} WHERE {where}", given)
    for table, where in (("vectors", _PLACELESS), ("code", _PLACELESS), ("units", _UNNAMED)):
        if table in present:
            removed[table] += _count(execute, table, where, ())
            execute(f"DELETE FROM {table} WHERE {where}")
    if "log" in present:
        removed["log"] += _forget_patches(execute, going)
    if "silences" in present:
        execute(f"UPDATE silences SET nearest = '', score = 0 WHERE nearest IN {_LIST}", (_json(going.ids),))
    execute(f"UPDATE memories SET superseded_by = '' WHERE superseded_by IN {_LIST}", (_json(going.ids),))
    return +removed


_LIST = "(SELECT value FROM json_each(?))"
_PLACELESS = "place NOT IN (SELECT place FROM memories)"
_UNNAMED = "NOT EXISTS (SELECT 1 FROM code WHERE unit = number)"


def _conditions(going: Doomed) -> dict[str, list[tuple[str, tuple[Any, ...]]]]:
    """Which rows of which table go; what names others comes first."""
    ids, sessions, projects = _json(going.ids), _json(going.sessions), _json(going.projects)
    here = f"(session IN {_LIST} OR project IN {_LIST})"
    given = f"injection IN (SELECT id FROM injections WHERE {here})"
    both, scopes = (sessions, projects), _json([f"project:{each}" for each in going.projects])
    named = _json([*going.sessions, *going.projects])
    # As the last part of a name, or between two others: /src/foobar is another than /src/foo.
    naming = """EXISTS (SELECT 1 FROM json_each(?) WHERE instr(name || ':', ':' || value || ':')
      OR substr(name, -length(value) - 1) = ' ' || value)"""
    return {
        "links": [(f"source IN {_LIST} OR target IN {_LIST}", (ids, ids))],
        "access": [(f"memory IN {_LIST} OR session IN {_LIST}", (ids, sessions))],
        "sightings": [(f"memory IN {_LIST} OR session IN {_LIST}", (ids, sessions))],
        "injection_items": [(f"memory IN {_LIST}", (ids,)), (given, both)],
        "injection_texts": [(given, both)],
        "injections": [(here, both)],
        "silences": [(here, both)],
        "events": [(here, both)],
        "changes": [(here, both)],
        "ledger": [(f"session IN {_LIST}", (sessions,))],
        "sessions": [(f"id IN {_LIST} OR project IN {_LIST}", both)],
        "memories": [(f"uid IN {_LIST}", (_json(going.uids),))],
        "owners": [(f"scope IN {_LIST} AND number NOT IN (SELECT owner FROM memories)", (scopes,))],
        "projects": [(f"key IN {_LIST}", (projects,))],
        "tallies": [(f"project IN {_LIST}", (projects,))],
        "marks": [(naming, (named,))],
        "moved": [(f"what = 'memories' AND row IN {_LIST}", (ids,))],
    }


def _unindex(execute: Execute, going: Doomed) -> None:
    """Out of the words index, which is made anew afterwards; one that is damaged keeps nothing from going."""
    columns = "title, body, tags, files, split"
    with suppress(apsw.Error):
        for row in list(execute(f"SELECT place, {columns} FROM memories WHERE uid IN {_LIST}", (_json(going.uids),))):
            execute(f"INSERT INTO words (words, rowid, {columns}) VALUES ('delete', ?, ?, ?, ?, ?, ?)", row)


def _remove_changes(execute: Execute, going: Doomed) -> int:
    """The changes that the memories of changes tell of."""
    sql = f"SELECT project, session, files, functions FROM memories WHERE kind = 'change' AND uid IN {_LIST}"
    count = 0
    for project, session, files, functions in list(execute(sql, (_json(going.uids),))):
        where = f"project = ? AND session = ? AND file IN {_LIST} AND function IN {_LIST}"
        with suppress(apsw.SQLError):  # what some other hand wrote as no list names nothing
            count += _count(execute, "changes", where, (project, session, files, functions))
            execute(f"DELETE FROM changes WHERE {where}", (project, session, files, functions))
    return count


def _forget_patches(execute: Execute, going: Doomed) -> int:
    """Entries of the log stay, and tell no more than who did what to which memory, and when."""
    sql = f"""SELECT DISTINCT number, why, patch, project FROM log LEFT JOIN log_memories USING (number)
        WHERE memory IN {_LIST} OR project IN {_LIST}"""
    rows = list(execute(sql, (_json(going.ids), _json(going.projects))))
    ids = frozenset(going.ids)
    for number, why, patch, project in rows:
        gone = project in going.projects
        whole = json.loads(patch)
        kept = {id: each for id, each in whole.get("changed", {}).items() if id not in ids}
        less = {} if gone or (whole.get("changed") and not kept) else {**whole, "changed": kept}
        if "united" in less:
            pairs = less["united"].items()
            less["united"] = {id: each for id, each in pairs if ids.isdisjoint((id, each.get("with")))}
        alone = not kept
        execute(
            "UPDATE log SET why = ?, patch = ?, project = ? WHERE number = ?",
            ("" if gone or alone else why, json.dumps(less, ensure_ascii=False), "" if gone else project, number),
        )
    return len(rows)


# ---- what others hold of it


class Cutter:
    """What takes traces out of every text: all of them near it, passages from its kin, words from afar.

    *known* are all traces, *kin* those that no other memory has, *rest* those that no memory has.
    """

    def __init__(self, going: Doomed, *, known: Traces, kin: Traces, rest: Traces) -> None:
        self._known, self._kin, self._rest, self._is_kin = known, kin, rest, kinship(going)
        self._uids, self._near, self._ids = frozenset(going.uids), frozenset(going.near), frozenset(going.ids)
        self._sessions = frozenset(going.sessions)
        self.left: set[bytes] = set()  # windows that stand by chance in what other sessions were told
        self.cut: set[str] = set()  # uids of memories that stay without a passage
        self.hide = self.text

    def text(self, text: str) -> str:
        """A text of ours."""
        return self._rest.near(text)

    def cell(self, table: str, name: str, text: str, *, row: Mapping[str, Any]) -> str:
        """A text of a row, by the rule of its table."""
        if table == "memories":
            return self._memory(name, text, row=row)
        if (table, name) not in RAW or (table == "marks" and row.get("name") == UNFINISHED):
            return text
        if table == "injection_texts":
            text = "\n".join(map(self._line, text.split("\n")))
        there = self._rest.held(folded(text))
        if not there:
            return text  # most of them, at one look
        if table == "events" and row.get("session") not in self._near:
            clean = self._rest.far(text)
            self.left |= there if clean == text else self._rest.held(clean.encode("utf-8", "replace"))
            return clean
        clean = self._rest.near(text)
        # What JSON doubles may look like five letters of it and their escaped sixth: no text has that.
        self.left |= {each for each in self._rest.held(clean.encode("utf-8", "replace")) if b"\\" in each}
        return clean

    def _line(self, line: str) -> str:
        """A line of what was given, unless it names what goes."""
        named = self._ids and not self._ids.isdisjoint(_IDS.findall(line))
        return MARK if named else line

    def _memory(self, name: str, text: str, *, row: Mapping[str, Any]) -> str:
        if name not in TEXTS or row["uid"] in self._uids:
            return text
        kept = unseen(text, self._sessions) if name == "detail" else text
        clean = self._kin.kin(kept) if self._is_kin(row) else self._known.other(kept)
        if clean != text:
            self.cut.add(row["uid"])
        return clean


_IDS = re.compile(rf"\b[a-z]{{3}}-[{BASE32}]{{8}}\b")


def unseen(detail: str, sessions: Set[str]) -> str:
    """A memory's detail without what these sessions saw and fixed of it; another's fix takes the place of theirs."""
    told = _object(detail) if sessions and '_in"' in detail else {}
    left: dict[str, Any] = {
        name: {key: each for key, each in told[name].items() if key not in sessions}
        for name in ("seen_in", "also", "fixed_in")
        if isinstance(told.get(name), dict) and not sessions.isdisjoint(told[name])
    }
    if not left:
        return detail
    if told.get("fixed_by") in _fixes(told, sessions):
        left["fixed_by"] = next((each for each in reversed(left["fixed_in"].values()) if isinstance(each, str)), "")
    kept = {name: each for name, each in {**told, **left}.items() if each or name not in left}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


def _fixes(detail: Mapping[str, Any], sessions: Iterable[str]) -> list[str]:
    """What these sessions fixed a failure by."""
    fixes = detail.get("fixed_in")
    return [fixes[each] for each in sessions if isinstance(fixes.get(each), str)] if isinstance(fixes, dict) else []


def _object(text: str) -> dict[str, Any]:
    """What a text of JSON says, if that is an object."""
    with suppress(ValueError):
        told = json.loads(text)
        return told if isinstance(told, dict) else {}
    return {}


def kinship(going: Doomed) -> Callable[[Mapping[str, Any]], bool]:
    """Tells whether a memory came from the same session, gave way to what goes, or was learned from it."""
    near, ids, uids = frozenset(going.near), frozenset(going.ids), frozenset(going.uids)

    def is_kin(row: Mapping[str, Any]) -> bool:
        if row["session"] in near or row["superseded_by"] in ids:
            return True
        return '"from"' in row["detail"] and not uids.isdisjoint(_sources(row["detail"]))

    return is_kin


def _sources(detail: str) -> Iterator[str]:
    sources = _object(detail).get("from")
    yield from (each for each in sources if isinstance(each, str)) if isinstance(sources, list) else ()


def stays(execute: Execute, going: Doomed, traces: Traces, *, kin: bool) -> frozenset[bytes]:
    """The windows that will stand in memories and all other rows which are not raw: without its kin, or of it alone."""
    found: set[bytes] = set()
    joined: list[str] = []
    size = 0
    for text in _staying(execute, going, traces, kin=kin):
        joined.append(text)
        size += len(text)
        if size > JOINED:
            found |= traces.held("\n".join(joined).encode("utf-8", "replace"))
            joined, size = [], 0
    return frozenset(found | traces.held("\n".join(joined).encode("utf-8", "replace")))


def _staying(execute: Execute, going: Doomed, traces: Traces, *, kin: bool) -> Iterator[str]:
    """Row by row the texts side by side, as they lie in the file."""
    uids, sessions, projects = frozenset(going.uids), frozenset(going.sessions), frozenset(going.projects)
    is_kin = kinship(going)
    for table in ("memories",) if kin else scrub.tables(execute):
        if table == "units":
            continue  # names of files and functions, which go with the last memory that has them
        names = [each[1] for each in execute(f"PRAGMA table_info({table})")]
        for cells in execute(f"SELECT * FROM {table}"):
            row = dict(zip(names, cells, strict=True))
            if row.get("uid") in uids or row.get("session") in sessions or row.get("project") in projects:
                continue
            if table == "sessions" and row["id"] in sessions:
                continue
            if table == "memories":
                if is_kin(row) != kin:
                    continue
                row |= _as_it_will_be(row, traces.kin if kin else traces.other, traces, sessions=sessions)
            yield "".join(
                cell if isinstance(cell, str) and (table, name) not in RAW else "\0" for name, cell in row.items()
            )
    if not kin:
        yield "\n".join(sql for (sql,) in execute("SELECT sql FROM sqlite_master WHERE sql <> ''"))


def _as_it_will_be(
    row: Mapping[str, Any], cut: Callable[[str], str], traces: Traces, *, sessions: Set[str]
) -> dict[str, Any]:
    """The texts of a memory that will be cut; its words are made anew."""
    texts = {name: row[name] for name in TEXTS} | {"detail": unseen(row["detail"], sessions)}
    if traces.held("\n".join(texts.values()).encode("utf-8", "replace")):
        texts = {name: cut(text) for name, text in texts.items()}
    return {**texts, "split": ""} if any(text != row[name] for name, text in texts.items()) else {}


def would_cut(execute: Execute, going: Doomed, traces: Traces, *, kin: Traces) -> tuple[str, ...]:
    """The ids of memories that stay, without a passage."""
    found = []
    is_kin, uids = kinship(going), frozenset(going.uids)
    rows = execute(f"SELECT id, uid, session, superseded_by, {', '.join(TEXTS)} FROM memories")
    for cells in rows:
        row = dict(zip(("id", "uid", "session", "superseded_by", *TEXTS), cells, strict=True))
        cut = kin.kin if is_kin(row) else traces.other
        if row["uid"] not in uids and _as_it_will_be(row, cut, traces, sessions=frozenset(going.sessions)):
            found.append(row["id"])
    return tuple(found)


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
    loose = f"SELECT key FROM events WHERE session = '' AND project IN {_LIST}"
    return (
        tombstones.bury("memory", (*going.uids, *_under_other_keys(execute, going)), at=at)
        + tombstones.bury("text", (text for memory in memories for text in texts_of(memory)), at=at)
        + tombstones.bury("session", going.sessions, at=at)
        + tombstones.bury("event", [key for (key,) in execute(loose, (_json(going.projects),))], at=at)
    )


def _under_other_keys(execute: Execute, going: Doomed) -> Iterator[str]:
    """The uids that the same memories would have under the other keys of their projects."""
    if "projects" not in _tables(execute):
        return
    pairs = list(execute("SELECT key, alias_of FROM projects WHERE alias_of <> ''"))
    sql = f"SELECT uid, kind, title, project FROM memories WHERE uid IN {_LIST}"
    for uid, kind, title, project in execute(sql, (_json(going.uids),)) if pairs else ():
        for key in {key for pair in pairs for key in pair if project in pair} - {project}:
            yield moved(uid, old=project, new=key, kind=kind, title=title)


# ---- one database


class Forgetter:
    """What the live database does of it; a step each, so that one that was killed is taken again."""

    def __init__(
        self,
        *,
        path: Path,
        write: Callable[[Callable[[], Any]], Any],
        reader: Callable[[], AbstractContextManager[apsw.Connection]],
        execute: Execute,
        tombstones: Tombstones,
        logging: LogWriter,
    ) -> None:
        self._path, self._write, self._reader = path, write, reader
        self._execute, self._tombstones, self._logging = execute, tombstones, logging

    def ask(self, question: Callable[[Execute], T]) -> T:
        with self._reader() as connection:
            return question(connection.execute)

    def begin(self, going: Doomed, *, at: float) -> int:
        """Note what is to go, hide it and bury it, all or nothing; from here on it is never shown or told again."""

        def work() -> int:
            known = {**_known(going), "at": at}
            self._execute("INSERT OR REPLACE INTO marks VALUES (?, ?, ?)", (UNFINISHED, json.dumps(known), at))
            self._execute(f"UPDATE memories SET status = 'forgotten' WHERE uid IN {_LIST}", (_json(going.uids),))
            return bury(self._execute, self._tombstones, going, at=at)

        count: int = self._write(work)
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

        def question(execute: Execute) -> Stones:
            ((key,),) = list(execute("SELECT value FROM meta WHERE key = ?", (KEY,)))
            return Stones(key, tuple(execute("SELECT hash, what, at FROM tombstones")))

        return self.ask(question)

    def words(self) -> str:
        """Every word of the words index: they are stems, which no text has."""
        with self._reader() as connection:
            return words_of(connection)

    def pieces(self) -> Iterator[bytes]:
        """The bytes of the file, read by SQLite: to open and close it besides would drop its locks."""
        file = apsw.VFSFile("", str(self._path), [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0])
        try:
            size = file.xFileSize()
            for at in range(0, size, PAGE):
                yield file.xRead(min(PAGE, size - at), at)
        finally:
            file.xClose()


def words_of(db: apsw.Connection) -> str:
    with suppress(apsw.Error):
        db.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab(main, words, row)")
        return "\n".join(term for (term,) in db.execute("SELECT term FROM temp.vocabulary"))
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
            if "marks" in _tables(db.execute):
                db.execute("DELETE FROM marks WHERE name = ?", (UNFINISHED,))
        scrub.sweep(db)
        return +changed

    def words(self) -> str:
        return words_of(self._db)

    def close(self) -> None:
        self._db.close()


def _known(going: Doomed) -> dict[str, Any]:
    return {"ids": list(going.ids), "sessions": list(going.sessions), "projects": list(going.projects)}


def _is_new(execute: Execute) -> bool:
    return "pinned" in {each[1] for each in execute("PRAGMA table_info(memories)")}


def _tables(execute: Execute) -> frozenset[str]:
    return frozenset(name for (name,) in execute("SELECT name FROM sqlite_master WHERE type = 'table'"))


def _count(execute: Execute, table: str, where: str, given: Sequence[Any]) -> int:
    return int(next(iter(execute(f"SELECT count(*) FROM {table} WHERE {where}", given)))[0])


def _json(names: Iterable[str]) -> str:
    return json.dumps(list(names))


def _has(texts: Sequence[str], words: Sequence[str]) -> bool:
    told = "\n".join(_told(texts)).casefold()
    return all(word in told for word in words)


def _told(row: Sequence[str]) -> Iterator[str]:
    """Title, body, each tag, and each text of the detail."""
    title, body, tags, detail = row
    yield title
    yield body
    for each in (tags, detail):
        with suppress(ValueError):
            yield from _strings(json.loads(each))
    with suppress(ValueError):
        yield told_in(json.loads(detail))


def _strings(item: Any) -> Iterator[str]:
    if isinstance(item, str):
        yield item
    elif isinstance(item, (list, dict)):
        for each in item.values() if isinstance(item, dict) else item:
            yield from _strings(each)

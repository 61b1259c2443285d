"""What is to be forgotten -> what goes with it, all that it said, how many rows that is, and those rows removed.

Rows are counted and removed by the same conditions, so that what was shown before is what goes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import apsw

from foreword.store.reading import Reader
from foreword.traces import Traces
from foreword.types import Memory
from foreword.words import told_in

Execute = Callable[..., Any]

UNFINISHED = "forgetting"  # the mark that a killed worker finds
HALF = 0.5  # of its windows: then a memory that was merged says the same
MOST_PROMPTS = 64 * 1024  # characters of a session's prompts that are looked for elsewhere
LIST = "(SELECT value FROM json_each(?))"  # a list as one parameter: `as_list`
TEXTS = ("title", "body", "tags", "detail")  # of a memory; files and functions are the repository's words


@dataclass(frozen=True)
class Doomed:
    """What goes: memories, and all of some sessions and projects. *near* are the sessions that memories came from."""

    uids: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    near: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.uids or self.sessions or self.projects)


@dataclass(frozen=True)
class Going:
    """What forgetting would come to: rows by table, memories by their titles, and whose transcripts tell it too."""

    tables: Mapping[str, int]
    entries: int  # of the log, which stay and tell no more of it
    memories: tuple[Memory, ...]
    transcripts: tuple[str, ...]
    hosts: Mapping[str, str]  # session -> host


def doomed(
    execute: Execute, *, ids: Sequence[str] = (), session: str = "", projects: Sequence[str] = (), match: str = ""
) -> Doomed:
    """The memories of these ids, of a session, of projects, or of projects and with these words."""
    words = match.casefold().split()
    sql = """SELECT m.uid, m.id, m.session, m.title, m.body, m.tags, m.detail
        FROM memories m LEFT JOIN owners o ON o.number = m.owner WHERE"""
    if words:
        rows = execute(f"{sql} o.scope IN {LIST}", (as_list([f"project:{each}" for each in projects]),))
        found = [row for row in rows if _has(row[3:], words)]
    elif session:
        found = list(execute(f"{sql} m.session = ?", (session,)))
    elif projects:
        scopes = [f"project:{each}" for each in projects]
        found = list(execute(f"{sql} m.project IN {LIST} OR o.scope IN {LIST}", (as_list(projects), as_list(scopes))))
    else:
        found = list(execute(f"{sql} m.id IN {LIST}", (as_list(ids),)))
    whole = () if words else tuple(projects)
    sessions = {session} if session else set()
    if whole:
        sessions |= {id for (id,) in execute(f"SELECT id FROM sessions WHERE project IN {LIST}", (as_list(whole),))}
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
    sql = f"SELECT uid, id FROM memories WHERE uid IN {LIST} OR id IN {LIST}"
    rows = list(execute(sql, (as_list(going.uids), as_list(going.ids))))
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
            WHERE superseded_by <> '' AND NOT uid IN {LIST}""",
            (as_list(going.uids),),
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
    for row in execute(f"SELECT {', '.join(TEXTS)} FROM memories WHERE uid IN {LIST}", (as_list(going.uids),)):
        yield from _told(row)
    if "log" in all_tables(execute):
        named = f"SELECT DISTINCT l.patch FROM log l JOIN log_memories USING (number) WHERE memory IN {LIST}"
        for (patch,) in execute(named, (as_list(going.ids),)):
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
            yield from fixed_by(as_object(detail), going.sessions)


def going_of(execute: Execute, going: Doomed) -> Going:
    """What would go, by table; whose own files tell it too."""
    reader = Reader(execute, failures=(apsw.Error,))
    memories = reader.by_uid(list(going.uids))
    counts = {table: sum(_count(execute, table, *each) for each in some) for table, some in _conditions(going).items()}
    present = all_tables(execute)
    paths: set[str] = set()
    hosts: dict[str, str] = {}
    for session in going.near:
        sql = """SELECT DISTINCT json_extract(payload, '$.transcript_path') FROM events
            WHERE session = ? AND json_valid(payload)"""
        paths |= {path for (path,) in execute(sql, (session,)) if isinstance(path, str) and path}
        hosts |= dict(execute("SELECT id, host FROM sessions WHERE id = ?", (session,)))
    shown = {table: count for table, count in counts.items() if count and table in present}
    entries = len(_patched(execute, going)) if "log" in present else 0
    return Going(tables=shown, entries=entries, memories=memories, transcripts=tuple(sorted(paths)), hosts=hosts)


def given_to(execute: Execute, going: Doomed) -> frozenset[str]:
    """What its sessions were given, by id."""
    sql = f"SELECT id FROM injections WHERE session IN {LIST}"
    here = "injections" in all_tables(execute)
    return frozenset(id for (id,) in execute(sql, (as_list(going.sessions),))) if here else frozenset()


def remove(execute: Execute, going: Doomed) -> Counter[str]:
    """Take its rows away, inside the transaction of whoever calls; how many, by table."""
    present = all_tables(execute)
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
        _forget_patches(execute, going)
    if "silences" in present:
        execute(f"UPDATE silences SET nearest = '', score = 0 WHERE nearest IN {LIST}", (as_list(going.ids),))
    execute(f"UPDATE memories SET superseded_by = '' WHERE superseded_by IN {LIST}", (as_list(going.ids),))
    return +removed


_PLACELESS = "place NOT IN (SELECT place FROM memories)"
_UNNAMED = "NOT EXISTS (SELECT 1 FROM code WHERE unit = number)"


def _conditions(going: Doomed) -> dict[str, list[tuple[str, tuple[Any, ...]]]]:
    """Which rows of which table go; what names others comes first."""
    ids, sessions, projects = as_list(going.ids), as_list(going.sessions), as_list(going.projects)
    here = f"(session IN {LIST} OR project IN {LIST})"
    given = f"injection IN (SELECT id FROM injections WHERE {here})"
    both, scopes = (sessions, projects), as_list([f"project:{each}" for each in going.projects])
    named = as_list([*going.sessions, *going.projects])
    # As the last part of a name, or between two others: /src/foobar is another than /src/foo.
    naming = """EXISTS (SELECT 1 FROM json_each(?) WHERE instr(name || ':', ':' || value || ':')
      OR substr(name, -length(value) - 1) = ' ' || value)"""
    return {
        "links": [(f"source IN {LIST} OR target IN {LIST}", (ids, ids))],
        "access": [(f"memory IN {LIST} OR session IN {LIST}", (ids, sessions))],
        "sightings": [(f"memory IN {LIST} OR session IN {LIST}", (ids, sessions))],
        "injection_items": [(f"memory IN {LIST}", (ids,)), (given, both)],
        "injection_texts": [(given, both)],
        "injections": [(here, both)],
        "silences": [(here, both)],
        "events": [(here, both)],
        "changes": [(here, both)],
        "ledger": [(f"session IN {LIST}", (sessions,))],
        "sessions": [(f"id IN {LIST} OR project IN {LIST}", both)],
        "memories": [(f"uid IN {LIST}", (as_list(going.uids),))],
        "owners": [(f"scope IN {LIST} AND number NOT IN (SELECT owner FROM memories)", (scopes,))],
        "projects": [(f"key IN {LIST}", (projects,))],
        "tallies": [(f"project IN {LIST}", (projects,))],
        "marks": [(naming, (named,))],
        "moved": [(f"what = 'memories' AND row IN {LIST}", (ids,))],
    }


def _unindex(execute: Execute, going: Doomed) -> None:
    """Out of the words index, which is made anew afterwards; one that is damaged keeps nothing from going."""
    columns = "title, body, tags, files, split"
    with suppress(apsw.Error):
        for row in list(execute(f"SELECT place, {columns} FROM memories WHERE uid IN {LIST}", (as_list(going.uids),))):
            execute(f"INSERT INTO words (words, rowid, {columns}) VALUES ('delete', ?, ?, ?, ?, ?, ?)", row)


def _remove_changes(execute: Execute, going: Doomed) -> int:
    """The changes that the memories of changes tell of."""
    sql = f"SELECT project, session, files, functions FROM memories WHERE kind = 'change' AND uid IN {LIST}"
    count = 0
    for project, session, files, functions in list(execute(sql, (as_list(going.uids),))):
        where = f"project = ? AND session = ? AND file IN {LIST} AND function IN {LIST}"
        with suppress(apsw.SQLError):  # what some other hand wrote as no list names nothing
            count += _count(execute, "changes", where, (project, session, files, functions))
            execute(f"DELETE FROM changes WHERE {where}", (project, session, files, functions))
    return count


def _patched(execute: Execute, going: Doomed) -> list[tuple[int, str, str, str]]:
    """The entries of the log that tell of it."""
    sql = f"""SELECT DISTINCT number, why, patch, project FROM log LEFT JOIN log_memories USING (number)
        WHERE memory IN {LIST} OR project IN {LIST}"""
    return list(execute(sql, (as_list(going.ids), as_list(going.projects))))


def _forget_patches(execute: Execute, going: Doomed) -> None:
    """Entries of the log stay, and tell no more than who did what to which memory, and when."""
    ids = frozenset(going.ids)
    for number, why, patch, project in _patched(execute, going):
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


def fixed_by(detail: Mapping[str, Any], sessions: Iterable[str]) -> list[str]:
    """What these sessions fixed a failure by."""
    fixes = detail.get("fixed_in")
    return [fixes[each] for each in sessions if isinstance(fixes.get(each), str)] if isinstance(fixes, dict) else []


def as_object(text: str) -> dict[str, Any]:
    """What a text of JSON says, if that is an object."""
    with suppress(ValueError):
        told = json.loads(text)
        return told if isinstance(told, dict) else {}
    return {}


def all_tables(execute: Execute) -> frozenset[str]:
    return frozenset(name for (name,) in execute("SELECT name FROM sqlite_master WHERE type = 'table'"))


def _count(execute: Execute, table: str, where: str, given: Sequence[Any]) -> int:
    return int(next(iter(execute(f"SELECT count(*) FROM {table} WHERE {where}", given)))[0])


def as_list(names: Iterable[str]) -> str:
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

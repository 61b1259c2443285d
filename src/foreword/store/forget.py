"""Remove memories, sessions and projects from a database: their rows, and verbatim copies of their texts in other rows.

Works on the live database and on backups. Rows are counted and removed by the same conditions, so that a preview shows
what will go. docs/security.md#foreword-forget-removes-every-copy says what happens to which table. The copies are
found and replaced by store/verbatim.py, and `Tombstones` keep what was forgotten from coming back.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from foreword.errors import StoreError
from foreword.models import Memory, moved
from foreword.store import StoreReader
from foreword.store.maintenance import CleanCell, Execute, rewrite, run, sweep
from foreword.store.migrations import check_version, upgrade

UNFINISHED = "forgetting"  # the checkpoint that the next worker finds where one was killed
LIST = "(SELECT value FROM json_each(?))"  # a list as one parameter: `_list`
LONGEST_PROMPT = 64 * 1024  # characters of a session's prompt that are looked for elsewhere
TEXTS = ("title", "body", "tags", "detail")  # of a memory; files and functions belong to the repository
# Names that a detail holds: of commands, code and other memories. They occur in many sessions for their own sake.
NAMES = ("command", "commands", "signature", "fingerprint", "failure", "from", "same_as")
MARK = "[forgotten]"  # in place of a copy


# ---- tombstones

KEY = "tombstones"  # in `meta`
TITLE = 16  # characters from which on a title alone identifies a memory


class Tombstones:
    """Keyed hashes of what was forgotten in one database, so that nothing brings it back.

    The key lies in the database, so that it goes with every backup: one that is put back refuses the same. Without a
    key, whoever has a list of likely texts could ask the hashes of any copied file. A database that began after a loss
    has a key of its own; what was restored has those of both.
    """

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self._keys: list[str] | None = None

    def bury(self, what: str, names: Iterable[str], *, at: float) -> None:
        """Let nothing of these names come back that is not newer than *at*."""
        self._execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (KEY, secrets.token_hex(32)))
        self._keys = None  # what was known of it may have been taken back with its transaction
        for name in filter(None, dict.fromkeys(names)):
            self._execute("INSERT OR REPLACE INTO tombstones VALUES (?, ?, ?)", (self._hashes(what, name)[0], what, at))

    def take_over(self, other: Execute) -> None:
        """Refuse also what another database refuses."""
        keys = dict.fromkeys([*Tombstones(other).keys(), *self.keys()])
        if keys:
            self._execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (KEY, " ".join(keys)))
        for row in list(other("SELECT * FROM tombstones")):
            self._execute("INSERT OR REPLACE INTO tombstones VALUES (?, ?, ?)", row)
        self._keys = None

    def refuses(self, memory: Memory, *, imported: bool) -> bool:
        """Return whether a new memory was forgotten; one that is newer than that, and not *imported*, was not."""
        if not self.keys():
            return False
        if memory.session and MARK in memory.title and memory.kind != "summary":
            return True  # made of what was cut
        uids = [memory.uid]  # ... and those that it had under the keys that count as its project by now
        for (key,) in list(self._execute("SELECT key FROM projects WHERE alias_of = ?", (memory.project,))):
            uids.append(moved(memory.uid, old=memory.project, new=key, kind=memory.kind, title=memory.title))
        named = [*(("memory", uid) for uid in uids), *(("text", text) for text in identity_texts(memory))]
        at = max(self._at(what, name) for what, name in named)
        return bool(at and (imported or memory.created <= at)) or memory.created <= self._at("session", memory.session)

    def is_cut(self, memory: Memory) -> bool:
        """Return whether a passage was cut from a memory: what an import knows of it is from before."""
        return bool(self.keys()) and self._at("cut", memory.uid) > 0

    def refuses_part(self, session: str, *, at: float, event: str = "") -> bool:
        """Return whether what is from then was forgotten with its session, or as the event of this key."""
        return bool(self.keys()) and at <= max(self._at("event", event), self._at("session", session))

    def keys(self) -> list[str]:
        """Return the keys of the hashes; none where nothing was ever forgotten."""
        if self._keys is None:
            found = list(self._execute("SELECT value FROM meta WHERE key = ?", (KEY,)))
            self._keys = found[0][0].split() if found else []
        return self._keys

    def _at(self, what: str, name: str) -> float:
        if not name:
            return 0.0
        query = "SELECT at FROM tombstones WHERE hash = ?"
        found = [at for each in self._hashes(what, name) for (at,) in self._execute(query, (each,))]
        return float(max(found, default=0.0))

    def _hashes(self, what: str, name: str) -> list[bytes]:
        named = f"{what}\0{name}".encode("utf-8", "replace")
        keys = map(bytes.fromhex, self.keys())
        return [hashlib.blake2b(named, key=key, digest_size=16).digest() for key in keys]


def identity_texts(memory: Memory) -> tuple[str, ...]:
    """Return what a memory says, normalized; also its title alone, where that is long enough."""
    title = _letters(memory.title)
    whole = _letters(f"{memory.kind} {memory.title} {memory.body}")
    return (whole, f"{memory.kind} {title}") if len(title) >= TITLE else (whole,)


def _letters(text: str) -> str:
    return " ".join("".join(char if char.isalnum() else " " for char in text.casefold()).split())


# ---- what is forgotten


@dataclass(frozen=True)
class Target:
    """What is to be forgotten: memories, and all of some sessions and projects.

    *near* are the sessions that the memories came from. *only* is the project of an agent that asks: memories of other
    projects and those of the user stay as they are.
    """

    ids: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    only: str = ""

    def spares(self, *, trust: str, project: str) -> bool:
        """Return whether a memory stays as it is, because it is not the agent's who asks."""
        return bool(self.only) and (trust == "user" or project != self.only)

    def with_memories(self, rows: Iterable[tuple[str, str]]) -> Target:
        """Return the same with more memories, each given as (id, session)."""
        more = dict(rows)
        ids = tuple(dict.fromkeys((*self.ids, *more)))
        return replace(self, ids=ids, near=tuple(sorted({*self.near, *filter(None, more.values())})))


# ---- in a database


class Forgetter:
    """Forgets in one database, live or a backup, step by step; whoever calls it makes each step a transaction."""

    def __init__(self, execute: Execute, tombstones: Tombstones) -> None:
        self._execute, self.tombstones = execute, tombstones

    def find(self, *, ids: Sequence[str] = (), session: str = "", projects: Sequence[str] = ()) -> Target:
        """Find the memories of these ids, of a session, or of projects, and the sessions that go with them."""
        sql = f"""SELECT m.id, m.session FROM memories m LEFT JOIN owners o ON o.number = m.owner
            WHERE m.id IN {LIST} OR (m.session = ? AND m.session <> '') OR m.project IN {LIST} OR o.scope IN {LIST}"""
        scopes = _list(f"project:{each}" for each in projects)
        found = list(self._execute(sql, (_list(ids), session, _list(projects), scopes)))
        of_projects = self._execute(f"SELECT id FROM sessions WHERE project IN {LIST}", (_list(projects),))
        sessions = tuple(sorted({*filter(None, [session]), *(id for (id,) in of_projects)}))
        target = Target(sessions=sessions, projects=tuple(projects), near=sessions).with_memories(found)
        # What tidying merged into these memories is the same, in its own words.
        sql = f"""SELECT id, session FROM memories WHERE superseded_by IN {LIST}
            AND json_valid(detail) AND detail ->> 'same_as' = superseded_by"""
        return target.with_memories(self._execute(sql, (_list(target.ids),)))

    def with_copies(self, target: Target, sentences: Container[str]) -> Target:
        """Return *target* with the memories whose title and body are nothing but verbatim copies of its texts."""
        sql = f"SELECT id, session, title, body, trust, project FROM memories WHERE id NOT IN {LIST}"
        return target.with_memories(
            (id, session)
            for id, session, title, body, trust, project in self._execute(sql, (_list(target.ids),))
            if title in sentences and (not body.strip() or body in sentences)
            if not target.spares(trust=trust, project=project)
        )

    def texts(self, target: Target) -> Iterator[str]:
        """Yield every text of what goes: as it is, as the log knows it from before, and its sessions' prompts."""
        # What a change is called, its file and its signature are the repository's words.
        sql = f"SELECT {', '.join(TEXTS)} FROM memories WHERE kind <> 'change' AND id IN {LIST}"
        for title, body, *lists in self._execute(sql, (_list(target.ids),)):
            yield from (title, body)
            for each in lists:
                with suppress(ValueError):
                    yield from _strings(json.loads(each))
        named = f"SELECT DISTINCT l.patch FROM log l JOIN log_memories USING (number) WHERE memory IN {LIST}"
        for (patch,) in self._execute(named, (_list(target.ids),)):
            changed = json.loads(patch).get("changed", {})
            for id in set(changed) & set(target.ids):
                for name in set(changed[id]) & set(TEXTS):
                    yield from _strings(changed[id][name])
        prompts = f"SELECT payload FROM events WHERE session IN {LIST} AND kind = 'prompt'"
        for (payload,) in self._execute(prompts, (_list(target.sessions),)):
            with suppress(ValueError, AttributeError):
                yield str(json.loads(payload).get("prompt", ""))[:LONGEST_PROMPT]

    def row_counts(self, target: Target) -> dict[str, int]:
        """Count what would go, by table."""
        counts = {table: self._count(table, *each) for table, each in _conditions(target).items()}
        return {table: count for table, count in counts.items() if count}

    def transcripts(self, target: Target) -> list[str]:
        """Return the agents' own files that tell of it, too."""
        sql = f"""SELECT DISTINCT json_extract(payload, '$.transcript_path') FROM events
            WHERE session IN {LIST} AND json_valid(payload)"""
        rows = self._execute(sql, (_list(target.near),))
        return sorted(path for (path,) in rows if isinstance(path, str) and path)

    def hide(self, target: Target, *, at: float) -> None:
        """Hide everything that goes, and write a tombstone for it: from here on it is never shown again."""
        self._execute(f"UPDATE memories SET status = 'forgotten' WHERE id IN {LIST}", (_list(target.ids),))
        memories = StoreReader(self._execute, failures=(apsw.Error,)).memories.get(target.ids, forgotten=True)
        loose = f"SELECT key FROM events WHERE session = '' AND project IN {LIST}"
        bury = self.tombstones.bury
        bury("memory", (memory.uid for memory in memories), at=at)
        bury("text", (text for memory in memories for text in identity_texts(memory)), at=at)
        bury("session", target.sessions, at=at)
        bury("event", [key for (key,) in self._execute(loose, (_list(target.projects),))], at=at)

    def bury_cut(self, cut: Set[str], *, at: float) -> None:
        """Keep imports from bringing back what was cut. Events get another key: theirs is a hash of what they said."""
        self.tombstones.bury("cut", sorted(cut), at=at)
        sql = "SELECT number, key FROM events WHERE instr(payload, ?) AND key NOT LIKE 'cut:%'"
        rows = list(self._execute(sql, (MARK,)))
        self.tombstones.bury("event", (key for _, key in rows), at=at)
        for number, _ in rows:
            self._execute("UPDATE events SET key = ? WHERE number = ?", (f"cut:{number}", number))

    def remove(self, target: Target) -> Counter[str]:
        """Delete its rows, and what the checkpoint names; return how many went, by table. A sweep has to follow."""
        execute, ids, projects = self._execute, _list(target.ids), _list(target.projects)
        removed: Counter[str] = Counter()
        telling_them = f"SELECT injection FROM injection_items WHERE memory IN {LIST}"
        execute(f"UPDATE injections SET terms = '[]' WHERE id IN ({telling_them})", (ids,))
        placeless = ("place NOT IN (SELECT place FROM memories)", ())
        unused = {"code": placeless, "units": ("NOT EXISTS (SELECT 1 FROM code WHERE unit = number)", ())}
        for table, (where, parameters) in {**_conditions(target), **unused}.items():
            removed[table] += self._count(table, where, parameters)
            execute(f"DELETE FROM {table} WHERE {where}", parameters)
        # Of entries of the log that name it, who did what to which memory stays, and when.
        named = f"number IN (SELECT number FROM log_memories WHERE memory IN {LIST}) OR project IN {LIST}"
        execute(f"UPDATE log SET why = '', patch = '{{}}' WHERE {named}", (ids, projects))
        execute(f"UPDATE log SET project = '' WHERE project IN {LIST}", (projects,))
        execute(f"UPDATE injections SET nearest = '', score = 0 WHERE nearest IN {LIST}", (ids,))
        execute(f"UPDATE memories SET superseded_by = '' WHERE superseded_by IN {LIST}", (ids,))
        execute("UPDATE checkpoints SET text = '{}' WHERE name = ?", (UNFINISHED,))
        return +removed

    def _count(self, table: str, where: str, parameters: Sequence[Any]) -> int:
        return int(next(iter(self._execute(f"SELECT count(*) FROM {table} WHERE {where}", parameters)))[0])


class Backup(Forgetter):
    """A backup, or any other database of ours in the home that nobody has open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
            self.db.set_busy_timeout(1000)
            check_version(self.db)
            self.db.execute("SELECT 1 FROM memories, meta LIMIT 1").fetchall()  # else it is none of ours
            damage = self.db.execute("PRAGMA quick_check(1)").get
        except (apsw.Error, StoreError) as exc:
            raise StoreError(f"this backup cannot be changed: {exc}", hint="delete the backup file yourself") from exc
        if damage != "ok":  # found half-way, it would keep `forget` from all the others
            self.db.close()
            raise StoreError(f"this backup is damaged: {damage}", hint="delete the backup file yourself")
        super().__init__(self.db.execute, Tombstones(self.db.execute))

    def forget(self, target: Target, clean: CleanCell, cut: Set[str], *, live: Execute, at: float) -> int:
        """Remove its rows and copies, take over the live tombstones, all or nothing; return how many rows changed.

        To *cut* belong the uids of what *clean* has changed.
        """
        db = self.db
        db.pragma("journal_mode", "delete")
        upgrade(db)
        with db:
            self.tombstones.take_over(live)
            self.hide(target, at=at)
            changed = rewrite(db.execute, clean, partial(run, db.execute)).changed.total()
            self.bury_cut(cut, at=at)
            changed += self.remove(target).total()
            db.execute("DELETE FROM checkpoints WHERE name = ?", (UNFINISHED,))
        sweep(db)
        return changed

    def forget_again(self, live: Execute) -> None:
        """Remove what was forgotten in the *live* database, or any other that this one's tombstones came from."""
        from foreword.store.verbatim import Cutter, Sentences  # it imports this module

        tombstones = "SELECT hash, at FROM tombstones"
        if {*live(tombstones)} <= {*self._execute(tombstones)}:
            return  # it was cleaned with the live database, or copied from it since
        known, ids, cut, after = Tombstones(live), list[str](), list[str](), 0
        reader = StoreReader(self._execute, failures=(apsw.Error,))
        while page := reader.memories.page(after=after):
            ids += [memory.id for _, memory in page if known.refuses(memory, imported=False)]
            cut += [memory.id for _, memory in page if known.is_cut(memory)]
            after = page[-1][0]
        ended = self._execute("SELECT id, last FROM sessions")
        sessions = tuple(id for id, last in ended if known.refuses_part(id, at=last))
        target = replace(self.find(ids=ids), sessions=sessions)
        target = replace(target, near=tuple(sorted({*target.near, *sessions})))
        texts = list(self.texts(target))
        ((at,),) = live("SELECT ifnull(max(at), 0) FROM tombstones")
        cutter = Cutter(self.with_copies(target, Sentences(texts)), texts)
        self.forget(cutter.target, cutter.cell, cutter.cut, live=live, at=at)
        self.remove(Target(ids=tuple(cut)))  # the passages that they lost are not known any more
        events = "SELECT number, key, session, at FROM events"
        for number, key, session, at in list(self._execute(events)):
            if known.refuses_part(session, at=at, event=key):  # its cut version is taken over from the live database
                self._execute("DELETE FROM events WHERE number = ?", (number,))


def _conditions(target: Target) -> dict[str, tuple[str, tuple[Any, ...]]]:
    """Return which rows of which table go; what names others comes first."""
    ids, sessions, projects = _list(target.ids), _list(target.sessions), _list(target.projects)
    here, both = f"(session IN {LIST} OR project IN {LIST})", (sessions, projects)
    theirs = f"injection IN (SELECT id FROM injections WHERE {here})"
    telling = f"injection IN (SELECT injection FROM injection_items WHERE memory IN {LIST}) OR {theirs}"
    # As the last part of a name, or between two others: /src/foobar is another than /src/foo.
    naming = """EXISTS (SELECT 1 FROM json_each(?) WHERE instr(name || ':', ':' || value || ':')
      OR substr(name, -length(value) - 1) = ' ' || value)"""
    scopes = _list(f"project:{each}" for each in target.projects)
    return {
        "links": (f"source IN {LIST} OR target IN {LIST}", (ids, ids)),
        "access": (f"memory IN {LIST} OR session IN {LIST}", (ids, sessions)),
        "sightings": (f"memory IN {LIST} OR session IN {LIST}", (ids, sessions)),
        "injection_texts": (telling, (ids, *both)),
        "injection_items": (f"memory IN {LIST} OR {theirs}", (ids, *both)),
        "injections": (here, both),
        "events": (here, both),
        "changes": (here, both),
        "model_calls": (f"session IN {LIST}", (sessions,)),
        "sessions": (f"id IN {LIST} OR project IN {LIST}", both),
        "memories": (f"id IN {LIST}", (ids,)),
        "owners": (f"scope IN {LIST} AND number NOT IN (SELECT owner FROM memories)", (scopes,)),
        "projects": (f"key IN {LIST}", (projects,)),
        "tallies": (f"project IN {LIST}", (projects,)),
        "checkpoints": (naming, (_list([*target.sessions, *target.projects]),)),
    }


def _list(names: Iterable[str]) -> str:
    return json.dumps(list(names))


def _strings(item: Any) -> Iterator[str]:
    if isinstance(item, str):
        yield item
    elif isinstance(item, (list, dict)):
        some = [each for name, each in item.items() if name not in NAMES] if isinstance(item, dict) else item
        for each in some:
            yield from _strings(each)

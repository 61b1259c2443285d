"""Remove memories, sessions and projects from a database: their rows, and verbatim copies of their texts in other rows.

Works on the live database and on backups. Rows are counted and removed by the same conditions, so that a preview shows
what will go. docs/security.md#foreword-forget-removes-every-copy says what happens to which table. `Sentences` finds
the copies, and `Tombstones` keep what was forgotten from coming back.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import apsw

from foreword.errors import StoreError
from foreword.models import Memory, moved
from foreword.store.audit import Audit
from foreword.store.database import Database
from foreword.store.memories import MemoryReader, as_json
from foreword.store.migrations import check_version, upgrade
from foreword.store.scrub import Execute, batches, sweep
from foreword.store.sql import ReadOnly, transaction

Stones = tuple[str, list[tuple[bytes, str, float]]]

PAGE = 64 * 1024
UNFINISHED = "forgetting"  # the mark that the next worker finds where one was killed
LIST = "(SELECT value FROM json_each(?))"  # a list as one parameter: `as_list`
LONGEST_PROMPT = 64 * 1024  # characters of a session's prompt that are looked for elsewhere
# Bytes from which on a text is looked for in the rows of the session that it came from: the prompt that a short memory
# was made of stands there.
SHORTEST_NEAR = 8
TEXTS = ("title", "body", "tags", "detail")  # of a memory; files and functions belong to the repository
# Names that a detail holds: of commands, code and other memories. They occur in many sessions for their own sake.
NAMES = ("command", "commands", "signature", "fingerprint", "failure", "from", "same_as")
# Texts in which copies are replaced; all other columns hold ids, keys, paths and numbers.
CUT: Mapping[str, tuple[str, ...]] = {
    "memories": TEXTS,
    "events": ("payload",),
    "injection_texts": ("text",),
    "injections": ("terms", "files", "skipped", "layers"),
    "log": ("why", "patch"),
    "marks": ("text",),
    "ledger": ("outcome", "purpose"),
}


# ---- copies of sentences in other texts

MARK = "[forgotten]"
# UTF-8 bytes from which on a sentence is looked for everywhere: four or five words (eight Chinese characters), which
# two people hardly write alike by chance. "done", "fix tests" and "run the tests again" are shorter.
SHORTEST = 24
LONGEST = 8192  # characters of a text that is looked for as a whole, besides its sentences
FEW = 64  # sentences up to which each is searched for by itself, at the speed of str.find

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|[\r\n]+")
_AROUND = " \t\r\n.,;:!?…。！？\"'`*_#>-"  # stripped from both ends, so that a copy without its full stop is found
# Every run of white space and its escapes but a single blank, and backslashes.
_BLANK = re.compile(r"(?: (?=\s|\\+[nrt])|[^\S ]|\\+[nrt])(?:\\+[nrt]|\s)*|\\+")


class Sentences:
    """The sentences of *texts* that have at least *shortest* bytes.

    With *whole_words*, a sentence is only found where no word goes on over its ends.
    """

    def __init__(self, texts: Iterable[str], *, shortest: int = SHORTEST, whole_words: bool = False) -> None:
        self.all = frozenset(
            form
            for text in texts
            for sentence in split(text)
            if is_long(sentence, shortest=shortest)
            for form in _forms(sentence)
        )
        self.longest = max(map(len, self.all), default=0)
        self._shortest, self._whole_words = shortest, whole_words
        # By how many characters candidates are looked up: as many as the beginning of every sentence has.
        begun = (form.encode("utf-8", "replace")[:shortest].decode("utf-8", "ignore") for form in self.all)
        self._head = min(map(len, begun), default=0)
        self._by_head: dict[str, list[str]] = {}
        for form in sorted(self.all, key=len, reverse=True):
            self._by_head.setdefault(form[: self._head], []).append(form)

    def __contains__(self, text: str) -> bool:
        """Return whether *text* is nothing but one of the sentences."""
        return _Plain.of(text.strip(_AROUND)).text in self.all

    def found(self, text: str) -> frozenset[str]:
        """Return the sentences that *text* holds."""
        plain = _Plain.of(text)
        return frozenset(plain.text[start:end] for start, end in self._spans(plain.text))

    def cut(self, text: str) -> str:
        """Return *text* with the marker in place of every copy."""
        plain = _Plain.of(text)
        pieces, done = [], 0
        for start, end in self._spans(plain.text):
            pieces.append(text[done : plain.origin(start)])
            done = plain.origin(end - 1) + 1
        return MARK.join([*pieces, text[done:]])

    def cut_json(self, text: str) -> str:
        """Do the same for a text that may be JSON, which stays JSON."""
        if not self.found(text):
            return text
        return each_string(text, self.cut)

    def _spans(self, plain: str) -> Iterator[tuple[int, int]]:
        """Yield where copies stand, the longest at each place, none over another."""
        done = 0
        for start in self._starts(plain):
            end = self._end(plain, start) if start >= done else 0
            if end:
                yield start, end
                done = end

    def _starts(self, plain: str) -> Iterable[int]:
        size, heads = self._head, self._by_head
        if not heads:
            return ()
        if len(heads) > FEW:
            return (at for at in range(len(plain) - size + 1) if plain[at : at + size] in heads)
        here = (head for head in heads if head in plain)
        return sorted(at.start() for head in here for at in re.finditer(f"(?={re.escape(head)})", plain))

    def _end(self, plain: str, start: int) -> int:
        """Return where the copy that begins at *start* ends; 0 where there is none."""
        forms = self._by_head[plain[start : start + self._head]]
        for form in forms:
            end = start + len(form)
            if plain.startswith(form, start) and not (self._whole_words and _inside_a_word(plain, start, end)):
                return end
        # Titles are cut to a width: the beginning of a sentence with an ellipsis behind it is a copy, too.
        clipped = plain.find("…", start, start + self.longest)
        if clipped < 0 or len(plain[start:clipped].encode("utf-8", "replace")) < self._shortest:
            return 0
        return clipped + 1 if any(form.startswith(plain[start:clipped]) for form in forms) else 0


def split(text: str) -> Iterator[str]:
    """Yield the sentences and lines of *text*, and the whole of it, without punctuation around them."""
    for part in text.split(MARK):
        for each in {part if len(part) <= LONGEST else "", *_SENTENCE_END.split(part)}:
            sentence = each.strip(_AROUND)
            if not _is_path(sentence):
                yield sentence


def is_long(sentence: str, *, shortest: int = SHORTEST) -> bool:
    """Return whether a sentence has enough bytes to be looked for, runs of white space counted as one blank."""
    return len(_Plain.of(sentence).text.encode("utf-8", "replace")) >= shortest


def each_string(text: str, change: Callable[[str], str]) -> str:
    """Apply *change* to each string of the JSON in *text*, at any depth, or to *text* itself where it is no JSON."""
    if text[:1] in ("{", "["):
        try:
            stored = json.loads(text)
        except (ValueError, RecursionError):
            pass
        else:
            changed = _walk(stored, lambda each: each_string(each, change))
            return text if changed == stored else as_json(changed)
    return change(text)


def _walk(item: Any, change: Callable[[str], str]) -> Any:
    if isinstance(item, str):
        return change(item)
    if isinstance(item, dict):
        return {name: _walk(each, change) for key, each in item.items() if (name := change(key)) != MARK}
    if isinstance(item, list):  # what is nothing but a copy leaves nothing behind
        return [changed for each in item if (changed := _walk(each, change)) != MARK]
    return item


@dataclass(frozen=True)
class _Plain:
    """A text in lower case, its white space as single blanks and without backslashes, and where each part came from."""

    text: str
    starts: list[int]  # of parts in it
    origins: list[int]  # where those begin in the original text

    @classmethod
    def of(cls, text: str) -> _Plain:
        parts, starts, origins, size, done = [], [0], [0], 0, 0
        for run in _BLANK.finditer(text):
            blank = " " if run[0].strip("\\") else ""
            parts += [text[done : run.start()], blank]
            size += run.start() - done + len(blank)
            done = run.end()
            starts.append(size)
            origins.append(done)
        return cls(_lower("".join((*parts, text[done:]))), starts, origins)

    def origin(self, at: int) -> int:
        part = bisect_right(self.starts, at) - 1
        return self.origins[part] + at - self.starts[part]


def _lower(text: str) -> str:
    """Return *text* in lower case, every character at its place: `lower` makes two of İ, and Σ depends on its place."""
    return text.lower() if text.isascii() else text.replace("İ", "i").replace("Σ", "σ").lower()


def _forms(sentence: str) -> Iterator[str]:
    """Yield a sentence as it stands in a text, and as JSON in ASCII writes it."""
    yield _Plain.of(sentence).text
    if not sentence.isascii():
        yield _Plain.of(json.dumps(sentence)[1:-1]).text


def _is_path(text: str) -> bool:
    """Return whether a text is the name of a file or an address: a name belongs to whoever uses it."""
    return ("/" in text or "\\" in text) and not any(map(str.isspace, text))


def _inside_a_word(plain: str, start: int, end: int) -> bool:
    return any(
        0 < at < len(plain) and plain[at - 1 : at + 1].isascii() and plain[at - 1 : at + 1].isalnum()
        for at in (start, end)
    )


# ---- tombstones

KEY = "tombstones"  # in `meta`
TITLE = 16  # characters from which on a title alone is told from any other


class Tombstones:
    """Keyed hashes of what was forgotten in one database, so that nothing brings it back.

    The key lies in the database, so that it goes with every backup: one that is put back refuses the same. Without a
    key, whoever has a list of likely texts could ask the hashes of any copied file.
    """

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self._key: bytes | None = None

    def bury(self, what: str, names: Iterable[str], *, at: float) -> None:
        """Let nothing of these names come back that is not newer than *at*."""
        self._execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (KEY, secrets.token_hex(32)))
        self._key = None  # what was known of it may have been taken back with its transaction
        for name in filter(None, dict.fromkeys(names)):
            self._execute("INSERT OR REPLACE INTO tombstones VALUES (?, ?, ?)", (self._hash(what, name), what, at))

    def refuses(self, memory: Memory, *, imported: bool) -> bool:
        """Return whether a new memory was forgotten; one that is newer than that, and not *imported*, was not."""
        if not self._load():
            return False
        if memory.session and MARK in memory.title and memory.kind != "summary":
            return True  # made of what was cut
        named = [*(("memory", uid) for uid in self._uids(memory)), *(("text", text) for text in identity_texts(memory))]
        at = max((self._at(what, name) for what, name in named), default=0.0)
        if at and (imported or memory.created <= at):
            return True
        return memory.created <= self._at("session", memory.session)

    def is_cut(self, memory: Memory) -> bool:
        """Return whether a passage was cut from a memory: what an import knows of it is from before."""
        return self._load() and self._at("cut", memory.uid) > 0

    def refuses_part(self, session: str, *, at: float, event: str = "") -> bool:
        """Return whether what is from then was forgotten with its session, or as the event of this key."""
        return self._load() and at <= max(self._at("event", event), self._at("session", session))

    def _uids(self, memory: Memory) -> Iterator[str]:
        """Yield its uid, and those that it had under the keys that count as its project by now."""
        yield memory.uid
        for (key,) in list(self._execute("SELECT key FROM projects WHERE alias_of = ?", (memory.project,))):
            yield moved(memory.uid, old=memory.project, new=key, kind=memory.kind, title=memory.title)

    def _at(self, what: str, name: str) -> float:
        if not name:
            return 0.0
        found = list(self._execute("SELECT at FROM tombstones WHERE hash = ?", (self._hash(what, name),)))
        return float(found[0][0]) if found else 0.0

    def _hash(self, what: str, name: str) -> bytes:
        self._load()
        named = f"{what}\0{name}".encode("utf-8", "replace")
        return hashlib.blake2b(named, key=self._key or b"", digest_size=16).digest()

    def _load(self) -> bool:
        """Load the key, and return whether anything was ever forgotten here."""
        if self._key is None:
            found = list(self._execute("SELECT value FROM meta WHERE key = ?", (KEY,)))
            self._key = bytes.fromhex(found[0][0]) if found else b""
        return bool(self._key)


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

    def spares(self, row: Mapping[str, Any]) -> bool:
        """Return whether a memory stays as it is, because it is not the agent's who asks."""
        return bool(self.only) and (row["trust"] == "user" or row["project"] != self.only)

    def with_memories(self, rows: Iterable[tuple[str, str]]) -> Target:
        """Return the same with more memories, each given as (id, session)."""
        more = dict(rows)
        return replace(
            self,
            ids=tuple(dict.fromkeys((*self.ids, *more))),
            near=tuple(sorted({*self.near, *filter(None, more.values())})),
        )


class Cutter:
    """Replaces verbatim copies of *texts* in rows that stay, and notes which memories that changes."""

    def __init__(self, target: Target, texts: Sequence[str]) -> None:
        self.target = target
        self.sentences = Sentences(texts)
        self.cut: set[str] = set()  # uids of memories that stay without a passage
        self._short = Sentences(texts, shortest=SHORTEST_NEAR, whole_words=True)

    def text(self, text: str) -> str:
        """Clean a line of a log, of a file, or of what was set aside."""
        return self.sentences.cut_json(text)

    def cell(self, table: str, column: str, text: str, *, row: Mapping[str, Any]) -> str:
        """Clean a text of a row; one that goes is left as it is."""
        is_memory, is_near = table == "memories", row.get("session") in self.target.near
        goes = row.get("status") == "forgotten" or (not is_memory and row.get("session") in self.target.sessions)
        if goes or column not in CUT.get(table, ()) or row.get("name") == UNFINISHED:
            return text
        if is_memory and self.target.spares(row):
            return text
        clean = self.sentences.cut_json(text)
        if is_near and not is_memory:
            clean = self._short.cut_json(clean)
        elif is_near and column == "detail":  # a summary names the decisions of its session
            clean = each_string(clean, lambda each: MARK if each in self._short else each)
        if column == "detail":  # a fix that is nothing but a copy is none
            clean = each_string(clean, lambda each: "" if each == MARK else each)
        if is_memory and clean != text:
            self.cut.add(row["uid"])
        return clean


# ---- its rows


def remove(execute: Execute, target: Target) -> Counter[str]:
    """Delete its rows, inside the transaction of whoever calls; return how many, by table. `sweep` has to follow."""
    ids = as_list(target.ids)
    removed: Counter[str] = Counter()
    telling_them = f"SELECT injection FROM injection_items WHERE memory IN {LIST}"
    execute(f"UPDATE injections SET terms = '[]' WHERE id IN ({telling_them})", (ids,))
    placeless = ("place NOT IN (SELECT place FROM memories)", ())
    unused = {"code": placeless, "units": ("NOT EXISTS (SELECT 1 FROM code WHERE unit = number)", ())}
    for table, (where, parameters) in {**_conditions(target), **unused}.items():
        removed[table] += _count(execute, table, where, parameters)
        execute(f"DELETE FROM {table} WHERE {where}", parameters)
    # Of entries of the log that name it, who did what to which memory stays, and when.
    named = f"number IN (SELECT number FROM log_memories WHERE memory IN {LIST}) OR project IN {LIST}"
    execute(f"UPDATE log SET why = '', patch = '{{}}' WHERE {named}", (ids, as_list(target.projects)))
    execute(f"UPDATE log SET project = '' WHERE project IN {LIST}", (as_list(target.projects),))
    execute(f"UPDATE no_context SET nearest = '', score = 0 WHERE nearest IN {LIST}", (ids,))
    execute(f"UPDATE memories SET superseded_by = '' WHERE superseded_by IN {LIST}", (ids,))
    return +removed


def _conditions(target: Target) -> dict[str, tuple[str, tuple[Any, ...]]]:
    """Return which rows of which table go; what names others comes first."""
    ids, sessions, projects = as_list(target.ids), as_list(target.sessions), as_list(target.projects)
    here, both = f"(session IN {LIST} OR project IN {LIST})", (sessions, projects)
    theirs = f"injection IN (SELECT id FROM injections WHERE {here})"
    telling = f"injection IN (SELECT injection FROM injection_items WHERE memory IN {LIST}) OR {theirs}"
    # As the last part of a name, or between two others: /src/foobar is another than /src/foo.
    naming = """EXISTS (SELECT 1 FROM json_each(?) WHERE instr(name || ':', ':' || value || ':')
      OR substr(name, -length(value) - 1) = ' ' || value)"""
    scopes = as_list([f"project:{each}" for each in target.projects])
    return {
        "links": (f"source IN {LIST} OR target IN {LIST}", (ids, ids)),
        "access": (f"memory IN {LIST} OR session IN {LIST}", (ids, sessions)),
        "sightings": (f"memory IN {LIST} OR session IN {LIST}", (ids, sessions)),
        "injection_texts": (telling, (ids, *both)),
        "injection_items": (f"memory IN {LIST} OR {theirs}", (ids, *both)),
        "injections": (here, both),
        "no_context": (here, both),
        "events": (here, both),
        "changes": (here, both),
        "ledger": (f"session IN {LIST}", (sessions,)),
        "sessions": (f"id IN {LIST} OR project IN {LIST}", both),
        "memories": (f"id IN {LIST}", (ids,)),
        "owners": (f"scope IN {LIST} AND number NOT IN (SELECT owner FROM memories)", (scopes,)),
        "projects": (f"key IN {LIST}", (projects,)),
        "tallies": (f"project IN {LIST}", (projects,)),
        "marks": (naming, (as_list([*target.sessions, *target.projects]),)),
    }


# ---- databases


class Source:
    """A database as far as forgetting reads it."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute

    def find(self, *, ids: Sequence[str] = (), session: str = "", projects: Sequence[str] = ()) -> Target:
        """Find the memories of these ids, of a session, or of projects, and the sessions that go with them."""
        sql = f"""SELECT m.id, m.session FROM memories m LEFT JOIN owners o ON o.number = m.owner
            WHERE m.id IN {LIST} OR (m.session = ? AND m.session <> '') OR m.project IN {LIST} OR o.scope IN {LIST}"""
        scopes = as_list(f"project:{each}" for each in projects)
        found = list(self._execute(sql, (as_list(ids), session, as_list(projects), scopes)))
        of_projects = self._execute(f"SELECT id FROM sessions WHERE project IN {LIST}", (as_list(projects),))
        sessions = tuple(sorted({*filter(None, [session]), *(id for (id,) in of_projects)}))
        target = Target(sessions=sessions, projects=tuple(projects), near=sessions).with_memories(found)
        # What tidying merged into these memories is the same, in its own words.
        sql = f"""SELECT id, session FROM memories WHERE superseded_by IN {LIST}
            AND json_valid(detail) AND detail ->> 'same_as' = superseded_by"""
        return target.with_memories(self._execute(sql, (as_list(target.ids),)))

    def with_copies(self, target: Target, sentences: Sentences) -> Target:
        """Return *target* with the memories whose title and body are nothing but verbatim copies of its texts."""
        sql = f"SELECT id, session, title, body, trust, project FROM memories WHERE id NOT IN {LIST}"
        return target.with_memories(
            (id, session)
            for id, session, title, body, trust, project in self._execute(sql, (as_list(target.ids),))
            if title in sentences and (not body.strip() or body in sentences)
            if not target.spares({"trust": trust, "project": project})
        )

    def projects(self, key: str) -> tuple[str, ...]:
        """Return a project that anything is known of, and its aliases; none where nothing is."""
        known = self._execute(
            """SELECT 1 FROM owners WHERE scope = 'project:' || ?1 UNION SELECT 1 FROM sessions WHERE project = ?1
            UNION SELECT 1 FROM projects WHERE key = ?1""",
            (key,),
        )
        aliases = self._execute("SELECT key FROM projects WHERE alias_of = ? ORDER BY key", (key,))
        return (key, *(alias for (alias,) in aliases)) if list(known) else ()

    def texts(self, target: Target) -> Iterator[str]:
        """Yield every text of what goes: as it is, as the log knows it from before, and its sessions' prompts."""
        # What a change is called, its file and its signature are the repository's words.
        sql = f"SELECT {', '.join(TEXTS)} FROM memories WHERE kind <> 'change' AND id IN {LIST}"
        for title, body, *lists in self._execute(sql, (as_list(target.ids),)):
            yield from (title, body)
            for each in lists:
                with suppress(ValueError):
                    yield from _strings(json.loads(each))
        named = f"SELECT DISTINCT l.patch FROM log l JOIN log_memories USING (number) WHERE memory IN {LIST}"
        for (patch,) in self._execute(named, (as_list(target.ids),)):
            changed = json.loads(patch).get("changed", {})
            for id in set(changed) & set(target.ids):
                for name in set(changed[id]) & set(TEXTS):
                    yield from _strings(changed[id][name])
        prompts = "SELECT payload FROM events WHERE session IN (SELECT value FROM json_each(?)) AND kind = 'prompt'"
        for (payload,) in self._execute(prompts, (as_list(target.sessions),)):
            with suppress(ValueError, AttributeError):
                yield str(json.loads(payload).get("prompt", ""))[:LONGEST_PROMPT]

    def row_counts(self, target: Target) -> dict[str, int]:
        """Count what would go, by table."""
        counts = {table: _count(self._execute, table, *each) for table, each in _conditions(target).items()}
        return {table: count for table, count in counts.items() if count}

    def transcripts(self, target: Target) -> list[str]:
        """Return the agents' own files that tell of it, too."""
        sql = f"""SELECT DISTINCT json_extract(payload, '$.transcript_path') FROM events
            WHERE session IN {LIST} AND json_valid(payload)"""
        rows = self._execute(sql, (as_list(target.near),))
        return sorted(path for (path,) in rows if isinstance(path, str) and path)


class Forgetter(Source):
    """The steps on the live database; one that was killed in the middle is taken again."""

    def __init__(self, db: Database, *, tombstones: Tombstones, audit: Audit) -> None:
        super().__init__(db.query)
        self._db, self._tombstones, self._audit = db, tombstones, audit

    def begin(self, target: Target, *, at: float) -> None:
        """Note what is to go, hide it and bury it, all or nothing; from here on it is never shown again."""
        self._hide(target, at=at)
        self._db.flush()  # what waits to be written may tell of it

    @transaction
    def _hide(self, target: Target, *, at: float) -> None:
        note = json.dumps({"target": vars(target), "at": at})
        self._execute("INSERT OR REPLACE INTO marks VALUES (?, ?, ?)", (UNFINISHED, note, at))
        _bury(self._execute, self._tombstones, target, at=at)

    def unfinished(self) -> tuple[Target | None, float] | None:
        """Return what an earlier worker was about to forget, and since when; no target where only the sweep is left."""
        noted = self._db.query("SELECT text, at FROM marks WHERE name = ?", (UNFINISHED,))
        if not noted:
            return None
        target = json.loads(noted[0][0]).get("target")
        return Target(**{name: _frozen(each) for name, each in target.items()}) if target else None, noted[0][1]

    @transaction
    def bury_cut(self, cut: Set[str], *, at: float) -> None:
        """Keep imports from bringing back what was cut from memories and events."""
        _bury_cut(self._execute, self._tombstones, cut, at=at)

    @transaction
    def remove(self, target: Target) -> Counter[str]:
        """Delete the rows at last, and the names in the note: only sweeping is left."""
        removed = remove(self._execute, target)
        self._db.changed("projects")
        self._execute("UPDATE marks SET text = '{}' WHERE name = ?", (UNFINISHED,))
        return removed

    @transaction
    def end(
        self, receipt: Mapping[str, Any], *, who: str, why: str, at: float, ids: Sequence[str], project: str = ""
    ) -> int:
        """Keep the receipt in the log, and drop the note."""
        self._execute("DELETE FROM marks WHERE name = ?", (UNFINISHED,))
        patch = {"receipt": dict(receipt)}
        return self._audit.note("forget", why, patch, who=who, at=at, project=project, ids=ids).number

    def stones(self) -> Stones:
        """Return the key of the tombstones, and all of them, for the copies of this database."""
        ((key,),) = self._db.query("SELECT value FROM meta WHERE key = ?", (KEY,))
        return key, self._db.query("SELECT hash, what, at FROM tombstones")

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes of the file, read by SQLite: to open and close it besides would drop its locks."""
        file = apsw.VFSFile("", str(self._db.path), [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0])
        try:
            size = file.xFileSize()
            for at in range(0, size, PAGE):
                yield file.xRead(min(PAGE, size - at), at)
        finally:
            file.xClose()


class Copy(Source):
    """A backup, or any other database of ours in the home that nobody has open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
            self.db.set_busy_timeout(1000)
            check_version(self.db)
            self.db.execute("SELECT 1 FROM memories, meta LIMIT 1").fetchall()  # else it is none of ours
        except (apsw.Error, StoreError) as exc:
            raise StoreError(f"no backup that can be changed: {exc}", hint="remove it by hand") from exc
        super().__init__(self.db.execute)

    def forget(self, cutter: Cutter, *, stones: Stones, at: float) -> int:
        """Remove its rows and copies, and take over the tombstones, all or nothing; return how many rows changed."""
        db = self.db
        db.pragma("journal_mode", "delete")
        upgrade(db)
        tombstones = Tombstones(db.execute)
        with db:
            db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (KEY, stones[0]))
            db.executemany("INSERT OR REPLACE INTO tombstones VALUES (?, ?, ?)", stones[1])
            _bury(db.execute, tombstones, cutter.target, at=at)
            changed = 0
            for batch in batches(db.execute, cutter):
                batch.apply(db.execute)
                changed += batch.changed
            _bury_cut(db.execute, tombstones, cutter.cut, at=at)
            changed += remove(db.execute, cutter.target).total()
            db.execute("DELETE FROM marks WHERE name = ?", (UNFINISHED,))
        sweep(db)
        return changed


def _bury(execute: Execute, tombstones: Tombstones, target: Target, *, at: float) -> None:
    """Hide everything that goes, and write a tombstone for it."""
    execute(f"UPDATE memories SET status = 'forgotten' WHERE id IN {LIST}", (as_list(target.ids),))
    memories = MemoryReader(ReadOnly(execute, failures=(apsw.Error,))).by_id(list(target.ids))
    loose = f"SELECT key FROM events WHERE session = '' AND project IN {LIST}"
    tombstones.bury("memory", (memory.uid for memory in memories), at=at)
    tombstones.bury("text", (text for memory in memories for text in identity_texts(memory)), at=at)
    tombstones.bury("session", target.sessions, at=at)
    tombstones.bury("event", [key for (key,) in execute(loose, (as_list(target.projects),))], at=at)


def _bury_cut(execute: Execute, tombstones: Tombstones, cut: Set[str], *, at: float) -> None:
    """Bury what was cut. Events get another key, because theirs is a hash of what they said."""
    tombstones.bury("cut", sorted(cut), at=at)
    rows = list(execute("SELECT number, key FROM events WHERE instr(payload, ?) AND key NOT LIKE 'cut:%'", (MARK,)))
    tombstones.bury("event", (key for _, key in rows), at=at)
    for number, _ in rows:
        execute("UPDATE events SET key = ? WHERE number = ?", (f"cut:{number}", number))


# ---- parts of rows


def as_list(names: Iterable[str]) -> str:
    return json.dumps(list(names))


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _count(execute: Execute, table: str, where: str, parameters: Sequence[Any]) -> int:
    return int(next(iter(execute(f"SELECT count(*) FROM {table} WHERE {where}", parameters)))[0])


def _strings(item: Any) -> Iterator[str]:
    if isinstance(item, str):
        yield item
    elif isinstance(item, (list, dict)):
        some = [each for name, each in item.items() if name not in NAMES] if isinstance(item, dict) else item
        for each in some:
            yield from _strings(each)

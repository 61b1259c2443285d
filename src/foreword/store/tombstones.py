"""What was forgotten -> keyed hashes of it, and whether something that comes is one of them.

The key lies in the database, so that it goes with every backup: one that is put back refuses the same. Without a key,
whoever has a list of likely texts could ask the hashes of any copied file; with it, at least not those of another home.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

from foreword.models import Change, Event, Memory, moved
from foreword.store.verbatim import MARK

KEY = "tombstones"  # in `meta`
TITLE = 16  # characters from which on a title alone is told from any other


class Tombstones:
    """The tombstones of one database; *failures* are what its connection raises."""

    def __init__(self, execute: Callable[..., Any], *, failures: tuple[type[Exception], ...]) -> None:
        self._execute = execute
        self._failures = failures
        self._key: bytes | None = None

    def bury(self, what: str, names: Iterable[str], *, at: float) -> int:
        """Let nothing of these names come back that is not newer than *at*; how many there are."""
        self._execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (KEY, secrets.token_hex(32)))
        self._key = None  # what was known of it may have been taken back with its transaction
        rows = [(self._hash(what, name), what, at) for name in dict.fromkeys(names) if name]
        for row in rows:
            self._execute("INSERT OR REPLACE INTO tombstones VALUES (?, ?, ?)", row)
        return len(rows)

    def refuses(self, memory: Memory, *, imported: bool) -> bool:
        """Whether a memory that is not there was forgotten; one that is said anew, and not *imported*, was not."""
        if not self._load():
            return False
        if memory.session and MARK in memory.title and memory.kind != "summary":
            return True  # made of what was cut
        named = [*(("memory", uid) for uid in self._uids(memory)), *(("text", text) for text in texts_of(memory))]
        at = max((self._at(what, name) for what, name in named), default=0.0)
        if at and (imported or memory.created <= at):
            return True
        return memory.created <= self._at("session", memory.session)

    def is_cut(self, memory: Memory) -> bool:
        """Whether a passage was cut from a memory: what an import knows of it is from before."""
        return self._load() and self._at("cut", memory.uid) > 0

    def refuses_event(self, event: Event) -> bool:
        if not self._load():
            return False
        return event.at <= max(self._at("event", event.key), self._at("session", event.session))

    def refuses_session(self, session: str, *, last: float) -> bool:
        return self._load() and last <= self._at("session", session)

    def refuses_change(self, change: Change) -> bool:
        return self._load() and change.at <= self._at("session", change.session)

    def _uids(self, memory: Memory) -> Iterator[str]:
        """Its uid, and those that it had under the keys that count as its project by now."""
        yield memory.uid
        with suppress(*self._failures):
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
        """Whether anything was ever forgotten here."""
        if self._key is None:
            self._key = b""
            with suppress(*self._failures):  # a table that is missing is told by the store
                found = list(self._execute("SELECT value FROM meta WHERE key = ?", (KEY,)))
                list(self._execute("SELECT 1 FROM tombstones LIMIT 1"))
                self._key = bytes.fromhex(found[0][0]) if found else b""
        return bool(self._key)


def texts_of(memory: Memory) -> tuple[str, ...]:
    """What a memory says, in small letters and without punctuation: alone by its title where that is long enough."""
    title = _plain(memory.title)
    whole = _plain(f"{memory.kind} {memory.title} {memory.body}")
    return (whole, f"{memory.kind} {title}") if len(title) >= TITLE else (whole,)


def _plain(text: str) -> str:
    return " ".join("".join(char if char.isalnum() else " " for char in text.casefold()).split())

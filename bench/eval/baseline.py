"""Search memories with plain SQLite full-text search: the baseline that Foreword is compared with.

FTS5 with porter over title, body, files and functions, an OR of the prompt's words without stop-words, in the order of
bm25. All four columns: on four public git histories nDCG@10 is then 0.165, with title and body alone 0.118 and with
files too 0.147. It has its own stop-words, so that it stays the same while the product's are tuned; without any it is
0.149.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import apsw

from foreword.models import Memory

STOP_WORDS = frozenset(
    """a about after all also am an and any are as at be because been before being but by can could did do does doing
    for from get gets had has have having he her here him his how i if in instead into is it its just let lets like
    made make makes me more most my need needs new no not now of off on one only or other our out over own see she
    should so some still such than that the their them then there these they this those through to too under until up
    us use used uses using very via want wants was way we were what when where which while who whom whose why will
    with work works would you your""".split()  # noqa: SIM905 - a list literal of 100 strings is unreadable
)


def plain_words(prompt: str) -> tuple[str, ...]:
    """Return the words of *prompt* that are no stop-words, each once."""
    return tuple(word for word in dict.fromkeys(re.findall(r"\w+", prompt.lower())) if word not in STOP_WORDS)


class PlainIndex:
    """A full-text index in memory."""

    def __init__(self) -> None:
        self._db = apsw.Connection(":memory:")
        self._db.execute(
            """CREATE VIRTUAL TABLE plain USING fts5 (
              title, body, files, functions, uid UNINDEXED, at UNINDEXED, tokenize = 'porter unicode61')"""
        )
        self._holders: dict[str, frozenset[str]] = {}

    def add(self, memories: Sequence[Memory]) -> None:
        """Index *memories*."""
        rows = [
            (each.title, each.body, " ".join(each.files), " ".join(each.functions), each.uid, each.created)
            for each in memories
        ]
        with self._db:
            self._db.executemany("INSERT INTO plain VALUES (?, ?, ?, ?, ?, ?)", rows)
        self._holders.clear()

    def search(self, words: Sequence[str], *, at: float, limit: int) -> tuple[str, ...]:
        """Return the uids of memories that hold any of *words* and are not younger than *at*, best first."""
        if not words:
            return ()
        rows = self._db.execute(
            "SELECT uid FROM plain WHERE plain MATCH ? AND at <= ? ORDER BY rank, rowid LIMIT ?",
            (" OR ".join(f'"{word}"' for word in words), at, limit),
        )
        return tuple(uid for (uid,) in rows)

    def coverage(self, uid: str, words: Sequence[str]) -> float:
        """Return the share of *words* that a memory holds."""
        return sum(uid in self._holding(word) for word in words) / len(words) if words else 0.0

    def close(self) -> None:
        """Release the index."""
        self._db.close()

    def _holding(self, word: str) -> frozenset[str]:
        if word not in self._holders:
            rows = self._db.execute("SELECT uid FROM plain WHERE plain MATCH ?", (f'"{word}"',))
            self._holders[word] = frozenset(uid for (uid,) in rows)
        return self._holders[word]

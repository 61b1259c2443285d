"""What goes, and any text that stays -> that text without its words.

Here is which rule counts for which text; `scrub.py` looks at every text of every table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

from foreword.store import scrub
from foreword.store.forgetting.going import TEXTS, UNFINISHED, Doomed, Execute, as_object, fixed_by
from foreword.traces import MARK, Traces, folded
from foreword.types import BASE32

JOINED = 256 * 1024  # bytes that are looked through at once
# What hosts told, what was given and what is noted: nobody's memory, so that everything which tells goes.
RAW = frozenset(
    [
        *(("events", "payload"), ("injection_texts", "text"), ("injections", "terms"), ("injections", "files")),
        *(("injections", "skipped"), ("injections", "layers"), ("log", "why"), ("log", "patch"), ("marks", "text")),
        *(("ledger", "outcome"), ("ledger", "purpose")),
    ]
)


WHOLE = ("events", "injections", "ledger")  # rows of a session, which go with it, as do the texts that it was given


class Cutter:
    """What takes traces out of every text: all of them near it, passages from its kin, words from afar.

    *known* are all traces, *kin* those that no other memory has, *rest* those that no memory has; *given* are the
    injections that go.
    """

    def __init__(
        self, going: Doomed, *, known: Traces, kin: Traces, rest: Traces, given: Set[str] = frozenset()
    ) -> None:
        self._known, self._kin, self.rest, self._is_kin = known, kin, rest, kinship(going)
        self._uids, self._near, self._ids = frozenset(going.uids), frozenset(going.near), frozenset(going.ids)
        self._sessions, self._given = frozenset(going.sessions), given
        self.left: set[bytes] = set()  # windows that stand by chance in what other sessions were told
        self.cut: set[str] = set()  # uids of memories that stay without a passage
        self.hide = self.text

    def text(self, text: str) -> str:
        """A text of ours."""
        return self.rest.near(text)

    def cell(self, table: str, name: str, text: str, *, row: Mapping[str, Any]) -> str:
        """A text of a row, by the rule of its table."""
        if table == "memories":
            return self._memory(name, text, row=row)
        if (table, name) not in RAW or (table == "marks" and row.get("name") == UNFINISHED):
            return text
        if (table in WHOLE and row.get("session") in self._sessions) or row.get("injection") in self._given:
            return text  # the row goes
        if table == "injection_texts":
            text = "\n".join(map(self._line, text.split("\n")))
        there = self.rest.held(folded(text))
        if not there:
            return text  # most of them, at one look
        if table == "events" and row.get("session") not in self._near:
            clean = self.rest.far(text)
            self.left |= there if clean == text else self.rest.held(clean.encode("utf-8", "replace"))
            return clean
        clean = self.rest.near(text)
        # What JSON doubles may look like five letters of it and their escaped sixth: no text has that.
        self.left |= {each for each in self.rest.held(clean.encode("utf-8", "replace")) if b"\\" in each}
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
    told = as_object(detail) if sessions and '_in"' in detail else {}
    left: dict[str, Any] = {
        name: {key: each for key, each in told[name].items() if key not in sessions}
        for name in ("seen_in", "also", "fixed_in")
        if isinstance(told.get(name), dict) and not sessions.isdisjoint(told[name])
    }
    if not left:
        return detail
    if told.get("fixed_by") in fixed_by(told, sessions):
        left["fixed_by"] = next((each for each in reversed(left["fixed_in"].values()) if isinstance(each, str)), "")
    kept = {name: each for name, each in {**told, **left}.items() if each or name not in left}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


def kinship(going: Doomed) -> Callable[[Mapping[str, Any]], bool]:
    """Tells whether a memory came from the same session, gave way to what goes, or was learned from it."""
    near, ids, uids = frozenset(going.near), frozenset(going.ids), frozenset(going.uids)

    def is_kin(row: Mapping[str, Any]) -> bool:
        if row["session"] in near or row["superseded_by"] in ids:
            return True
        return '"from"' in row["detail"] and not uids.isdisjoint(_sources(row["detail"]))

    return is_kin


def _sources(detail: str) -> Iterator[str]:
    sources = as_object(detail).get("from")
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

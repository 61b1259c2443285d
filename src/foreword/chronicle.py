"""Entries of the log, and memories as they came to be -> one list by time: who did what to which memories. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from foreword.amendments import Logged
from foreword.types import Memory

ADDED = "add"
# What was done, as people say it; any other verb is told as it is.
PAST = {
    ADDED: "added",
    "revise": "revised",
    "pin": "pinned",
    "unpin": "unpinned",
    "supersede": "superseded",
    "merge": "merged",
    "confirm": "confirmed",
    "retell": "retold",
    "stale": "marked stale",
    "sink": "ranked lower",
    "restore": "restored",
    "rename": "renamed",
    "promote": "promoted",
    "discard": "discarded",
    "learn": "learned",
    "propose": "proposed",
    "accept": "accepted",
    "refuse": "refused",
    "link": "linked",
    "unlink": "unlinked",
    "prune": "pruned",
    "forget": "forgot",
    "undo": "undid",
    "goal": "set a goal",
    "project": "described",
    "merge project": "merged",
    "alias project": "aliased",
}
JOINED = {"merge": "into", "supersede": "by"}  # the word between what was put aside and what took its place
NAMED = 3  # memories in a line
TITLE = 80  # characters


@dataclass(frozen=True)
class Happened:
    """One thing that happened to memories, written by somebody on purpose or told by a memory that came to be."""

    at: float
    who: str
    what: str
    about: str  # which memories, in words
    why: str
    number: int = 0  # of its entry; 0: it came to be, and was never an entry
    run: str = ""
    project: str = ""
    session: str = ""
    memories: tuple[str, ...] = ()
    undone: int = 0


def chronicle(entries: Iterable[Logged], written: Iterable[Memory], *, limit: int) -> tuple[Happened, ...]:
    """Both in one list, newest first, at most *limit*."""
    both = [*map(_of_entry, entries), *map(_of_memory, written)]
    return tuple(sorted(both, key=lambda each: (-each.at, -each.number, each.about))[:limit])


def line(happened: Happened, *, when: str) -> str:
    """It in one line, its time first: who, what, which memories, why, and whether it was taken back."""
    notes = [happened.run, f"undone by {happened.undone}" if happened.undone else ""]
    tail = f"  ({'; '.join(filter(None, notes))})" if any(notes) else ""
    told = ": ".join(filter(None, (happened.about, happened.why)))
    number = str(happened.number or "-")
    return f"{when}  {number:>4}  {happened.who:<12}  {PAST.get(happened.what, happened.what):<12}  {told}{tail}"


def _of_entry(entry: Logged) -> Happened:
    return Happened(
        at=entry.at,
        who=entry.who,
        what=entry.what,
        about=_about(entry),
        why=entry.why,
        number=entry.number,
        run=entry.run,
        project=entry.project,
        memories=entry.memories,
        undone=entry.undone,
    )


def _of_memory(memory: Memory) -> Happened:
    return Happened(
        at=memory.created,
        who="user" if memory.trust == "user" else memory.source if memory.source != "user" else memory.trust,
        what=ADDED,
        about=memory.id,
        why=memory.title if len(memory.title) <= TITLE else f"{memory.title[: TITLE - 1]}\N{HORIZONTAL ELLIPSIS}",
        project=memory.project,
        session=memory.session,
        memories=(memory.id,),
    )


def _about(entry: Logged) -> str:
    """The memories of an entry; those that gave way to another are told with it."""
    if entry.what == "prune":
        return ", ".join(f"{count:,} {name}" for name, count in entry.patch.get("pruned", {}).items())
    if entry.what == "forget":
        receipt = entry.patch.get("receipt", {})
        whole = [_whole(receipt.get(f"{each}s", 0), each) for each in ("project", "session")]
        return ", ".join(filter(None, (*whole, _few(entry.memories))))
    changed: dict[str, Any] = dict(entry.patch.get("changed", {}))
    gave_way = {
        id: patch["superseded_by"][1]
        for id, patch in changed.items()
        if entry.what in JOINED and patch.get("superseded_by", ("", ""))[1]
    }
    if gave_way:
        by = ", ".join(dict.fromkeys(gave_way.values()))
        return f"{_few(list(gave_way))} {JOINED[entry.what]} {by}"
    return _few(entry.memories)


def _whole(count: int, thing: str) -> str:
    return "" if not count else f"all of a {thing}" if count == 1 else f"all of {count:,} {thing}s"


def _few(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return ", ".join(ids[:NAMED]) + more

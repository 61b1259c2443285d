"""Change memories on purpose: plan a change, log it, undo it; revise the user's words; tell the log in lines."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from foreword.models import Change, Link, Memory, Project, lowest_trust

PARTS = ("changed", "new", "links", "unlinked")  # of a patch, that an undo reverts
# Fields that a change may touch; the rest of a memory is where it came from.
FIELDS = (
    "kind", "title", "body", "scope", "project", "tags", "files", "functions", "trust", "confidence", "seen",
    "created", "confirmed", "status", "superseded_by", "pinned", "detail",
)  # fmt: skip


@dataclass(frozen=True)
class MemoryChange:
    """One change, all of it or nothing: memories before and after it, new ones, and links."""

    what: str  # a verb: merge, supersede, stale, revise, pin, promote, discard, learn, ...
    why: str = ""
    changed: tuple[tuple[Memory, Memory], ...] = ()  # before -> after, the same uid
    new: tuple[Memory, ...] = ()
    links: tuple[Link, ...] = ()  # added; ends may be uids of the new ones
    unlinked: tuple[Link, ...] = ()  # removed

    @property
    def about(self) -> tuple[str, ...]:
        """Return the ids of the memories that it changes."""
        return tuple(before.id for before, _ in self.changed)


@dataclass(frozen=True)
class AuditEntry:
    """One entry of the audit log: who did what to which memories, when and why."""

    number: int
    at: float
    who: str
    what: str
    why: str
    run: str
    project: str
    memories: tuple[str, ...]
    # {"changed": {id: {field: [before, after]}}, "new": [ids], "links": ..., ...}
    patch: Mapping[str, Any] = field(default_factory=dict, hash=False)
    undone: int = 0


@dataclass(frozen=True)
class UndoResult:
    """What an undo did: the new entries, and what could not be undone, with the reason."""

    entries: tuple[AuditEntry, ...]
    refused: Mapping[int, str]


Exists = Callable[[str, str], bool | None]  # a file, and a function in it or "" -> whether it is there; None: not known


@dataclass(frozen=True)
class PlanContext:
    """What planners know beside the memories: the project, the time, and what became of the code."""

    project: Project
    now: float
    changes: tuple[Change, ...] = ()  # of the project's functions, newest first
    exists: Exists = lambda _file, _function: None
    taken_back: frozenset[tuple[str, frozenset[str]]] = frozenset()  # (verb, ids) that somebody undid
    shown_to: Callable[[str], frozenset[str]] = lambda _memory: frozenset()  # sessions that got it
    give_way: Callable[[], object] = lambda: None  # called now and then in long work, so that others get their turn


class Planner(Protocol):
    """A function that plans changes to the memories of one project, whatever their status."""

    def __call__(self, memories: Sequence[Memory], *, about: PlanContext) -> tuple[MemoryChange, ...]: ...


def is_undoable(entry: AuditEntry) -> bool:
    """Tell whether an entry can be undone: nobody did, and something of it is left."""
    return not entry.undone and entry.what != "forget" and any(entry.patch.get(name) for name in PARTS)


def standing(planned: Iterable[MemoryChange], *, about: PlanContext) -> tuple[MemoryChange, ...]:
    """Return the planned changes that nobody undid before: what a person undid is not done again."""
    return tuple(each for each in planned if (each.what, frozenset(each.about)) not in about.taken_back)


def patch_of(before: Memory, after: Memory) -> dict[str, list[Any]]:
    """Return the fields that differ, each before and after; of a detail only those of its parts that differ."""
    pairs = ((name, getattr(before, name), getattr(after, name)) for name in FIELDS)
    patch = {name: [plain(old), plain(new)] for name, old, new in pairs if old != new}
    if "detail" in patch:
        old, new = patch["detail"]
        # Counters in a detail go on: they must not keep a change of the rest from being undone.
        same = {name for name in old if name in new and old[name] == new[name]}
        patch["detail"] = [{name: part for name, part in each.items() if name not in same} for each in (old, new)]
    return patch


def detail_after(detail: Mapping[str, Any], patch: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a detail with the parts that the patch changes."""
    before, after = patch
    return {**{name: part for name, part in detail.items() if name not in before}, **after}


def plain(item: Any) -> Any:
    """Return *item* as JSON gives it back."""
    if isinstance(item, Mapping):
        return dict(item)
    return list(item) if isinstance(item, Sequence) and not isinstance(item, str) else item


REVISED = "revised"  # in a detail: who put it into other words, which a repeated statement leaves alone
PROPOSAL, REVISES = "proposal", "revises"  # in the detail of a proposal: what is proposed, and for which memory
WHOLE = ("kind", "title", "body", "scope", "tags", "files", "functions", "confidence")
REVISABLE_DETAIL = ("why", "fixed_by")  # of a detail
REVISABLE = (*WHOLE, *REVISABLE_DETAIL)
LISTS = ("tags", "files", "functions")
USER_ONLY, OWN_TERMINAL = "only the user may do this", "ask the user to run it in a terminal of their own"
WORDS = ("title", "body", *LISTS, *REVISABLE_DETAIL)  # what an agent may propose to change; not kind and scope


def revised(memory: Memory, changes: Mapping[str, Any], *, who: str) -> Memory:
    """Return *memory* with *changes* to some of REVISABLE, marked as revised; unchanged where they change nothing.

    Its trust stays: other words for the same thing give it no more.
    """
    parts = {
        name: changes[name]
        for name in REVISABLE_DETAIL
        if name in changes and memory.detail.get(name, "") != changes[name]
    }
    after = replace(
        memory,
        **{name: changes[name] for name in WHOLE if name in changes},
        detail={**memory.detail, **parts},  # an emptied one stays, or the next session would bring it back
    )
    by = "user" if memory.detail.get(REVISED) == "user" else who  # what the user once revised stays theirs
    return after if after == memory else replace(after, detail={**after.detail, REVISED: by})


def differing(before: Memory, after: Memory) -> tuple[str, ...]:
    """Return the names of the fields that differ, as people know them."""
    patch = patch_of(before, after)
    parts = {name for each in patch.pop("detail", ()) for name in each} - {REVISED}
    return (*patch, *(name for name in REVISABLE_DETAIL if name in parts))


def version(memory: Memory) -> str:
    """Return a hash of what a memory says, so that a revision can name the version that it is based on."""
    fields = [getattr(memory, name) for name in (*WHOLE, "status", "superseded_by")]
    details = [memory.detail.get(name) for name in REVISABLE_DETAIL]
    return _digest(json.dumps([*fields, *details], default=list))


def is_the_users(memory: Memory) -> bool:
    """Tell whether the user wrote it or revised it: then nobody else changes it."""
    return memory.trust == "user" or memory.detail.get(REVISED) == "user"


def proposed(memory: Memory, changes: Mapping[str, Any], *, source: str, session: str, at: float) -> Memory:
    """Return a proposal to revise the user's memory: a memory of its own that is not shown."""
    after = revised(memory, changes, who="agent")
    wanted = {name: changes[name] for name in REVISABLE if name in changes}
    detail = {name: each for name, each in after.detail.items() if name != REVISED}
    return replace(
        after,
        id="",
        uid=f"proposal-{_digest(json.dumps([memory.uid, wanted], sort_keys=True))}",
        source=source,
        session=session,
        trust=lowest_trust(("agent", memory.trust)),
        status="proposed",
        superseded_by="",
        pinned=False,
        used=0,
        ignored=0,
        seen=1,
        created=at,
        confirmed=at,
        detail={**detail, PROPOSAL: "revise", REVISES: memory.id, "changes": wanted},
    )


def accepted(memory: Memory, proposal: Memory) -> Memory:
    """Return *memory* as an accepted proposal changes it."""
    wanted = {name: value for name, value in proposal.detail.get("changes", {}).items() if name in WORDS}
    return revised(
        memory, {name: tuple(wanted[name]) if name in LISTS else wanted[name] for name in wanted}, who="user"
    )


def said_again(known: Memory, fresh: Memory) -> Memory:
    """Return *fresh*, a repetition of *known*; where that was revised, its words with the counts and times of both.

    Nothing gains trust by being repeated.
    """
    if not known.detail.get(REVISED):
        return replace(fresh, trust=lowest_trust((fresh.trust, known.trust)))
    return replace(
        known,
        seen=max(known.seen, fresh.seen),
        created=min(known.created, fresh.created),
        confirmed=max(known.confirmed, fresh.confirmed),
        status=fresh.status if known.status == "stale" else known.status,
        detail={**fresh.detail, **known.detail},
    )


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


ADDED = "add"
# What was done, as people say it; any other verb is shown as it is.
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
JOINED = {"merge": "into", "supersede": "by"}  # the word between what gave way and what replaced it
NAMED = 3  # memories in a line
TITLE = 80  # characters


@dataclass(frozen=True)
class Happened:
    """One line of the history: an entry of the audit log, or a memory that was created."""

    at: float
    who: str
    what: str
    about: str  # which memories, in words
    why: str
    number: int = 0  # of its entry; 0 for a memory that was created
    run: str = ""
    project: str = ""
    session: str = ""
    memories: tuple[str, ...] = ()
    undone: int = 0


def chronicle(entries: Iterable[AuditEntry], written: Iterable[Memory], *, limit: int) -> tuple[Happened, ...]:
    """Merge log entries and created memories into one list, newest first, at most *limit*."""
    both = [*map(_of_entry, entries), *map(_of_memory, written)]
    return tuple(sorted(both, key=lambda each: (-each.at, -each.number, each.about))[:limit])


def line(happened: Happened, *, when: str) -> str:
    """Return one line, its time first: who, what, which memories, why, and whether it was undone."""
    notes = [happened.run, f"undone by {happened.undone}" if happened.undone else ""]
    tail = f"  ({'; '.join(filter(None, notes))})" if any(notes) else ""
    about = ": ".join(filter(None, (happened.about, happened.why)))
    number = str(happened.number or "-")
    return f"{when}  {number:>4}  {happened.who:<12}  {PAST.get(happened.what, happened.what):<12}  {about}{tail}"


def _of_entry(entry: AuditEntry) -> Happened:
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


def _about(entry: AuditEntry) -> str:
    """Return the memories of an entry; those that gave way to another together with it."""
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

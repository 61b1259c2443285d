"""The vocabulary of changes to what is remembered: each can be shown before, is logged, and can be taken back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from foreword.models import Change, Link, Memory, Project, lowest

# Fields that an amendment may change; the rest of a memory tells where it came from.
PARTS = ("changed", "new", "links", "unlinked")  # of a patch: what taking it back would take back
FIELDS = (
    "kind", "title", "body", "scope", "project", "tags", "files", "functions", "trust", "confidence", "seen",
    "created", "confirmed", "status", "superseded_by", "pinned", "detail",
)  # fmt: skip


@dataclass(frozen=True)
class MemoryChange:
    """One change, all of it or nothing: memories from what they were to what they are to be, new ones, and links."""

    what: str  # a verb: merge, supersede, stale, revise, pin, promote, discard, learn, ...
    why: str = ""
    changed: tuple[tuple[Memory, Memory], ...] = ()  # before -> after, the same uid
    new: tuple[Memory, ...] = ()
    links: tuple[Link, ...] = ()  # added; ends may be uids of the new ones
    unlinked: tuple[Link, ...] = ()  # taken away

    @property
    def about(self) -> tuple[str, ...]:
        """The ids of the memories that it changes."""
        return tuple(before.id for before, _ in self.changed)


@dataclass(frozen=True)
class AuditEntry:
    """One entry of the log: who did what to which memories, when and why, and what became of it."""

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
    """What taking entries back came to: the new entries, and what could not be taken back, with the reason."""

    entries: tuple[AuditEntry, ...]
    refused: Mapping[int, str]


Exists = Callable[[str, str], bool | None]  # a file, and a function in it or "" -> there; None: nobody can tell


@dataclass(frozen=True)
class PlanContext:
    """What planners know beside the memories: whose they are, when it is, and what became of the code."""

    project: Project
    now: float
    changes: tuple[Change, ...] = ()  # of the project's functions, newest first
    exists: Exists = lambda _file, _function: None
    taken_back: frozenset[tuple[str, frozenset[str]]] = frozenset()  # (verb, ids): what somebody undid
    shown_to: Callable[[str], frozenset[str]] = lambda _memory: frozenset()  # the sessions that we gave a memory to
    give_way: Callable[[], object] = lambda: None  # called now and then in long work: others have their turn


class Planner(Protocol):
    """Memories of one project, whatever their status, in the order of their places -> what is to be done."""

    def __call__(self, memories: Sequence[Memory], *, about: PlanContext) -> tuple[MemoryChange, ...]: ...


def stands(entry: AuditEntry) -> bool:
    """Whether an entry of the log about memories may be taken back: nobody did, and something of it is left."""
    return not entry.undone and entry.what != "forget" and any(entry.patch.get(name) for name in PARTS)


def standing(planned: Iterable[MemoryChange], *, about: PlanContext) -> tuple[MemoryChange, ...]:
    """Those that nobody took back before: what a person undid is not done again."""
    return tuple(each for each in planned if (each.what, frozenset(each.about)) not in about.taken_back)


def patch_of(before: Memory, after: Memory) -> dict[str, list[Any]]:
    """The fields that differ, each as it was and as it is to be; of a detail only those of its parts that differ."""
    pairs = ((name, getattr(before, name), getattr(after, name)) for name in FIELDS)
    patch = {name: [plain(old), plain(new)] for name, old, new in pairs if old != new}
    if "detail" in patch:
        old, new = patch["detail"]
        # What is counted in a detail goes on: it must not stand in the way of taking back a change of the rest.
        same = {name for name in old if name in new and old[name] == new[name]}
        patch["detail"] = [{name: part for name, part in each.items() if name not in same} for each in (old, new)]
    return patch


def detail_after(detail: Mapping[str, Any], patch: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A detail whose parts are as the patch wants them, the others as they are."""
    before, after = patch
    return {**{name: part for name, part in detail.items() if name not in before}, **after}


def plain(item: Any) -> Any:
    """As JSON gives it back."""
    if isinstance(item, Mapping):
        return dict(item)
    return list(item) if isinstance(item, Sequence) and not isinstance(item, str) else item


REVISED = "revised"  # in a detail: who put it into other words; what is said again leaves those words alone
PROPOSAL, REVISES = "proposal", "revises"  # in the detail of what waits: what is proposed, and of which memory
WHOLE = ("kind", "title", "body", "scope", "tags", "files", "functions", "confidence")
REVISABLE_DETAIL = ("why", "fixed_by")  # of a detail
REVISABLE = (*WHOLE, *REVISABLE_DETAIL)
LISTS = ("tags", "files", "functions")
ALONE, OWN_TERMINAL = "only the user does this", "ask the user to run it in a terminal of their own"
WORDS = (
    "title",
    "body",
    *LISTS,
    *REVISABLE_DETAIL,
)  # what an agent may put otherwise; what it is and where it counts, it may not


def revised(memory: Memory, changes: Mapping[str, Any], *, who: str) -> Memory:
    """*memory* with *changes* to some of REVISABLE, marked as revised; as it was where they change nothing.

    Who said it first stays: other words for the same thing give it no more trust.
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
    return after if after == memory else replace(after, detail={**after.detail, REVISED: _first(memory, who)})


def differing(before: Memory, after: Memory) -> tuple[str, ...]:
    """The names of what differs, as people know them."""
    patch = patch_of(before, after)
    parts = {name for each in patch.pop("detail", ()) for name in each} - {REVISED}
    return (*patch, *(name for name in REVISABLE_DETAIL if name in parts))


def version(memory: Memory) -> str:
    """The same for as long as a memory says the same: whoever revises it can tell which one they read."""
    says = [getattr(memory, name) for name in (*WHOLE, "status", "superseded_by")]
    told = json.dumps([*says, *(memory.detail.get(name) for name in REVISABLE_DETAIL)], default=list)
    return hashlib.blake2b(told.encode(), digest_size=12).hexdigest()


def is_the_users(memory: Memory) -> bool:
    """Whether the user said it, or put it into these words: then nobody else changes it."""
    return memory.trust == "user" or memory.detail.get(REVISED) == "user"


def proposed(memory: Memory, changes: Mapping[str, Any], *, source: str, session: str, at: float) -> Memory:
    """What somebody else would have the user's memory say: a memory of its own that nobody is shown."""
    after = revised(memory, changes, who="agent")
    told = {name: changes[name] for name in REVISABLE if name in changes}
    mark = hashlib.blake2b(json.dumps([memory.uid, told], sort_keys=True).encode(), digest_size=12).hexdigest()
    detail = {name: each for name, each in after.detail.items() if name != REVISED}
    return replace(
        after,
        id="",
        uid=f"proposal-{mark}",
        source=source,
        session=session,
        trust=lowest(("agent", memory.trust)),
        status="proposed",
        superseded_by="",
        pinned=False,
        used=0,
        ignored=0,
        seen=1,
        created=at,
        confirmed=at,
        detail={**detail, PROPOSAL: "revise", REVISES: memory.id, "changes": told},
    )


def accepted(memory: Memory, proposal: Memory) -> Memory:
    """*memory* as a proposal wants it, now that the user said yes to it."""
    told = {name: proposal.detail["changes"][name] for name in WORDS if name in proposal.detail.get("changes", {})}
    return revised(memory, {name: tuple(told[name]) if name in LISTS else told[name] for name in told}, who="user")


def said_again(known: Memory, fresh: Memory) -> Memory:
    """*fresh*, as somebody tells it again; where *known* was revised, its words, with the counts and times of both.

    Nothing gains trust by being said again.
    """
    if not known.detail.get(REVISED):
        return replace(fresh, trust=lowest((fresh.trust, known.trust)))
    return replace(
        known,
        seen=max(known.seen, fresh.seen),
        created=min(known.created, fresh.created),
        confirmed=max(known.confirmed, fresh.confirmed),
        status=fresh.status if known.status == "stale" else known.status,
        detail={**fresh.detail, **known.detail},
    )


def _first(memory: Memory, who: str) -> str:
    """What the user once revised stays the user's."""
    return "user" if memory.detail.get(REVISED) == "user" else who


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


def chronicle(entries: Iterable[AuditEntry], written: Iterable[Memory], *, limit: int) -> tuple[Happened, ...]:
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

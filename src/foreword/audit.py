"""Describe changes that are made on purpose: what is planned, logged and undone, and whose words stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from foreword.models import Link, Memory, lowest_trust

PARTS = ("changed", "new", "links", "unlinked")  # of a patch, that an undo reverts
# Fields that a change may touch; the rest of a memory is where it came from.
FIELDS = (
    "kind", "title", "body", "scope", "project", "tags", "files", "functions", "trust", "confidence", "seen",
    "created", "confirmed", "status", "superseded_by", "pinned", "detail",
)  # fmt: skip


class MemoryChange(NamedTuple):
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


class UndoResult(NamedTuple):
    """What an undo did: the new entries, and what could not be undone, with the reason."""

    entries: tuple[AuditEntry, ...]
    refused: Mapping[int, str]


class PlanContext(NamedTuple):
    """What planners know beside the memories: the time, and what became of the code."""

    now: float
    exists: Callable[[str], bool | None] = lambda _file: None  # whether a file is there; None: not known
    taken_back: frozenset[tuple[str, frozenset[str]]] = frozenset()  # (verb, ids) that somebody undid


# Plans changes to the memories of one project, whatever their status; called as planner(memories, about=PlanContext).
Planner = Callable[..., tuple[MemoryChange, ...]]


def is_undoable(entry: AuditEntry) -> bool:
    """Return whether an entry can be undone: nobody did, and something of it is left."""
    return not entry.undone and entry.what != "forget" and any(entry.patch.get(name) for name in PARTS)


def still_wanted(planned: Iterable[MemoryChange], *, about: PlanContext) -> tuple[MemoryChange, ...]:
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
    """Return *item* as it is after a round trip through JSON."""
    if isinstance(item, Mapping):
        return dict(item)
    return list(item) if isinstance(item, Sequence) and not isinstance(item, str) else item


REVISED = "revised"  # in a detail: who put it into other words, which a repeated statement leaves alone
WHOLE = ("kind", "title", "body", "scope", "tags", "files", "functions", "confidence")
REVISABLE_DETAIL = ("why", "fixed_by")  # of a detail
REVISABLE = (*WHOLE, *REVISABLE_DETAIL)
USER_ONLY, OWN_TERMINAL = "only the user may do this", "ask the user to run it in a terminal of their own"


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


def is_the_users(memory: Memory) -> bool:
    """Return whether the user wrote it or revised it: then nobody else changes it."""
    return memory.trust == "user" or memory.detail.get(REVISED) == "user"


def merge_repeated(known: Memory, fresh: Memory) -> Memory:
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


# What was done, as people say it, where the verb does not just end in -ed.
PAST = {
    **{"pin": "pinned", "unpin": "unpinned", "retell": "retold", "stale": "marked stale", "forget": "forgot"},
    **{"undo": "undid", "goal": "set a goal", "project": "described", "learn": "learned"},
    "merge project": "merged",
}
NAMED = 3  # memories in a line


def past_tense(verb: str) -> str:
    """Return what was done, as people say it."""
    return PAST.get(verb) or f"{verb.removesuffix('e')}ed"


def describe(entry: AuditEntry) -> str:
    """Return what an entry is about, in words: rows that were removed, else the first few of its memories."""
    receipt = entry.patch.get("receipt", {})
    removed = {**entry.patch.get("pruned", {}), **{name: receipt.get(name, 0) for name in ("projects", "sessions")}}
    parts = [f"{count:,} {name}" for name, count in removed.items() if count]
    more = f" and {len(entry.memories) - NAMED} more" if len(entry.memories) > NAMED else ""
    return ", ".join([*parts, *entry.memories[:NAMED]]) + more

"""The vocabulary of changes to what is remembered: each can be shown before, is logged, and can be taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from foreword.types import Change, Link, Memory, Project

# Fields that an amendment may change; the rest of a memory tells where it came from.
PARTS = ("changed", "new", "links", "unlinked")  # of a patch: what taking it back would take back
FIELDS = (
    "kind", "title", "body", "scope", "project", "tags", "files", "functions", "trust", "confidence", "seen",
    "created", "confirmed", "status", "superseded_by", "pinned", "detail",
)  # fmt: skip


@dataclass(frozen=True)
class Amendment:
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
class Logged:
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
class Undone:
    """What taking entries back came to: the new entries, and what could not be taken back, with the reason."""

    entries: tuple[Logged, ...]
    refused: Mapping[int, str]


Exists = Callable[[str, str], bool | None]  # a file, and a function in it or "" -> there; None: nobody can tell


@dataclass(frozen=True)
class About:
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

    def __call__(self, memories: Sequence[Memory], *, about: About) -> tuple[Amendment, ...]: ...


def stands(entry: Logged) -> bool:
    """Whether an entry of the log about memories may be taken back: nobody did, and something of it is left."""
    return not entry.undone and entry.what != "forget" and any(entry.patch.get(name) for name in PARTS)


def standing(planned: Iterable[Amendment], *, about: About) -> tuple[Amendment, ...]:
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

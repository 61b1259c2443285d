"""Memories of code that is no longer there -> sunk, and up again when it is back; renamed functions are followed.

What is there is told by `About.exists`, which says "gone" only of what has been gone for a while: a branch that is
checked out for an hour, a disk that is not mounted and a checkout of some folders alone change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from foreword.audit import MemoryChange, PlanContext, standing
from foreword.maintenance.dedupe import CODE_GONE, sure
from foreword.models import Change, Memory, texts
from foreword.terms import broken

SINKS = ("change", "observation", "learning")  # worth as much as the code they tell of, unless the user said them
DOUBTED = ("decision", "pattern", "failure", "learning")  # may hold for other code too: they stay, and count less
LESS_SURE = 0.5  # times its confidence, which is a factor of importance: it comes after what still has its code
GONE_DAYS = 3  # a function that a session deleted, and nobody can look for, is gone after so many days
DAY = 86_400.0


def plan(memories: Sequence[Memory], *, about: PlanContext) -> tuple[MemoryChange, ...]:
    """Let sink what has lost all of its code, bring back what has it again, and call functions by their new names."""
    names, deleted = _renamed(about.changes), _deleted(about.changes, before=about.now - GONE_DAYS * DAY)
    planned: list[MemoryChange] = []
    for number, memory in enumerate(memories):
        if number % 200 == 0:
            about.give_way()
        if memory.pinned or not memory.files:
            continue
        one = _followed(memory, names, about=about) or _judged(memory, deleted, about=about)
        planned += [one] if one is not None else []
    return standing(planned, about=about)


def _judged(memory: Memory, deleted: Mapping[tuple[str, str], float], *, about: PlanContext) -> MemoryChange | None:
    if CODE_GONE in memory.detail and memory.status in ("active", "stale"):
        return _restored(memory) if _has_code(memory, about=about) else None
    if memory.status != "active":
        return None
    if memory.kind not in (*SINKS, *DOUBTED) or memory.detail.get("what") == "DELETED":
        return None  # what tells of a deletion is true because of it
    why = _gone(memory, deleted, about=about)
    if not why:
        return None
    detail = {**memory.detail, CODE_GONE: {"since": about.now, "confidence": memory.confidence}}
    if memory.kind in SINKS and memory.trust != "user":
        return MemoryChange("stale", why, changed=((memory, replace(memory, status="stale", detail=detail)),))
    doubted = replace(memory, confidence=memory.confidence * LESS_SURE, detail=detail)
    return MemoryChange("sink", why, changed=((memory, doubted),))


def _restored(memory: Memory) -> MemoryChange:
    detail = {name: told for name, told in memory.detail.items() if name != CODE_GONE}
    # Who said it again meanwhile said how sure it is.
    confidence = max(memory.confidence, sure(memory))
    after = replace(memory, status="active", confidence=confidence, detail=detail)
    return MemoryChange("restore", "its code is back", changed=((memory, after),))


def _gone(memory: Memory, deleted: Mapping[tuple[str, str], float], *, about: PlanContext) -> str:
    """What is gone, in words; nothing where some of it is there, or nobody can tell."""
    if all(about.exists(file, "") is False for file in memory.files):
        return f"{_listed(memory.files)} gone"
    if memory.functions and all(_function_gone(name, memory, deleted, about=about) for name in memory.functions):
        return f"{_listed(tuple(f'{name}()' for name in memory.functions))} gone from {_listed(memory.files)}"
    return ""


def _function_gone(name: str, memory: Memory, deleted: Mapping[tuple[str, str], float], *, about: PlanContext) -> bool:
    """Whether a function is in none of the files: looked for, or deleted in a session where nobody can look."""
    told = [(about.exists(file, name), (file, name) in deleted) for file in memory.files]
    return any(there is False or by_session for there, by_session in told) and all(
        there is False or (there is None and by_session) for there, by_session in told
    )


def _has_code(memory: Memory, *, about: PlanContext) -> bool:
    if not memory.functions:
        return any(about.exists(file, "") for file in memory.files)
    return any(about.exists(file, name) for file in memory.files for name in memory.functions)


def _deleted(changes: Sequence[Change], *, before: float) -> dict[tuple[str, str], float]:
    """Functions whose last change was that they were deleted, some days ago."""
    last: dict[tuple[str, str], Change] = {}
    for change in changes:
        known = last.get((change.file, change.function))
        if known is None or change.at > known.at:
            last[change.file, change.function] = change
    return {place: each.at for place, each in last.items() if each.what == "DELETED" and each.at < before}


def _renamed(changes: Sequence[Change]) -> dict[tuple[str, str], str]:
    """Functions that a session deleted and made anew under another name: the same shape, and no other one like it."""
    sessions: dict[tuple[str, str], list[Change]] = {}
    for change in changes:
        if change.session:
            sessions.setdefault((change.session, change.file), []).append(change)
    names: dict[tuple[str, str], tuple[float, str]] = {}
    for (_, file), some in sessions.items():
        for old, new in _pairs(some):
            if names.get((file, old.function), (0.0, ""))[0] <= old.at:
                names[file, old.function] = old.at, new.function
    return {place: name for place, (_, name) in names.items()}


def _pairs(changes: Sequence[Change]) -> Iterator[tuple[Change, Change]]:
    shapes: dict[str, tuple[list[Change], list[Change]]] = {}
    for change in changes:
        if change.what in ("DELETED", "NEW"):
            gone, come = shapes.setdefault(_shape(change), ([], []))
            (gone if change.what == "DELETED" else come).append(change)
    for shape, (gone, come) in shapes.items():
        if len(gone) == len(come) == 1 and (_has_parameters(shape) or _related(gone[0], come[0])):
            yield gone[0], come[0]


def _shape(change: Change) -> str:
    """A signature without its function's own name."""
    return " ".join(change.signature.replace(change.function.rpartition(".")[2], "", 1).split())


def _has_parameters(shape: str) -> bool:
    inside = shape.partition("(")[2].rpartition(")")[0]
    return bool(inside.replace("self", "").replace("cls", "").strip(" ,&*/"))


def _related(one: Change, other: Change) -> bool:
    """Whether two names share a part: load_all and load_every."""
    parts = [set(broken(each.function.lower()).split()) for each in (one, other)]
    return bool(parts[0] & parts[1])


def _followed(memory: Memory, names: Mapping[tuple[str, str], str], *, about: PlanContext) -> MemoryChange | None:
    """*memory* with the present names of its functions, where sessions renamed them and the old ones are gone."""
    if memory.status != "active" or memory.kind == "change" or len(memory.files) != 1:
        return None  # a change is told by its own name; of several files nobody knows which function is whose
    file = memory.files[0]
    new = tuple(dict.fromkeys(_present(name, file, names, about=about) for name in memory.functions))
    if new == memory.functions:
        return None
    told = [f"{old} is {name}" for old in memory.functions if (name := _present(old, file, names, about=about)) != old]
    former = tuple(dict.fromkeys((*texts(memory.detail, "formerly"), *memory.functions)))
    after = replace(
        memory, functions=new, detail={**memory.detail, "formerly": [each for each in former if each not in new]}
    )
    return MemoryChange("rename", f"{', '.join(told)} now", changed=((memory, after),))


def _present(name: str, file: str, names: Mapping[tuple[str, str], str], *, about: PlanContext) -> str:
    passed = {name}
    present = name
    while (file, present) in names and names[file, present] not in passed and not about.exists(file, present):
        present = names[file, present]
        passed.add(present)
    return present


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown

"""Edits and changes of a session -> what they did, in a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from foreword.distill.changes import is_test
from foreword.distill.sentences import cut
from foreword.types import Change, Edit


@dataclass(frozen=True)
class Edited:
    """One edit of a session, in the order of its edits, and the functions that it touched."""

    number: int
    edit: Edit
    functions: tuple[str, ...]


def line_of(edits: Sequence[Edited]) -> str:
    """What edits changed, in a line: the code itself where it was one small thing."""
    source = [each for each in edits if not is_test(each.edit.file)] or list(edits)
    whole = _as_one(source)
    if whole is not None and (swap := _swapped(whole.edit)):
        return cut(f"{_where(whole)}: {swap}", 220)
    swaps = [f"{_where(each)}: {swap}" for each in source[:3] if (swap := _swapped(each.edit))]
    if len(swaps) == len(source) and sum(map(len, swaps)) <= 220:
        return "; ".join(dict.fromkeys(swaps))
    files: dict[str, list[str]] = {}
    for each in source:
        files.setdefault(each.edit.file, []).extend(f"{name}()" for name in each.functions)
    parts = [
        f"{listed(list(dict.fromkeys(names)), most=3)} in {file}" if names else file for file, names in files.items()
    ]
    return cut(f"changed {listed(parts, most=3)}", 220)


def names_of(changes: Sequence[Change]) -> str:
    """The functions that are new, and those that were changed."""
    new = list(dict.fromkeys(f"{change.function}()" for change in changes if change.what == "NEW"))
    others = list(dict.fromkeys(f"{change.function}()" for change in changes if change.what != "NEW"))
    parts = [f"new {listed(new, most=4)}"] if new else []
    return "; ".join([*parts, f"changed {listed(others, most=4)}"] if others else parts)


def listed(names: Sequence[str], *, most: int) -> str:
    """The first of *names*, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def together(before: str, after: str) -> str:
    """What two changes of one function are as one; nothing where it was made and taken away again."""
    if before == "NEW":
        return "" if after == "DELETED" else "NEW"
    if before == "DELETED":
        return "MODIFIED" if after != "DELETED" else "DELETED"
    return "DELETED" if after == "DELETED" else "MODIFIED"


def _as_one(edits: Sequence[Edited]) -> Edited | None:
    """Several edits of one piece as one, from what was there first to what is there last; None where they lie apart."""
    whole: Edit | None = edits[0].edit
    for each in edits[1:]:
        whole = _joined(whole, each.edit) if whole else None
    if whole is None:
        return None
    functions = tuple(dict.fromkeys(name for each in edits for name in each.functions))
    return Edited(number=edits[0].number, edit=whole, functions=functions)


def _joined(one: Edit, two: Edit) -> Edit | None:
    if one.file != two.file or one.whole != two.whole or not one.after or not two.before:
        return None
    if one.whole:
        return replace(one, after=two.after)
    if two.before in one.after:
        return replace(one, after=one.after.replace(two.before, two.after or "", 1))
    if one.after in two.before:
        return replace(two, before=two.before.replace(one.after, one.before or "", 1))
    return None


def _where(edited: Edited) -> str:
    return f"{edited.functions[0]}() in {edited.edit.file}" if edited.functions else edited.edit.file


def _swapped(edit: Edit) -> str:
    """`old` became `new`, where one line or two tell it."""
    if edit.before is None or edit.after is None:
        return ""
    before, after = (dict.fromkeys(text.split("\n")) for text in (edit.before, edit.after))
    gone = [line.strip() for line in before if line not in after and line.strip()]
    come = [line.strip() for line in after if line not in before and line.strip()]
    if not come or len(gone) > 2 or len(come) > 2 or sum(map(len, (*gone, *come))) > 180:
        return ""
    if not gone:
        return f"added `{' '.join(come)}`"
    return f"`{' '.join(gone)}` became `{' '.join(come)}`"

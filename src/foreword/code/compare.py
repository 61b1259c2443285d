"""Two versions of a file -> what became NEW, was MODIFIED or was DELETED, in the order of the newer one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.code import grammars
from foreword.code.definitions import definitions_in, in_utf8
from foreword.code.grammars import PARSE_MS
from foreword.models import Change

if TYPE_CHECKING:
    from collections.abc import Iterable

    from foreword.code.definitions import Definition

NEW, MODIFIED, DELETED = "NEW", "MODIFIED", "DELETED"


def changes_of(file: str, *, before: str | None, after: str | None, most_ms: float = PARSE_MS) -> tuple[Change, ...]:
    """What changed between two whole texts of *file*; None is a file that is not there.

    Lines are those of *after*, and for what was deleted those of *before*. Comments and white space are no change.
    """
    old, new = (None if text is None else text.encode("utf-8", "replace") for text in (before, after))
    return changes_in(file, before=old, after=new, most_ms=most_ms)


def changes_in(
    file: str, *, before: bytes | None, after: bytes | None, most_ms: float = PARSE_MS
) -> tuple[Change, ...]:
    """The same of a file's bytes."""
    if before == after:
        return ()
    old, new = in_utf8(before or b""), in_utf8(after or b"")
    if grammars.too_much(new) or grammars.too_much(old):
        return ()
    versions = [definitions_in(text, file=file, most_ms=most_ms) if text.strip() else () for text in (old, new)]
    if versions[0] is None or versions[1] is None:
        return ()  # what cannot be read is not gone
    return differing(file, before=versions[0], after=versions[1])


def differing(file: str, *, before: Iterable[Definition], after: Iterable[Definition]) -> tuple[Change, ...]:
    """What differs between the definitions of two versions; of several with one name, the first that differs."""
    old, new = _by_name(before), _by_name(after)
    changes = []
    for name, versions in new.items():
        known = {each.body for each in old.get(name, ())}
        if not known:
            changes.append(_change(file, versions[0], NEW))
            continue
        different = [each for each in versions if each.body not in known]
        if different:
            changes.append(_change(file, different[0], MODIFIED))
        elif len({each.body for each in versions}) < len(known):  # one of several with this name is gone
            changes.append(_change(file, versions[0], MODIFIED))
    gone = [_change(file, versions[0], DELETED) for name, versions in old.items() if name not in new]
    return (*changes, *gone)


def _by_name(definitions: Iterable[Definition]) -> dict[str, list[Definition]]:
    named: dict[str, list[Definition]] = {}
    for each in definitions:
        named.setdefault(each.qualified, []).append(each)
    return named


def _change(file: str, one: Definition, what: str) -> Change:
    return Change(
        project="",
        file=file,
        function=one.qualified,
        what=what,
        signature=one.signature,
        line=one.line,
        end_line=one.end_line,
    )

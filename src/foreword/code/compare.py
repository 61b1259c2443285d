"""Two versions of a file -> what became NEW, was MODIFIED or was DELETED, in the order of the newer one."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from foreword.code import grammars
from foreword.code.definitions import CALLABLE, definitions_in, in_tree, in_utf8
from foreword.code.grammars import PARSE_MS
from foreword.code.parts import differing_parts
from foreword.types import Change

if TYPE_CHECKING:
    from collections.abc import Iterable

    from foreword.code.definitions import Definition
    from foreword.code.parts import Parts

NEW, MODIFIED, DELETED = "NEW", "MODIFIED", "DELETED"
_WITH_WORDS = frozenset({"python", "rust", "ruby", "php", "kotlin", "scala", "swift"})  # a word opens each definition


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
    if old.strip() and new.strip():
        different = _in_parts(file, old, new, most_ms=most_ms)
        if different is not None:
            return different
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


def _in_parts(file: str, before: bytes, after: bytes, *, most_ms: float) -> tuple[Change, ...] | None:
    """The same from the parts that differ, mostly a sixth of the file; None where they cannot be read alone."""
    languages = [grammars.language_of(file, head=text[:4096]) for text in (before, after)]
    language = languages[1]
    if languages[0] != language or not language or language in ("vue", "svelte"):
        return None
    found: list[tuple[Definition, ...]] = []
    head = b"<?php\n" if language == "php" else b""
    for part in differing_parts(before, after, head=head):
        tree = grammars.parsed(part.source, language=language, most_ms=most_ms)
        if tree is None or tree.root_node.has_error:
            return None
        of_part = in_tree(tree, part.source, language=language, most_ms=most_ms)
        if of_part is None or any(part.spans(each.line, each.end_line) for each in of_part):
            return None  # a bracket was moved, and one part closes what another opens
        found.append(tuple(_moved(each, part) for each in of_part))
    told = differing(file, before=found[0], after=found[1])
    whole = {each.function for each in told if each.what != MODIFIED}
    for each in told:
        owner, _, name = each.function.rpartition(".")
        # One of several with its name may stand in a part that both have: overloads, a getter and its setter.
        other = {NEW: before, DELETED: after}.get(each.what, b"")
        if other and owner not in whole and _defines(other, name, language=language):
            return None
    return told


def _defines(text: bytes, name: str, *, language: str) -> bool:
    """Whether *text* may define *name* somewhere."""
    raw = name.encode("utf-8", "replace")
    if raw not in text:
        return False
    word = re.escape(raw)
    opened = (
        rb"\b(?:def|fn|func|fun|function|class|struct|trait|type|module|object|enum)\b[^\n=({]*?" + word + rb"(?!\w)"
    )
    bare = rb"(?<!\w)" + word + rb"\s*[(<=:]"
    return bool(re.search(opened if language in _WITH_WORDS else bare, text))


def _moved(one: Definition, part: Parts) -> Definition:
    """The same with its lines in the whole text."""
    line, end = part.line(one.line), part.line(one.end_line)
    if one.kind not in CALLABLE and one.qualified == one.name:
        end = part.end_of_class(line, end)
    return replace(one, line=line, end_line=max(line, end))


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

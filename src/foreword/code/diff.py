"""Find the functions that edits or two versions of a file changed: NEW, MODIFIED or DELETED."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from textwrap import dedent

from foreword.code.definitions import Definition, definitions_in
from foreword.code.languages import LARGEST, is_too_large
from foreword.models import Change, Edit

NEW, MODIFIED, DELETED = "NEW", "MODIFIED", "DELETED"
PIECES = 500  # of one file that are put back; more are a rewriting


# ---- two versions of a file


def changes_of(file: str, *, before: str | None, after: str | None) -> tuple[Change, ...]:
    """Return what changed between two whole texts of *file*; None is a file that is not there.

    Lines are those of *after*, and for what was deleted those of *before*. Comments and white space are no change.
    """
    old, new = (None if text is None else text.encode("utf-8", "replace") for text in (before, after))
    return changes_in(file, before=old, after=new)


def changes_in(file: str, *, before: bytes | None, after: bytes | None) -> tuple[Change, ...]:
    """Return what changed between two versions of a file's bytes."""
    if before == after:
        return ()
    old, new = before or b"", after or b""
    if is_too_large(new) or is_too_large(old):
        return ()
    versions = [definitions_in(text, file=file) if text.strip() else () for text in (old, new)]
    if versions[0] is None or versions[1] is None:
        return ()  # what cannot be read is not gone
    return compare(file, before=versions[0], after=versions[1])


def compare(file: str, *, before: Iterable[Definition], after: Iterable[Definition]) -> tuple[Change, ...]:
    """Compare the definitions of two versions; of several with one name, return the first that differs."""
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


# ---- what a tool reports of its edits


def changes(edits: Iterable[Edit], *, present: Callable[[str], str | None] | None = None) -> tuple[Change, ...]:
    """Return what *edits*, in their order, changed; several of one file count as one change of it.

    *present* gives a file's text after all of them, where it can be read: pieces are put back in it to find out what
    it was before. A piece that cannot be placed without doubt shows only what is defined in itself, with line 0.
    """
    by_file: dict[str, list[Edit]] = {}
    for edit in edits:
        by_file.setdefault(edit.file, []).append(edit)
    found: list[Change] = []
    for file, of_it in by_file.items():
        found += _of_file(file, of_it, present=present(file) if present else None)
    return tuple(found)


# ---- one file


def _of_file(file: str, edits: list[Edit], *, present: str | None) -> tuple[Change, ...]:
    if present is None and edits[-1].whole:
        present = edits[-1].after
        if edits[0].whole:
            return changes_of(file, before=edits[0].before, after=present)
    elif edits[-1].whole and edits[-1].after is None:  # it was deleted, whatever is there now
        present = None
    if present is None and not edits[-1].whole:
        return _of_pieces(file, edits, present="")
    text: str | None = present
    for edit in reversed(edits[-PIECES:]):
        text = edit.before if edit.whole else _put_back(edit, text or "")
        if text is None and not edit.whole:
            return _of_pieces(file, edits, present=present or "")
    return changes_of(file, before=text, after=present)


def _put_back(edit: Edit, text: str) -> str | None:
    """Return *text* as it was before *edit*; None where its place is in doubt."""
    old, new = edit.before or "", edit.after or ""
    if not new or len(text) > LARGEST:
        return None
    if edit.everywhere:
        return text.replace(new, old) if new in text else None
    place = text.find(new)
    if place < 0 or place != text.rfind(new):
        return None
    return text[:place] + old + text[place + len(new) :]


def _of_pieces(file: str, edits: list[Edit], *, present: str) -> tuple[Change, ...]:
    """Return what is defined in the pieces alone."""
    found: dict[str, Change] = {}
    for edit in edits:
        before, after = edit.before, edit.after
        if not edit.whole:
            before, after = dedent(before or ""), dedent(after or "")
        for change in changes_of(file, before=before, after=after):
            earlier = found.get(change.function)
            what = "NEW" if earlier and earlier.what == "NEW" and change.what == "MODIFIED" else change.what
            found[change.function] = replace(change, what=what, line=0, end_line=0)
    if present:  # what the file still defines was not deleted, only the piece no longer holds it
        names = {each.function for each in changes_of(file, before=None, after=present)}
        ends = {name.rpartition(".")[2] for name in names}
        found = {
            name: replace(change, what="MODIFIED") if change.what == "DELETED" and name in ends else change
            for name, change in found.items()
        }
    return tuple(found.values())

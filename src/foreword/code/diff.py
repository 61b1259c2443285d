"""Find the functions that edits or two versions of a file changed: NEW, MODIFIED or DELETED.

A `Change` comes without project, session and time, which the caller knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from textwrap import dedent

from foreword.code.definitions import Definition, definitions_in
from foreword.code.languages import LARGEST, is_too_large
from foreword.models import Change, Edit

PIECES = 500  # of one file that are put back; more are a rewriting


def changes_of(file: str, *, before: str | None, after: str | None) -> tuple[Change, ...]:
    """Return what changed between two whole texts of *file*; None is a file that is not there.

    Lines are those of *after*, and for what was deleted those of *before*. Comments and white space are no change.
    """
    old, new = (None if text is None else text.encode("utf-8", "replace") for text in (before, after))
    return changes_in(file, before=old, after=new)


def changes_in(file: str, *, before: bytes | None, after: bytes | None) -> tuple[Change, ...]:
    """Return what changed between two versions of a file's bytes; of several with one name, the first that differs."""
    texts = before or b"", after or b""
    if before == after or any(map(is_too_large, texts)):
        return ()
    versions = [definitions_in(text, file=file) if text.strip() else () for text in texts]
    if versions[0] is None or versions[1] is None:
        return ()  # what cannot be read is not gone
    old, new = _by_name(versions[0]), _by_name(versions[1])
    changes = []
    for name, found in new.items():
        known = {each.body for each in old.get(name, ())}
        different = [each for each in found if each.body not in known]
        if not known:
            changes.append(_change(file, found[0], "NEW"))
        elif different or len({each.body for each in found}) < len(known):  # or one of several with this name is gone
            changes.append(_change(file, (different or found)[0], "MODIFIED"))
    gone = [_change(file, found[0], "DELETED") for name, found in old.items() if name not in new]
    return (*changes, *gone)


def _by_name(definitions: Iterable[Definition]) -> dict[str, list[Definition]]:
    named: dict[str, list[Definition]] = {}
    for each in definitions:
        named.setdefault(each.qualified, []).append(each)
    return named


def _change(file: str, one: Definition, what: str) -> Change:
    return Change("", file, one.qualified, what, one.signature, line=one.line, end_line=one.end_line)


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


def _of_file(file: str, edits: list[Edit], *, present: str | None) -> tuple[Change, ...]:
    last = edits[-1]
    if last.whole and (present is None or last.after is None):  # it was written or deleted, whatever is there now
        present = last.after
    elif present is None:
        return _of_pieces(file, edits, present="")
    # The first edit of the whole file says what was there before it; the pieces before that are put back in it.
    first = next((at for at, edit in enumerate(edits) if edit.whole), len(edits))
    text = edits[first].before if first < len(edits) else present
    for edit in reversed(edits[:first][-PIECES:]):
        text = _put_back(edit, text or "")
        if text is None:
            return _of_pieces(file, edits, present=present or "")
    return changes_of(file, before=text, after=present)


def _put_back(edit: Edit, text: str) -> str | None:
    """Return *text* as it was before *edit*; None where its place is in doubt."""
    old, new = edit.before or "", edit.after or ""
    if not new or new not in text or len(text) > LARGEST:
        return None
    if edit.everywhere:
        return text.replace(new, old)
    place = text.find(new)
    return text[:place] + old + text[place + len(new) :] if place == text.rfind(new) else None


def _of_pieces(file: str, edits: list[Edit], *, present: str) -> tuple[Change, ...]:
    """Return the changed functions that the edited pieces show by themselves, without the rest of the file."""
    found: dict[str, Change] = {}
    for edit in edits:
        before, after = edit.before, edit.after
        if not edit.whole:
            before, after = dedent(before or ""), dedent(after or "")
        for change in changes_of(file, before=before, after=after):
            earlier = found.get(change.function)
            what = "NEW" if earlier and earlier.what == "NEW" and change.what == "MODIFIED" else change.what
            found[change.function] = replace(change, what=what, line=0, end_line=0)
    # What the file still defines was not deleted, only the piece no longer holds it.
    defined = changes_of(file, before=None, after=present) if present else ()
    still = {each.function.rpartition(".")[2] for each in defined}
    return tuple(
        replace(each, what="MODIFIED") if each.what == "DELETED" and each.function in still else each
        for each in found.values()
    )

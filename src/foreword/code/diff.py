"""Find the functions that an edit, a patch or two versions of a file changed: NEW, MODIFIED or DELETED."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from textwrap import dedent
from typing import Any

from foreword.code.definitions import Definition, definitions_in, in_utf8
from foreword.code.languages import LARGEST, PARSE_MS, is_too_large
from foreword.models import Change, Edit

NEW, MODIFIED, DELETED = "NEW", "MODIFIED", "DELETED"
PIECES = 500  # of one file that are put back; more are a rewriting
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_NULL = "/dev/null"


# ---- two versions of a file


def changes_of(file: str, *, before: str | None, after: str | None, most_ms: float = PARSE_MS) -> tuple[Change, ...]:
    """Return what changed between two whole texts of *file*; None is a file that is not there.

    Lines are those of *after*, and for what was deleted those of *before*. Comments and white space are no change.
    """
    old, new = (None if text is None else text.encode("utf-8", "replace") for text in (before, after))
    return changes_in(file, before=old, after=new, most_ms=most_ms)


def changes_in(
    file: str, *, before: bytes | None, after: bytes | None, most_ms: float = PARSE_MS
) -> tuple[Change, ...]:
    """Return what changed between two versions of a file's bytes."""
    if before == after:
        return ()
    old, new = in_utf8(before or b""), in_utf8(after or b"")
    if is_too_large(new) or is_too_large(old):
        return ()
    versions = [definitions_in(text, file=file, most_ms=most_ms) if text.strip() else () for text in (old, new)]
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


def changes(
    edits: Iterable[Edit], *, present: Callable[[str], str | None] | None = None, most_ms: float = PARSE_MS
) -> tuple[Change, ...]:
    """Return what *edits*, in their order, changed; several of one file count as one change of it.

    *present* gives a file's text after all of them, where it can be read: pieces are put back in it to find out what
    it was before. A piece that cannot be placed without doubt tells only of what is defined in itself, with line 0.
    """
    by_file: dict[str, list[Edit]] = {}
    for edit in edits:
        by_file.setdefault(edit.file, []).append(edit)
    found: list[Change] = []
    for file, of_it in by_file.items():
        found += _of_file(file, of_it, present=present(file) if present else None, most_ms=most_ms)
    return tuple(found)


def changes_of_piece(
    file: str, *, old: str, new: str, text_after: str | None = None, everywhere: bool = False, line: int = 0
) -> tuple[Change, ...]:
    """Return what replacing *old* by *new* changed in *file*, whose text is now *text_after*."""
    edit = Edit(file=file, before=old, after=new, whole=False, everywhere=everywhere, line=line)
    return changes([edit], present=lambda _: text_after)


def edits_of_patch(patch: str | Sequence[Mapping[str, Any]], *, file: str = "") -> tuple[Edit, ...]:
    """Return the edits of a unified diff, of a `*** Begin Patch`, or of an agent's list of hunks for *file*."""
    if not isinstance(patch, str):
        return tuple(filter(None, (_of_hunk(hunk, file=file) for hunk in patch)))
    if "*** Begin Patch" in patch or patch.startswith("*** "):
        return _of_begin_patch(patch)
    return _of_unified(patch, file=file)


# ---- one file


def _of_file(file: str, edits: list[Edit], *, present: str | None, most_ms: float) -> tuple[Change, ...]:
    if present is None and edits[-1].whole:
        present = edits[-1].after
        if edits[0].whole:
            return changes_of(file, before=edits[0].before, after=present, most_ms=most_ms)
    elif edits[-1].whole and edits[-1].after is None:  # it was deleted, whatever is there now
        present = None
    if present is None and not edits[-1].whole:
        return _of_pieces(file, edits, present="", most_ms=most_ms)
    text: str | None = present
    for edit in reversed(edits[-PIECES:]):
        text = edit.before if edit.whole else _put_back(edit, text or "")
        if text is None and not edit.whole:
            return _of_pieces(file, edits, present=present or "", most_ms=most_ms)
    return changes_of(file, before=text, after=present, most_ms=most_ms)


def _put_back(edit: Edit, text: str) -> str | None:
    """Return *text* as it was before *edit*; None where its place is in doubt."""
    old, new = edit.before or "", edit.after or ""
    if not new or len(text) > LARGEST:
        return None
    if edit.everywhere:
        return text.replace(new, old) if new in text else None
    place = _placed(new, text, line=edit.line)
    return None if place < 0 else text[:place] + old + text[place + len(new) :]


def _placed(piece: str, text: str, *, line: int) -> int:
    """Return where *piece* stands: at *line* where that is known, else at its only place; -1 in doubt."""
    if line > 0:
        start = 0
        for _ in range(line - 1):
            start = text.find("\n", start) + 1
            if not start:
                break
        if text.startswith(piece, start) and (start or line == 1):
            return start
    first = text.find(piece)
    return first if first == text.rfind(piece) else -1


def _of_pieces(file: str, edits: list[Edit], *, present: str, most_ms: float) -> tuple[Change, ...]:
    """Return what is defined in the pieces alone."""
    found: dict[str, Change] = {}
    for edit in edits:
        before, after = edit.before, edit.after
        if not edit.whole:
            before, after = dedent(before or ""), dedent(after or "")
        for change in changes_of(file, before=before, after=after, most_ms=most_ms):
            earlier = found.get(change.function)
            what = "NEW" if earlier and earlier.what == "NEW" and change.what == "MODIFIED" else change.what
            found[change.function] = replace(change, what=what, line=0, end_line=0)
    if present:  # what the file still defines was not deleted, only the piece no longer holds it
        names = {each.function for each in changes_of(file, before=None, after=present, most_ms=most_ms)}
        ends = {name.rpartition(".")[2] for name in names}
        found = {
            name: replace(change, what="MODIFIED") if change.what == "DELETED" and name in ends else change
            for name, change in found.items()
        }
    return tuple(found.values())


# ---- patches


def _of_hunk(hunk: Mapping[str, Any], *, file: str) -> Edit | None:
    """Read a hunk `{newStart, lines}`, each line with its sign."""
    lines, start = hunk.get("lines"), hunk.get("newStart")
    if not isinstance(lines, (list, tuple)):
        return None
    return _piece(file, [line for line in lines if isinstance(line, str)], line=start if isinstance(start, int) else 0)


def _piece(file: str, lines: Sequence[str], *, line: int) -> Edit:
    """Return the piece before and after, of lines with `-`, `+` or a blank in front."""
    before = [each[1:] for each in lines if each[:1] in ("-", " ", "")]
    after = [each[1:] for each in lines if each[:1] in ("+", " ", "")]
    return Edit(file=file, before="\n".join(before), after="\n".join(after), whole=False, line=line)


def _of_unified(patch: str, *, file: str) -> tuple[Edit, ...]:
    edits: list[Edit] = []
    lines = patch.splitlines()
    old_name = name = file
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ "):
            old_name, name = _bare(line[4:]), _bare(lines[at + 1][4:])
            at += 2
            continue
        head = _HUNK.match(line)
        if not head:
            at += 1
            continue
        end = at + 1
        while end < len(lines) and lines[end][:1] in ("+", "-", " ", "\\", "") and not _begins_file(lines, end):
            end += 1
        held = [each for each in lines[at + 1 : end] if each[:1] != "\\"]
        edits.append(_whole_or_piece(old_name, name, held, line=int(head[2])))
        at = end
    return tuple(edits)


def _begins_file(lines: Sequence[str], at: int) -> bool:
    return lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")


def _whole_or_piece(old_name: str, name: str, lines: Sequence[str], *, line: int) -> Edit:
    if old_name == _NULL:
        return Edit(file=name, before=None, after="\n".join(each[1:] for each in lines), whole=True)
    if name == _NULL:
        return Edit(file=old_name, before="\n".join(each[1:] for each in lines), after=None, whole=True)
    return _piece(name, lines, line=line)


def _bare(name: str) -> str:
    """Return the name in a header: no time after it, no a/ or b/ in front."""
    name = name.partition("\t")[0].strip().strip('"')
    return name[2:] if name[:2] in ("a/", "b/") else name


def _of_begin_patch(patch: str) -> tuple[Edit, ...]:
    """The edits of `*** Begin Patch`: files are added, deleted or updated, and hunks are found by their lines alone."""
    edits: list[Edit] = []
    file, mode = "", ""
    held: list[str] = []

    def close() -> None:
        if mode == "Add":
            edits.append(Edit(file=file, before=None, after="\n".join(line[1:] for line in held), whole=True))
        elif mode == "Update" and any(line[:1] in ("+", "-") for line in held):
            edits.append(_piece(file, held, line=0))
        held.clear()

    for line in patch.splitlines():
        if line.startswith("*** "):
            if line.startswith(("*** End of File", "*** Move to: ")):
                file = line[13:].strip() if line.startswith("*** Move") else file
                continue
            close()
            word, _, name = line[4:].partition(" File: ")
            file, mode = name.strip(), word if name else ""
            if mode == "Delete":
                edits.append(Edit(file=file, before=None, after=None, whole=True))
        elif line.startswith("@@"):
            close()
        elif mode:
            held.append(line)
    close()
    return tuple(edits)

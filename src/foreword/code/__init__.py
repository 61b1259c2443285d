"""Find the functions that texts, edits and commits define and change.

    definitions(text, file=NAME)                       -> Definition, …   what a text defines
    changes_of(NAME, before=TEXT, after=TEXT)          -> Change, …       NEW, MODIFIED, DELETED between whole texts
    changes([Edit, …], present=read)                   -> Change, …       of a tool's edits: whole texts or pieces
    changes_of_piece(NAME, old=, new=, text_after=)    -> Change, …       of one replaced piece
    edits_of_patch(PATCH, file=NAME)                   -> Edit, …         of a diff, of hunks, of `*** Begin Patch`
    changed_functions(FOLDER, limit=N)                 -> CommitChanges   of git's commits, newest first

None of them raises for what a text holds; only `changed_functions` raises BadRequest where git cannot be asked. A
`Change` comes without project, session and time, which the caller knows: `replace(change, project=KEY, session=ID,
at=NOW)`. Its `function` is qualified (`Class.method`), its `line` is 0 where the place is unknown. Grammars are loaded
when a file of their language is seen; while a text is parsed, some ms for a usual file and at most `most_ms`, no other
thread runs.
"""

from __future__ import annotations

from foreword.code.commits import CommitChanges, changed_functions
from foreword.code.definitions import Definition, definitions
from foreword.code.diff import changes, changes_of, changes_of_piece, edits_of_patch

__all__ = [
    "CommitChanges",
    "Definition",
    "changed_functions",
    "changes",
    "changes_of",
    "changes_of_piece",
    "definitions",
    "edits_of_patch",
]

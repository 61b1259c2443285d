"""What somebody looks for -> the facets it chooses of, and how rows are known that have its tag or name its file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from foreword.store.memories import as_json as listed
from foreword.terms import any_of

SHOWN = ("active", "proposed")  # the statuses, unless others are asked for
COLUMNS = ("kind", "scope", "project", "status", "trust", "pinned")
FACETS = (*COLUMNS, "tag", "file")


@dataclass(frozen=True)
class Wanted:
    """What is looked for; what is empty narrows nothing."""

    words: str = ""  # as typed so far
    signs: str = ""  # of them what the index does not know, between spaces
    kinds: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    project: str = ""
    tag: str = ""
    file: str = ""  # a path; with a slash at its end a folder; without any, every file of that name
    statuses: tuple[str, ...] = SHOWN
    trusts: tuple[str, ...] = ()
    pinned: bool | None = None


@dataclass(frozen=True)
class Mark:
    """What a row shows that has a tag or names a file, and the places among which all such are."""

    shows: str
    seen: tuple[str, ...]
    columns: tuple[str, ...]  # that it looks at
    places: str = ""  # empty where no index tells
    given: tuple[str, ...] = ()


@dataclass(frozen=True)
class Among:
    """Places to look among: these, or all; of them those with a mark, and for which the index has an expression."""

    places: set[int] | None = None
    expression: str = ""
    marked: tuple[Mark, ...] = ()  # where they are too many to be told one by one

    def and_(self, other: Among) -> Among:
        """Those in both; one of them has no expression."""
        return Among(
            _both(self.places, other.places), self.expression or other.expression, (*self.marked, *other.marked)
        )

    def or_(self, more: set[int]) -> Among:
        """With a few more, where they are told one by one: among very many, nobody looks for an id."""
        return self if self.places is None else Among(self.places | more)


def facets_of(wanted: Wanted) -> list[tuple[list[str], str]]:
    """Facets with the filter that is left out of their count: each of which something is chosen has its own."""
    lists = {**choices(wanted), "tag": wanted.tag, "file": wanted.file}
    chosen = [name for name in FACETS if lists[name]]
    return [([name for name in FACETS if name not in chosen], ""), *(([name], name) for name in chosen)]


def choices(wanted: Wanted) -> dict[str, tuple[Any, ...]]:
    """What is chosen of each facet that is a column."""
    return {
        "kind": wanted.kinds,
        "scope": wanted.scopes,
        "project": (wanted.project,) if wanted.project else (),
        "status": wanted.statuses,
        "trust": wanted.trusts,
        "pinned": () if wanted.pinned is None else (int(wanted.pinned),),
    }


def having_tag(tag: str) -> Mark:
    """Who has exactly this tag."""
    quoted = listed([tag])[1:-1]
    return Mark("instr(m.tags, ?) > 0", (quoted,), ("tags",), *_worded("tags", quoted))


def holding_signs(signs: str) -> Mark:
    """Who has all of these somewhere in its texts, small or large."""
    forms = [{each, *(form for form in (each.lower(), each.upper()) if len(form) == 1)} for each in signs.split()]
    columns = ("title", "body", "tags")
    each = (" OR ".join(f"instr(m.{name}, ?) > 0" for _ in some for name in columns) for some in forms)
    seen = tuple(form for some in forms for form in some for _ in columns)
    return Mark(" AND ".join(f"({any_of})" for any_of in each), seen, columns)


def naming_file(file: str) -> Mark:
    """Who names this path, a file in this folder, or a file of this name."""
    quoted = listed([file])[1:-1]
    if "/" not in file:
        shows = "(instr(m.files, ?) > 0 OR instr(m.files, ?) > 0)"
        return Mark(shows, (quoted, f"/{quoted[1:]}"), ("files",), *_worded("files", quoted))
    # Functions are no paths, so what is found here is a file; 0 is what follows the slash.
    folder = file.endswith("/")
    places = "SELECT c.place FROM units u JOIN code c ON c.unit = u.number WHERE u.name >= ? AND u.name < ?"
    until = f"{file[:-1]}0" if folder else f"{file}\0"
    return Mark("instr(m.files, ?) > 0", (quoted[:-1] if folder else quoted,), ("files",), places, (file, until))


def _worded(column: str, quoted: str) -> tuple[str, tuple[str, ...]]:
    """Whose list may hold this text: the index knows its words, if it has any."""
    if not any(each.isascii() and each.isalnum() for each in quoted):
        return "", ()
    return "SELECT rowid FROM words WHERE words MATCH ?", (f"{column} : {any_of((quoted,))}",)


def all_of(conditions: Iterable[tuple[str, Sequence[str]]]) -> tuple[str, list[str]]:
    """Conditions and what they are given, to stand behind others."""
    every = list(conditions)
    return "".join(f" AND {sql}" for sql, _ in every), [each for _, given in every for each in given]


def _both(one: set[int] | None, other: set[int] | None) -> set[int] | None:
    return other if one is None else one if other is None else one & other

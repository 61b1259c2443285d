"""What somebody looks for -> a page of memories of all projects, and how many of each sort there are. The viewer's SQL.

Words narrow, as everything else does, and the last one may be a beginning. What very many memories hold is looked for
in the newest of them: `total` and `sampled` tell so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from foreword.errors import BadRequest
from foreword.jsontext import storable
from foreword.store.finding import marks
from foreword.store.reading import Reader
from foreword.store.writing import listed, texts_of
from foreword.typed import Typed, typed
from foreword.types import KINDS, Memory
from foreword.values import replace, value
from foreword.words import any_of

SHOWN = ("active", "proposed")  # the statuses, unless others are asked for
POOL = 1_000  # of more that hold the words, the newest are put in order
SAMPLE = 2_000  # of more, the newest are counted
FEW = 3_000  # places are looked up one by one; more are met sooner on a walk from the newest on
ENOUGH = 50  # found among the newest: no need to look through all
MOST_HELD = 200_000  # that words may bring: 60 ms
MOST_COUNTED = 200_000  # for a total: 15 ms
MOST_FIRST = 200  # titles that begin with the words, beyond the newest
TOP = 20  # tags and files; others are found by typing
MOST_PAGE = 200
COLUMNS = ("kind", "scope", "project", "status", "trust", "pinned")
FACETS = (*COLUMNS, "tag", "file")
_CELL = "m.kind, m.owner, m.project, m.status, m.trust, m.pinned"
_EACH = "(SELECT value FROM json_each(?))"


@value
class Wanted:
    """What is looked for; what is empty narrows nothing."""

    words: str = ""  # as typed so far
    kinds: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    project: str = ""
    tag: str = ""
    file: str = ""  # a path; with a slash at its end a folder; without any, every file of that name
    statuses: tuple[str, ...] = SHOWN
    trusts: tuple[str, ...] = ()
    pinned: bool | None = None


@value
class Page:
    """Some memories; `next` leads to those behind them, and `total` is None where nobody counted."""

    memories: tuple[Memory, ...]
    next: str = ""
    total: int | None = None


@value
class Facets:
    """Of each facet its values with how many there are, most first, as if nothing of that facet itself was chosen."""

    counts: Mapping[str, tuple[tuple[str, int], ...]]
    sampled: tuple[str, ...] = ()  # those that were counted among the newest only


class BrowsingReader(Reader):
    """The questions of somebody who looks around, of one read-only connection."""

    def browse(self, wanted: Wanted, *, after: str = "", limit: int = 50) -> Page:
        limit = max(1, min(limit, MOST_PAGE))
        said = typed(wanted.words)
        if said.empty:
            return self._newest_page(wanted, after=after, limit=limit)
        return self._best_page(self._by_name(wanted), said, start=_number(after), limit=limit)

    def facets(self, wanted: Wanted) -> Facets:
        said = typed(wanted.words)
        wanted = self._by_name(wanted)
        counts: dict[str, Counter[Any]] = {}
        sampled: list[str] = []
        chosen = _chosen(wanted)
        for but in ("", *chosen):
            names = (but,) if but else tuple(name for name in FACETS if name not in chosen)
            if said.empty and not self._is_narrowed(wanted, but):
                passing = self._passing_cells(wanted, but=but)
                counts.update(_sums(passing, [name for name in names if name in COLUMNS]))
                names = tuple(name for name in names if name not in COLUMNS)
            if names:
                found, whole = self._found(wanted, said, but=but, most=SAMPLE)
                counts.update(self._counted(found, names))
                sampled += () if whole else names
        scopes = dict(self._all("SELECT number, scope FROM owners", ()))
        counts["scope"] = Counter({scopes.get(owner, ""): count for owner, count in counts["scope"].items()})
        return Facets({name: _most(counts[name]) for name in FACETS}, tuple(sampled))

    def cells(self) -> list[Any]:
        """How many memories there are of each kind, owner, project, status, trust, pinned or not, all at once."""
        return self._all(
            f"SELECT {_CELL}, count(*) FROM memories m WHERE m.status <> 'forgotten' GROUP BY 1, 2, 3, 4, 5, 6", ()
        )

    # -- pages --------------------------------------------------------------------------------------------------
    def _newest_page(self, wanted: Wanted, *, after: str, limit: int) -> Page:
        places, _ = self._found(wanted, typed(""), most=limit + 1, after=_moment(after))
        memories = self._in_order(places[:limit])
        last = memories[-1].created if memories else 0.0
        more = f"{last!r}:{places[limit - 1]}" if len(places) > limit else ""
        return Page(memories, more, None if after else self._total(wanted))

    def _best_page(self, wanted: Wanted, said: Typed, *, start: int, limit: int) -> Page:
        places, whole = self._found(wanted, said, most=POOL)
        rows = self._titles([*places, *(() if whole else self._first(wanted, said))])
        newest = max((created for _, _, _, created, _ in rows), default=0.0)
        name = wanted.words.strip().lower()

        def key(row: Any) -> tuple[Any, ...]:
            _, id, title, created, status = row
            fit = said.fit(title, created=created, newest=newest, aside=status not in SHOWN)
            return not id.startswith(name), -fit, -created, id

        ordered = [row[0] for row in sorted(rows, key=key)]
        memories = self._in_order(ordered[start : start + limit])
        more = str(start + limit) if len(ordered) > start + limit else ""
        return Page(memories, more, len(ordered) if whole else None)

    def _in_order(self, places: Sequence[int]) -> tuple[Memory, ...]:
        read = dict(self._memories(places))
        return tuple(read[place] for place in places if place in read)

    def _titles(self, places: Iterable[int]) -> list[Any]:
        sql = f"SELECT place, id, title, created, status FROM memories WHERE place IN {_EACH}"
        return self._all(sql, (_list(places),))

    def _first(self, wanted: Wanted, said: Typed) -> list[int]:
        """Titles that begin with the words, however old."""
        if said.short or not said.first:
            return []
        found = self._matching(said.first, most=MOST_FIRST)
        return self._newest(wanted, found, most=MOST_FIRST)[0]

    def _total(self, wanted: Wanted) -> int | None:
        narrowed = self._narrowed(wanted, "")
        if narrowed is not None:
            places, whole = self._newest(wanted, narrowed, most=POOL)
            return len(places) if whole else None
        where, given = self._conditions(wanted)
        sql = f"SELECT count(*) FROM (SELECT 1 FROM memories m WHERE {where} LIMIT {MOST_COUNTED + 1})"
        total = int(self._all(sql, given)[0][0])
        return total if total <= MOST_COUNTED else None

    # -- finding ------------------------------------------------------------------------------------------------
    def _found(
        self, wanted: Wanted, said: Typed, *, most: int, but: str = "", after: tuple[float, int] | None = None
    ) -> tuple[list[int], bool]:
        """The newest places that hold the words and pass every filter *but* one, and whether these are all."""
        narrowed = self._narrowed(wanted, but)
        if said.empty:
            return self._newest(wanted, narrowed, most=most, but=but, after=after)
        if said.short:
            held = _both(self._matching(said.expression(begun=False)) if said.whole else None, narrowed)
            tried, whole = self._newest(wanted, held, most=most, but=but)
            found = self._saying(tried, said)
            if len(found) >= ENOUGH or (whole and held is not None):
                return found, whole
        return self._newest(wanted, _both(self._holding_all(said, wanted.words), narrowed), most=most, but=but)

    def _holding_all(self, said: Typed, text: str) -> set[int]:
        """The places that hold every word; a word of which the index has only the stem is looked for in the texts."""
        found = self._matching(said.expression()) | self._by_prefix(text)
        for cut in said.cuts() if not found else ():
            if near := self._matching(said.expression(cut=cut), most=SAMPLE):
                return set(self._saying(sorted(near, reverse=True), said))
        return found

    def _matching(self, expression: str, *, most: int = MOST_HELD) -> set[int]:
        if not expression:
            return set()
        sql = "SELECT rowid FROM words WHERE words MATCH ? LIMIT ?"
        return {place for (place,) in self._all(sql, (expression, most))}

    def _saying(self, places: Sequence[int], said: Typed) -> list[int]:
        """Those in whose text a word begins as the one that is being typed."""
        texts = "title || ' ' || tags || ' ' || files || ' ' || split || ' ' || body"
        sql = f"SELECT place, {texts} FROM memories WHERE place IN {_EACH}"
        held = {place for place, text in self._all(sql, (_list(places),)) if said.in_text(text)}
        return [place for place in places if place in held]

    def _newest(
        self,
        wanted: Wanted,
        among: Collection[int] | None,
        *,
        most: int,
        but: str = "",
        after: tuple[float, int] | None = None,
    ) -> tuple[list[int], bool]:
        """The newest places that pass the filters, *among* these or of all, and whether there are no more."""
        where, given = self._conditions(wanted, but=but)
        if after:
            where, given = f"{where} AND m.created <= ? AND (m.created < ? OR m.place < ?)", [*given, *after[:1] * 2]
            given.append(after[1])
        if among is not None and len(among) <= FEW:
            where, given = f"m.place IN {_EACH} AND {where}", [_list(among), *given]
            rows = self._all(f"SELECT m.created, m.place FROM memories m WHERE {where}", given)
            rows.sort(reverse=True)
            return [place for _, place in rows[:most]], len(rows) <= most
        walk = f"SELECT m.place FROM memories m WHERE {where} ORDER BY m.created DESC, m.place DESC"
        found: list[int] = []
        for (place,) in self._walk(walk, given, limit=most + 1 if among is None else -1):
            if among is None or place in among:
                if len(found) == most:
                    return found, False
                found.append(place)
        return found, True

    def _walk(self, sql: str, given: Sequence[Any], *, limit: int) -> Iterable[Any]:
        return self._execute(f"{sql} LIMIT ?", (*map(_storable, given), limit))

    # -- filters ------------------------------------------------------------------------------------------------
    def _conditions(self, wanted: Wanted, *, but: str = "") -> tuple[str, list[Any]]:
        """The filters that are columns; the plus keeps indexes out that would have to be sorted."""
        where, given = ["m.status <> 'forgotten'"], list[Any]()
        for name, some in _lists(wanted).items():
            if some and name != but:
                of = "IN (SELECT number FROM owners WHERE scope IN ({}))" if name == "scope" else "IN ({})"
                where.append(f"+m.{'owner' if name == 'scope' else name} {of.format(marks(some))}")
                given += some
        return " AND ".join(where), given

    def _passing_cells(self, wanted: Wanted, *, but: str) -> Iterable[tuple[Sequence[Any], int]]:
        """The same for cells, each with its count."""
        wishes = _lists(wanted)
        if wishes["scope"]:
            wishes["scope"] = tuple(owner for owner, _ in self._owners(wanted.scopes)) or (-1,)
        asked = [(at, wishes[name]) for at, name in enumerate(COLUMNS) if wishes[name] and name != but]
        return [(cell[:6], cell[6]) for cell in self.cells() if all(cell[at] in some for at, some in asked)]

    def _is_narrowed(self, wanted: Wanted, but: str) -> bool:
        return bool((wanted.tag and but != "tag") or (wanted.file and but != "file"))

    def _narrowed(self, wanted: Wanted, but: str) -> set[int] | None:
        """The places that have the tag and name the file; None where neither is asked for."""
        tagged = self._tagged(wanted.tag) if wanted.tag and but != "tag" else None
        filed = self._naming_file(wanted.file) if wanted.file and but != "file" else None
        return _both(tagged, filed)

    def _tagged(self, tag: str) -> set[int]:
        """Who has exactly this tag."""
        quoted = listed([tag])[1:-1]
        return {place for place, tags in self._listing("tags", quoted) if quoted in tags}

    def _naming_file(self, file: str) -> set[int]:
        """Who names this path, a file in this folder, or a file of this name."""
        if "/" not in file:
            quoted = listed([file])[1:-1]
            ends = (quoted, f"/{quoted[1:]}")
            return {place for place, files in self._listing("files", quoted) if any(end in files for end in ends)}
        # Functions are no paths, so what is found here is a file; 0 is what follows the slash.
        until = f"{file[:-1]}0" if file.endswith("/") else f"{file}\0"
        sql = "SELECT DISTINCT c.place FROM units u JOIN code c ON c.unit = u.number WHERE u.name >= ? AND u.name < ?"
        return {place for (place,) in self._all(sql, (file, until))}

    def _listing(self, column: str, quoted: str) -> list[Any]:
        """By place, the lists that may hold this text: the index knows its words, if it has any."""
        worded = any(each.isascii() and each.isalnum() for each in quoted)
        where = "place IN (SELECT rowid FROM words WHERE words MATCH ?)" if worded else "instr(tags || files, ?) > 0"
        given = f"{column} : {any_of((quoted,))}" if worded else quoted[1:-1]
        return self._all(f"SELECT place, {column} FROM memories WHERE {where}", (given,))

    def _by_name(self, wanted: Wanted) -> Wanted:
        """Who types a whole id means that memory, whatever its status."""
        if wanted.statuses == SHOWN and self._by_prefix(wanted.words, exact=True):
            return replace(wanted, statuses=())
        return wanted

    def _by_prefix(self, text: str, *, exact: bool = False) -> set[int]:
        """The memories whose id begins so."""
        id = text.strip().lower()
        if id[:3] not in KINDS.values() or id[3:4] != "-":
            return set()
        sql = f"SELECT place FROM memories WHERE id >= ? AND id <{'=' if exact else ''} ? LIMIT {ENOUGH}"
        return {place for (place,) in self._all(sql, (id, id if exact else f"{id}\x7f"))}

    def _counted(self, places: Sequence[int], names: Sequence[str]) -> dict[str, Counter[Any]]:
        """What these memories are and name, counted; nothing is read that nobody asked for."""
        lists = [name for name in ("tag", "file") if name in names]
        columns = "".join(f", m.{name}s" for name in lists)
        rows = self._all(f"SELECT {_CELL}{columns} FROM memories m WHERE m.place IN {_EACH}", (_list(places),))
        counts = _sums([(row[:6], 1) for row in rows], [name for name in names if name in COLUMNS])
        for at, name in enumerate(lists, 6):
            every = Counter(each for row in rows if row[at] != "[]" for each in texts_of(row[at]))
            counts[name] = Counter(dict(every.most_common(TOP)))
        return counts


def _chosen(wanted: Wanted) -> tuple[str, ...]:
    """The facets of which something is chosen."""
    lists = {**_lists(wanted), "tag": wanted.tag, "file": wanted.file}
    return tuple(name for name in FACETS if lists[name])


def _lists(wanted: Wanted) -> dict[str, tuple[Any, ...]]:
    """What is chosen of each facet that is a column."""
    return {
        "kind": wanted.kinds,
        "scope": wanted.scopes,
        "project": (wanted.project,) if wanted.project else (),
        "status": wanted.statuses,
        "trust": wanted.trusts,
        "pinned": () if wanted.pinned is None else (int(wanted.pinned),),
    }


def _sums(cells: Iterable[tuple[Sequence[Any], int]], names: Sequence[str]) -> dict[str, Counter[Any]]:
    """Cells with their counts -> how many there are of each value of these columns."""
    counts: dict[str, Counter[Any]] = {name: Counter() for name in names}
    for cell, count in cells:
        for name in names:
            counts[name][cell[COLUMNS.index(name)]] += count
    return counts


def _most(counted: Counter[Any]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(((str(each), count) for each, count in counted.items()), key=lambda pair: (-pair[1], pair[0])))


def _both(one: set[int] | None, other: set[int] | None) -> set[int] | None:
    return other if one is None else one if other is None else one & other


def _number(after: str) -> int:
    if after and not (after.isascii() and after.isdigit() and len(after) < 10):
        raise BadRequest("this is no place to go on from", hint="`after` is what `next` said")
    return int(after or 0)


def _moment(after: str) -> tuple[float, int] | None:
    created, _, place = after.partition(":")
    try:
        found = float(created or 0), int(place or 0)
    except ValueError:
        found = 0.0, -1
    if after and (not isfinite(found[0]) or not 0 < found[1] < 1 << 63):
        raise BadRequest("this is no place to go on from", hint="`after` is what `next` said")
    return found if after else None


def _list(numbers: Iterable[int]) -> str:
    return f"[{','.join(map(str, numbers))}]"


def _storable(given: Any) -> Any:
    return storable(given) if isinstance(given, str) else given

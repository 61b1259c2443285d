"""What somebody looks for -> a page of memories of all projects, and how many of each sort there are. The viewer's SQL.

Words narrow, as everything else does, and the last one may be a beginning. What very many memories hold is looked for
in the newest of them: `total` and `sampled` tell so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from time import monotonic
from typing import Any

from foreword.errors import BadRequest
from foreword.store.finding import json_list, marks
from foreword.store.reading import Reader
from foreword.store.writing import listed, texts_of
from foreword.typed import Typed, typed
from foreword.types import KINDS, Memory
from foreword.values import replace, value
from foreword.words import any_of

SHOWN = ("active", "proposed")  # the statuses, unless others are asked for
POOL = 300  # of more that hold the words, the newest are put in order: six pages
# How a beginning is tried before the index is asked which words begin so: as many of the newest at a time, for as long
# as so many of them hold it, until there are enough for some pages.
# Of a longer beginning the index has the few words soon.
STEP, SHARE, LONGER, ENOUGH = 150, 0.1, 0.2, 1 / 3
MOST_IDS = 50  # that begin as what is typed
SAMPLE = 1_000  # of what begins so, the newest are counted
FEW = 3_000  # places may be looked up one by one; more are met sooner on a walk from the newest on
STEPS = 0.05  # of looking up one is a step of that walk: 0.15 us of 2.8
NEAR = 2_000  # and more of the newest in which what many have is looked for first: 8 ms
MOST_KEPT = 50  # of the last words, with their places
MOST_COUNTED = 200_000  # memories for a total: 15 ms; and for what is told by no index: 0.5 s
MOST_COUNTS = 12  # that are kept: some hundred KB each
MOST_FIRST = 100  # titles that begin with the words, beyond the newest
TOP = 20  # tags and files; others are found by typing
MOST_PAGE = 200
SLOW = 1.0  # seconds of counting after which counts may be old: at most a tenth of the time is spent on them
COLUMNS = ("kind", "scope", "project", "status", "trust", "pinned")
FACETS = (*COLUMNS, "tag", "file")
_CELL = "m.kind, m.owner, m.project, m.status, m.trust, m.pinned"
_EACH = "(SELECT value FROM json_each(?))"
_NEWEST = "ORDER BY m.created DESC, m.place DESC LIMIT ?"


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
    total: int | None = None


@value
class _Mark:
    """What a row shows that has a tag or names a file, and the places among which all such are."""

    shows: str
    seen: tuple[str, ...]
    places: str = ""  # empty where no index tells
    given: tuple[str, ...] = ()


@value
class _Among:
    """Places to look among: these, or all; of them those with a mark, and for which the index has an expression."""

    places: set[int] | None = None
    expression: str = ""
    marked: tuple[_Mark, ...] = ()  # where they are too many to be told one by one

    def and_(self, other: _Among) -> _Among:
        """Those in both; one of them has no expression."""
        return _Among(
            _both(self.places, other.places), self.expression or other.expression, (*self.marked, *other.marked)
        )

    def or_(self, more: set[int]) -> _Among:
        """With a few more, where they are told one by one: among very many, nobody looks for an id."""
        return self if self.places is None else _Among(self.places | more)


class Counts:
    """What was counted of one state of the memories: 0.2 s at 100,000, and asked for again and again."""

    def __init__(self, state: int) -> None:
        self.state = state
        self.counted: dict[tuple[str, tuple[Any, ...]], list[Any]] = {}
        self.old = False  # counted of an earlier state
        self.took, self.since = 0.0, 0.0
        self.chosen: dict[str, tuple[str, _Among]] = {}  # the last tag and the last file, and who has them
        self.held: dict[str, _Among] = {}  # the last words, and who holds them: a page, then its facets

    @staticmethod
    def at(state: int, *, before: Counts | None) -> Counts:
        """What is known of a state: nothing yet, or where counting takes long what was known *before*."""
        if before is None:
            return Counts(state)
        held = before.took > SLOW and monotonic() - before.since < 10 * before.took
        if before.state == state and (held or not before.old):
            return before
        new = Counts(state)
        if held:
            new.counted, new.took, new.since, new.old = before.counted, before.took, before.since, True
        return new

    def count(self, sql: str, given: Sequence[Any], ask: Callable[..., list[Any]]) -> list[Any]:
        """The rows of a question that looks at all, asked once."""
        key = sql, tuple(given)
        rows = self.counted.get(key)
        if rows is None:
            began = monotonic()
            rows = ask(sql, given)
            self.took = max(self.took, monotonic() - began)
            self.since = self.since or monotonic()
            self.counted = {**(self.counted if len(self.counted) < MOST_COUNTS else {}), key: rows}
        return rows


class BrowsingReader(Reader):
    """The questions of somebody who looks around, of one read-only connection."""

    def __init__(self, execute: Callable[..., Iterable[Any]], *, failures: tuple[type[Exception], ...]) -> None:
        super().__init__(execute, failures=failures)
        self._known = Counts(0)
        self._read: dict[tuple[str, str], tuple[list[Any], bool]] = {}

    def browse(self, wanted: Wanted, known: Counts, *, after: str = "", limit: int = 50) -> Page:
        self._known = known
        limit = max(1, min(limit, MOST_PAGE))
        said = typed(wanted.words)
        if said.empty:
            return self._newest_page(wanted, after=after, limit=limit)
        return self._best_page(self._by_name(wanted), said, start=_number(after), limit=limit)

    def facets(self, wanted: Wanted, known: Counts) -> Facets:
        self._known = known
        said, wanted = typed(wanted.words), self._by_name(wanted)
        counts: dict[str, Counter[Any]] = {}
        sampled: set[str] = set()
        for names, but in _asked(wanted):
            among = self._narrowed(wanted, but)
            if said.empty and among.places is None:
                counted = self._counted(names, wanted, among, but)
                counts.update(counted)
                sampled.update(counted if known.old else ())
            rest = [name for name in names if name not in counts]
            if rest:
                rows, whole = self._rows(wanted, said, but)
                counts.update(_told(self._sieved(rows, wanted, but), rest))
                sampled.update(() if whole else rest)
        scopes = dict(self._all("SELECT number, scope FROM owners", ()))
        counts["scope"] = Counter({scopes.get(owner, ""): count for owner, count in counts["scope"].items()})
        column = next((name for name in _asked(wanted)[0][0] if name in COLUMNS and name not in sampled), "")
        return Facets(
            {name: _most(counts[name]) for name in FACETS},
            sampled=tuple(name for name in FACETS if name in sampled),
            total=sum(counts[column].values()) if column else None,
        )

    # -- counting -----------------------------------------------------------------------------------------------
    def _counted(self, names: Sequence[str], wanted: Wanted, among: _Among, but: str) -> dict[str, Counter[Any]]:
        """Of these facets those for which all may be looked at, where no words are."""
        small = self._size() <= MOST_COUNTED
        if among.marked and not small:
            return {}
        cells = self._sieved(self._cells(among), wanted, but)
        counts = _sums(cells, [name for name in names if name in COLUMNS])
        if small:
            counts.update({name: self._listed(name, wanted, among, but) for name in names if name not in COLUMNS})
        return counts

    def _cells(self, among: _Among) -> list[Any]:
        """How many memories there are of each kind, owner, project, status, trust, pinned or not, all at once."""
        return self._known.count(*self._grouped(among), self._all)

    def _grouped(self, among: _Among) -> tuple[str, tuple[str, ...]]:
        shows, seen = _all_of((mark.shows, mark.seen) for mark in among.marked)
        where = f"m.status <> 'forgotten'{shows} GROUP BY 1, 2, 3, 4, 5, 6"
        return f"SELECT {_CELL}, count(*) FROM memories m WHERE {where}", tuple(seen)

    def _listed(self, name: str, wanted: Wanted, among: _Among, but: str) -> Counter[Any]:
        """What most of them have or name; SQLite reads the lists, so that no other thread waits meanwhile."""
        column = f"m.{name}s"
        where, given = self._conditions(wanted, but=but)
        shows, seen = _all_of((mark.shows, mark.seen) for mark in among.marked)
        each = f"json_each(CASE WHEN {column} <> '[]' AND json_valid({column}) THEN {column} ELSE '[]' END) e"
        sql = f"""SELECT e.value, count(*) FROM memories m NOT INDEXED, {each} WHERE {where}{shows} AND e.type = 'text'
            GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {TOP}"""
        return Counter(dict(self._known.count(sql, (*given, *seen), self._all)))

    def _sieved(self, rows: list[Any], wanted: Wanted, but: str) -> list[Any]:
        """Those of rows that begin as a cell which pass the filters that are columns, *but* one."""
        wishes = _lists(wanted)
        if wishes["scope"]:
            wishes["scope"] = tuple(owner for owner, _ in self._owners(wanted.scopes)) or (-1,)
        asked = [(at, wishes[name]) for at, name in enumerate(COLUMNS) if wishes[name] and name != but]
        for at, some in asked:
            rows = [row for row in rows if row[at] in some]
        return rows

    def _rows(self, wanted: Wanted, said: Typed, but: str) -> tuple[list[Any], bool]:
        """The newest that are wanted *but* for one filter, as a cell, 1, tags and files; and whether these are all."""
        # What is shown is nearly all there is: one sample serves the count of statuses and all others.
        wide = "status" if wanted.statuses == SHOWN and but in ("", "status") else but
        key = (wide, but if but in ("tag", "file") else "")
        if key not in self._read:
            places, total = self._found(wanted, said, but=wide, most=FEW)
            sql = f"SELECT {_CELL}, 1, m.tags, m.files FROM memories m WHERE m.place IN {_EACH}"
            self._read[key] = self._all(sql, (json_list(places),)), total == len(places)
        return self._read[key]

    # -- pages --------------------------------------------------------------------------------------------------
    def _newest_page(self, wanted: Wanted, *, after: str, limit: int) -> Page:
        places, _ = self._found(wanted, typed(""), most=limit + 1, after=_moment(after))
        memories = self._in_order(places[:limit])
        last = memories[-1].created if memories else 0.0
        more = f"{last!r}:{places[limit - 1]}" if len(places) > limit else ""
        return Page(memories, more, None if after else self._total(wanted))

    def _best_page(self, wanted: Wanted, said: Typed, *, start: int, limit: int) -> Page:
        places, total = self._found(wanted, said, most=POOL)
        rows = self._titles([*places, *(() if total == len(places) else self._first(wanted, said))])
        fit = said.fitting(max((row[3] for row in rows), default=0.0))
        name = wanted.words.strip().lower()

        def key(row: Any) -> tuple[Any, ...]:
            _, id, title, created, status = row
            return not id.startswith(name), -fit(title, created, status not in SHOWN), -created, id

        ordered = [row[0] for row in sorted(rows, key=key)]
        memories = self._in_order(ordered[start : start + limit])
        more = str(start + limit) if len(ordered) > start + limit else ""
        return Page(memories, more, total)

    def _in_order(self, places: Sequence[int]) -> tuple[Memory, ...]:
        read = dict(self._memories(places))
        return tuple(read[place] for place in places if place in read)

    def _titles(self, places: Iterable[int]) -> list[Any]:
        sql = f"SELECT place, id, title, created, status FROM memories WHERE place IN {_EACH}"
        return self._all(sql, (json_list(places),))

    def _first(self, wanted: Wanted, said: Typed) -> list[int]:
        """Titles that begin with the words, however old."""
        sql = f"SELECT rowid FROM words WHERE words MATCH ? LIMIT {MOST_FIRST}"
        found = {place for (place,) in self._all(sql, (said.first,))} if said.first else set()
        return self._newest(wanted, _Among(found), most=MOST_FIRST)[0] if found else []

    def _total(self, wanted: Wanted) -> int | None:
        narrowed = self._narrowed(wanted, "")
        if narrowed.places is not None:
            return self._newest(wanted, narrowed, most=FEW)[1]
        if narrowed.marked and self._size() > MOST_COUNTED:
            return None
        if not self._known.old and self._grouped(narrowed) in self._known.counted:
            return sum(int(cell[6]) for cell in self._sieved(self._cells(narrowed), wanted, ""))
        where, given = self._conditions(wanted)
        shows, seen = _all_of((mark.shows, mark.seen) for mark in narrowed.marked)
        all_ = f"memories m {'NOT INDEXED' if shows else ''} WHERE {where}{shows}"
        sql = f"SELECT count(*) FROM (SELECT 1 FROM {all_} LIMIT {MOST_COUNTED + 1})"
        total = int(self._all(sql, (*given, *seen))[0][0])
        return total if total <= MOST_COUNTED else None

    # -- finding ------------------------------------------------------------------------------------------------
    def _found(
        self, wanted: Wanted, said: Typed, *, most: int, but: str = "", after: tuple[float, int] | None = None
    ) -> tuple[list[int], int | None]:
        """The newest places that hold the words and pass every filter *but* one, and of how many if that is known."""
        narrowed = self._narrowed(wanted, but)
        if said.empty:
            return self._newest(wanted, narrowed, most=most, but=but, after=after)
        named = self._by_prefix(wanted.words)
        if named and (itself := self._by_prefix(wanted.words, exact=True)):
            return self._newest(wanted, narrowed.and_(_Among(itself)), most=most, but=but)
        if said.begun and not named:
            held = narrowed.and_(self._holders(said.expression(begun=False))) if said.whole else narrowed
            if held.places is None or len(held.places) > POOL:
                enough = int(min(most, SAMPLE) * ENOUGH)
                found, share = self._tried(wanted, said, held, but=but, enough=enough)
                if found:
                    return found, None
                if held == narrowed == _Among() and share * self._size() > 2 * FEW:
                    return self._newest(wanted, _Among(None, said.expression()), most=most, but=but)
            elif said.short:
                saying = _Among(set(self._saying([*held.places], said)), marked=held.marked)
                return self._newest(wanted, saying, most=most, but=but)
        return self._newest(wanted, narrowed.and_(self._holding_all(said).or_(named)), most=most, but=but)

    def _tried(self, wanted: Wanted, said: Typed, held: _Among, *, but: str, enough: int) -> tuple[list[int], float]:
        """What holds the word that is being typed, among the newest; nothing where too few do, and how many of them.

        A beginning that many hold is met here at once, and out of the index would come with all of them. One that few
        hold costs the index nothing.
        """
        share = SHARE if said.short else LONGER
        reach = int(enough / share)
        dear = held.expression or held.marked  # who has it is found out anew with every walk
        newest, _ = self._newest(wanted, held, most=reach if dear else STEP, but=but)
        found = self._saying(newest[:STEP], said)
        if len(newest) < STEP or len(found) < STEP * share:
            return [], len(found) / STEP
        if len(found) < enough and not dear:
            newest, _ = self._newest(wanted, held, most=reach, but=but)
        for start in range(STEP, len(newest), STEP):
            if len(found) >= enough:
                break
            found += self._saying(newest[start : start + STEP], said)
        return found, 1.0

    def _size(self) -> int:
        return int(self._all("SELECT ifnull(sum(newest), 0) FROM owners", ())[0][0])

    def _holding_all(self, said: Typed) -> _Among:
        """The places that hold every word; a word of which the index has only the stem is looked for in the texts."""
        found = self._holders(said.expression())
        for cut in said.cuts() if found.places == set() else ():
            near, _ = self._index(said.expression(cut=cut), most=SAMPLE)
            if near:
                return _Among(set(self._saying(sorted(near, reverse=True), said)))
        return found

    def _holders(self, expression: str) -> _Among:
        """Those for which the index has it; where they are many, only how they are asked for."""
        held = self._known.held
        if expression not in held:
            found, whole = self._index(expression, most=FEW)
            held[expression] = _Among(found) if whole else _Among(None, expression)
            if len(held) > MOST_KEPT:
                self._known.held = {expression: held[expression]}
        return held[expression]

    def _index(self, expression: str, *, most: int) -> tuple[set[int], bool]:
        sql = "SELECT rowid FROM words WHERE words MATCH ? LIMIT ?"
        found = {place for (place,) in self._all(sql, (expression, most + 1))} if expression else set()
        return found, len(found) <= most

    def _saying(self, places: Sequence[int], said: Typed) -> list[int]:
        """Those in whose text a word begins as the one that is being typed."""
        texts = "title || ' ' || tags || ' ' || files || ' ' || split || ' ' || body"
        sql = f"SELECT place, {texts} FROM memories WHERE place IN {_EACH}"
        held = {place for place, text in self._all(sql, (json_list(places),)) if said.in_text(text)}
        return [place for place in places if place in held]

    def _newest(
        self,
        wanted: Wanted,
        among: _Among,
        *,
        most: int,
        but: str = "",
        after: tuple[float, int] | None = None,
    ) -> tuple[list[int], int | None]:
        """The newest places that pass the filters, *among* these, and of how many if that is known."""
        where, given = self._conditions(wanted, but=but, after=after)
        shows, seen = _all_of((mark.shows, mark.seen) for mark in among.marked)
        if among.expression:
            # The plus makes it a walk along the index of times, that ends soon, and not a look at each of them.
            where = f"+m.place IN (SELECT rowid FROM words WHERE words MATCH ?) AND {where}"
            given = [among.expression, *given]
        if among.places is not None:
            looked_up = not self._met_sooner(len(among.places), most)
            where = f"{'' if looked_up else '+'}m.place IN {_EACH} AND {where}{shows}"
            given = [json_list(among.places), *given, *seen]
        if among.places is not None and looked_up:
            rows = self._all(f"SELECT m.created, m.place FROM memories m WHERE {where}", given)
            rows.sort(reverse=True)
            return [place for _, place in rows[:most]], len(rows)
        if among.marked and among.places is None:
            # What many have is met among the newest, with nobody asked who all of them are.
            near = f"SELECT m.place, m.tags, m.files FROM memories m WHERE {where} {_NEWEST}"
            asked = (*given, NEAR + 4 * most, *seen, most + 1)
            rows = self._all(f"SELECT m.place FROM ({near}) m WHERE true{shows} LIMIT ?", asked)
            if len(rows) > most:
                return [place for (place,) in rows[:most]], None
            among_, all_ = _all_of((f"+m.place IN ({mark.places})", mark.given) for mark in among.marked if mark.places)
            where, given = f"{where}{among_}{shows}", [*given, *all_, *seen]
        rows = self._all(f"SELECT m.place FROM memories m WHERE {where} {_NEWEST}", (*given, most + 1))
        return [place for (place,) in rows[:most]], len(rows) if len(rows) <= most else None

    def _met_sooner(self, held: int, most: int) -> bool:
        """Whether a walk from the newest on meets so many of those held before each of these could be looked up."""
        return most < held and held * held > self._size() * most * STEPS

    # -- filters ------------------------------------------------------------------------------------------------
    def _conditions(
        self, wanted: Wanted, *, but: str = "", after: tuple[float, int] | None = None
    ) -> tuple[str, list[Any]]:
        """The filters that are columns; the plus keeps indexes out that would have to be sorted."""
        where, given = ["m.status <> 'forgotten'"], list[Any]()
        for name, some in _lists(wanted).items():
            if some and name != but:
                of = "IN (SELECT number FROM owners WHERE scope IN ({}))" if name == "scope" else "IN ({})"
                where.append(f"+m.{'owner' if name == 'scope' else name} {of.format(marks(some))}")
                given += some
        if after:
            where.append("m.created <= ? AND (m.created < ? OR m.place < ?)")
            given += (after[0], *after)
        return " AND ".join(where), given

    def _narrowed(self, wanted: Wanted, but: str) -> _Among:
        """Those that have the tag and name the file; all where neither is asked for."""
        tagged = self._once("tag", wanted.tag, _tagged) if but != "tag" else _Among()
        filed = self._once("file", wanted.file, _naming) if but != "file" else _Among()
        return tagged.and_(filed)

    def _once(self, facet: str, what: str, mark_of: Callable[[str], _Mark]) -> _Among:
        """Who has this, looked for once: the page, its total and its facets ask for the same."""
        if not what:
            return _Among()
        kept = self._known.chosen.get(facet)
        if kept is None or kept[0] != what:
            kept = self._known.chosen[facet] = (what, self._having(mark_of(what)))
        return kept[1]

    def _having(self, mark: _Mark) -> _Among:
        """Who has it, one by one, or where they are many only how they are known."""
        places = mark.places or f"SELECT m.place FROM memories m WHERE {mark.shows}"
        given = mark.given if mark.places else mark.seen
        some = self._all(f"SELECT DISTINCT * FROM ({places}) LIMIT {FEW + 1}", given)
        if len(some) > FEW:
            return _Among(marked=(mark,))
        sql = f"SELECT m.place FROM memories m WHERE m.place IN {_EACH} AND {mark.shows}"
        return _Among({place for (place,) in self._all(sql, (json_list(place for (place,) in some), *mark.seen))})

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
        sql = f"SELECT place FROM memories WHERE id >= ? AND id <{'=' if exact else ''} ? LIMIT {MOST_IDS}"
        return {place for (place,) in self._all(sql, (id, id if exact else f"{id}\x7f"))}


def _tagged(tag: str) -> _Mark:
    """Who has exactly this tag."""
    quoted = listed([tag])[1:-1]
    return _Mark("instr(m.tags, ?) > 0", (quoted,), *_worded("tags", quoted))


def _naming(file: str) -> _Mark:
    """Who names this path, a file in this folder, or a file of this name."""
    quoted = listed([file])[1:-1]
    if "/" not in file:
        shows = "(instr(m.files, ?) > 0 OR instr(m.files, ?) > 0)"
        return _Mark(shows, (quoted, f"/{quoted[1:]}"), *_worded("files", quoted))
    # Functions are no paths, so what is found here is a file; 0 is what follows the slash.
    folder = file.endswith("/")
    places = "SELECT c.place FROM units u JOIN code c ON c.unit = u.number WHERE u.name >= ? AND u.name < ?"
    until = f"{file[:-1]}0" if folder else f"{file}\0"
    return _Mark("instr(m.files, ?) > 0", (quoted[:-1] if folder else quoted,), places, (file, until))


def _worded(column: str, quoted: str) -> tuple[str, tuple[str, ...]]:
    """Whose list may hold this text: the index knows its words, if it has any."""
    if not any(each.isascii() and each.isalnum() for each in quoted):
        return "", ()
    return "SELECT rowid FROM words WHERE words MATCH ?", (f"{column} : {any_of((quoted,))}",)


def _all_of(conditions: Iterable[tuple[str, Sequence[str]]]) -> tuple[str, list[str]]:
    """Conditions and what they are given, to stand behind others."""
    every = list(conditions)
    return "".join(f" AND {sql}" for sql, _ in every), [each for _, given in every for each in given]


def _asked(wanted: Wanted) -> list[tuple[list[str], str]]:
    """Facets with the filter that is left out of their count: each of which something is chosen has its own."""
    lists = {**_lists(wanted), "tag": wanted.tag, "file": wanted.file}
    chosen = [name for name in FACETS if lists[name]]
    return [([name for name in FACETS if name not in chosen], ""), *(([name], name) for name in chosen)]


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


def _sums(cells: Iterable[Sequence[Any]], names: Sequence[str]) -> dict[str, Counter[Any]]:
    """Cells with their counts -> how many there are of each value of these columns."""
    counts: dict[str, Counter[Any]] = {}
    for name in names:
        at, counter = COLUMNS.index(name), Counter[Any]()
        for cell in cells:
            counter[cell[at]] += cell[6]
        counts[name] = counter
    return counts


def _told(rows: Sequence[Sequence[Any]], names: Sequence[str]) -> dict[str, Counter[Any]]:
    """The same of rows, with what most of them have and name."""
    counts = _sums(rows, [name for name in names if name in COLUMNS])
    for at, name in ((7, "tag"), (8, "file")):
        if name in names:
            every = Counter(each for row in rows if row[at] != "[]" for each in texts_of(row[at]))
            counts[name] = Counter(dict(every.most_common(TOP)))
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

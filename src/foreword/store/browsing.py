"""What somebody looks for -> a page of memories of all projects, and how many of each sort there are. The viewer's SQL.

Words narrow, as everything else does, and the last one may be a beginning. What very many memories hold is looked for
in the newest of them: `total` and `sampled` tell so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from foreword.errors import BadRequest
from foreword.models import KINDS, Memory
from foreword.store.counts import TOP, Counts, most_first, sums, sums_of_rows
from foreword.store.sql import Reader, Reads, json_list, marks
from foreword.store.typed import Typed, typed
from foreword.store.wanted import (
    COLUMNS,
    FACETS,
    SHOWN,
    Among,
    Mark,
    Wanted,
    all_of,
    choices,
    facets_of,
    having_tag,
    holding_signs,
    naming_file,
)

POOL = 300  # of more that hold the words the newest are put in order, and the others follow; of a small memory all are
# How a beginning is tried before the index is asked which words begin so: as many of the newest at a time, for as long
# as so many of them hold it, until there are enough for some pages. Of a long beginning the index tells all of them
# as soon, where these are few.
STEP, SHARE, LONGER, ENOUGH = 150, 0.1, 0.2, 1 / 3
MOST_IDS = 50  # that begin as what is typed
SAMPLE = 1_000  # of what begins so, the newest are counted
FEW = 3_000  # places may be looked up one by one; more are met sooner on a walk from the newest on
STEPS = 0.05  # of looking up one is a step of that walk: 0.15 us of 2.8
NEAR = 2_000  # and more of the newest in which what many have is looked for first: 8 ms
MOST_KEPT = 50  # of the last words, with their places
MOST_COUNTED = 200_000  # memories for a total: 15 ms; and for what is told by no index: 0.5 s
MOST_FIRST = 100  # titles that begin with the words, beyond the newest
MOST_PAGE = 200
_CELL = "m.kind, m.owner, m.project, m.status, m.trust, m.pinned"
_EACH = "(SELECT value FROM json_each(?))"
_NEWEST = "ORDER BY m.created DESC, m.place DESC LIMIT ?"


@dataclass(frozen=True)
class Page:
    """Some memories; `next` leads to those behind them, and `total` is None where nobody counted."""

    memories: tuple[Memory, ...]
    next: str = ""
    total: int | None = None


@dataclass(frozen=True)
class Facets:
    """Of each facet its values with how many there are, most first, as if nothing of that facet itself was chosen."""

    counts: Mapping[str, tuple[tuple[str, int], ...]]
    sampled: tuple[str, ...] = ()  # those that were counted among the newest only
    total: int | None = None


class BrowsingReader(Reader):
    """The questions of somebody who looks around, of one read-only connection."""

    def __init__(self, db: Reads) -> None:
        super().__init__(db)
        self._known = Counts(0)
        self._read: dict[tuple[str, str], tuple[list[Any], bool]] = {}

    def browse(self, wanted: Wanted, known: Counts, *, after: str = "", limit: int = 50) -> Page:
        self._known = known
        limit = max(1, min(limit, MOST_PAGE))
        said = typed(wanted.words)
        wanted = replace(wanted, signs=" ".join(said.signs))
        if said.empty:
            return self._newest_page(wanted, after=after, limit=limit)
        return self._best_page(self._by_name(wanted), said, start=_number(after), limit=limit)

    def facets(self, wanted: Wanted, known: Counts) -> Facets:
        self._known = known
        said = typed(wanted.words)
        wanted = replace(self._by_name(wanted), signs=" ".join(said.signs))
        counts: dict[str, Counter[Any]] = {}
        sampled: set[str] = set()
        for names, but in facets_of(wanted):
            among = self._narrowed(wanted, but)
            if said.empty and among.places is None:
                counted = self._counted(names, wanted, among, but)
                counts.update(counted)
                sampled.update(counted if known.old else ())
            rest = [name for name in names if name not in counts]
            if rest:
                rows, whole = self._rows(wanted, said, but)
                counts.update(sums_of_rows(self._sieved(rows, wanted, but), rest))
                sampled.update(() if whole else rest)
        scopes = dict(self._all("SELECT number, scope FROM owners", ()))
        counts["scope"] = Counter({scopes.get(owner, ""): count for owner, count in counts["scope"].items()})
        column = next((name for name in facets_of(wanted)[0][0] if name in COLUMNS and name not in sampled), "")
        return Facets(
            {name: most_first(counts[name]) for name in FACETS},
            sampled=tuple(name for name in FACETS if name in sampled),
            total=sum(counts[column].values()) if column else None,
        )

    # -- counting -----------------------------------------------------------------------------------------------
    def _counted(self, names: Sequence[str], wanted: Wanted, among: Among, but: str) -> dict[str, Counter[Any]]:
        """Of these facets those for which all may be looked at, where no words are."""
        small = self._size() <= MOST_COUNTED
        if among.marked and not small:
            return {}
        cells = self._sieved(self._cells(among), wanted, but)
        counts = sums(cells, [name for name in names if name in COLUMNS])
        if small:
            counts.update({name: self._listed(name, wanted, among, but) for name in names if name not in COLUMNS})
        return counts

    def _cells(self, among: Among) -> list[Any]:
        """How many memories there are of each kind, owner, project, status, trust, pinned or not, all at once."""
        return self._known.count(*self._grouped(among), self._all)

    def _grouped(self, among: Among) -> tuple[str, tuple[str, ...]]:
        shows, seen = all_of((mark.shows, mark.seen) for mark in among.marked)
        where = f"m.status <> 'forgotten'{shows} GROUP BY 1, 2, 3, 4, 5, 6"
        return f"SELECT {_CELL}, count(*) FROM memories m WHERE {where}", tuple(seen)

    def _listed(self, name: str, wanted: Wanted, among: Among, but: str) -> Counter[Any]:
        """What most of them have or name; SQLite reads the lists, so that no other thread waits meanwhile."""
        column = f"m.{name}s"
        where, given = self._conditions(wanted, but=but)
        shows, seen = all_of((mark.shows, mark.seen) for mark in among.marked)
        each = f"json_each(CASE WHEN {column} <> '[]' AND json_valid({column}) THEN {column} ELSE '[]' END) e"
        sql = f"""SELECT e.value, count(*) FROM memories m NOT INDEXED, {each} WHERE {where}{shows} AND e.type = 'text'
            GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {TOP}"""
        return Counter(dict(self._known.count(sql, (*given, *seen), self._all)))

    def _sieved(self, rows: list[Any], wanted: Wanted, but: str) -> list[Any]:
        """Those of rows that begin as a cell which pass the filters that are columns, *but* one."""
        wishes = choices(wanted)
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
        places, total = self._found(wanted, said, most=POOL if self._size() > FEW else FEW)
        whole = total == len(places)
        rows = self._titles([*places, *(() if whole else self._first(wanted, said))])
        fit = said.fitting(max((row[3] for row in rows), default=0.0))
        name = wanted.words.strip().lower()

        def key(row: Any) -> tuple[Any, ...]:
            _, id, title, created, status = row
            return not id.startswith(name), -fit(title, created, status not in SHOWN), -created, id

        ordered = [row[0] for row in sorted(rows, key=key)]
        if not whole and len(ordered) <= start + limit:
            ordered += self._behind(wanted, said, ordered, most=start + limit + 1)
        memories = self._in_order(ordered[start : start + limit])
        more = str(start + limit) if len(ordered) > start + limit else ""
        return Page(memories, more, total)

    def _in_order(self, places: Sequence[int]) -> tuple[Memory, ...]:
        read = self._memories_at(places)
        return tuple(read[place] for place in places if place in read)

    def _titles(self, places: Iterable[int]) -> list[Any]:
        sql = f"SELECT place, id, title, created, status FROM memories WHERE place IN {_EACH}"
        return self._all(sql, (json_list(places),))

    def _first(self, wanted: Wanted, said: Typed) -> list[int]:
        """Titles that begin with the words, however old."""
        sql = f"SELECT rowid FROM words WHERE words MATCH ? LIMIT {MOST_FIRST}"
        found = {place for (place,) in self._all(sql, (said.first,))} if said.first else set()
        among = self._narrowed(wanted, "").and_(Among(found))
        return self._newest(wanted, among, most=MOST_FIRST)[0] if found else []

    def _behind(self, wanted: Wanted, said: Typed, ordered: Sequence[int], *, most: int) -> list[int]:
        """Those that were not put in order, the newest first, until there are so many of both."""
        among = self._narrowed(wanted, "").and_(self._holding_all(said))
        places, _ = self._newest(wanted, among, most=most + len(ordered))
        known = set(ordered)
        return [place for place in places if place not in known]

    def _total(self, wanted: Wanted) -> int | None:
        narrowed = self._narrowed(wanted, "")
        if narrowed.places is not None:
            return self._newest(wanted, narrowed, most=FEW)[1]
        if narrowed.marked and self._size() > MOST_COUNTED:
            return None
        if not self._known.old and self._grouped(narrowed) in self._known.counted:
            return sum(int(cell[6]) for cell in self._sieved(self._cells(narrowed), wanted, ""))
        where, given = self._conditions(wanted)
        shows, seen = all_of((mark.shows, mark.seen) for mark in narrowed.marked)
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
            return self._newest(wanted, narrowed.and_(Among(itself)), most=most, but=but)
        if said.begun and not named and not (said.long and self._holders(said.expression()).places is not None):
            held = narrowed.and_(self._holders(said.expression(begun=False))) if said.whole else narrowed
            if self._size() > FEW and (held.places is None or len(held.places) > POOL):
                enough = int(min(most, SAMPLE) * ENOUGH)
                found, share = self._tried(wanted, said, held, but=but, enough=enough)
                if found:
                    return found, None
                if held == narrowed == Among() and share * self._size() > 2 * FEW:
                    return self._newest(wanted, Among(None, said.expression()), most=most, but=but)
            elif said.short and held.places is not None and len(held.places) <= POOL:
                saying = Among(set(self._saying([*held.places], said)), marked=held.marked)
                return self._newest(wanted, saying, most=most, but=but)
        return self._newest(wanted, narrowed.and_(self._holding_all(said).or_(named)), most=most, but=but)

    def _tried(self, wanted: Wanted, said: Typed, held: Among, *, but: str, enough: int) -> tuple[list[int], float]:
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

    def _holding_all(self, said: Typed) -> Among:
        """The places that hold every word; a word of which the index has only the stem is looked for in the texts."""
        found = self._holders(said.expression())
        if found.places is None:
            return found
        near, _ = self._index(said.stems, most=FEW)
        others = sorted(near - found.places, reverse=True)[:SAMPLE]
        return found.or_(set(self._saying(others, said))) if others else found

    def _holders(self, expression: str) -> Among:
        """Those for which the index has it; where they are many, only how they are asked for."""
        held = self._known.held
        if expression not in held:
            found, whole = self._index(expression, most=FEW)
            held[expression] = Among(found) if whole else Among(None, expression)
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
        among: Among,
        *,
        most: int,
        but: str = "",
        after: tuple[float, int] | None = None,
    ) -> tuple[list[int], int | None]:
        """The newest places that pass the filters, *among* these, and of how many if that is known."""
        where, given = self._conditions(wanted, but=but, after=after)
        shows, seen = all_of((mark.shows, mark.seen) for mark in among.marked)
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
            looked_at = dict.fromkeys(f"m.{name}" for mark in among.marked for name in mark.columns)
            near = f"SELECT m.place, {', '.join(looked_at)} FROM memories m WHERE {where} {_NEWEST}"
            asked = (*given, NEAR + 4 * most, *seen, most + 1)
            rows = self._all(f"SELECT m.place FROM ({near}) m WHERE true{shows} LIMIT ?", asked)
            if len(rows) > most:
                return [place for (place,) in rows[:most]], None
            among_, all_ = all_of((f"+m.place IN ({mark.places})", mark.given) for mark in among.marked if mark.places)
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
        for name, some in choices(wanted).items():
            if some and name != but:
                of = "IN (SELECT number FROM owners WHERE scope IN ({}))" if name == "scope" else "IN ({})"
                where.append(f"+m.{'owner' if name == 'scope' else name} {of.format(marks(some))}")
                given += some
        if after:
            where.append("m.created <= ? AND (m.created < ? OR m.place < ?)")
            given += (after[0], *after)
        return " AND ".join(where), given

    def _narrowed(self, wanted: Wanted, but: str) -> Among:
        """Those that have the tag, name the file and hold the signs; all where none of it is asked for."""
        tagged = self._once("tag", wanted.tag, having_tag) if but != "tag" else Among()
        filed = self._once("file", wanted.file, naming_file) if but != "file" else Among()
        return tagged.and_(filed).and_(self._once("signs", wanted.signs, holding_signs))

    def _once(self, facet: str, what: str, mark_of: Callable[[str], Mark]) -> Among:
        """Who has this, looked for once: the page, its total and its facets ask for the same."""
        if not what:
            return Among()
        kept = self._known.chosen.get(facet)
        if kept is None or kept[0] != what:
            kept = self._known.chosen[facet] = (what, self._having(mark_of(what)))
        return kept[1]

    def _having(self, mark: Mark) -> Among:
        """Who has it, one by one, or where they are many only how they are known."""
        places = mark.places or f"SELECT m.place FROM memories m WHERE {mark.shows}"
        given = mark.given if mark.places else mark.seen
        some = self._all(f"SELECT DISTINCT * FROM ({places}) LIMIT {FEW + 1}", given)
        if len(some) > FEW:
            return Among(marked=(mark,))
        sql = f"SELECT m.place FROM memories m WHERE m.place IN {_EACH} AND {mark.shows}"
        return Among({place for (place,) in self._all(sql, (json_list(place for (place,) in some), *mark.seen))})

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

"""Synthetic memories in a real Store -> what a search, a write and an acknowledged event cost, beside plain FTS5.

`make bench ARGS=store`, or `python bench/store.py --sizes 1000,10000`. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import apsw

from foreword.models import KINDS, POSTINGS, Event, Memory, Query
from foreword.store import Store
from foreword.store.memories import indexed_texts
from foreword.store.sql import FIELDS, SEQUENCE_BITS, encoded
from foreword.terms import any_of, terms

PROJECTS = 50
BIGGEST, MIDDLE = 0, 24  # of the projects, by size: the one people work in, and the median
SEED = 7
YEAR = 365 * 86_400.0
NOW = 1_750_000_000.0
# About what a distiller makes: mostly observations and changes.
KIND_SHARES = {
    "observation": 50,
    "change": 16,
    "failure": 8,
    "summary": 7,
    "decision": 5,
    "learning": 4,
    "note": 3,
    "pattern": 2,
    "handoff": 2,
    "preference": 1,
    "correction": 1,
    "goal": 1,
}
FUNCTION_WORDS = tuple(
    """the of and to in is for that it on with as be this are was by or an not from at we you have has can will if but
    all when which there so what how our do does did should would about into""".split()  # noqa: SIM905 - readable so
)


def main() -> None:
    run(arguments(), sizes=(1_000, 10_000, 100_000), measured=measured, report=report)


def run(options, *, sizes, measured, report) -> None:
    """Measure in a fresh folder for each size, and print the report."""
    results = []
    for size in options.sizes or [*sizes, *([1_000_000] if options.million else [])]:
        folder = Path(tempfile.mkdtemp(prefix="fw-bench-"))
        try:
            results.append(measured(folder, size, options))
        finally:
            shutil.rmtree(folder)
    print(report(results))
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], help="1000,10000,…")
    parser.add_argument("--million", action="store_true", help="1,000,000 memories as well (4 GB of disk, minutes)")
    parser.add_argument("--queries", type=int, default=200, help="for each size and project")
    parser.add_argument("--keep", type=int, default=5_000, help="memories written through keep() at each size")
    parser.add_argument("--events", type=int, default=6_400, help="events appended by 64 threads at each size")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--grow", choices=("bulk", "keep"), default="bulk", help="how the memories get in (see README)")
    parser.add_argument("--json", metavar="FILE", help="write every number there too")
    return parser.parse_args()


# ---- the text: Zipf-Mandelbrot, as natural language is


class Words:
    """A made-up language of 60,000 words, the first of which are English function words."""

    def __init__(self, seed: int, *, size: int = 60_000, exponent: float = 1.05, shift: float = 2.7) -> None:
        self._random = random.Random(seed)
        self.all = [*FUNCTION_WORDS, *self._made(size - len(FUNCTION_WORDS))]
        self._weights = list(accumulate((rank + shift) ** -exponent for rank in range(1, size + 1)))

    def some(self, count: int) -> list[str]:
        return self._random.choices(self.all, cum_weights=self._weights, k=count)

    def content(self, count: int) -> list[str]:
        """Words that say something: none of the function words."""
        low, high = self._weights[len(FUNCTION_WORDS) - 1], self._weights[-1]
        return [
            self.all[bisect(self._weights, self._random.uniform(low, high), hi=len(self.all) - 1)] for _ in range(count)
        ]

    def _made(self, count: int) -> list[str]:
        """Distinct pronounceable words, the frequent ones shorter, as in any language."""
        syllables = [first + vowel + last for first in "bdfgklmnprstvz" for vowel in "aeiou" for last in ("", "n", "r")]
        found: dict[str, None] = {}
        while len(found) < count:
            length = 2 if len(found) < 3_000 else 3 if len(found) < 30_000 else 4
            found["".join(self._random.choices(syllables, k=length))] = None
        return list(found)


_FUNCTION_WORDS = frozenset(FUNCTION_WORDS)


def shares(size: int) -> list[int]:
    """How many memories each project has: project n about 1/n of the first."""
    weights = [1 / rank for rank in range(1, PROJECTS + 1)]
    return [max(1, round(size * weight / sum(weights))) for weight in weights]


def key_of(project: int) -> str:
    return f"example.org/bench/p{project:02}"


def memories(words: Words, project: int, count: int, *, key: str = "", now: float = NOW) -> Iterator[Memory]:
    """Memories of about 46 words with a title of 6 and a few files, over the last year."""
    chance = random.Random(f"{SEED} {project} {count}")
    kinds = chance.choices(list(KIND_SHARES), weights=list(KIND_SHARES.values()), k=count)
    for kind in kinds:
        named = words.content(6)
        when = now - chance.random() ** 2 * YEAR  # a store grows: more is recent than old
        yield Memory(
            kind=kind,
            title=" ".join(words.some(6)),
            body=" ".join(words.some(chance.randint(26, 66))),
            project=key or key_of(project),
            tags=tuple(named[:1]),
            files=tuple(f"src/{named[1]}/{named[at]}.py" for at in range(2, chance.randint(3, 5))),
            functions=(f"{named[5]}_{named[4]}",) if chance.random() < 0.3 else (),
            session=f"s{project}-{chance.randrange(1 + count // 20)}",
            source="bench",
            trust="agent",
            created=when,
            confirmed=when,
        )


# ---- the store: bulk, or as the product writes


def grown(path: Path, size: int, words: Words, *, how: str) -> Store:
    """A store of *size* memories: by `bulk`, or through keep() session by session in mixed order."""
    return _bulk(path, size, words) if how == "bulk" else _kept(path, size, words)


def _bulk(path: Path, size: int, words: Words) -> Store:
    parts = ((f"project:{key_of(at)}", memories(words, at, count)) for at, count in enumerate(shares(size)))
    return bulk(path, parts)


def bulk(path: Path, parts: Iterable[tuple[str, Iterable[Memory]]]) -> Store:
    """The very rows that keep() would write for each scope, in one transaction, then `index()`: a tenth of the time."""
    Store(path, backups=path.parent).close()
    db = apsw.Connection(str(path))
    db.pragma("synchronous", "off")
    db.execute("BEGIN")
    columns = [*(name for name in FIELDS if name != "scope"), "place", "owner", "split"]
    sql = f"INSERT INTO memories ({', '.join(columns)}) VALUES (:{', :'.join(columns)})"
    for owner, (scope, memories) in enumerate(parts, 1):
        db.execute("INSERT INTO owners (number, scope) VALUES (?, ?)", (owner, scope))
        rows = (_row(memory, owner=owner, sequence=sequence) for sequence, memory in enumerate(memories, 1))
        db.executemany(sql, rows)
        newest = f"max(0, ifnull((SELECT max(place) FROM memories), 0) - (number << {SEQUENCE_BITS}))"
        db.execute(f"UPDATE owners SET newest = {newest} WHERE number = ?", (owner,))
    db.execute("COMMIT")
    db.close()
    store = Store(path, backups=path.parent)
    store.maintenance.reindex()
    return store


def _row(memory: Memory, *, owner: int, sequence: int) -> dict[str, Any]:
    place = owner << SEQUENCE_BITS | sequence
    memory = replace(memory, id=f"{KINDS[memory.kind]}-{place:x}", uid=f"{place:032x}")
    row = {name: encoded(getattr(memory, name)) for name in FIELDS if name != "scope"}
    return {**row, "place": place, "owner": owner, "split": indexed_texts(memory)[4]}


def _kept(path: Path, size: int, words: Words) -> Store:
    store = Store(path, backups=path.parent)
    for batch in sessions(size, words):
        store.memories.put(batch)
    return store


def sessions(size: int, words: Words, *, each: int = 500) -> list[list[Memory]]:
    """Every memory in batches of one project, the projects in mixed order: as sessions come."""
    batches = []
    for project, count in enumerate(shares(size)):
        of_project = list(memories(words, project, count))
        batches += [of_project[start : start + each] for start in range(0, count, each)]
    random.Random(SEED).shuffle(batches)
    return batches


# ---- what is measured


def measured(folder: Path, size: int, options: argparse.Namespace) -> dict[str, Any]:
    words = Words(options.seed)
    path = folder / "memory.db"
    say(f"{size:,} memories: building by {options.grow} ...")
    started = time.perf_counter()
    store = grown(path, size, words, how=options.grow)
    built = time.perf_counter() - started
    say(f"{size:,} memories: {path.stat().st_size / 1e6:,.0f} MB in {built:.0f} s; asking ...")
    result: dict[str, Any] = {
        "memories": size,
        "grow": options.grow,
        "build_s": round(built, 1),
        "file_mb": round(path.stat().st_size / 1e6, 1),
    }
    for label, project in (("biggest", BIGGEST), ("middle", MIDDLE)):
        result[label] = searches(store, path, project, count=options.queries)
    say(f"{size:,} memories: writing ...")
    result["keep_rows_s"] = keeping(store, words, options.keep)
    result["append"] = appending(store, options.events)
    result["fdatasync_ms"] = synced(folder)
    result["load"] = round(os.getloadavg()[0], 1)
    store.close()
    return result


def searches(store: Store, path: Path, project: int, *, count: int) -> dict[str, Any]:
    """Times in ms of our search and of the two plain ones for the same terms, asked in mixed order."""
    owner, scope = project + 1, f"project:{key_of(project)}"
    plain = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    chance = random.Random(SEED + project)
    wanted = list(known_items(plain, owner, count, chance))
    first, last = owner << SEQUENCE_BITS, ((owner + 1) << SEQUENCE_BITS) - 1

    def ours(terms: tuple[str, ...]) -> list[str]:
        query = Query(scopes=(scope,), terms=terms, limit=20)
        return [hit.memory.id for hit in store.search.by_words(query)]

    def joined(terms: tuple[str, ...]) -> list[str]:
        rows = plain.execute(
            """SELECT m.id, m.title, m.body FROM words JOIN memories m ON m.place = words.rowid
            WHERE words MATCH ? AND m.owner = ? ORDER BY words.rank LIMIT 20""",
            (any_of(terms), owner),
        )
        return [row[0] for row in rows]

    def ranged(terms: tuple[str, ...]) -> list[str]:
        rows = plain.execute(
            """SELECT m.id, m.title, m.body FROM words JOIN memories m ON m.place = words.rowid
            WHERE words MATCH ? AND words.rowid BETWEEN ? AND ? ORDER BY words.rank LIMIT 20""",
            (any_of(terms), first, last),
        )
        return [row[0] for row in rows]

    def recent(_terms: tuple[str, ...]) -> list[str]:
        kinds = ("decision", "pattern", "failure", "observation", "note")
        return [hit.memory.id for hit in store.search.by_recency(Query(scopes=(scope,), kinds=kinds, limit=30))]

    asks: dict[str, Callable[[tuple[str, ...]], list[str]]] = {
        "ours": ours,
        "P1 join": joined,
        "P2 range": ranged,
        "recency": recent,
    }
    times: dict[str, list[float]] = {name: [] for name in asks}
    hits = dict.fromkeys(asks, 0)
    for ask in asks.values():
        ask(wanted[0][1])  # every statement prepared, every connection open
    for name, at in mixed(list(asks), count, chance):
        id, terms = wanted[at]
        started = time.perf_counter()
        found = asks[name](terms)
        times[name].append((time.perf_counter() - started) * 1000)
        hits[name] += id in found[:10]
    plain.close()
    return {
        "memories": shares_of(path, owner),
        **{
            name: {"p50": quantile(times[name], 0.5), "p99": quantile(times[name], 0.99), "hit10": hits[name] / count}
            for name in asks
        },
    }


def known_items(
    db: apsw.Connection, owner: int, count: int, chance: random.Random
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Memories of a project, each with 8 content words out of its text."""
    first, newest = owner << SEQUENCE_BITS, db.execute("SELECT newest FROM owners WHERE number = ?", (owner,)).get
    while count:
        place = first + chance.randint(1, newest)
        (id, text), *_ = db.execute("SELECT id, title || ' ' || body FROM memories WHERE place = ?", (place,))
        known = [term for term in terms(text) if term not in _FUNCTION_WORDS]
        if len(known) >= 8:
            count -= 1
            yield id, tuple(chance.sample(known, 8))


def shares_of(path: Path, owner: int) -> int:
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    found = int(db.execute("SELECT newest FROM owners WHERE number = ?", (owner,)).get)
    db.close()
    return found


def keeping(store: Store, words: Words, count: int) -> float:
    """Rows a second through keep(), 500 at a time, a batch for each of some projects."""
    batches = [list(memories(words, 1 + at % 10, 500)) for at in range(max(1, count // 500))]
    started = time.perf_counter()
    for batch in batches:
        store.memories.put(batch)
    return round(sum(map(len, batches)) / (time.perf_counter() - started))


def appending(store: Store, count: int, *, threads: int = 64) -> dict[str, float]:
    """Events a second that 64 threads get acknowledged, each waiting for its own commit; and how long one waits."""
    waits: list[float] = []
    text = " ".join(Words(SEED, size=2_000).some(260))

    def work(thread: int) -> None:
        for number in range(count // threads):
            event = _event(f"{thread}-{number}", text)
            started = time.perf_counter()
            store.events.append([event])
            waits.append((time.perf_counter() - started) * 1000)

    crew = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    started = time.perf_counter()
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    spent = time.perf_counter() - started
    return {"events_s": round(len(waits) / spent), "p50": quantile(waits, 0.5), "p99": quantile(waits, 0.99)}


def _event(name: str, text: str) -> Event:
    return Event(
        key=f"bench-{name}",
        host="claude-code",
        name="PostToolUse",
        kind="tool",
        session=f"session-{name.partition('-')[0]}",
        project=key_of(0),
        cwd="/home/user/project",
        at=time.time(),
        payload={"tool_name": "Bash", "tool_use_id": name, "tool_response": {"stdout": text}},
        lasting=True,
    )


def synced(folder: Path, *, runs: int = 50) -> float:
    """The median ms of one write of 2 KB and its fdatasync: what the disk itself takes."""
    waits = []
    with (folder / "sync").open("ab", buffering=0) as file:
        for _ in range(runs):
            started = time.perf_counter()
            file.write(b"x" * 2048)
            os.fdatasync(file.fileno())
            waits.append((time.perf_counter() - started) * 1000)
    return quantile(waits, 0.5)


# ---- the report


def report(results: Sequence[dict[str, Any]]) -> str:
    lines = [
        "Search: 8 content terms of a known memory, limit 20; ms. P1: FTS5 joined to its owner; P2: in a rowid range.",
        f"`ours` reads at most {POSTINGS:,} postings, the rarest terms first.",
        "",
        f"{'memories':>9} {'project':>8} {'of them':>8} | {'ours p50':>8} {'p99':>7} | "
        f"{'P1 p50':>8} {'p99':>7} | {'P2 p50':>8} {'p99':>7} | {'/P1':>5} {'/P2':>5} | "
        f"hit@10 ours/P1/P2 | {'recency':>7}",
    ]
    for result in results:
        for label in ("biggest", "middle"):
            lines.append(_search_line(result["memories"], label, result[label]))
    lines += ["goal at 100,000: ours ≤ 2 × the plain query", *_growth(results), ""]
    lines.append(
        f"{'memories':>9} | {'keep rows/s':>11} | {'64 threads: events/s':>20} {'ack p50':>8} {'p99 ms':>7} | "
        f"{'fdatasync':>9} | {'build s':>7} {'file MB':>8} | load"
    )
    for result in results:
        append = result["append"]
        lines.append(
            f"{result['memories']:>9,} | {result['keep_rows_s']:>11,} | {append['events_s']:>20,} "
            f"{append['p50']:>8.1f} {append['p99']:>7.1f} | {result['fdatasync_ms']:>9.2f} | "
            f"{result['build_s']:>7} {result['file_mb']:>8} | {result['load']}"
        )
    return "\n".join(lines)


def _search_line(size: int, label: str, found: dict[str, Any]) -> str:
    ours, joined, ranged = (found[name] for name in ("ours", "P1 join", "P2 range"))
    pairs = " | ".join(f"{each['p50']:>8.2f} {each['p99']:>7.2f}" for each in (ours, joined, ranged))
    ratios = f"{ours['p50'] / joined['p50']:>5.2f} {ours['p50'] / ranged['p50']:>5.2f}"
    hits = "/".join(f"{each['hit10']:.2f}" for each in (ours, joined, ranged))
    about = f"{size:>9,} {label:>8} {found['memories']:>8,}"
    return f"{about} | {pairs} | {ratios} | {hits:>17} | {found['recency']['p50']:>7.2f}"


def _growth(results: Sequence[dict[str, Any]]) -> list[str]:
    """How much slower a search is in ten times as many memories."""
    by_size = {result["memories"]: result for result in results}
    lines = []
    for size in sorted(by_size):
        if size * 10 not in by_size:
            continue
        ratios = []
        for label in ("biggest", "middle"):
            ratio = by_size[size * 10][label]["ours"]["p50"] / by_size[size][label]["ours"]["p50"]
            ratios.append(f"{label} {ratio:.1f}")
        goal = " (goal ≤ 3)" if size == 100_000 else ""
        lines.append(f"growth {size:,} -> {size * 10:,}: {'; '.join(ratios)}{goal}")
    return lines


def mixed(names: Sequence[str], rounds: int, chance: random.Random) -> Iterator[tuple[str, int]]:
    """Every name once in each round, in an order of its own; the collector waits meanwhile."""
    gc.collect()
    gc.disable()
    try:
        for at in range(rounds):
            for name in chance.sample(names, len(names)):
                yield name, at
    finally:
        gc.enable()


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which *share* of them lie."""
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))], 4)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

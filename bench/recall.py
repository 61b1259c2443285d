"""Synthetic sessions in a real Store -> what a context costs inside the worker, beside plain FTS5.

`make bench ARGS=recall`, or `python bench/recall.py --sizes 10000`. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
from eval.baseline import plain_words
from store import (
    BIGGEST,
    FUNCTION_WORDS,
    KIND_SHARES,
    MIDDLE,
    NOW,
    SEED,
    YEAR,
    Words,
    bulk,
    key_of,
    mixed,
    quantile,
    run,
    say,
    shares,
)

from foreword.config import load, load_synonyms
from foreword.models import UNIVERSAL, Context, Memory, NoContext, Project, Trigger
from foreword.paths import Home
from foreword.recall import pipeline as recall
from foreword.store import Store
from foreword.store.sql import SEQUENCE_BITS
from foreword.terms import any_of, terms

TIMES, GROWS = 3.0, 5.0  # the goals: at most so many plain queries; and from 10,000 to a million memories
LANGUAGE = "python"
EVERYWHERE = 200  # one memory in so many belongs to the language, and one to all projects


def main() -> None:
    run(arguments(), sizes=(10_000, 100_000), measured=measured, report=report)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], help="10000,100000,…")
    parser.add_argument("--million", action="store_true", help="1,000,000 memories as well (4 GB of disk, minutes)")
    parser.add_argument("--prompts", type=int, default=200, help="for each size and project")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--json", metavar="FILE", help="write every number there too")
    return parser.parse_args()


# ---- what is remembered: sessions about a few files and a topic, one after another and some at the same time


class Code:
    """The files of a project, a few of which are touched all the time, with three functions each."""

    def __init__(self, words: Words, chance: random.Random, *, files: int) -> None:
        self._chance = chance
        folders = words.content(max(5, files // 15))
        self.files = [f"src/{chance.choice(folders)}/{name}.py" for name in words.content(files)]
        self.functions = {file: [f"{a}_{b}" for a, b in zip(*[iter(words.content(6))] * 2)] for file in self.files}  # noqa: B905
        self._weights = [1 / rank for rank in range(2, files + 2)]

    def some(self, count: int) -> list[str]:
        return self._chance.choices(self.files, weights=self._weights, k=count)


@dataclass(frozen=True)
class Topic:
    """What one session is about."""

    session: str
    words: tuple[str, ...]
    files: tuple[str, ...]


def remembered(words: Words, part: int, count: int, *, project: str, scope: str = "") -> Iterator[Memory]:
    """Memories of about 46 words in runs of 10 to 40 from one session, over the last year."""
    chance = random.Random(f"{SEED} {part} {count}")
    code = Code(words, chance, files=max(100, min(3_000, count // 20)))
    kinds = chance.choices(list(KIND_SHARES), weights=list(KIND_SHARES.values()), k=count)
    topics: dict[int, Topic] = {}
    lasts = {0: 0, 1: 0}
    for number, kind in enumerate(kinds):
        line = int(chance.random() < 0.1)  # a second session runs at the same time
        if lasts[line] == 0:
            lasts[line] = chance.randint(10, 40)
            files = tuple(dict.fromkeys(code.some(chance.randint(2, 7))))
            topics[line] = Topic(f"s{part}-{number}", tuple(words.content(12)), files)
        lasts[line] -= 1
        topic = topics[line]
        touched = tuple(chance.sample(topic.files, min(len(topic.files), chance.choice((0, 1, 1, 2, 3)))))
        when = NOW - (1 - number / count) ** 2 * YEAR  # a store grows: more is recent than old
        yield Memory(
            kind=kind,
            title=" ".join((*chance.sample(topic.words, 2), *words.some(4))),
            body=" ".join((*chance.sample(topic.words, 5), *words.some(chance.randint(21, 61)))),
            project=project,
            scope=scope,
            files=touched,
            functions=tuple(chance.choice(code.functions[file]) for file in touched if chance.random() < 0.5),
            session=topic.session,
            source="bench",
            trust="agent",
            created=when,
            confirmed=when,
        )


def grown(path: Path, size: int, words: Words) -> Store:
    """A store of *size* memories of 50 projects, the n-th with 1/n of the first, and some of a language and of all."""
    projects = [(f"project:{key_of(at)}", key_of(at), count) for at, count in enumerate(shares(size))]
    common = [(scope, "", max(20, size // EVERYWHERE)) for scope in (f"language:{LANGUAGE}", UNIVERSAL)]
    return bulk(
        path,
        (
            (scope, remembered(words, part, count, project=project, scope=scope))
            for part, (scope, project, count) in enumerate((*projects, *common))
        ),
    )


def prompts(db: apsw.Connection, owner: int, count: int, chance: random.Random) -> Iterator[str]:
    """Prompts of 5 to 20 words, half of which a memory holds; a third of them name a file."""
    first, newest = owner << SEQUENCE_BITS, db.execute("SELECT newest FROM owners WHERE number = ?", (owner,)).get
    while count:
        (text, files), *_ = db.execute(
            "SELECT title || ' ' || body, files FROM memories WHERE place = ?", (first + chance.randint(1, newest),)
        )
        length = chance.randint(5, 20)
        known = [term for term in terms(text) if term not in FUNCTION_WORDS]
        chosen = [
            *chance.sample(known, min(len(known), length // 2 + 1)),
            *chance.choices(FUNCTION_WORDS, k=length // 2),
        ]
        chance.shuffle(chosen)
        named = json.loads(files)[:1] if count % 3 == 0 else []
        count -= 1
        yield " ".join((*chosen, *named))


# ---- what is measured


class Asking:
    """One project of one store, asked as the worker asks it and as a plain query would."""

    def __init__(self, store: Store, path: Path, *, project: int, count: int) -> None:
        self.store = store
        self.owner = project + 1
        self.plain = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        self.chance = random.Random(SEED + project)
        self.project = Project(key=key_of(project), name="bench", root=str(path.parent / "nowhere"))
        self.prompts = list(prompts(self.plain, self.owner, count, self.chance))
        self.touched = tuple(
            dict.fromkeys(
                file
                for (files,) in self.plain.execute(
                    "SELECT files FROM memories WHERE owner = ? ORDER BY place DESC LIMIT 10", (self.owner,)
                )
                for file in json.loads(files)
            )
        )
        home = Home(path.parent / "home")
        self.settings, (self.synonyms, _) = load(home, {}).settings, load_synonyms(home)
        self.number = 0

    def prompt(self, prompt: str) -> Context | NoContext:
        return self._recalled("prompt", prompt)

    def start(self, _prompt: str) -> Context | NoContext:
        return self._recalled("session_start", "")

    def compaction(self, _prompt: str) -> Context | NoContext:
        return self._recalled("compaction", "")

    def question(self, prompt: str) -> Context | NoContext:
        return self._recalled("question", prompt)

    def joined(self, prompt: str) -> list[Any]:
        """The rows that a query finds which knows the project by its column."""
        return list(
            self.plain.execute(
                """SELECT m.id, m.title, m.body FROM words JOIN memories m ON m.place = words.rowid
                WHERE words MATCH ? AND m.owner = ? ORDER BY words.rank LIMIT 20""",
                (any_of(plain_words(prompt)), self.owner),
            )
        )

    def ranged(self, prompt: str) -> list[Any]:
        """The same rows, by a query that knows the project by its range of rowids."""
        first, last = self.owner << SEQUENCE_BITS, ((self.owner + 1) << SEQUENCE_BITS) - 1
        return list(
            self.plain.execute(
                """SELECT m.id, m.title, m.body FROM words JOIN memories m ON m.place = words.rowid
                WHERE words MATCH ? AND words.rowid BETWEEN ? AND ? ORDER BY words.rank LIMIT 20""",
                (any_of(plain_words(prompt)), first, last),
            )
        )

    def _recalled(self, name: str, prompt: str) -> Context | NoContext:
        """What the worker does between reading a request and answering it, but for the disk and git."""
        self.number += 1
        trigger = Trigger(
            name=name,
            project=self.project,
            session=f"asking-{self.number}",
            prompt=prompt,
            source="" if prompt else "startup",
            touched=self.touched,
            languages=(LANGUAGE,),
        )
        return recall.recall(
            self.store.search,
            trigger,
            options=recall.options_of(self.settings, name, synonyms=self.synonyms),
            now=NOW,
            window=recall.Window(
                shown=lambda: self.store.injections.shown(trigger.session),
                spent=lambda: self.store.injections.window_tokens(trigger.session),
            ),
        )


def measured(folder: Path, size: int, options: argparse.Namespace) -> dict[str, Any]:
    path = folder / "memory.db"
    say(f"{size:,} memories: building ...")
    started = time.perf_counter()
    store = grown(path, size, Words(options.seed))
    built = time.perf_counter() - started
    say(f"{size:,} memories: {path.stat().st_size / 1e6:,.0f} MB in {built:.0f} s; asking ...")
    result: dict[str, Any] = {"memories": size, "build_s": round(built, 1)}
    for label, project in (("biggest", BIGGEST), ("middle", MIDDLE)):
        asking = Asking(store, path, project=project, count=options.prompts)
        result[label] = {"memories": shares(size)[project], **times(asking)}
        asking.plain.close()
    result["load"] = round(os.getloadavg()[0], 1)
    store.close()
    return result


def times(asking: Asking) -> dict[str, Any]:
    """Milliseconds of a prompt's context, of a start's, and of the two plain queries, asked in mixed order."""
    asks: dict[str, Callable[[str], Any]] = {
        "prompt": asking.prompt,
        "start": asking.start,
        "compaction": asking.compaction,
        "question": asking.question,
        "P1 join": asking.joined,
        "P2 range": asking.ranged,
    }
    spent: dict[str, list[float]] = {name: [] for name in asks}
    answered = 0
    for ask in asks.values():
        ask(asking.prompts[0])  # every statement prepared, every connection open
    for name, at in mixed(list(asks), len(asking.prompts), asking.chance):
        started = time.perf_counter()
        got = asks[name](asking.prompts[at])
        spent[name].append((time.perf_counter() - started) * 1000)
        answered += name == "prompt" and isinstance(got, Context)
    found = {name: {"p50": quantile(each, 0.5), "p99": quantile(each, 0.99)} for name, each in spent.items()}
    return {**found, "answered": answered / len(asking.prompts)}


# ---- the report


def report(results: Sequence[dict[str, Any]]) -> str:
    lines = [
        "Contexts inside the worker's code, no HTTP: prompts of 5 to 20 words; ms. P1: FTS5 (porter, OR of the words",
        "that are no stop-words, bm25, LIMIT 20) joined to its owner; P2: the same in a rowid range.",
        "",
        f"{'memories':>9} {'project':>8} {'of them':>8} | {'prompt p50':>10} {'p99':>7} | {'start p50':>9} {'p99':>7} "
        f"| {'P1 p50':>8} {'p99':>7} | {'P2 p50':>8} {'p99':>7} | {'prompt/P1':>9} {'/P2':>5} "
        f"| {'start/P1':>8} {'/P2':>5} | {'compaction':>10} {'question':>8} | answered",
    ]
    for result in results:
        lines += [_line(result, label) for label in ("biggest", "middle")]
    lines += [f"goal at 100,000: ≤ {TIMES:.0f} × the plain query", *_growth(results)]
    return "\n".join(lines)


def _line(result: dict[str, Any], label: str) -> str:
    found = result[label]
    prompt, start, joined, ranged = (found[name] for name in ("prompt", "start", "P1 join", "P2 range"))
    return (
        f"{result['memories']:>9,} {label:>8} {found['memories']:>8,} | {prompt['p50']:>10.2f} {prompt['p99']:>7.2f} | "
        f"{start['p50']:>9.2f} {start['p99']:>7.2f} | {joined['p50']:>8.2f} {joined['p99']:>7.2f} | "
        f"{ranged['p50']:>8.2f} {ranged['p99']:>7.2f} | {prompt['p50'] / joined['p50']:>9.2f} "
        f"{prompt['p50'] / ranged['p50']:>5.2f} | {start['p50'] / joined['p50']:>8.2f} "
        f"{start['p50'] / ranged['p50']:>5.2f} | {found['compaction']['p50']:>10.2f} {found['question']['p50']:>8.2f} "
        f"| {found['answered']:>8.0%}"
    )


def _growth(results: Sequence[dict[str, Any]]) -> list[str]:
    """How much slower a context is in many times as many memories."""
    first = results[0]
    lines = []
    for result in results[1:]:
        ratios = [
            f"{label} {name} {result[label][name]['p50'] / first[label][name]['p50']:.1f}"
            for label in ("biggest", "middle")
            for name in ("prompt", "start")
        ]
        goal = f" (goal ≤ {GROWS:.0f})" if result["memories"] == 100 * first["memories"] else ""
        lines.append(f"growth {first['memories']:,} -> {result['memories']:,}: {'; '.join(ratios)}{goal}")
    return lines


if __name__ == "__main__":
    main()

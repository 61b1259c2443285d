"""Keep a set's memories in a store of their own and in the baseline's index, and search both as of any time."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from bench.eval.baseline import PlainIndex, plain_words
from bench.eval.datasets import Dataset, Question
from bench.eval.metrics import DEPTH
from foreword.config import load, load_synonyms
from foreword.errors import ForewordError
from foreword.layout import TriggerLayout
from foreword.models import Context, Memory, NoContext, Project, Ranked, Trigger
from foreword.paths import Home
from foreword.recall.pipeline import POOL, Options, options_of, recall
from foreword.recall.query import query_of
from foreword.recall.rank import ranked_search
from foreword.store import Store

if TYPE_CHECKING:
    from foreword.recall.rank import Searchable

BATCH = 500  # memories in a commit


@dataclass(frozen=True)
class Hit:
    """A memory that was found, with its score."""

    uid: str
    score: float


def load_options(*, family: str = "auto") -> Options:
    """Return the default settings with FOREWORD_... of the environment; no config.toml, so that machines agree."""
    with tempfile.TemporaryDirectory() as empty:
        home = Home(Path(empty))
        loaded = load(home, os.environ)
        synonyms, _ = load_synonyms(home)
    if loaded.problems:
        raise ForewordError("; ".join(loaded.problems), hint="mend the environment")
    return options_of(loaded.settings, "prompt", synonyms=synonyms)._replace(family=family)


class Scratch:
    """One project in a store of its own; it learns each memory when its time comes, so no question sees the future."""

    def __init__(self, dataset: Dataset, *, folder: Path, options: Options) -> None:
        self.dataset = dataset
        self.options = options
        self.project = Project(key=f"eval:{dataset.name}", name=dataset.name, root=str(folder))
        # Ids break ties: random ones would give another result at every run.
        self.store = Store(folder / "memory.db", backups=folder)
        self.store.memories.choose = Random(dataset.name).choice
        self.plain = PlainIndex()
        self.by_uid: dict[str, Memory] = {}  # in the order of time, as the store keeps them
        self.by_id: dict[str, Memory] = {}
        self._learned = 0

    def questions(self) -> Iterator[Question]:
        """Yield the set's questions in their order; everything older than each is known then."""
        for question in self.dataset.questions:
            self.learn(question.at)
            yield question

    def learn(self, at: float) -> None:
        """Keep the memories that are not younger than *at*."""
        memories = self.dataset.memories
        end = self._learned
        while end < len(memories) and memories[end].created <= at:
            end += 1
        for start in range(self._learned, end, BATCH):
            batch = memories[start : min(end, start + BATCH)]
            kept = self.store.memories.put([replace(memory, project=self.project.key) for memory in batch])
            self.by_uid.update((memory.uid, memory) for memory in kept)
            self.by_id.update((memory.id, memory) for memory in kept)
            self.plain.add(batch)
        self._learned = end

    def rank(self, prompt: str, *, at: float) -> tuple[Ranked, ...]:
        """Return what Foreword finds for a prompt, best first, whatever the score."""
        query = query_of(self._moment(prompt), synonyms=self.options.synonyms)
        if not query.terms:
            return ()  # a prompt without a topic gets nothing
        query = query._replace(limit=POOL)
        ranked, problems = ranked_search(self.store.search, query, now=at, trigger="prompt")
        if problems:
            raise ForewordError(f"{self.dataset.name} cannot be searched: {'; '.join(problems)}")
        return ranked

    def search(self, prompt: str, *, at: float) -> tuple[Hit, ...]:
        """Return the first hits of Foreword."""
        return tuple(Hit(each.memory.uid, each.score) for each in self.rank(prompt, at=at)[:DEPTH])

    def search_plain(self, prompt: str, *, at: float) -> tuple[str, ...]:
        """Return the uids that the baseline finds, best first."""
        return self.plain.search(plain_words(prompt), at=at, limit=DEPTH)

    def search_covered(self, prompt: str, *, at: float) -> tuple[Hit, ...]:
        """Return the baseline's first ten, each scored with the share of the prompt's words that it holds."""
        words = plain_words(prompt)
        return tuple(
            Hit(uid, self.plain.coverage(uid, words)) for uid in self.plain.search(words, at=at, limit=10)
        )  # fmt: skip

    def recall(self, prompt: str, *, at: float, layout: TriggerLayout, store: Searchable) -> Context | NoContext:
        """Return the block in front of a prompt, built from *store*."""
        return recall(store, self._moment(prompt), options=self.options._replace(layout=layout), now=at)

    def close(self) -> None:
        """Close the store and the index."""
        self.plain.close()
        self.store.close()

    def _moment(self, prompt: str) -> Trigger:
        return Trigger(name="prompt", project=self.project, prompt=prompt)


@contextmanager
def open_scratch(dataset: Dataset, *, options: Options) -> Iterator[Scratch]:
    """Open a scratch store for *dataset*; it is removed at the end."""
    with (
        tempfile.TemporaryDirectory(prefix="foreword-eval-") as folder,
        closing(Scratch(dataset, folder=Path(folder), options=options)) as scratch,
    ):
        yield scratch

"""A set -> its memories in a store of their own and in a plain index beside it, both asked as at any later time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from foreword.errors import ForewordError
from foreword.evaluate.measures import DEPTH
from foreword.evaluate.sets import Question, Set
from foreword.query import query_of
from foreword.recall import POOL, look, recall
from foreword.recipes import Recipe
from foreword.store.baseline import PlainIndex, plain_words
from foreword.store.sqlite import SqliteStore
from foreword.types import Memory, Moment, Project, Ranked, Recalled, Skipped

if TYPE_CHECKING:
    from foreword.search import Searchable

BATCH = 500  # memories in a commit


@dataclass(frozen=True)
class Product:
    """What Foreword is set to, as its doors would pass it on."""

    recipe: Recipe
    threshold: float
    synonyms: Mapping[str, Sequence[str]]
    most_terms: int
    postings: int
    family: str


@dataclass(frozen=True)
class Scored:
    """A memory that was found, and what the finder thinks of it."""

    uid: str
    score: float


class Scratch:
    """One project in a store of its own; it learns each memory when its time comes, so no question sees the future."""

    def __init__(self, given: Set, *, folder: Path, product: Product) -> None:
        self.given = given
        self.product = product
        self.project = Project(key=f"eval:{given.name}", name=given.name, root=str(folder))
        # Ids break ties: random ones would give another result at every run.
        self.store = SqliteStore(folder / "memory.db", backups=folder, choose=Random(given.name).choice)  # noqa: S311
        self.plain = PlainIndex()
        self.by_uid: dict[str, Memory] = {}  # in the order of time, as the store keeps them
        self.by_id: dict[str, Memory] = {}
        self._known = 0

    def questions(self) -> Iterator[Question]:
        """The set's questions in their order, with everything known that is older than each."""
        for question in self.given.questions:
            self.learn(question.at)
            yield question

    def learn(self, at: float) -> None:
        """Keep what is not younger than *at*."""
        memories = self.given.memories
        end = self._known
        while end < len(memories) and memories[end].created <= at:
            end += 1
        for start in range(self._known, end, BATCH):
            batch = memories[start : min(end, start + BATCH)]
            kept = self.store.keep([replace(memory, project=self.project.key) for memory in batch])
            self.by_uid.update((memory.uid, memory) for memory in kept)
            self.by_id.update((memory.id, memory) for memory in kept)
            self.plain.add(batch)
        self._known = end

    def found(self, prompt: str, *, at: float) -> tuple[Scored, ...]:
        """What the product finds for a prompt, best first, whatever the score."""
        return tuple(Scored(each.memory.uid, each.score) for each in self.ranked(prompt, at=at)[:DEPTH])

    def ranked(self, prompt: str, *, at: float) -> tuple[Ranked, ...]:
        query = query_of(self._moment(prompt), synonyms=self.product.synonyms)
        if not query.terms:
            return ()  # a prompt without a topic is answered with silence
        query = replace(query, at=at, limit=POOL, most_terms=self.product.most_terms, postings=self.product.postings)
        ranked, wrong = look(self.store, query, now=at, moment="prompt")
        if wrong:
            raise ForewordError(f"{self.given.name} cannot be searched: {'; '.join(wrong)}")
        return ranked

    def plainly(self, prompt: str, *, at: float) -> tuple[str, ...]:
        """What plain full-text search finds, best first."""
        return self.plain.best(plain_words(prompt), at=at, limit=DEPTH)

    def covered(self, prompt: str, *, at: float) -> tuple[Scored, ...]:
        """The first ten of plain search, each with the share of the prompt's words that it holds."""
        words = plain_words(prompt)
        found = self.plain.best(words, at=at, limit=10)
        return tuple(Scored(uid, self.plain.coverage(uid, words)) for uid in found)

    def recalled(self, prompt: str, *, at: float, recipe: Recipe, store: Searchable) -> Recalled | Skipped:
        """The block in front of a prompt, out of this *store* or what stands for it; it must know nothing younger."""
        return recall(
            store,
            self._moment(prompt),
            recipe=recipe,
            threshold=self.product.threshold,
            now=at,
            synonyms=self.product.synonyms,
            most_terms=self.product.most_terms,
            postings=self.product.postings,
            family=self.product.family,
        )

    def close(self) -> None:
        self.plain.close()
        self.store.close()

    def _moment(self, prompt: str) -> Moment:
        return Moment(name="prompt", project=self.project, prompt=prompt)


@contextmanager
def scratch(given: Set, *, product: Product) -> Iterator[Scratch]:
    """A scratch store of *given*, gone at the end."""
    with (
        tempfile.TemporaryDirectory(prefix="foreword-eval-") as folder,
        closing(Scratch(given, folder=Path(folder), product=product)) as opened,
    ):
        yield opened

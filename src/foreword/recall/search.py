"""Search each source for a query and return one list per source, best first; a source that fails costs only itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from foreword.errors import ForewordError
from foreword.models import Hit, Query


class Searchable(Protocol):
    def by_words(self, query: Query) -> Sequence[Hit]: ...
    def by_code(self, query: Query, votes: Mapping[str, float]) -> Sequence[Hit]: ...
    def holders(self, terms: Sequence[str], scopes: Sequence[str]) -> tuple[Mapping[str, int], int]: ...
    def by_recency(self, query: Query) -> Sequence[Hit]: ...
    def by_meaning(self, query: Query) -> Sequence[Hit]: ...


def search(
    store: Searchable,
    query: Query,
    *,
    weighed: Callable[[Sequence[Hit]], Sequence[Hit]],
    votes: Callable[[Sequence[Hit]], Mapping[str, float]],
) -> tuple[dict[str, Sequence[Hit]], tuple[str, ...]]:
    """The lists by source, and what went wrong on the way; without terms recency answers.

    Words come first; the files and functions of their hits have *votes*, and what else names those follows. Meaning is
    asked where the question has a vector.
    """
    found: dict[str, Sequence[Hit]] = {}
    wrong: list[str] = []

    def ask(source: str, question: Callable[[], Sequence[Hit]]) -> None:
        try:
            found[source] = question()
        except ForewordError as exc:
            wrong.append(f"{source}: {exc}; {exc.hint}")

    if not query.terms:
        ask("recency", lambda: store.by_recency(query))
        return found, tuple(wrong)
    ask("words", lambda: weighed(store.by_words(query)))
    if query.vector is not None:
        ask("meaning", lambda: store.by_meaning(query))
    if not query.plain and (weights := votes(found.get("words", ()))):
        ask("structure", lambda: store.by_code(query, weights))
    return found, tuple(wrong)

"""Query -> one list of memories per source, each best first; a source that fails costs only itself. Light."""

from __future__ import annotations

from foreword.errors import ForewordError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from foreword.types import Hit, Query

    class Searchable(Protocol):
        def by_words(self, query: Query) -> Sequence[Hit]: ...
        def by_recency(self, query: Query) -> Sequence[Hit]: ...
        def by_meaning(self, query: Query) -> Sequence[Hit]: ...


def search(store: Searchable, query: Query) -> tuple[dict[str, Sequence[Hit]], tuple[str, ...]]:
    """The lists by source, and what went wrong; with terms words and meaning answer, without them recency."""
    sources = {"words": store.by_words} if query.terms else {"recency": store.by_recency}
    if query.terms and query.vector is not None:
        sources["meaning"] = store.by_meaning
    found: dict[str, Sequence[Hit]] = {}
    wrong: list[str] = []
    for source, ask in sources.items():
        try:
            found[source] = ask(query)
        except ForewordError as exc:
            wrong.append(f"{source}: {exc}; {exc.hint}")
    return found, tuple(wrong)

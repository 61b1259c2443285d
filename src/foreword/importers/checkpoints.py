"""How far an import came that goes from the newest to the oldest -> what is left, also after new ones have come."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar


class Keyed(Protocol):
    """Something with a place in time; keys sort as texts, the newest last."""

    @property
    def key(self) -> str: ...


T = TypeVar("T", bound=Keyed)
Spans = tuple[tuple[str, str], ...]  # from the oldest to the newest key of a stretch that is done


def left(found: Iterable[T], *, mark: str) -> list[T]:
    """What *mark* does not tell as done, newest first."""
    done = _spans(mark)
    rest = (each for each in found if not any(low <= each.key <= high for low, high in done))
    return sorted(rest, key=lambda each: each.key, reverse=True)


def marked(todo: Sequence[T], *, mark: str) -> Iterator[tuple[T, str]]:
    """Each of what is left, with the mark that tells it and all newer ones as done."""
    done = _spans(mark)
    for each in todo:
        yield each, _mark(done, low=each.key, high=todo[0].key, all=each is todo[-1])


def _mark(done: Spans, *, low: str, high: str, all: bool) -> str:
    """The stretches that are done with a new one, which takes in what it reaches; one where all is done."""
    reached = [span for span in done if all or span[1] >= low]
    low = min([low, *(span[0] for span in reached)])
    high = max([high, *(span[1] for span in reached)])
    kept = [span for span in done if span not in reached]
    return json.dumps([(low, high), *kept], separators=(",", ":"))


def _spans(mark: str) -> Spans:
    try:
        return tuple((str(low), str(high)) for low, high in json.loads(mark or "[]"))
    except (ValueError, TypeError):  # of another version: everything is looked at again, and kept once by its uid
        return ()

"""What a hook told of its environment -> a text without the values of its secret variables, which nobody told us.

A hook tells of each value its length, a keyed digest of its first eight bytes and one of all. A value is found where it
is written as it is: at the beginning of a text, or behind anything that is no letter or digit, an escape (\\n, %3D,
\\u0022) or a flag of one letter (`-p`). Each such place is hashed once: more values cost no more time.
"""

from __future__ import annotations

import re
from _imp import source_hash
from typing import TYPE_CHECKING

from foreword.redact.formats import replaced

if TYPE_CHECKING:
    from collections.abc import Callable

    from foreword.redact.formats import Span

MARK = "env"
PREFIX = 8  # bytes; a shorter value is no secret
_BEGINS = re.compile(
    rb"(?:\A|[^A-Za-z0-9]|(?<=\\)[nrtbf]|(?<=%)[0-9A-Fa-f]{2}|(?<=\\u)[0-9A-Fa-f]{4}|(?<= -)[A-Za-z])(?=(\S{8}))"
)


def hiding(told: str, *, key: int) -> Callable[[str], str] | None:
    """What hides the values that *told* speaks of (`length-digest-digest`, with commas between); None for none."""
    known: dict[bytes, list[tuple[int, bytes]]] = {}
    for each in told.split(",") if told else ():
        try:
            size, first, whole = each.split("-")
            known.setdefault(bytes.fromhex(first), []).append((int(size), bytes.fromhex(whole)))
        except ValueError:
            continue  # a hook of another build: its values have their names and formats to be known by
    if not known:
        return None

    def hidden(text: str) -> str:
        raw = text.encode("utf-8", "surrogatepass")
        spans: list[Span] = []
        done = 0
        for begin in _BEGINS.finditer(raw) if len(raw) >= PREFIX else ():
            at = begin.end()
            if at < done:
                continue
            for size, digest in known.get(source_hash(key, begin[1]), ()):
                if source_hash(key, raw[at : at + size]) == digest:
                    spans.append((at, at + size, MARK))
                    done = at + size
                    break
        return replaced(raw, spans).decode("utf-8", "surrogatepass") if spans else text

    return hidden

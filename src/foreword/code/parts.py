"""Two versions of a file -> the parts of each that the other does not have, so that only those need parsing.

A part begins with a line at the margin after an empty line: mostly one function or class. It is a guess, made without
a parser at 200 MB/s; what was cut in two does not parse, and then the caller looks at the whole.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter

from foreword.values import value

# After an empty line, but nothing that goes on with or ends what stands above it.
_BEGINS = re.compile(
    rb"\n[ \t\r]*\n(?=[^\s})\]])(?!(?:end|fi|done|esac|else|elif|elsif|elseif|except|finally|rescue|ensure|when|catch)\b)"
)


@value
class Parts:
    """Some parts of a text, one after another, and where each begins: line here -> line in the text, from 0 on."""

    source: bytes
    here: tuple[int, ...]
    there: tuple[int, ...]

    def line(self, line: int) -> int:
        """The line in the text of a line here, both from 1 on."""
        at = bisect_right(self.here, line - 1) - 1
        return line if at < 0 else line - self.here[at] + self.there[at]


def differing_parts(before: bytes, after: bytes, *, head: bytes = b"") -> tuple[Parts, Parts]:
    """What only *before* has, and what only *after* has; *head* stands in front of both where a part needs it."""
    old, new = _cut(before), _cut(after)
    gone, come = Counter(old), Counter(new)
    gone, come = gone - come, come - gone
    return _joined(old, gone, head=head), _joined(new, come, head=head)


def _cut(text: bytes) -> list[bytes]:
    places = [0, *(each.end() for each in _BEGINS.finditer(text)), len(text)]
    return [text[start:end] for start, end in zip(places, places[1:], strict=False)]


def _joined(parts: list[bytes], wanted: Counter[bytes], *, head: bytes) -> Parts:
    """The wanted of *parts*, of equal ones the first."""
    left = Counter(wanted)
    taken, here, there = [head], [], []
    line, at = 0, head.count(b"\n")
    for part in parts:
        if left[part] > 0:
            left[part] -= 1
            here.append(at)
            there.append(line)
            taken.append(part)
            at += part.count(b"\n")
            if not part.endswith(b"\n"):
                taken.append(b"\n")
                at += 1
        line += part.count(b"\n")
    return Parts(source=b"".join(taken), here=tuple(here), there=tuple(there))

"""Text, which may be stored and hostile -> the terminal or the pipe, unable to colour, link or move anything."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from foreword.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from rich.console import Console

RED, YELLOW, DIM = "31", "33", "2"


def say(text: str) -> None:
    """*text* on stdout, as it is, with what could steer a terminal made visible."""
    sys.stdout.write(f"{safe(text)}\n")
    sys.stdout.flush()


def exactly(text: str) -> None:
    """*text* on stdout, byte for byte; only for what the worker has rendered and thereby neutralised."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def as_json(answer: object) -> None:
    """*answer* as JSON in ASCII: no stored character reaches a terminal unescaped."""
    sys.stdout.write(json.dumps(answer, indent=2) + "\n")
    sys.stdout.flush()


def aside(text: str, *, style: str = DIM) -> None:
    """A remark on stderr: it is for a person, and not part of the answer."""
    sys.stderr.write(f"{_styled(safe(text), style)}\n")
    sys.stderr.flush()


def warn(problems: Iterable[str]) -> None:
    for problem in problems:
        aside(f"warning: {problem}", style=YELLOW)


def error(message: str, *, hint: str) -> None:
    aside(f"error: {message}", style=RED)
    if hint:
        aside(f"hint: {hint}", style="")


def console(*, stderr: bool = False) -> Console:
    """A rich console that takes no markup, and wraps lines for a terminal only: a pipe gets them whole."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, markup=False, emoji=False, highlight=False, soft_wrap=not stream.isatty())


def safe(text: str) -> str:
    """*text* with every character that is not meant to be seen replaced; lines stay lines."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char == "\n" else _SEEN.get(char, "\N{REPLACEMENT CHARACTER}") for char in text
    )


def counted(number: int, things: str) -> str:
    """So many of them: `1 session`, `3 memories`."""
    one = f"{things[:-3]}y" if things.endswith("ies") else things[:-1]
    return f"{number:,} {one if number == 1 else things}"


def lasting(seconds: float) -> str:
    """A span of time as people say it."""
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return "1 second" if 0.5 < seconds < 1.5 else f"{seconds:.0f} seconds"


def minute(at: float) -> str:
    """When that was, where the user is; nothing for never."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) if at else ""


def memory(told: Mapping[str, Any]) -> str:
    """A memory in a line: its id, what it is, and what it says."""
    return f"{told['id']}  [{told['kind']}] {told['title']}"


def agree(question: str, *, hint: str = "look with --dry-run, then say --yes") -> None:
    """Go on only with a yes; a no ends the command, and where nobody is there to ask, it is refused."""
    import typer

    if not sys.stdin.isatty():
        raise BadRequest("nobody is there to ask, and nothing was changed", hint=hint)
    if not typer.confirm(question, default=False, err=True):
        aside("nothing was changed")
        raise typer.Exit(1)


def rows(pairs: Iterable[tuple[str, str]]) -> None:
    """A name and what there is to say of it, line by line, in two columns."""
    table([[name, told] for name, told in pairs], headings=())


def table(lines: Sequence[Sequence[str]], *, headings: Sequence[str], bold: Container[int] = ()) -> None:
    """Columns that fit a terminal; in a pipe every row is one line for each line of its last cell, nothing cut."""
    from rich.table import Table
    from rich.text import Text

    out = console()
    if not out.is_terminal:
        _print_plain([headings, *lines] if headings else lines)
        return
    shown = Table(box=None, show_header=bool(headings), pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for place in range(len(lines[0]) if lines else 0):
        shown.add_column(headings[place] if headings else "", no_wrap=place == 0, overflow="fold")
    for number, words in enumerate(lines):
        styles = ["" if headings else "dim", *[""] * len(words)]
        cells = zip(words, styles, strict=False)
        shown.add_row(*(Text(safe(word), style="bold" if number in bold else style) for word, style in cells))
    out.print(shown)


def _print_plain(lines: Sequence[Sequence[str]]) -> None:
    widths = [max(len(safe(words[place])) for words in lines) for place in range(len(lines[0]))] if lines else []
    for words in lines:
        head = "".join(f"{safe(word):<{width}}  " for word, width in zip(words[:-1], widths, strict=False))
        for line in safe(words[-1]).split("\n"):
            say(f"{head}{line}".rstrip())
            head = " " * len(head)


_SEEN = {"\t": "    ", "\r": ""}


def _styled(text: str, style: str) -> str:
    colourful = sys.stderr.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return f"\x1b[{style}m{text}\x1b[0m" if style and colourful else text

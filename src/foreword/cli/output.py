"""Print answers, remarks and tables; stored text can neither colour nor move anything in the terminal."""

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


def write(text: str) -> None:
    """Print *text* to stdout; control characters are replaced."""
    write_raw(escape(text))


def write_raw(text: str) -> None:
    """Print *text* to stdout unchanged; only for what the worker has rendered and thereby escaped."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def write_json(answer: object) -> None:
    """Print *answer* as JSON in ASCII, so that no stored character reaches a terminal unescaped."""
    write_raw(json.dumps(answer, indent=2))


def remark(text: str, *, style: str = DIM) -> None:
    """Print to stderr what is meant for a person and is not part of the answer."""
    text = escape(text)
    if style and sys.stderr.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb":
        text = f"\x1b[{style}m{text}\x1b[0m"
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def warn(problems: Iterable[str]) -> None:
    """Print each problem to stderr as a warning."""
    for problem in problems:
        remark(f"warning: {problem}", style=YELLOW)


def error(message: str, *, hint: str = "") -> None:
    """Print an error to stderr and, where there is one, the hint under it."""
    remark(f"error: {message}", style=RED)
    if hint:
        remark(f"hint: {hint}", style="")


def confirm(question: str, *, default: bool = False) -> None:
    """Ask the user; end the command without a yes, and refuse where there is no terminal to ask on."""
    import typer

    if not sys.stdin.isatty():
        raise BadRequest("not a terminal, cannot ask for confirmation; nothing was changed", hint="pass --yes")
    if not typer.confirm(escape(question), default=default, err=True):
        remark("nothing was changed")
        raise typer.Exit(1)


def console(*, stderr: bool = False) -> Console:
    """Return a rich console without markup, which wraps lines on a terminal only."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, markup=False, emoji=False, highlight=False, soft_wrap=not stream.isatty())


def styled(text: str, style: str) -> None:
    """Print a line to stdout in a rich style."""
    from rich.text import Text

    console().print(Text(escape(text), style=style))


def escape(text: str) -> str:
    """Replace every character that is not printable; newlines stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else _REPLACED.get(char, "\ufffd") for char in text)


def plural(number: int, things: str) -> str:
    """Return `1 session`, `3 memories`."""
    one = f"{things[:-3]}y" if things.endswith("ies") else things[:-1]
    return f"{number:,} {one if number == 1 else things}"


def duration(seconds: float) -> str:
    """Return a span of time in its largest fitting unit: `3 hours`."""
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return "1 second" if 0.5 < seconds < 1.5 else f"{seconds:.0f} seconds"


def local_time(at: float) -> str:
    """Return a time stamp in the user's time zone; empty for 0."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) if at else ""


def age(at: float) -> str:
    """Return how long ago *at* was: `2h ago`."""
    from foreword.recall.render import ago

    return ago(time.time() - at)


def time_and_age(at: float) -> str:
    return f"{local_time(at)} ({age(at)})"


def memory_line(memory: Mapping[str, Any]) -> str:
    """Return a memory's id, kind and title in one line."""
    return f"{memory['id']}  [{memory['kind']}] {memory['title']}"


def fields(pairs: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns; empty values are left out."""
    table([[name, text] for name, text in pairs if text], headings=())


def table(lines: Sequence[Sequence[str]], *, headings: Sequence[str], bold: Container[int] = ()) -> None:
    """Print columns that fit a terminal; in a pipe nothing is cut, and only the last cell may have several lines."""
    from rich.table import Table
    from rich.text import Text

    out = console()
    if not out.is_terminal:
        _plain_table([headings, *lines] if headings else lines)
        return
    shown = Table(box=None, show_header=bool(headings), pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in range(len(lines[0]) if lines else 0):
        shown.add_column(headings[column] if headings else "", no_wrap=column == 0, overflow="fold")
    for number, cells in enumerate(lines):
        styles = ["" if headings else "dim", *[""] * len(cells)]
        styled_cells = zip(cells, styles, strict=False)
        shown.add_row(*(Text(escape(cell), style="bold" if number in bold else style) for cell, style in styled_cells))
    out.print(shown)


def _plain_table(lines: Sequence[Sequence[str]]) -> None:
    widths = [max(len(escape(cells[column])) for cells in lines) for column in range(len(lines[0]))] if lines else []
    for cells in lines:
        head = "".join(f"{escape(cell):<{width}}  " for cell, width in zip(cells[:-1], widths, strict=False))
        for line in escape(cells[-1]).split("\n"):
            write_raw(f"{head}{line}".rstrip())
            head = " " * len(head)


_REPLACED = {"\t": "    ", "\r": ""}

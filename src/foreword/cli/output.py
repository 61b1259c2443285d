"""Print answers, remarks and tables; stored text can neither colour nor move anything in the terminal."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import typer

from foreword.encoding import plural
from foreword.errors import BadRequest
from foreword.recall.render import ago

if TYPE_CHECKING:
    from rich.console import Console

NEXT_STEPS = """\
foreword install                  connect your agents: hooks and MCP server
foreword context "a question"     see what an agent would get with it
foreword doctor                   check that everything works"""
BOLD, DIM, RED, GREEN, YELLOW, CYAN = "1", "2", "31", "32", "33", "1;36"


def write(text: str, *, style: str = "") -> None:
    """Print *text* to stdout; control characters are replaced."""
    write_raw(paint(text, style))


def write_raw(text: str) -> None:
    """Print *text* to stdout unchanged; only for what the worker has rendered and thereby escaped."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def write_json(answer: object) -> None:
    """Print *answer* as JSON in ASCII, so that no stored character reaches a terminal unescaped."""
    write_raw(json.dumps(answer, indent=2))


def exit_with_json(answer: object, *, enabled: bool) -> None:
    """Print *answer* as JSON and end the command, where --json is given."""
    if enabled:
        write_json(answer)
        raise typer.Exit


def remark(text: str, *, style: str = DIM) -> None:
    """Print to stderr what is meant for a person and is not part of the answer."""
    sys.stderr.write(paint(text, style, stream=sys.stderr) + "\n")
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
    if not sys.stdin.isatty():
        raise BadRequest("not a terminal, cannot ask for confirmation; nothing was changed", hint="pass --yes")
    if not typer.confirm(escape(question), default=default, err=True):
        remark("nothing was changed")
        raise typer.Exit(1)


def console() -> Console:
    """Return a rich console without markup on stderr, for spinners and progress bars."""
    from rich.console import Console

    return Console(file=sys.stderr, markup=False, emoji=False, highlight=False)


def paint(text: str, style: str, *, stream: TextIO | None = None) -> str:
    """Return *text* without control characters, in an ANSI style where *stream* (stdout) is a terminal with colours."""
    text, stream = escape(text), stream or sys.stdout
    if not style or not stream.isatty() or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{style}m{text}\x1b[0m"


def escape(text: str) -> str:
    """Replace every character that is not printable; newlines stay."""
    text = text.replace("\t", "    ").replace("\r", "")
    return "".join(char if char.isprintable() or char == "\n" else "\ufffd" for char in text)


def duration(seconds: float) -> str:
    """Return a span of time in its largest fitting unit: `3 hours`."""
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return plural(round(seconds), "seconds")


def local_time(when: float) -> str:
    """Return a time stamp in the user's time zone; empty for 0."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(when)) if when else ""


def age(when: float) -> str:
    """Return how long ago *when* was: `2h ago`."""
    return ago(time.time() - when)


def time_and_age(when: float) -> str:
    return f"{local_time(when)} ({age(when)})"


def memory_line(memory: Mapping[str, Any]) -> str:
    """Return a memory's id, kind and title in one line."""
    return f"{memory['id']}  [{memory['kind']}] {memory['title']}"


def fields(pairs: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns; empty values are left out."""
    table([pair for pair in pairs if pair[1]], headings=())


def table(lines: Sequence[Sequence[str]], *, headings: Sequence[str]) -> None:
    """Print columns; only the last cell may have several lines, and it is wrapped on a terminal."""
    rows = [[escape(cell) for cell in cells] for cells in ([headings, *lines] if headings else lines)]
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    last_width = shutil.get_terminal_size().columns - sum(widths) - 2 * len(widths) if sys.stdout.isatty() else 0
    for *cells, last in rows:
        start = "".join(f"{cell:<{width}}  " for cell, width in zip(cells, widths, strict=True))
        for line in last.split("\n"):
            for part in textwrap.wrap(line, last_width) if len(line) > last_width > 20 else [line]:
                write_raw(f"{start}{part}".rstrip())
                start = " " * len(start)

"""A file in TOML -> its table, what is wrong with it, and the line on which anything in it stands."""

from __future__ import annotations

import re
import stat
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

MOST_BYTES = 64 * 1024  # every setting written out with its comment is 4 KB


@dataclass(frozen=True)
class File:
    """What a file says, its text, and why it says nothing where it cannot be read."""

    table: Mapping[str, Any]
    text: str = ""
    problems: tuple[str, ...] = ()


def read(path: Path) -> File:
    """The file as a table; absent is empty, and unreadable is empty with a problem."""
    try:
        data = _bytes(path)
        text = data.decode("utf-8-sig")
        return File(tomllib.loads(text), text)
    except FileNotFoundError:
        broken = (f"{path} is a link that leads nowhere; built-in values are used",) if path.is_symlink() else ()
        return File({}, problems=broken)
    except OSError as exc:
        return File({}, problems=(f"{path} cannot be read: {exc.strerror}; built-in values are used",))
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        return File({}, problems=(f"{path}, line {line}: not UTF-8 text; built-in values are used",))
    except (ValueError, RecursionError) as exc:  # tomllib lets through what int() and a 1,000-deep list raise
        return File({}, problems=(f"{path}, {_why(exc, text)}; built-in values are used",))


def with_lines(path: Path, text: str, complaints: list[tuple[tuple[str, ...], str]]) -> tuple[str, ...]:
    """Each complaint as a sentence with its file and line, in the order of the file."""
    if not complaints:
        return ()
    lines: dict[tuple[str, ...], int] = {}
    for line, _, paths in statements(text):
        for each in paths:
            lines.setdefault(each, line)
    placed = sorted((_line_of(where, lines), says) for where, says in complaints)
    return tuple(f"{path}, line {line}: {says}" for line, says in placed)


def statements(text: str) -> Iterator[tuple[int, bool, list[tuple[str, ...]]]]:
    """Every statement of a readable file: its first line, whether it is a `[table]`, and the keys it speaks of."""
    # tomllib tells no positions, but each statement of TOML is a document of its own.
    table: tuple[str, ...] = ()
    start, chunk = 1, ""
    for number, line in enumerate(text.split("\n"), 1):
        if not chunk:
            start = number
        chunk += line + "\n"
        # Only such a line can end a value that began on another one; asking more often is quadratic.
        may_end = start == number or any(mark in line for mark in ("]", "}", '"""', "'''"))
        parsed = parse(chunk) if may_end else None
        if parsed is None:
            continue
        is_table = chunk.lstrip().startswith("[")
        if is_table:
            table = _paths(parsed)[-1]
        if parsed:
            yield start, is_table, [table] if is_table else [(*table, *each) for each in _paths(parsed)]
        chunk = ""


def parse(text: str) -> dict[str, Any] | None:
    """The table, or nothing where it is none."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def _bytes(path: Path) -> bytes:
    # A pipe or a device in its place would hang every door of ours.
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(None, "it is not a file")
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(None, f"it has more than {MOST_BYTES // 1024} KB")
    return data


def _why(exc: Exception, text: str) -> str:
    says = str(exc) if isinstance(exc, tomllib.TOMLDecodeError) else "a value that is too long or too deep"
    found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", says)
    if found is None:
        excess = re.search(r"[0-9_]{4300}|(?:[\[{]\s*){100}", text)  # int() reads 4,300 digits, not more
        return f"line {_line_at(text, excess.start() if excess else 0)}: {says}"
    return f"line {found[1] or _line_at(text, len(text.rstrip()))}: {says[: found.start()]}"


def _line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _line_of(where: tuple[str, ...], lines: Mapping[tuple[str, ...], int]) -> int:
    return next((lines[where[:size]] for size in range(len(where), 0, -1) if where[:size] in lines), 1)


def _paths(table: Mapping[str, Any], depth: int = 4) -> list[tuple[str, ...]]:
    # recipes.session_start.rules.cap is the deepest name there is.
    found: list[tuple[str, ...]] = []
    for name, inner in table.items():
        found.append((name,))
        if isinstance(inner, dict) and depth > 1:
            found += [(name, *each) for each in _paths(inner, depth - 1)]
    return found

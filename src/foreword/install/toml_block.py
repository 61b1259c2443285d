"""Put our lines at the end of a TOML file, between two marks, and take them out again."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from foreword.errors import BadConfig
from foreword.install.ownership import is_ours, own_entries

BEGIN = "# >>> foreword {agent}: written by `foreword install`; `foreword uninstall {agent}` takes it out"
END = "# <<< foreword {agent}"
_HEADER = re.compile(r"[ \t]*\[\[?[ \t]*([^\]\r\n]+?)[ \t]*\]\]?[ \t]*(?:#.*)?$")


@dataclass(frozen=True)
class Placed:
    """A text with our lines, and what was put between the user's last line and ours."""

    text: str
    gap: str


def put(text: str, body: str, *, agent: str) -> Placed:
    """Put *body* at the end, between our marks; where a block of ours is already, in its place."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [BEGIN.format(agent=agent), *body.strip("\n").split("\n"), END.format(agent=agent)]
    block = "".join(line + newline for line in lines)
    if span := _span(text, agent=agent):
        start, end = span
        foreign = _foreign(text[start:end], body=body, agent=agent)
        return Placed(text[:start] + block + foreign + text[end:], "")
    text = _without_marks(text, agent=agent)
    gap = (newline if text and not text.endswith("\n") else "") + (newline if text.strip() else "")
    return Placed(text + gap + block, gap)


def holds(text: str, body: str, *, agent: str, toml: bool = False) -> bool:
    """Tell whether these lines are between our marks; of a TOML file, whether its tables hold the same anywhere.

    Codex, when it adds a server, writes the tables of all servers anew and loses the comment before them.
    """
    span = _span(text, agent=agent)
    if span is not None and text[span[0] : span[1]].splitlines()[1:-1] == body.strip("\n").split("\n"):
        return True
    try:
        return toml and includes(tomllib.loads(text.removeprefix("\ufeff")), tomllib.loads(body))
    except (tomllib.TOMLDecodeError, RecursionError):
        return False


def remove(text: str, *, agent: str, body: str = "", gap: str = "\n") -> str:
    """Remove our lines and marks; what others wrote between the marks, before or behind them stays."""
    span = _span(text, agent=agent)
    if span is None:
        return _without_marks(_without_tables(text, body=body, agent=agent), agent=agent)
    start, end = span
    kept, rest = _foreign(text[start:end], body=body, agent=agent), text[end:]
    before = text[:start].removesuffix(gap) if gap else text[:start]
    if (kept or rest) and before and not before.endswith("\n"):
        before += "\r\n" if "\r\n" in gap else "\n"  # else two lines of the user's became one
    return before + kept + rest


def check_toml(text: str, body: str, *, agent: str) -> None:
    """Raise BadConfig where a TOML file is none, or where the user has tables of the same name."""
    try:
        known = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as exc:
        raise BadConfig(f"it is no TOML: {exc}", hint="correct that line, then try again") from exc
    except RecursionError as exc:
        raise BadConfig("it is nested too deeply", hint="simplify the file") from exc
    for header in _headers(body):
        if _has_table(known, header):
            raise BadConfig(
                f"it has a table [{header}] of your own",
                hint=f"rename it or take it out, then run `foreword install {agent}` again",
            )


def check_result(text: str) -> None:
    """Raise BadConfig where our lines do not fit behind the user's."""
    try:
        tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as exc:
        raise BadConfig(
            f"our tables do not fit behind the existing ones: {exc}",
            hint="write inline tables such as `name = { … }` as tables of their own, `[name.…]`, then try again",
        ) from exc


def _span(text: str, *, agent: str) -> tuple[int, int] | None:
    """Return our marks and all between; without the second mark, up to the end of our last table."""
    begin = re.search(rf"^# >>> foreword {re.escape(agent)}\b.*(?:\n|\Z)", text, re.MULTILINE)
    if begin is None:
        return None
    end = re.compile(rf"^# <<< foreword {re.escape(agent)}[ \t\r]*(?:\n|\Z)", re.MULTILINE).search(text, begin.end())
    if end is not None:
        return begin.start(), end.end()
    at = last = begin.end()
    for section in _sections(text[begin.end() :]):
        at += len(section)
        if _runs_us(section, agent=agent):
            last = at
    return begin.start(), last


def _foreign(block: str, *, body: str, agent: str) -> str:
    """Return what others put between our marks: an agent that adds a table adds it before the last comment."""
    lines = block.splitlines(keepends=True)
    inside = "".join(lines[1:-1] if lines[-1].startswith("# <<<") else lines[1:])
    newline = "\r\n" if "\r\n" in inside else "\n"
    ours = "".join(line + newline for line in body.strip("\n").split("\n"))
    if not body or inside == ours:
        return "" if body else _without_tables(inside, body="", agent=agent)
    if ours in inside:
        return inside.replace(ours, "", 1).removeprefix(newline)
    return _without_tables(inside, body=body, agent=agent)


def _without_tables(text: str, *, body: str, agent: str) -> str:
    """Remove the tables that run us, and those that stood in a block with them."""
    ours = {header for header in _headers(body) if "foreword" in header.lower()}
    sections = list(_sections(text))
    gone = {header for each in sections if _runs_us(each, agent=agent) and (header := next(_headers(each), ""))}
    gone |= ours
    return "".join(
        _remarks_behind(section)
        if any(header == each or header.startswith(f"{each}.") for header in _headers(section) for each in gone)
        else section
        for section in sections
    )


def _runs_us(section: str, *, agent: str) -> bool:
    """Tell whether a table makes an agent run us; a comment that only names us does not."""
    if not is_ours(section, agent=agent):
        return False
    try:
        return bool(own_entries(tomllib.loads(section), agent=agent))
    except (tomllib.TOMLDecodeError, RecursionError):
        return False


def _remarks_behind(section: str) -> str:
    """Return the comments at the end of a table: they describe the next one, and we write none."""
    lines = section.splitlines(keepends=True)
    last = max((place for place, line in enumerate(lines) if line.strip() and line.lstrip()[0] != "#"), default=-1)
    behind = lines[last + 1 :]
    return "".join(behind) if any(line.strip() for line in behind) else ""


def _without_marks(text: str, *, agent: str) -> str:
    return re.sub(rf"^# (?:>>>|<<<) foreword {re.escape(agent)}\b.*(?:\n|\Z)", "", text, flags=re.MULTILINE)


def includes(known: Any, wanted: Any) -> bool:
    """Tell whether *known* holds all of *wanted*, whatever else it holds."""
    if isinstance(wanted, dict) and isinstance(known, dict):
        return all(key in known and includes(known[key], inner) for key, inner in wanted.items())
    return bool(known == wanted)


def _sections(text: str) -> Iterator[str]:
    """Yield the tables of a TOML text, each with its header; first what stands before any."""
    held = ""
    for line in text.splitlines(keepends=True):
        if _HEADER.match(line.rstrip("\r\n")):
            yield held
            held = ""
        held += line
    yield held


def _headers(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if found := _HEADER.match(line):
            yield found[1]


def _has_table(known: Any, header: str) -> bool:
    table: Any = tomllib.loads(f"[{header}]")
    while table:
        (key, table), *_ = table.items()
        if not isinstance(known, dict) or key not in known:
            return False
        known = known[key]
    return True

"""Put our tables at the end of a TOML file, between two marks, and take them out again."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from foreword.errors import BadConfig

BEGIN = "# >>> foreword {agent}: written by `foreword install`; `foreword uninstall {agent}` takes it out"
END = "# <<< foreword {agent}"
_HEADER = re.compile(r"[ \t]*\[\[?[ \t]*([^\]\r\n]+?)[ \t]*\]\]?[ \t]*(?:#.*)?$")


def put(text: str, body: str, *, agent: str) -> tuple[str, str]:
    """Return *text* with *body* between our marks at its end, and the gap that was put between the two.

    Raise BadConfig where the text is no TOML, or has a table of the same name.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = (newline if text and not text.endswith("\n") else "") + (newline if text.strip() else "")
    placed = text + gap + _block(body, agent=agent, newline=newline)
    try:
        tomllib.loads(text.removeprefix("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError) as exc:
        raise BadConfig(f"it is not TOML: {exc}", hint="correct that line, then try again") from exc
    try:
        tomllib.loads(placed.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as exc:
        raise BadConfig(
            f"our tables do not fit behind the existing ones: {exc}",
            hint="rename a table of that name; write inline tables `name = { … }` as tables of their own, `[name.…]`",
        ) from exc
    return placed, gap


def holds(text: str, body: str) -> bool:
    """Return whether the tables of *body* are in a TOML text, with or without our marks.

    Codex, when it adds a server, rewrites the tables of all servers and loses the comment before them.
    """
    try:
        return _includes(tomllib.loads(text.removeprefix("\ufeff")), tomllib.loads(body))
    except (tomllib.TOMLDecodeError, RecursionError):
        return False


def remove(text: str, body: str, *, agent: str, gap: str = "\n") -> str:
    """Remove our tables and marks; what others wrote between the marks, before or behind them stays."""
    newline = "\r\n" if "\r\n" in gap else "\n"
    block = gap + _block(body, agent=agent, newline=newline)
    head, has_block, tail = text.partition(block)
    if not has_block:
        mark = re.search(rf"^# >>> foreword {re.escape(agent)}\b.*(?:\n|\Z)", text, re.MULTILINE)
        head, tail = (text[: mark.start()].removesuffix(gap), text[mark.end() :]) if mark else ("", text)
        tail = re.sub(rf"^# <<< foreword {re.escape(agent)}\b.*(?:\n|\Z)", "", tail, flags=re.MULTILINE)
        headers = {header[1] for line in body.splitlines() if (header := _HEADER.match(line))}
        head, tail = (_without_tables(part, headers) for part in (head, tail))
    if tail and head and not head.endswith("\n"):
        head += newline  # else two lines of the user's became one
    return head + tail


def _block(body: str, *, agent: str, newline: str) -> str:
    lines = [BEGIN.format(agent=agent), *body.strip("\n").split("\n"), END.format(agent=agent)]
    return "".join(line + newline for line in lines)


def _without_tables(text: str, headers: set[str]) -> str:
    """Remove these tables and those below them; a comment behind one describes the next, and stays."""
    kept, pending, is_ours = "", "", False
    for line in text.splitlines(keepends=True):
        if header := _HEADER.match(line.rstrip("\r\n")):
            kept, pending = kept + (pending if "#" in pending else ""), ""
            is_ours = any(f"{header[1]}.".startswith(f"{each}.") for each in headers)
        if not is_ours:
            kept += line
        else:
            pending = pending + line if not line.strip() or line.lstrip()[0] == "#" else ""
    return kept + (pending if "#" in pending else "")


def _includes(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict) and isinstance(value, dict):
        return all(key in value and _includes(value[key], inner) for key, inner in wanted.items())
    return bool(value == wanted)

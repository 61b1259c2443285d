"""Values and texts of a host's settings -> which of them are ours, told by the launchers that they name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from foreword.install.jsonedit import Path

# The launchers wherever our home is or was, and the hook that `foreword hook` prints for those who register it by hand.
_OURS = re.compile(r"/bin/foreword-(?:hook|mcp)(?![\w.-])|/hook\.py['\"]? --host ")
_HOST = re.compile(r"--host (\S+)")
_COMMANDS = ("command", "bash", "args")  # where hosts are told what to run; elsewhere a path is only talked about


def is_ours(text: str, *, host: str) -> bool:
    """Whether a command runs us, for this host."""
    told = _HOST.search(text)
    return bool(_OURS.search(text)) and (told is None or told[1] == host)


def may_run_us(text: str) -> bool:
    """False only where nothing in the text of a file runs us."""
    return "foreword" in text or "hook.py" in text


def names_us(item: Any) -> bool:
    """Whether a value speaks of us by name."""
    return "foreword" in json.dumps(item).lower()


def runs_us(item: Any, *, host: str) -> bool:
    """Whether a value of a settings file does nothing else than to run us."""
    return () in units(item, host=host)


def units(item: Any, *, host: str, path: Path = ()) -> list[Path]:
    """The smallest entries that run us and nothing else, outermost paths, in the order of the document."""
    if isinstance(item, list):
        return [unit for place, each in enumerate(item) for unit in units(each, host=host, path=(*path, place))]
    if not isinstance(item, dict):
        return []
    if any(is_ours(text, host=host) for text in _commands(item)):
        return [path]
    found = [unit for key, each in item.items() for unit in units(each, host=host, path=(*path, key))]
    # A matcher with its list of hooks goes as a whole where all that it lists is ours.
    lists = [(key, each) for key, each in item.items() if isinstance(each, dict | list)]
    wholly = lists and all(
        isinstance(each, list) and each and all((*path, key, place) in found for place in range(len(each)))
        for key, each in lists
    )
    return [path] if wholly and (not path or isinstance(path[-1], int)) else found


def _commands(item: dict[str, Any]) -> Iterator[str]:
    for key in _COMMANDS:
        told = item.get(key)
        yield from (each for each in (told if isinstance(told, list) else [told]) if isinstance(each, str))

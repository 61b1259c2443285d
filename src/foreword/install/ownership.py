"""Recognize the entries of an agent's settings that run Foreword, by the launchers that they name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from foreword.install.jsonc import Path

# The launchers wherever our home is or was, and the hook that `foreword hook` prints for those who register it by hand.
_OURS = re.compile(r"/bin/foreword-(?:hook|mcp)(?![\w.-])|/hook\.py['\"]? --host ")
_AGENT = re.compile(r"--host (\S+)")
_COMMANDS = ("command", "bash", "args")  # the fields that agents run; elsewhere a path is only mentioned


def is_ours(text: str, *, agent: str) -> bool:
    """Tell whether a command runs us, for this agent."""
    named = _AGENT.search(text)
    return bool(_OURS.search(text)) and (named is None or named[1] == agent)


def may_run_us(text: str) -> bool:
    """Return False only where nothing in the text of a file runs us."""
    return "foreword" in text or "hook.py" in text


def names_us(item: Any) -> bool:
    """Tell whether a value mentions us by name."""
    return "foreword" in json.dumps(item).lower()


def runs_us(item: Any, *, agent: str) -> bool:
    """Tell whether a value of a settings file only runs us."""
    return () in own_entries(item, agent=agent)


def own_entries(item: Any, *, agent: str, path: Path = ()) -> list[Path]:
    """Return the paths of the smallest entries that run us and nothing else, in the order of the document."""
    if isinstance(item, list):
        return [own for place, each in enumerate(item) for own in own_entries(each, agent=agent, path=(*path, place))]
    if not isinstance(item, dict):
        return []
    if any(is_ours(text, agent=agent) for text in _commands(item)):
        return [path]
    found = [own for key, each in item.items() for own in own_entries(each, agent=agent, path=(*path, key))]
    # A matcher with its list of hooks goes as a whole where all that it lists is ours.
    lists = [(key, each) for key, each in item.items() if isinstance(each, dict | list)]
    wholly = lists and all(
        isinstance(each, list) and each and all((*path, key, place) in found for place in range(len(each)))
        for key, each in lists
    )
    return [path] if wholly and (not path or isinstance(path[-1], int)) else found


def _commands(item: dict[str, Any]) -> Iterator[str]:
    for key in _COMMANDS:
        value = item.get(key)
        yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str))

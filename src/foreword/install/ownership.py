"""Recognize the entries of an agent's settings that run Foreword, by the launchers that they name."""

from __future__ import annotations

import re
from typing import Any

from foreword.install.jsonc import Path

# The launchers wherever our home is or was, and the hook itself for those who registered it by hand.
_OURS = re.compile(r"/bin/foreword-(?:hook|mcp)(?![\w.-])|/hook\.py['\"]? --host ")
_AGENT = re.compile(r"--host (\S+)")
_COMMANDS = ("command", "bash", "args")  # the fields that agents run; elsewhere a path is only mentioned


def runs_us(text: str, *, agent: str) -> bool:
    """Return whether a command runs us, for this agent."""
    named = _AGENT.search(text)
    return bool(_OURS.search(text)) and (named is None or named[1] == agent)


def own_entries(item: Any, *, agent: str, path: Path = ()) -> list[Path]:
    """Return the paths of the smallest entries that run us and nothing else, in the order of the document."""
    if isinstance(item, list):
        return [own for place, each in enumerate(item) for own in own_entries(each, agent=agent, path=(*path, place))]
    if not isinstance(item, dict):
        return []
    commands = [item.get(key) for key in _COMMANDS]
    commands += [each for value in commands if isinstance(value, list) for each in value]
    if any(isinstance(each, str) and runs_us(each, agent=agent) for each in commands):
        return [path]
    found = [own for key, each in item.items() for own in own_entries(each, agent=agent, path=(*path, key))]
    # A matcher with its list of hooks goes as a whole where all that it lists is ours.
    lists = [(key, each) for key, each in item.items() if isinstance(each, dict | list)]
    wholly = lists and all(
        isinstance(each, list) and each and all((*path, key, place) in found for place in range(len(each)))
        for key, each in lists
    )
    return [path] if wholly and path and isinstance(path[-1], int) else found

"""Compare the figures of two runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any

MOST = 40  # lines; the largest differences come first
TIMINGS = re.compile(r"(^|\.)(start_)?ms_p\d+$")  # never the same twice
MEMORY_ID = re.compile(r"\b[a-z]{3}-[0-9a-z]{8}\b")  # chosen at random


def print_comparison(old: Any, new: Any) -> None:
    """Print each figure that both runs have and that differs, the largest relative difference first."""
    before, after = dict(figures(old)), dict(figures(new))
    both = [name for name in before if name in after]
    changed = {name: _relative(before[name], after[name]) for name in both if before[name] != after[name]}
    alone = len(before.keys() ^ after.keys())
    print(f"\nCompared: {len(both)} figures, {len(changed)} differ; {alone} are in one run only")
    for name in sorted(changed, key=lambda name: -abs(changed[name]))[:MOST]:
        print(f"  {changed[name]:+8.2%}  {before[name]:g} -> {after[name]:g}  {name}")


def figures(tree: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield every number of a JSON value with its place; rows of a list go by their name."""
    if isinstance(tree, bool | int | float):
        yield path, float(tree)
    elif isinstance(tree, dict):
        for key, value in tree.items():
            yield from figures(value, f"{path}.{key}" if path else str(key))
    elif isinstance(tree, list):
        for number, value in enumerate(tree):
            keys = ("name", "family", "category", "budget")
            name = next((value[key] for key in keys if key in value), number) if isinstance(value, dict) else number
            yield from figures(value, f"{path}.{name}")


def _relative(old: float, new: float) -> float:
    return new / old - 1 if old else inf


def replay_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Compare two results of session_replay.py: a line with counts, then each figure and told line of only one."""
    before, after = ({name: n for name, n in figures(run["metrics"]) if not TIMINGS.search(name)} for run in (old, new))
    names = sorted({*before, *after})
    changed = [name for name in names if before.get(name) != after.get(name)]
    texts, others = _texts(old), _texts(new)
    places = sorted({*texts, *others})
    moved = {place: lines for place in places if (lines := _changed_lines(texts.get(place, []), others.get(place, [])))}
    return [
        f"{new['project']}: {len(names) - len(changed)} of {len(names)} figures and"
        f" {len(places) - len(moved)} of {len(places)} answers are the same",
        *(f"  {name}: {before.get(name)} there, {after.get(name)} here" for name in changed),
        *(f"  {what} at {at:.0f}, {line}" for (what, at), lines in moved.items() for line in lines),
    ]


def _texts(result: Mapping[str, Any]) -> dict[tuple[str, float], list[str]]:
    """Return the lines of everything that was told, by event and time, without ids."""
    blocks = {(record["moment"], record["at"]): record["block"] for record in result["records"]}
    for hint in result["hints"]:
        blocks |= {(f"{part} {hint['tool']}", hint["at"]): hint[part] for part in ("before", "after")}
    return {place: MEMORY_ID.sub("id", text).splitlines() for place, text in blocks.items()}


def _changed_lines(there: Sequence[str], here: Sequence[str]) -> list[str]:
    gone = [f"only there: {line}" for line in there if line not in here]
    return gone + [f"only here: {line}" for line in here if line not in there]

"""Compare the figures of two runs."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any

MOST = 40  # lines; the largest differences come first


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

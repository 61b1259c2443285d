"""Texts of random noise, and a look at every byte of every file for them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"  # of base 32
WINDOW = 12  # letters of noise: in a billion homes nobody meets them by chance


def noise(rng: random.Random, length: int = 24) -> str:
    return "".join(rng.choices(LETTERS, k=length))


def standing(root: Path, texts: Iterable[str]) -> dict[str, set[str]]:
    """Return which words of noise stand in which file, whole or in part, in any case."""
    words = {word for text in texts for word in text.lower().split() if len(word) >= WINDOW}
    pieces = {word[at : at + WINDOW].encode(): word for word in words for at in range(len(word) - WINDOW + 1)}
    found: dict[str, set[str]] = {}
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes().lower()
            here = {data[at : at + WINDOW] for at in range(len(data) - WINDOW + 1)} & pieces.keys()
            if here:
                found[str(path.relative_to(root))] = {pieces[each] for each in here}
    return found

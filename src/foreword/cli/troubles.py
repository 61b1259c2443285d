"""What went wrong and was swallowed -> the part that nobody has been told yet."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from foreword.problems import Problem, noted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from foreword.paths import Home


AGAIN_AFTER = 86_400.0  # seconds: a trouble that goes on is told once a day, not at every look


def untold(home: Home) -> tuple[Problem, ...]:
    """Every trouble after the last one that was told, but for those that were told within a day in the same words."""
    found = noted(str(home.trouble))
    place_told = _last_told(_seen(home))
    places = [place for place, trouble in enumerate(found) if trouble == place_told]
    old, new = (found[: places[-1] + 1], found[places[-1] + 1 :]) if places else ((), found)
    last_told = {(each.where, each.what): each.at for each in old}
    return tuple(each for each in new if each.at - last_told.get((each.where, each.what), -AGAIN_AFTER) >= AGAIN_AFTER)


def told(home: Home, troubles: Sequence[Problem]) -> None:
    """Remember that *troubles* were told; in a home that cannot be written to they are told again."""
    if troubles:
        with suppress(OSError):
            _seen(home).write_text(json.dumps(vars(troubles[-1])), encoding="utf-8")


def _seen(home: Home) -> Path:
    # The trouble itself, not a position: the file begins again when it is full.
    return home.logs / "trouble.seen"


def _last_told(path: Path) -> Problem | None:
    try:
        return Problem(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None

"""Define which layers each trigger gets, in which order and budget; merge the user's `[layout]` table into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from foreword.models import KINDS

MOST_TOKENS = 10_000  # five times the biggest budget; beyond it memory would crowd out the work
MOST_TOTAL = 100_000  # of one context window; half of the most that models hold
MOST_ITEMS = 200
UNCOUNTED = 1 << 30  # tokens; of a trigger that the window budget does not count


class LayerRule(NamedTuple):
    """One part of a block: at most `limit` memories of these kinds, in at most `cap` tokens."""

    name: str
    cap: int
    kinds: tuple[str, ...]
    limit: int
    groups: Mapping[str, int] = {}  # caps within the cap, by scope


class TriggerLayout(NamedTuple):
    """What a trigger gets: at most `budget` tokens, frame included; what the caps leave is the frame's.

    The window budget: all its blocks in one context window have `total`.
    """

    budget: int
    layers: tuple[LayerRule, ...]
    total: int = UNCOUNTED


RULES = ("preference", "correction")
PAST = ("decision", "pattern", "failure", "learning", "note")
OWN = ("summary", "turn", "decision", "preference", "correction", "failure", "learning", "handoff", "note")
NO_GOALS = tuple(kind for kind in KINDS if kind != "goal")  # goals come where the prompt speaks of goals

LAYOUT: Mapping[str, TriggerLayout] = {
    "session_start": TriggerLayout(
        budget=2000,  # 1,800 in layers, 200 for the frame
        layers=(
            LayerRule("standing", 300, ("handoff", "summary"), limit=8),
            LayerRule("sessions", 360, ("summary",), limit=4),
            LayerRule("failures", 250, ("failure",), limit=4),
            LayerRule("commands", 120, ("project", "summary"), limit=2),
            LayerRule("rules", 350, RULES, limit=6, groups={"universal": 100, "language": 100, "project": 150}),
            LayerRule("knowledge", 300, ("decision", "pattern", "learning", "note"), limit=5),
            LayerRule("changes", 120, ("turn",), limit=1),
        ),
        total=2000,
    ),
    "prompt": TriggerLayout(
        budget=500,
        layers=(
            LayerRule("files", 100, ("turn",), limit=1),
            LayerRule("notes", 400, NO_GOALS, limit=4),
            LayerRule("index", 500, NO_GOALS, limit=20),  # instead of both, with `prompt_style = "index"`
        ),
        total=3000,
    ),
    "compaction": TriggerLayout(
        budget=1000,  # half of session_start, and it follows when the user changes that one
        layers=(
            LayerRule("session", 500, OWN, limit=20),
            LayerRule("sessions", 200, ("summary",), limit=3),
            LayerRule("past", 200, PAST, limit=6),
        ),
    ),
    "question": TriggerLayout(
        budget=500,
        layers=(
            LayerRule("answer", 500, NO_GOALS, limit=20, groups={"universal": 150, "language": 150, "project": 200}),
        ),
        total=1000,
    ),
    "tool": TriggerLayout(budget=120, layers=(), total=1500),  # one line, so that there is nothing to share out
}
COUNTED = ("session_start", "question", "prompt", "tool")  # triggers that the window budget counts


def merge_layout(overrides: object) -> tuple[Mapping[str, TriggerLayout], tuple[str, ...]]:
    """Return our layout with the user's numbers; caps that are not named grow with the budget.

    A wrong value keeps our number, and a sentence says what is wrong.
    """
    problems: list[str] = []

    def table(value: object, path: str, known: tuple[str, ...]) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            problems.append(f"`{path}` must be a table")
            return {}
        for name in value:
            if name not in known:
                problems.append(f"{f'{path}.{name}'[:80]!r} is unknown; known are {', '.join(known)}")
        return value

    def number(values: Mapping[str, Any], path: str, name: str, ours: int, most: int = MOST_TOKENS) -> int:
        value = values.get(name, ours)
        if type(value) is int and 0 <= value <= most:  # not isinstance: true is an int to Python, and a slip to us
            return value
        problems.append(f"`{path}.{name}` must be a whole number from 0 to {most}, not {shorten(value)}")
        return ours

    def layer(ours: LayerRule, values: object, path: str, cap: int) -> LayerRule:
        found = table(values, path, ("cap", "limit", *ours.groups))
        cap = number(found, path, "cap", cap)
        limit = number(found, path, "limit", ours.limit, MOST_ITEMS)
        groups = {name: number(found, path, name, tokens * cap // ours.cap) for name, tokens in ours.groups.items()}
        return ours._replace(cap=cap, limit=limit, groups=groups)

    tables = table(overrides, "layout", (*LAYOUT, "window"))
    layout: dict[str, TriggerLayout] = {}
    for trigger, ours in LAYOUT.items():  # session_start comes first, and compaction follows it at one half
        path = f"layout.{trigger}"
        found = table(tables.get(trigger, {}), path, ("budget", *(each.name for each in ours.layers)))
        usual = layout["session_start"].budget // 2 if trigger == "compaction" else ours.budget
        budget = number(found, path, "budget", usual)
        layers = [
            layer(each, found.get(each.name, {}), f"{path}.{each.name}", each.cap * budget // ours.budget)
            for each in ours.layers
        ]
        layout[trigger] = TriggerLayout(budget=budget, layers=tuple(layers))
    window = table(tables.get("window", {}), "layout.window", COUNTED)
    for each in COUNTED:
        usual = LAYOUT[each].total * layout[each].budget // LAYOUT[each].budget
        layout[each] = layout[each]._replace(total=number(window, "layout.window", each, usual, MOST_TOTAL))
    return layout, tuple(problems)


def window_budget(layout: Mapping[str, TriggerLayout]) -> dict[str, int]:
    """Return the totals of one context window, by the names of the `[layout.window]` table."""
    return {trigger: layout[trigger].total for trigger in COUNTED}


def shorten(value: object) -> str:
    """Return any value of a settings file, short enough for a sentence and too short for a secret; never raise."""
    try:
        text = repr(value)
        return text if len(text) <= 24 else f"{text[:12]}…"  # a token of 36 shows its prefix at the most
    except (ValueError, RecursionError):  # 0xfff… of 5,000 digits has no repr, nor has a table 30,000 deep
        return "something too long to show"

"""Define which layers each trigger gets, in which order and budget; merge the user's `[layout]` table into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from foreword.models import KINDS

MOST_TOKENS = 10_000  # five times the biggest budget; beyond it memory would crowd out the work
MOST_TOTAL = 100_000  # of one context window; half of the most that models hold
MOST_ITEMS = 200
UNCOUNTED = 1 << 30  # tokens; of a trigger that the window budget does not count


@dataclass(frozen=True)
class LayerRule:
    """One part of a block: at most `limit` memories of these kinds, in at most `cap` tokens."""

    name: str
    cap: int
    kinds: tuple[str, ...]
    limit: int
    groups: Mapping[str, int] = field(default_factory=dict, hash=False)  # caps within the cap, by scope


@dataclass(frozen=True)
class TriggerLayout:
    """What a trigger gets: at most `budget` tokens, frame included; what the caps leave is the frame's.

    The window budget: all its blocks in one context window have `total`, session start with questions `together`.
    """

    budget: int
    layers: tuple[LayerRule, ...]
    total: int = UNCOUNTED
    together: int = UNCOUNTED


@dataclass(frozen=True)
class Wrong:
    """Something in the user's table that is not used: where, and what is wrong with it."""

    path: tuple[str, ...]  # below [layout]
    message: str


PAST = ("decision", "pattern", "failure", "learning", "note")
OWN = ("summary", "turn", "decision", "preference", "correction", "failure", "learning", "handoff", "note")
ALL_BUT_GOALS = tuple(kind for kind in KINDS if kind != "goal")  # goals come where the prompt speaks of goals

LAYOUT: Mapping[str, TriggerLayout] = {
    "session_start": TriggerLayout(
        budget=2000,  # 1,800 in layers, 200 for the frame
        layers=(
            LayerRule("standing", 300, ("handoff", "summary"), limit=8),
            LayerRule("sessions", 360, ("summary",), limit=4),
            LayerRule("failures", 250, ("failure",), limit=4),
            LayerRule("commands", 120, ("project", "summary"), limit=2),
            LayerRule(
                "rules",
                350,
                ("preference", "correction"),
                limit=6,
                groups={"universal": 100, "language": 100, "project": 150},
            ),
            LayerRule("knowledge", 300, ("decision", "pattern", "learning", "note"), limit=5),
            LayerRule("changes", 120, ("turn",), limit=1),
        ),
        total=2000,
        together=3000,
    ),
    "prompt": TriggerLayout(
        budget=500,
        layers=(
            LayerRule("files", 100, ("turn",), limit=1),
            LayerRule("notes", 400, ALL_BUT_GOALS, limit=4),
            LayerRule("index", 500, ALL_BUT_GOALS, limit=20),  # instead of both, with `prompt_style = "index"`
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
            LayerRule(
                "answer", 500, ALL_BUT_GOALS, limit=20, groups={"universal": 150, "language": 150, "project": 200}
            ),
        ),
        total=1000,
        together=3000,
    ),
    "tool": TriggerLayout(budget=120, layers=(), total=1500),  # one line, so that there is nothing to share out
}
COUNTED = ("session_start", "question", "prompt", "tool")  # triggers that the window budget counts


def merge_layout(overrides: object) -> tuple[Mapping[str, TriggerLayout], tuple[Wrong, ...]]:
    """Return our layout with the user's numbers; caps that are not named grow with the budget.

    A wrong value keeps our number and is listed.
    """
    wrong: list[Wrong] = []
    tables = _Table(overrides, (), (*LAYOUT, "window"), wrong)
    start = _trigger("session_start", tables, budget=LAYOUT["session_start"].budget)
    layout = {"session_start": start}
    for trigger, ours in LAYOUT.items():
        if trigger != "session_start":
            budget = start.budget // 2 if trigger == "compaction" else ours.budget
            layout[trigger] = _trigger(trigger, tables, budget=budget)
    return _with_window(layout, tables.table("window", (*COUNTED, "together"))), tuple(wrong)


def window_budget(layout: Mapping[str, TriggerLayout]) -> dict[str, int]:
    """Return the totals of one context window, by the names of the `[layout.window]` table."""
    return {**{trigger: layout[trigger].total for trigger in COUNTED}, "together": layout["question"].together}


def shorten(value: object) -> str:
    """Return any value of a settings file, short enough for a sentence and too short for a secret; never raise."""
    try:
        text = repr(value)
        return text if len(text) <= 24 else f"{text[:12]}…"  # a token of 36 shows its prefix at the most
    except (ValueError, RecursionError):  # 0xfff… of 5,000 digits has no repr, nor has a table 30,000 deep
        return "something too long to show"


class _Table:
    """One table of the user's: reads its numbers and tables by name, and notes what is wrong with them."""

    def __init__(self, value: object, path: tuple[str, ...], known: tuple[str, ...], wrong: list[Wrong]) -> None:
        self._path, self._wrong = path, wrong
        self._values: Mapping[str, Any] = value if isinstance(value, dict) else {}
        if not isinstance(value, dict):
            self._note(path, "must be a table")
        for name in self._values:
            if name not in known:
                self._note((*path, name), f"is unknown; known are {', '.join(known)}")

    def table(self, name: str, known: tuple[str, ...]) -> _Table:
        return _Table(self._values.get(name, {}), (*self._path, name), known, self._wrong)

    def number(self, name: str, ours: int, *, most: int = MOST_TOKENS) -> int:
        value = self._values.get(name, ours)
        if type(value) is int and 0 <= value <= most:  # not isinstance: true is an int to Python, and a slip to us
            return value
        self._note((*self._path, name), f"must be a whole number from 0 to {most}, not {shorten(value)}")
        return ours

    def _note(self, path: tuple[str, ...], message: str) -> None:
        names = (name if name.isprintable() else repr(name) for name in path)
        dotted = ".".join(("layout", *names))[:80]
        self._wrong.append(Wrong(path, f"`{dotted}` {message}"))


def _trigger(trigger: str, tables: _Table, *, budget: int) -> TriggerLayout:
    ours = LAYOUT[trigger]
    table = tables.table(trigger, ("budget", *(layer.name for layer in ours.layers)))
    budget = table.number("budget", budget)
    layers = (_layer(layer, table, cap=layer.cap * budget // ours.budget) for layer in ours.layers)
    return TriggerLayout(budget=budget, layers=tuple(layers))


def _layer(ours: LayerRule, tables: _Table, *, cap: int) -> LayerRule:
    table = tables.table(ours.name, ("cap", "limit", *ours.groups))
    cap = table.number("cap", cap)
    limit = table.number("limit", ours.limit, most=MOST_ITEMS)
    groups = {name: table.number(name, tokens * cap // ours.cap) for name, tokens in ours.groups.items()}
    return replace(ours, cap=cap, limit=limit, groups=groups)


def _with_window(layout: Mapping[str, TriggerLayout], table: _Table) -> Mapping[str, TriggerLayout]:
    """Return *layout* with the totals of a window; those that are not named grow and shrink with the budgets."""
    totals = {}
    for trigger in COUNTED:
        ours = LAYOUT[trigger]
        totals[trigger] = table.number(trigger, ours.total * layout[trigger].budget // ours.budget, most=MOST_TOTAL)
    both = totals["session_start"] + totals["question"]
    together = table.number("together", both, most=MOST_TOTAL)
    return {
        trigger: replace(
            each,
            total=totals.get(trigger, UNCOUNTED),
            together=together if trigger in ("session_start", "question") else UNCOUNTED,
        )
        for trigger, each in layout.items()
    }

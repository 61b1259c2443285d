"""Define the layout of each trigger's context: its budget and its layers in order, with the user's `[recipes]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from foreword.models import KINDS

MOST_TOKENS = 10_000  # five times the biggest layout; beyond it memory would crowd out the work
MOST_TOTAL = 100_000  # of one context window; half of the most that models hold
MOST_ITEMS = 200
HINT_TOKENS = 120  # of one hint around a tool use
HINTS_TOKENS = 1_500  # of all hints in one context window
UNCOUNTED = 1 << 30  # tokens; of a trigger without a window budget


@dataclass(frozen=True)
class LayerRule:
    """One part of a block: at most `limit` memories of these kinds, in at most `cap` tokens."""

    name: str
    cap: int
    kinds: tuple[str, ...]
    limit: int
    groups: Mapping[str, int] = field(default_factory=dict, hash=False)  # caps within the cap, by scope
    limit_away: int = 0  # the limit while the worker is away; 0 means the same


@dataclass(frozen=True)
class Layout:
    """The context of a trigger: at most `budget` tokens, frame included; what the caps leave is the frame's.

    The window budget: all its blocks in one context window have `total`, session start with questions `together`.
    """

    budget: int
    layers: tuple[LayerRule, ...]
    total: int = UNCOUNTED
    together: int = UNCOUNTED


@dataclass(frozen=True)
class Wrong:
    """Something in the user's table that is not used: where, and what is wrong with it."""

    path: tuple[str, ...]  # below [recipes]
    says: str


PAST = ("decision", "pattern", "failure", "learning", "note")
OWN = ("summary", "turn", "decision", "preference", "correction", "failure", "learning", "handoff", "note")
ALL_BUT_GOALS = tuple(kind for kind in KINDS if kind != "goal")  # goals come where the prompt mentions goals

LAYOUTS: Mapping[str, Layout] = {
    "session_start": Layout(
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
    "prompt": Layout(
        budget=500,
        layers=(
            LayerRule("files", 100, ("turn",), limit=1),
            LayerRule("notes", 400, ALL_BUT_GOALS, limit=4),
            LayerRule("index", 500, ALL_BUT_GOALS, limit=20),  # instead of both, with `prompt_style = "index"`
        ),
        total=3000,
    ),
    "compaction": Layout(
        budget=1000,  # half of session_start, and it follows when the user changes that one
        layers=(
            LayerRule("session", 500, OWN, limit=20),
            LayerRule("sessions", 200, ("summary",), limit=3),
            LayerRule("past", 200, PAST, limit=6),
        ),
    ),
    "question": Layout(
        budget=500,
        layers=(
            LayerRule(
                "answer", 500, ALL_BUT_GOALS, limit=20, groups={"universal": 150, "language": 150, "project": 200}
            ),
        ),
        total=1000,
        together=3000,
    ),
}
COUNTED = ("session_start", "question", "prompt")  # triggers with a window budget


def merged(overrides: Mapping[str, Any]) -> tuple[Mapping[str, Layout], tuple[Wrong, ...]]:
    """Return our layouts with the user's numbers; a wrong one keeps ours, and caps not named grow with the budget."""
    wrong: list[Wrong] = []
    tables = _tables(overrides, path=(), known=(*LAYOUTS, "ledger"), wrong=wrong)
    start = _layout("session_start", tables, budget=LAYOUTS["session_start"].budget, wrong=wrong)
    layouts = {"session_start": start}
    for trigger, ours in LAYOUTS.items():
        if trigger != "session_start":
            budget = start.budget // 2 if trigger == "compaction" else ours.budget
            layouts[trigger] = _layout(trigger, tables, budget=budget, wrong=wrong)
    return _with_window_budget(layouts, tables.get("ledger", {}), wrong=wrong), tuple(wrong)


def window_totals(layouts: Mapping[str, Layout]) -> dict[str, int]:
    """Return the totals of one context window, by the names of the `[recipes.ledger]` table."""
    return {**{trigger: layouts[trigger].total for trigger in COUNTED}, "together": layouts["question"].together}


def shown(value: object) -> str:
    """Return any value of a settings file, short enough for a sentence and too short for a secret."""
    try:
        text = repr(value)
        return text if len(text) <= 24 else f"{text[:12]}…"  # a token of 36 shows its prefix at the most
    except (ValueError, RecursionError):  # 0xfff… of 5,000 digits has no repr, nor has a table 30,000 deep
        return "something too long to show"


def _tables(table: object, *, path: tuple[str, ...], known: tuple[str, ...], wrong: list[Wrong]) -> Mapping[str, Any]:
    """Return the known names of *table*; every other becomes a complaint."""
    if not isinstance(table, dict):
        wrong.append(Wrong(path, f"{_dotted(path)} must be a table"))
        return {}
    for name in table:
        if name not in known:
            wrong.append(Wrong((*path, name), f"{_dotted((*path, name))} is unknown; known are {', '.join(known)}"))
    return {name: table[name] for name in known if name in table}


def _layout(trigger: str, tables: Mapping[str, Any], *, budget: int, wrong: list[Wrong]) -> Layout:
    ours = LAYOUTS[trigger]
    known = ("budget", *(layer.name for layer in ours.layers))
    table = _tables(tables.get(trigger, {}), path=(trigger,), known=known, wrong=wrong)
    budget = _number(table, "budget", budget, path=(trigger,), most=MOST_TOKENS, wrong=wrong)
    return Layout(
        budget=budget,
        layers=tuple(
            _layer(
                layer,
                table.get(layer.name, {}),
                cap=layer.cap * budget // ours.budget,
                path=(trigger, layer.name),
                wrong=wrong,
            )
            for layer in ours.layers
        ),
    )


def _with_window_budget(layouts: Mapping[str, Layout], values: object, *, wrong: list[Wrong]) -> Mapping[str, Layout]:
    """Return *layouts* with the totals of a window; those that are not named grow and shrink with the budgets."""
    table = _tables(values, path=("ledger",), known=(*COUNTED, "together"), wrong=wrong)
    totals = {
        trigger: _number(
            table,
            trigger,
            LAYOUTS[trigger].total * layouts[trigger].budget // LAYOUTS[trigger].budget,
            path=("ledger",),
            most=MOST_TOTAL,
            wrong=wrong,
        )
        for trigger in COUNTED
    }
    both = totals["session_start"] + totals["question"]
    together = _number(table, "together", both, path=("ledger",), most=MOST_TOTAL, wrong=wrong)
    return {
        trigger: Layout(
            budget=layout.budget,
            layers=layout.layers,
            total=totals.get(trigger, UNCOUNTED),
            together=together if trigger in ("session_start", "question") else UNCOUNTED,
        )
        for trigger, layout in layouts.items()
    }


def _layer(ours: LayerRule, values: object, *, cap: int, path: tuple[str, ...], wrong: list[Wrong]) -> LayerRule:
    limits = ("limit", "limit_away") if ours.limit_away else ("limit",)
    table = _tables(values, path=path, known=("cap", *limits, *ours.groups), wrong=wrong)
    cap = _number(table, "cap", cap, path=path, most=MOST_TOKENS, wrong=wrong)
    return LayerRule(
        name=ours.name,
        cap=cap,
        kinds=ours.kinds,
        limit=_number(table, "limit", ours.limit, path=path, most=MOST_ITEMS, wrong=wrong),
        groups={
            name: _number(table, name, tokens * cap // ours.cap, path=path, most=MOST_TOKENS, wrong=wrong)
            for name, tokens in ours.groups.items()
        },
        limit_away=_number(table, "limit_away", ours.limit_away, path=path, most=MOST_ITEMS, wrong=wrong),
    )


def _number(
    table: Mapping[str, Any], name: str, ours: int, *, path: tuple[str, ...], most: int, wrong: list[Wrong]
) -> int:
    value = table.get(name, ours)
    if type(value) is int and 0 <= value <= most:  # not isinstance: true is an int to Python, and a slip to us
        return value
    where = (*path, name)
    wrong.append(Wrong(where, f"{_dotted(where)} must be a whole number from 0 to {most}, not {shown(value)}"))
    return ours


def _dotted(path: tuple[str, ...]) -> str:
    names = (name if name.isprintable() else repr(name) for name in path)
    return "`" + ".".join(("recipes", *names))[:80] + "`"

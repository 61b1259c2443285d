"""The user's `[recipes]` table -> for each moment its budget and its layers, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from foreword.models import KINDS

MOST_TOKENS = 10_000  # five times the biggest recipe; beyond it memory would crowd out the work
MOST_TOTAL = 100_000  # of one context window; half of the most that models hold
MOST_ITEMS = 200
UNCOUNTED = 1 << 30  # tokens; of a moment that no ledger counts


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
class Recipe:
    """What a moment gets: at most `budget` tokens, frame included; what the caps leave is the frame's.

    The ledger: all its blocks in one context window have `total`, and session start with questions `together`.
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
ALL_BUT_GOALS = tuple(kind for kind in KINDS if kind != "goal")  # goals come where the prompt speaks of goals

RECIPES: Mapping[str, Recipe] = {
    "session_start": Recipe(
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
    "prompt": Recipe(
        budget=500,
        layers=(
            LayerRule("files", 100, ("turn",), limit=1),
            LayerRule("notes", 400, ALL_BUT_GOALS, limit=4),
            LayerRule("index", 500, ALL_BUT_GOALS, limit=20),  # instead of both, with `prompt_style = "index"`
        ),
        total=3000,
    ),
    "compaction": Recipe(
        budget=1000,  # half of session_start, and it follows when the user changes that one
        layers=(
            LayerRule("session", 500, OWN, limit=20),
            LayerRule("sessions", 200, ("summary",), limit=3),
            LayerRule("past", 200, PAST, limit=6),
        ),
    ),
    "question": Recipe(
        budget=500,
        layers=(
            LayerRule(
                "answer", 500, ALL_BUT_GOALS, limit=20, groups={"universal": 150, "language": 150, "project": 200}
            ),
        ),
        total=1000,
        together=3000,
    ),
    "tool": Recipe(budget=120, layers=(), total=1500),  # one line, so that there is nothing to share out
}
COUNTED = ("session_start", "question", "prompt", "tool")  # moments that the ledger counts


def merged(overrides: Mapping[str, Any]) -> tuple[Mapping[str, Recipe], tuple[Wrong, ...]]:
    """Our recipes with the user's numbers; what is wrong keeps our number, and caps not named grow with the budget."""
    wrong: list[Wrong] = []
    tables = _tables(overrides, path=(), known=(*RECIPES, "ledger"), wrong=wrong)
    start = _recipe("session_start", tables, budget=RECIPES["session_start"].budget, wrong=wrong)
    recipes = {"session_start": start}
    for trigger, ours in RECIPES.items():
        if trigger != "session_start":
            budget = start.budget // 2 if trigger == "compaction" else ours.budget
            recipes[trigger] = _recipe(trigger, tables, budget=budget, wrong=wrong)
    return _with_ledger(recipes, tables.get("ledger", {}), wrong=wrong), tuple(wrong)


def ledger_of(recipes: Mapping[str, Recipe]) -> dict[str, int]:
    """The totals of one context window, by the names of the `[recipes.ledger]` table."""
    return {**{trigger: recipes[trigger].total for trigger in COUNTED}, "together": recipes["question"].together}


def shown(given: object) -> str:
    """Any value a settings file can hold, short enough for a sentence and too short for a secret; never raises."""
    try:
        told = repr(given)
        return told if len(told) <= 24 else f"{told[:12]}…"  # a token of 36 shows its prefix at the most
    except (ValueError, RecursionError):  # 0xfff… of 5,000 digits has no repr, nor has a table 30,000 deep
        return "something too long to show"


def _tables(given: object, *, path: tuple[str, ...], known: tuple[str, ...], wrong: list[Wrong]) -> Mapping[str, Any]:
    """What *given* says under known names; the rest becomes a complaint."""
    if not isinstance(given, dict):
        wrong.append(Wrong(path, f"{_dotted(path)} must be a table"))
        return {}
    for name in given:
        if name not in known:
            wrong.append(Wrong((*path, name), f"{_dotted((*path, name))} is unknown; known are {', '.join(known)}"))
    return {name: given[name] for name in known if name in given}


def _recipe(trigger: str, tables: Mapping[str, Any], *, budget: int, wrong: list[Wrong]) -> Recipe:
    ours = RECIPES[trigger]
    known = ("budget", *(layer.name for layer in ours.layers))
    table = _tables(tables.get(trigger, {}), path=(trigger,), known=known, wrong=wrong)
    budget = _number(table, "budget", budget, path=(trigger,), most=MOST_TOKENS, wrong=wrong)
    return Recipe(
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


def _with_ledger(recipes: Mapping[str, Recipe], given: object, *, wrong: list[Wrong]) -> Mapping[str, Recipe]:
    """*recipes* with the totals of a window; those that are not named grow and shrink with the budgets."""
    table = _tables(given, path=("ledger",), known=(*COUNTED, "together"), wrong=wrong)
    totals = {
        trigger: _number(
            table,
            trigger,
            RECIPES[trigger].total * recipes[trigger].budget // RECIPES[trigger].budget,
            path=("ledger",),
            most=MOST_TOTAL,
            wrong=wrong,
        )
        for trigger in COUNTED
    }
    both = totals["session_start"] + totals["question"]
    together = _number(table, "together", both, path=("ledger",), most=MOST_TOTAL, wrong=wrong)
    return {
        trigger: Recipe(
            budget=recipe.budget,
            layers=recipe.layers,
            total=totals.get(trigger, UNCOUNTED),
            together=together if trigger in ("session_start", "question") else UNCOUNTED,
        )
        for trigger, recipe in recipes.items()
    }


def _layer(ours: LayerRule, given: object, *, cap: int, path: tuple[str, ...], wrong: list[Wrong]) -> LayerRule:
    limits = ("limit", "limit_away") if ours.limit_away else ("limit",)
    table = _tables(given, path=path, known=("cap", *limits, *ours.groups), wrong=wrong)
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
    given = table.get(name, ours)
    if type(given) is int and 0 <= given <= most:  # not isinstance: true is an int to Python, and a slip to us
        return given
    where = (*path, name)
    wrong.append(Wrong(where, f"{_dotted(where)} must be a whole number from 0 to {most}, not {shown(given)}"))
    return ours


def _dotted(path: tuple[str, ...]) -> str:
    names = (name if name.isprintable() else repr(name) for name in path)
    return "`" + ".".join(("recipes", *names))[:80] + "`"

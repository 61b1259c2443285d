"""A project's days -> what was given, what came of it and what it cost, in the terminal or as JSON."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from foreword.cli import door, screen
from foreword.cli.memories import Json, Project
from foreword.errors import BadRequest
from foreword.units import sized

BAR = 24  # characters of the longest bar
WEEKS = 14  # days from which on each bar of a day stands for a week


def stats(
    project: Project = "",
    everything: Annotated[bool, typer.Option("--all", help="Of all projects together.")] = False,
    days: Annotated[int, typer.Option("--days", "-d", min=1, max=3650, help="Local days, today included.")] = 30,
    json: Json = False,
) -> None:
    """Show what was given, what came of it and what it cost.

    Injections and their tokens, items that were used and ignored, silences, build times, what is remembered, the size
    of the store, sessions, and the model's calls. Only counts, of this project unless you say --all.

    \b
    Examples:
      foreword stats
      foreword stats --all --days 7 --json
    """
    if everything and project:
        raise BadRequest("--all and --project are two questions", hint="leave one of them out")
    asked: dict[str, Any] = {} if everything else {"project_path": door.folder(project)}
    told = door.worker(door.here()).get("/api/stats", days=days, **asked)
    if json:
        screen.as_json(told)
        return
    _print(told)


def _print(told: dict[str, Any]) -> None:
    screen.say(f"{told['name'] or told['project'] or 'all projects'}, {told['from']} to {told['to']} (local days)\n")
    screen.rows(_summary(told))
    for title, lines in (
        ("injections a day" if told["days"] <= WEEKS else "injections a week", _days(told)),
        ("injections by trigger", _bars(told["injections"]["by_trigger"])),
        ("used / (used + ignored), by kind", _hit_bars(told["items"]["by_kind"])),
        ("used / (used + ignored), by layer", _hit_bars(told["items"]["by_layer"])),
        ("silent, of the times that context was wanted", _silence_bars(told["silence"])),
        ("time to build", _build(told["build_ms"])),
        ("memories by kind", _bars(told["memories"]["by_kind"])),
        ("sessions by host", _bars(told["sessions"]["by_host"])),
    ):
        if lines:
            screen.say(f"\n{title}")
            screen.table(lines, headings=())
    screen.say("")
    for note in told["notes"]:
        screen.aside(note)


def _summary(told: dict[str, Any]) -> list[tuple[str, str]]:
    injections, tokens, items, model = (told[name] for name in ("injections", "tokens", "items", "model"))
    given = f"{injections['total']:,}"
    given += f", {injections['away']:,} of them by hooks without the worker" if injections["away"] else ""
    given += (
        f"; {injections['dated_ahead']:,} more are dated ahead: some clock was wrong"
        if injections["dated_ahead"]
        else ""
    )
    judged = f"{items['used']:,} used, {items['ignored']:,} ignored, {items['unjudged']:,} could not be judged"
    sizes = told["store"]["bytes_by_day"]
    grown = f", {_signed(told['store']['bytes'] - sizes[0]['bytes'])} since {sizes[0]['day']}" if sizes else ""
    each = f", {_number(tokens['per_injection'])} each" if injections["total"] else ""
    lines = [
        ("injections", given),
        ("tokens", f"{tokens['given']:,}{each}"),
        ("items", f"{items['shown']:,} shown: {judged}"),
        ("hit rate", _percent(items["hit_rate"])),
        ("per used item", f"{_number(tokens['per_used_item'])} tokens" if items["used"] else "-"),
        ("memories", f"{told['memories']['total']:,}, {told['memories']['new']:,} of them of these days"),
        ("store", f"{sized(told['store']['bytes'])} for all projects{grown}"),
        ("sessions", f"{told['sessions']['total']:,}"),
    ]
    if model["calls"] or model["refused"]:
        cost = f"{model['calls']:,} calls, {model['tokens_in']:,} tokens in, {model['tokens_out']:,} out"
        lines.append(("model", cost + (f", {model['refused']:,} refused" if model["refused"] else "")))
    return lines


def _days(told: dict[str, Any]) -> list[list[str]]:
    days = told["injections"]["by_day"]
    if not told["injections"]["total"]:
        return []
    step = 1 if len(days) <= WEEKS else 7
    parts = [days[max(0, end - step) : end] for end in range(len(days), 0, -step)]
    return _bars({part[0]["day"]: sum(day["injections"] for day in part) for part in reversed(parts)})


def _bars(numbers: dict[str, int]) -> list[list[str]]:
    most = max(numbers.values(), default=0)
    return [[f"  {name}", f"{number:,}", _bar(number, most)] for name, number in numbers.items()]


def _hit_bars(groups: dict[str, dict[str, Any]]) -> list[list[str]]:
    return [
        [f"  {name}", _percent(each["hit_rate"]), _bar(each["hit_rate"] or 0, 1), _judged(each)]
        for name, each in groups.items()
    ]


def _silence_bars(groups: dict[str, dict[str, Any]]) -> list[list[str]]:
    return [
        [f"  {name}", _percent(each["rate"]), _bar(each["rate"] or 0, 1), _of(each["silences"], each["recalls"])]
        for name, each in groups.items()
    ]


def _build(triggers: dict[str, dict[str, float]]) -> list[list[str]]:
    most = max((each["p95"] for each in triggers.values()), default=0)
    return [
        [
            f"  {name}",
            f"median {each['median']:.1f} ms, p95 {each['p95']:.1f}, max {each['max']:.1f}",
            _bar(each["p95"], most),
        ]
        for name, each in triggers.items()
    ]


def _bar(number: float, most: float) -> str:
    """A bar of its share; what is there at all is seen."""
    return "#" * (max(1, round(number / most * BAR)) if number > 0 and most > 0 else 0)


def _judged(each: dict[str, Any]) -> str:
    judged = each["used"] + each["ignored"]
    return f"{_of(each['used'], judged)}, {each['shown']:,} shown" if judged else f"{each['shown']:,} shown"


def _of(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}"


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{rate * 100:.0f} %"


def _number(given: float | None) -> str:
    return "-" if given is None else f"{given:,.0f}"


def _signed(bytes_more: int) -> str:
    return f"{'+' if bytes_more >= 0 else '-'}{sized(abs(bytes_more))}"

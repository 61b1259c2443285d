"""`stats`: what was given, whether it was used and what it cost, in tables and bars."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import connect, folder
from foreword.cli.options import AllProjects, Json, Project
from foreword.errors import BadRequest
from foreword.units import sized

BAR = 24  # characters of the longest bar
MAX_DAYS = 14  # with more days, a bar stands for a week


def stats(
    project: Project = "",
    everything: AllProjects = False,
    days: Annotated[int, typer.Option("--days", "-d", min=1, max=3650, help="Days to count, with today.")] = 30,
    json: Json = False,
) -> None:
    """Show what was given, whether it was used, and what it cost.

    Injections and their tokens, items used and ignored, how often nothing was given, build times, memories, the size
    of the store, sessions, and calls of the optional model.

    \b
    Examples:
      foreword stats
      foreword stats --all --days 7 --json
    """
    if everything and project:
        raise BadRequest("--all and --project exclude each other", hint="leave one of them out")
    where = {} if everything else {"project_path": folder(project)}
    answer = connect().get("/api/stats", days=days, **where)
    if json:
        output.write_json(answer)
        return
    name = answer["name"] or answer["project"] or "all projects"
    output.write(f"{name}, {answer['from']} to {answer['to']} (local days)\n")
    output.fields(_summary(answer))
    for title, lines in (
        ("injections a day" if days <= MAX_DAYS else "injections a week", _by_day(answer)),
        ("injections by trigger", _bars(answer["injections"]["by_trigger"])),
        ("used / (used + ignored), by kind", _hit_rates(answer["items"]["by_kind"])),
        ("used / (used + ignored), by layer", _hit_rates(answer["items"]["by_layer"])),
        ("nothing given, of all times that context was wanted", _silences(answer["silence"])),
        ("build time", _build_times(answer["build_ms"])),
        ("memories by kind", _bars(answer["memories"]["by_kind"])),
        ("sessions by agent", _bars(answer["sessions"]["by_host"])),
    ):
        if lines:
            output.write(f"\n{title}")
            output.table(lines, headings=())
    output.write("")
    for note in answer["notes"]:
        output.remark(note)


def _summary(answer: dict[str, Any]) -> list[tuple[str, str]]:
    injections, tokens, items, model = (answer[name] for name in ("injections", "tokens", "items", "model"))
    count = f"{injections['total']:,}"
    count += f", {injections['away']:,} of them by hooks without the worker" if injections["away"] else ""
    count += f"; {injections['dated_ahead']:,} more have a date in the future" if injections["dated_ahead"] else ""
    usage = f"{items['used']:,} used, {items['ignored']:,} ignored, {items['unjudged']:,} unknown"
    size, sizes = answer["store"]["bytes"], answer["store"]["bytes_by_day"]
    grown = ""
    if sizes:
        more = size - sizes[0]["bytes"]
        grown = f", {'+' if more >= 0 else '-'}{sized(abs(more))} since {sizes[0]['day']}"
    per_injection = f", {tokens['per_injection']:,.0f} each" if injections["total"] else ""
    refused = f", {model['refused']:,} refused" if model["refused"] else ""
    calls = f"{model['calls']:,} calls, {model['tokens_in']:,} tokens in, {model['tokens_out']:,} out{refused}"
    return [
        ("injections", count),
        ("tokens", f"{tokens['given']:,}{per_injection}"),
        ("items", f"{items['shown']:,} shown: {usage}"),
        ("hit rate", _percent(items["hit_rate"])),
        ("per used item", f"{tokens['per_used_item']:,.0f} tokens" if items["used"] else "-"),
        ("memories", f"{answer['memories']['total']:,}, {answer['memories']['new']:,} of them new"),
        ("store", f"{sized(size)} for all projects{grown}"),
        ("sessions", f"{answer['sessions']['total']:,}"),
        ("model", calls if model["calls"] or model["refused"] else ""),
    ]


def _by_day(answer: dict[str, Any]) -> list[list[str]]:
    days = answer["injections"]["by_day"]
    if not answer["injections"]["total"]:
        return []
    step = 1 if len(days) <= MAX_DAYS else 7
    parts = [days[max(0, end - step) : end] for end in range(len(days), 0, -step)]
    return _bars({part[0]["day"]: sum(day["injections"] for day in part) for part in reversed(parts)})


def _bars(numbers: dict[str, int]) -> list[list[str]]:
    most = max(numbers.values(), default=0)
    return [[f"  {name}", f"{number:,}", _bar(number, most)] for name, number in numbers.items()]


def _hit_rates(groups: dict[str, dict[str, Any]]) -> list[list[str]]:
    lines = []
    for name, each in groups.items():
        known = each["used"] + each["ignored"]
        of = f"{each['used']:,} of {known:,}, " if known else ""
        lines.append(
            [f"  {name}", _percent(each["hit_rate"]), _bar(each["hit_rate"] or 0, 1), f"{of}{each['shown']:,} shown"]
        )
    return lines


def _silences(groups: dict[str, dict[str, Any]]) -> list[list[str]]:
    return [
        [
            f"  {name}",
            _percent(each["rate"]),
            _bar(each["rate"] or 0, 1),
            f"{each['silences']:,} of {each['recalls']:,}",
        ]
        for name, each in groups.items()
    ]


def _build_times(triggers: dict[str, dict[str, float]]) -> list[list[str]]:
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
    return "#" * (max(1, round(number / most * BAR)) if number > 0 and most > 0 else 0)


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{rate * 100:.0f} %"

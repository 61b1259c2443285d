"""`stats`: what was given, whether it was used and what it cost."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import connect, folder
from foreword.cli.options import AllProjects, Json, Project
from foreword.encoding import sized
from foreword.errors import BadRequest


def stats(
    project: Project = "",
    everything: AllProjects = False,
    days: Annotated[int, typer.Option("--days", "-d", min=1, max=3650, help="Days to count, with today.")] = 30,
    json: Json = False,
) -> None:
    """Show what was given, whether it was used, and what it cost.

    Injections and their tokens, items used and ignored, why nothing was given, build times, memories by kind, and the
    size of the store.

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
    for title, rows in (
        ("injections by trigger", [(name, f"{n:,}") for name, n in answer["injections"]["by_trigger"].items()]),
        ("used of used and ignored, by kind", _usage(answer["items"]["by_kind"])),
        ("nothing given, by reason", _reasons(answer["no_context"])),
        ("build time", _build_times(answer["build_ms"])),
        ("memories by kind", [(name, f"{n:,}") for name, n in answer["memories"]["by_kind"].items()]),
    ):
        if rows:
            output.write(f"\n{title}")
            output.table([[f"  {first}", *rest] for first, *rest in rows], headings=())


def _summary(answer: dict[str, Any]) -> list[tuple[str, str]]:
    injections, tokens, items = (answer[name] for name in ("injections", "tokens", "items"))
    away = f", {injections['away']:,} of them by hooks without the worker" if injections["away"] else ""
    each = f", {tokens['per_injection']:,.0f} each" if injections["total"] else ""
    usage = f"{items['used']:,} used, {items['ignored']:,} ignored, {items['unjudged']:,} unknown"
    return [
        ("injections", f"{injections['total']:,}{away}"),
        ("tokens", f"{tokens['given']:,}{each}"),
        ("items", f"{items['shown']:,} shown: {usage}"),
        ("hit rate", _percent(items["hit_rate"])),
        ("per used item", f"{tokens['per_used_item']:,.0f} tokens" if items["used"] else "-"),
        ("memories", f"{answer['memories']['total']:,}"),
        ("store", f"{sized(answer['store']['bytes'])} for all projects"),
    ]


def _usage(kinds: dict[str, dict[str, Any]]) -> list[tuple[str, ...]]:
    return [
        (
            name,
            _percent(each["hit_rate"]),
            f"{each['used']:,} used, {each['ignored']:,} ignored, {each['shown']:,} shown",
        )
        for name, each in kinds.items()
    ]


def _reasons(triggers: dict[str, dict[str, int]]) -> list[tuple[str, ...]]:
    return [(trigger, why, f"{count:,}") for trigger, reasons in triggers.items() for why, count in reasons.items()]


def _build_times(triggers: dict[str, dict[str, float]]) -> list[tuple[str, ...]]:
    return [
        (name, f"median {each['median']:.1f} ms, p95 {each['p95']:.1f}, max {each['max']:.1f}")
        for name, each in triggers.items()
    ]


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{rate * 100:.0f} %"

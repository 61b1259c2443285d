"""`stats`: what was given, whether it was used and what it cost."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import connect, folder
from foreword.cli.options import AllProjects, Json, Project
from foreword.errors import BadRequest
from foreword.units import sized


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
    answer = connect().get("/api/stats", days=days, **({} if everything else {"project_path": folder(project)}))
    if json:
        output.write_json(answer)
        return
    name = answer["name"] or answer["project"] or "all projects"
    output.write(f"{name}, {answer['from']} to {answer['to']} (local days)\n")
    output.fields(_summary(answer))
    used = "{used:,} used, {ignored:,} ignored, {shown:,} shown"
    took = "median {median:.1f} ms, p95 {p95:.1f}, max {max:.1f}"
    tables: dict[str, list[list[str]]] = {
        "injections by trigger": [[name, f"{n:,}"] for name, n in answer["injections"]["by_trigger"].items()],
        "used of used and ignored, by kind": [
            [name, _percent(each["hit_rate"]), used.format(**each)] for name, each in answer["items"]["by_kind"].items()
        ],
        "nothing given, by reason": [
            [trigger, why, f"{n:,}"] for trigger, reasons in answer["no_context"].items() for why, n in reasons.items()
        ],
        "build time": [[name, took.format(**each)] for name, each in answer["build_ms"].items()],
        "memories by kind": [[name, f"{n:,}"] for name, n in answer["memories"]["by_kind"].items()],
    }
    for title, rows in tables.items():
        if rows:
            output.write(f"\n{title}")
            output.table([[f"  {first}", *rest] for first, *rest in rows], headings=())


def _summary(answer: dict[str, Any]) -> list[tuple[str, str]]:
    injections, tokens, items = (answer[name] for name in ("injections", "tokens", "items"))
    away = f", {injections['away']:,} of them by hooks without the worker" if injections["away"] else ""
    each = f", {tokens['per_injection']:,.0f} each" if injections["total"] else ""
    return [
        ("injections", f"{injections['total']:,}{away}"),
        ("tokens", f"{tokens['given']:,}{each}"),
        ("items", "{shown:,} shown: {used:,} used, {ignored:,} ignored, {unjudged:,} unknown".format(**items)),
        ("hit rate", _percent(items["hit_rate"])),
        ("per used item", f"{tokens['per_used_item']:,.0f} tokens" if items["used"] else "-"),
        ("memories", f"{answer['memories']['total']:,}"),
        ("store", f"{sized(answer['store']['bytes'])} for all projects"),
    ]


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{rate * 100:.0f} %"

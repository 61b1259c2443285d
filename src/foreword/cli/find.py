"""Words -> the memories that hold them; a moment -> exactly what an agent would be given there."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from foreword.cli import door, screen
from foreword.cli.explain import factors
from foreword.cli.memories import Json, Project
from foreword.errors import BadRequest
from foreword.units import since as ago_or_day

BODY = 240  # characters of a body in a list of results; `show` gives the rest


def search(
    query: Annotated[list[str], typer.Argument(metavar="QUERY…", help="Words, names of functions, paths.")],
    *,
    kind: Annotated[list[str] | None, typer.Option(metavar="K", help="Only this kind; may be repeated.")] = None,
    since: Annotated[str, typer.Option(metavar="WHEN", help="Not older than 30m, 12h, 7d, 2w or 2026-01-31.")] = "",
    limit: Annotated[int, typer.Option(metavar="N", min=0, help="At most so many; 0 is the setting's.")] = 0,
    compact: Annotated[bool, typer.Option("--compact", help="One line each.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Every factor of every score.")] = False,
    json: Json = False,
    project: Project = "",
) -> None:
    """Find memories by their words, best first.

    This project's memories, its languages' and the universal ones are searched. Identifiers are found by their parts:
    `action` finds resource_for_action.

    \b
    Examples:
      foreword search double booking
      foreword search --kind decision --since 30d time zone
      foreword search --compact --explain waiting list
    """
    answer = door.worker(door.here()).get(
        "/api/search",
        q=" ".join(query),
        project_path=door.folder(project),
        kinds=",".join(kind or ()),
        since=_moment(since, now=time.time()) if since else None,
        limit=limit or None,
        compact=int(compact) or None,
        explain=int(explain) or None,
    )
    if json:
        screen.as_json(answer)
        return
    screen.warn(answer["problems"])
    if not answer["results"]:
        screen.aside(f"nothing found in {answer['project']}")
    for number, result in enumerate(answer["results"]):
        if compact:
            screen.say(result["line"])
        else:
            _print_result(result, apart=number > 0)
        if explain:
            screen.say(f"  {factors(result['why'])} = {result['score']:.4f}")


def context(
    prompt: Annotated[list[str] | None, typer.Argument(metavar="[PROMPT]…", help="What the agent is asked.")] = None,
    *,
    trigger: Annotated[
        str,
        typer.Option(
            metavar="M",
            help="session_start, prompt, compaction or question; else prompt or session_start.",
        ),
    ] = "",
    budget: Annotated[int, typer.Option(metavar="N", min=0, help="At most so many tokens; 0 is the recipe's.")] = 0,
    session: Annotated[str, typer.Option(metavar="S", help="Leave out what this session was shown already.")] = "",
    json: Json = False,
    project: Project = "",
) -> None:
    """Print exactly what an agent would be given here, now.

    The text goes to stdout, and what it cost to stderr. Without a prompt it is what a new session begins with.
    Where nothing relevant is known, nothing is printed.

    \b
    Examples:
      foreword context
      foreword context "why do two bookings get the same slot?"
      foreword context --trigger compaction --budget 300
    """
    answer = door.worker(door.here()).get(
        "/api/context",
        prompt=" ".join(prompt or ()),
        project_path=door.folder(project),
        trigger=trigger,
        budget=budget or None,
        session_id=session,
        preview=1,
    )
    if json:
        screen.as_json(answer)
        return
    if answer["context"]:
        screen.exactly(answer["context"])
    screen.aside(_cost(answer))


def _print_result(result: dict[str, Any], *, apart: bool) -> None:
    from rich.text import Text

    from foreword.recall.render import ago

    out = screen.console()
    if apart:
        out.print()
    out.print(Text(screen.safe(result["title"]), style="bold"))
    about = [result["id"], result["kind"], ago(time.time() - result["created"]), f"score {result['score']:.2f}"]
    about += ["asleep"] if result.get("asleep") else []
    out.print(Text("  " + screen.safe("  ".join(about + result["files"][:3])), style="dim"))
    detail = result["detail"]
    told = detail.get("fixed_by") or detail.get("solution") or detail.get("why") or result["body"]
    if text := " ".join(str(told).split()):
        out.print(Text(f"  {screen.safe(text[:BODY])}{'…' if len(text) > BODY else ''}"))


def _cost(answer: dict[str, Any]) -> str:
    """What an answer cost and what it left out, in a line; for silence, why."""
    layers = ", ".join(f"{name} {tokens}" for name, tokens in answer["layers"].items())
    skipped = ", ".join(f"{name} ({why})" for name, why in answer["skipped"].items())
    parts = [f"{answer['tokens']} of {answer['budget']} tokens", f"{answer['build_ms']:.1f} ms"]
    parts += [f"layers: {layers}"] if layers else []
    parts += [f"skipped: {skipped}"] if skipped else []
    if answer["context"]:
        return "; ".join(parts)
    why = answer.get("why") or "nothing relevant is known, so nothing is said"
    return "; ".join([why, *parts])


def _moment(told: str, *, now: float) -> float:
    """`7d` or `2026-01-31` as seconds since 1970."""
    try:
        return ago_or_day(told, now=now)
    except BadRequest as exc:
        raise typer.BadParameter(f"{exc}; {exc.hint}", param_hint="--since") from exc

"""`search`, `context` and `resume`: what is known, what an agent would be given, and where things stand."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import connect, folder
from foreword.cli.explain import factors
from foreword.cli.options import Json, Project, Since

BODY = 240  # characters of a body in a list of results; `show` prints the rest


def search(
    query: Annotated[list[str], typer.Argument(metavar="QUERY…", help="Words, function names or paths.")],
    *,
    kind: Annotated[list[str] | None, typer.Option(metavar="K", help="Only this kind; repeatable.")] = None,
    since: Since = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Maximum number of results (default: setting search_limit).")
    ] = None,
    compact: Annotated[bool, typer.Option("--compact", help="One line per result.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Print every factor of every score.")] = False,
    json: Json = False,
    project: Project = "",
) -> None:
    """Search memories, best match first.

    Searches this project's memories, those of its languages and the universal ones. Identifiers are found by their
    parts: `action` finds resource_for_action.

    \b
    Examples:
      foreword search double booking
      foreword search --kind decision --since 30d time zone
      foreword search --compact --explain waiting list
    """
    answer = connect().get(
        "/api/search",
        q=" ".join(query),
        project_path=folder(project),
        kinds=",".join(kind or ()),
        since=since,
        limit=limit,
        compact=int(compact) or None,
        explain=int(explain) or None,
    )
    if json:
        output.write_json(answer)
        return
    output.warn(answer["problems"])
    if not answer["results"]:
        output.remark(f"nothing found in {answer['project']}")
    for number, result in enumerate(answer["results"]):
        if compact:
            output.write(result["line"])
        else:
            output.write("") if number else None
            _print_result(result)
        if explain:
            output.write(f"  {factors(result['why'])} = {result['score']:.4f}")


def context(
    prompt: Annotated[list[str] | None, typer.Argument(metavar="[PROMPT]…", help="What the agent is asked.")] = None,
    *,
    trigger: Annotated[
        str,
        typer.Option(
            metavar="T",
            help="session_start, prompt, compaction or question (default: prompt if there is one, else session_start).",
        ),
    ] = "",
    budget: Annotated[int | None, typer.Option(metavar="N", min=1, help="Maximum number of tokens.")] = None,
    session: Annotated[str, typer.Option(metavar="ID", help="Leave out what this session was given before.")] = "",
    json: Json = False,
    project: Project = "",
) -> None:
    """Print exactly what an agent would be given here, now.

    The context goes to stdout, its cost to stderr. Without a prompt it is what a new session begins with. When nothing
    relevant is known, stdout stays empty.

    \b
    Examples:
      foreword context
      foreword context "why do two bookings get the same slot?"
      foreword context --trigger compaction --budget 300
    """
    answer = connect().get(
        "/api/context",
        prompt=" ".join(prompt or ()),
        project_path=folder(project),
        trigger=trigger,
        budget=budget,
        session_id=session,
        preview=1,
    )
    if json:
        output.write_json(answer)
        return
    if answer["context"]:
        output.write_raw(answer["context"])
    output.remark(_cost(answer))


def resume(
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="Maximum number of sessions.")] = 10,
    json: Json = False,
    project: Project = "",
) -> None:
    """Print where things stand: handoffs, open items, recent sessions.

    It is the beginning of what a new session is given; reading it here does not count as given.

    \b
    Example:
      foreword resume
    """
    answer = connect().get("/api/resume", project_path=folder(project), limit=limit)
    if json:
        output.write_json(answer)
        return
    sections = [("Where things stand", answer["standing"]), ("Recent sessions", answer["sessions"])]
    blocks = ["\n".join([heading, *(point["text"] for point in points)]) for heading, points in sections if points]
    if blocks:
        output.write("\n\n".join(blocks))
    else:
        output.remark(f"nothing is known yet of {answer['name']}")


def _print_result(result: dict[str, Any]) -> None:
    output.styled(result["title"], "bold")
    about = [result["id"], result["kind"], output.age(result["created"]), f"score {result['score']:.2f}"]
    about += ["dormant"] if result.get("asleep") else []
    output.styled("  " + "  ".join(about + result["files"][:3]), "dim")
    detail = result["detail"]
    substance = detail.get("fixed_by") or detail.get("solution") or detail.get("why") or result["body"]
    if text := " ".join(str(substance).split()):
        output.styled(f"  {text[:BODY]}{'…' if len(text) > BODY else ''}", "")


def _cost(answer: dict[str, Any]) -> str:
    """Return what a context cost and which layers it left out; where it is empty, why, first."""
    layers = ", ".join(f"{name} {tokens}" for name, tokens in answer["layers"].items())
    skipped = ", ".join(f"{name} ({why})" for name, why in answer["skipped"].items() if why != "empty")
    parts = [] if answer["context"] else [answer["why"] or "nothing relevant is known, so nothing is given"]
    parts += [f"{answer['tokens']} of {answer['budget']} tokens", f"{answer['build_ms']:.1f} ms"]
    parts += [f"layers: {layers}"] if layers else []
    return "; ".join([*parts, *([f"skipped: {skipped}"] if skipped else [])])

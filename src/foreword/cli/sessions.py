"""`sessions`: list the sessions of a project, or tell one in full."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import connect, folder, route
from foreword.cli.options import AllProjects, Json, Project


def sessions(
    id: Annotated[str, typer.Argument(metavar="[ID]", help="A session, or the beginning of its id.")] = "",
    *,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="Maximum number of sessions.")] = 20,
    all: AllProjects = False,
    json: Json = False,
    project: Project = "",
) -> None:
    """List this project's sessions, or tell one in full.

    A session in full: its outcome, what is still open, its memories by kind, the functions it changed, and what it
    was given. `foreword show ID` has more of each memory.

    \b
    Examples:
      foreword sessions
      foreword sessions 3f9c2a
    """
    client = connect()
    if id:
        story = client.get(route("/api/sessions", id))
        output.write_json(story) if json else _print_story(story)
        return
    found = client.get("/api/sessions", project_path="" if all else folder(project), limit=limit)["sessions"]
    if json:
        output.write_json({"sessions": found})
    elif not found:
        output.remark("no sessions here yet")
    else:
        lines = [
            [each["id"][:8], output.age(each["last"]), each["host"], str(each["events"]), each["title"] or "(untitled)"]
            for each in found
        ]
        output.table(lines, headings=("session", "last", "agent", "events", "title"))


def _print_story(story: dict[str, Any]) -> None:
    session, memories = story["session"], story["memories"]
    summary = next((each for each in memories if each["kind"] == "summary"), {"body": ""})
    lasted = output.duration(session["last"] - session["started"])
    blocks, tokens = len(story["injections"]), sum(each["tokens"] for each in story["injections"])
    reasons = Counter(each["says"] or each["why"] for each in story["no_context"])
    kinds = {each["kind"]: None for each in memories if each["kind"] != "summary"}
    output.fields(
        [
            ("session", session["id"]),
            ("agent", session["host"]),
            ("when", f"{output.local_time(session['started'])}, {lasted} ({output.age(session['last'])})"),
            ("title", session["title"]),
            ("outcome", summary["body"]),
            ("still open", "\n".join(story["open"])),
            *((kind, "\n".join(_line(each) for each in memories if each["kind"] == kind)) for kind in kinds),
            ("code", "\n".join(map(_change, story["changes"]))),
            ("was given", f"{output.plural(blocks, 'blocks')}, {tokens} tokens" if blocks else ""),
            ("was given nothing", "\n".join(f"{times} × {why}" for why, times in reasons.most_common())),
        ]
    )


def _line(memory: dict[str, Any]) -> str:
    """Return a memory's id and title, and the most important of its detail."""
    detail = memory["detail"]
    more = detail.get("fix") or detail.get("outcome") or detail.get("why") or ""
    status = "" if memory["status"] == "active" else f" ({memory['status']})"
    return "\n  → ".join(filter(None, (f"{memory['id']}  {memory['title']}{status}", str(more))))


def _change(change: dict[str, Any]) -> str:
    return f"{change['file']}:{change['line']}  {change['signature'] or change['function']}  [{change['what']}]"

"""`sessions`: list the sessions of a project, or tell one in full."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import connect, folder, route
from foreword.cli.options import AllProjects, Json, Project

SECTIONS = (  # kinds in the order in which a session is told, with their headings
    ("decision", "decided"),
    ("preference", "rules"),
    ("correction", "corrected"),
    ("learning", "learned"),
    ("failure", "failures"),
    ("observation", "also"),
    ("handoff", "handed over"),
)


def sessions(
    id: Annotated[str, typer.Argument(metavar="[ID]", help="A session, or the beginning of its id.")] = "",
    *,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="Maximum number of sessions.")] = 20,
    all: AllProjects = False,
    json: Json = False,
    project: Project = "",
) -> None:
    """List this project's sessions, or tell one in full.

    A session in full: its outcome, what came of each prompt, the functions it changed, what failed and what worked
    instead, what was learned and decided, and what is still open.

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
    active = [each for each in memories if each["status"] == "active"]
    empty: dict[str, Any] = {"body": "", "files": [], "detail": {}}
    summary = next((each for each in memories if each["kind"] == "summary"), empty)
    lasted = output.duration(session["last"] - session["started"])
    blocks, tokens = len(story["injections"]), sum(each["tokens"] for each in story["injections"])
    reasons = Counter(each["says"] or each["why"] for each in story["no_context"])
    output.fields(
        [
            ("session", session["id"]),
            ("agent", session["host"]),
            ("when", f"{output.local_time(session['started'])}, {lasted} ({output.age(session['last'])})"),
            ("title", session["title"]),
            ("outcome", summary["body"]),
            ("work", _work(summary["detail"])),
            ("still open", "\n".join(story["open"])),
            ("turns", "\n".join(_turn(each) for each in active if each["kind"] == "turn")),
            ("changed", "\n".join(map(_change, story["changes"]))),
            ("files", "\n".join(summary["files"])),
            *((name, "\n".join(_point(each) for each in active if each["kind"] == kind)) for kind, name in SECTIONS),
            ("was given", f"{output.plural(blocks, 'blocks')}, {tokens} tokens" if blocks else ""),
            ("was given nothing", "\n".join(f"{times} × {why}" for why, times in reasons.most_common())),
        ]
    )


def _work(detail: dict[str, Any]) -> str:
    """Return branch, pull request, whether it was merged, and commits."""
    branch, pull, fate = (detail.get(name, "") for name in ("branch", "pull_request", "fate"))
    parts = (f"branch {branch}" if branch else "", f"pull request {pull}" if pull else "", fate)
    return "\n".join(filter(None, (", ".join(filter(None, parts)), *detail.get("commits", ()))))


def _turn(memory: dict[str, Any]) -> str:
    """Return a prompt in the user's words, and what came of it."""
    detail = memory["detail"]
    words = str(detail.get("user") or "").split("\n")[0]
    prompt = f'"{words}"' if words else f"({str(detail.get('author', '')).partition(':')[0] or 'no'} prompt)"
    edited = f"edited {', '.join(memory['files'])}" if memory["files"] else ""
    return f"{memory['id']}  {prompt}\n  → {detail.get('outcome') or ', '.join(detail.get('commits', ())) or edited}"


def _change(change: dict[str, Any]) -> str:
    return f"{change['file']}:{change['line']}  {change['signature'] or change['function']}  [{change['what']}]"


def _point(memory: dict[str, Any]) -> str:
    """Return a memory with its reason; of a failure, how often it came here and what fixed it, here or elsewhere."""
    line = f"{memory['id']}  {memory['title']}"
    if here := memory.get("here"):
        line += f", {here['times']} times" if here["times"] > 1 else ""
        where = f" {'later' if here['later'] else 'before'} in {here['by'][:8]}" if here["by"] else ""
        back = "; it came back" if here["open"] else ""
        return f"{line}; what worked{where}: {here['fix']}{back}" if here["fix"] else line
    why = str(memory["detail"].get("why") or "").removeprefix("because ")
    return line if not why or why in memory["title"] else f"{line}, because {why}"

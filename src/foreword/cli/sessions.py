"""Sessions -> a list, or the story of one; where things stand -> a handoff for whoever goes on."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import Annotated, Any

import typer

from foreword.cli import door, screen
from foreword.cli.memories import Json, Project, keep

STORY = (  # kinds in the order that a story is told, each with what it is called
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
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="At most so many.")] = 20,
    all: Annotated[bool, typer.Option("--all", help="Of every project.")] = False,
    json: Json = False,
    project: Project = "",
) -> None:
    """List the sessions of this project, or tell the whole story of one.

    What a session was about, what came of each prompt, the functions it changed, what failed and what worked instead,
    what was learned and decided, and what is still open.

    \b
    Examples:
      foreword sessions
      foreword sessions 3f9c2a
    """
    client = door.worker(door.here())
    if id:
        story = client.get(door.path("/api/sessions", id))
        screen.as_json(story) if json else _print_story(story)
        return
    found = client.get("/api/sessions", project_path="" if all else door.folder(project), limit=limit)["sessions"]
    if json:
        screen.as_json({"sessions": found})
        return
    if not found:
        screen.aside("no session was seen here yet")
        return
    from foreword.recall.render import ago

    now = time.time()
    lines = [
        [
            each["id"][:8],
            ago(now - each["last"]),
            each["host"],
            str(each["events"]),
            each["title"] or "(nothing said yet)",
        ]
        for each in found
    ]
    screen.table(lines, headings=("session", "last", "host", "events", "what it was about"))


def handoff(
    message: Annotated[
        list[str] | None, typer.Argument(metavar="[MESSAGE…]", help="Where things stand; `-` reads stdin.")
    ] = None,
    *,
    next: Annotated[
        list[str] | None, typer.Option("--next", metavar="TEXT", help="A next step; may be repeated.")
    ] = None,
    blocker: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="What is in the way; may be repeated.")
    ] = None,
    question: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="What is still open; may be repeated.")
    ] = None,
    file: Annotated[list[str] | None, typer.Option(metavar="F", help="A file it speaks of; may be repeated.")] = None,
    project: Project = "",
    json: Json = False,
) -> None:
    """Hand over to whoever goes on: the next session here begins with it.

    It closes what sessions before it left open. Without a message or an option, it tells where things stand now.

    \b
    Examples:
      foreword handoff "Waiting list works up to the mail" --next "call offer_slot() from cancel()"
      foreword handoff
    """
    if not (message or next or blocker or question):
        from foreword.cli.resume import resume

        resume(limit=3, json=json, project=project)
        return
    told = sys.stdin.read() if message == ["-"] else " ".join(message or ())
    title, _, body = told.strip().partition("\n")
    detail = {name: each for name, each in (("next", next), ("blockers", blocker), ("questions", question)) if each}
    first = [each for several in detail.values() for each in several]
    keep(
        {
            "kind": "handoff",
            "title": title or first[0],
            "body": body.strip("\n"),
            "files": file or [],
            "detail": detail,
        },
        scope="project",
        project=project,
        json=json,
    )


def _print_story(story: dict[str, Any]) -> None:
    from foreword.recall.render import ago

    session, memories = story["session"], story["memories"]
    active = [each for each in memories if each["status"] == "active"]
    summary = next((each for each in memories if each["kind"] == "summary"), None)
    lasted = screen.lasting(session["last"] - session["started"])
    when = f"{screen.minute(session['started'])}, {lasted}"
    told = summary["detail"] if summary else {}
    rows = [
        ("session", session["id"]),
        ("host", session["host"]),
        ("when", f"{when} ({ago(time.time() - session['last'])})"),
        ("about", session["title"]),
        ("outcome", summary["body"] if summary else ""),
        ("work", _work(told)),
        ("still open", "\n".join(story["open"])),
        ("turns", "\n".join(_turn(each) for each in active if each["kind"] == "turn")),
        ("changed", "\n".join(_change(each) for each in story["changes"])),
        ("files", "\n".join(summary["files"]) if summary else ""),
    ]
    for kind, name in STORY:
        rows.append((name, "\n".join(_point(each) for each in active if each["kind"] == kind)))
    given = sum(each["tokens"] for each in story["injections"])
    rows.append(("was given", f"{len(story['injections'])} blocks, {given} tokens" if story["injections"] else ""))
    rows.append(("was given nothing", _silent(story["silences"])))
    screen.rows((name, text) for name, text in rows if text)


def _work(detail: dict[str, Any]) -> str:
    """Where the work was done and what became of it: branch, pull request, whether that was merged, commits."""
    branch, pull, fate = (detail.get(name, "") for name in ("branch", "pull_request", "fate"))
    parts = (f"branch {branch}" if branch else "", f"pull request {pull}" if pull else "", fate)
    lines = (", ".join(filter(None, parts)), *detail.get("commits", ()))
    return "\n".join(filter(None, lines))


def _turn(memory: dict[str, Any]) -> str:
    """The user's words, who wrote them, and what came of it."""
    detail = memory["detail"]
    author = str(detail.get("author", "")).partition(":")[0]
    words = str(detail.get("user") or "").split("\n")[0]
    asked = f'"{words}"' if words else f"({author or 'no'} prompt)"
    edited = f"edited {', '.join(memory['files'])}" if memory["files"] else ""
    return f"{memory['id']}  {asked}\n  → {detail.get('outcome') or ', '.join(detail.get('commits', ())) or edited}"


def _silent(silences: list[dict[str, Any]]) -> str:
    """How often nothing was injected, and why, the most frequent reason first."""
    times = "once" if len(silences) == 1 else f"{len(silences)} times"
    whys = Counter(each["says"] or each["why"] for each in silences)
    return f"{times}: {'; '.join(f'{many} × {why}' for why, many in whys.most_common())}" if silences else ""


def _change(change: dict[str, Any]) -> str:
    return f"{change['file']}:{change['line']}  {change['signature'] or change['function']}  [{change['what']}]"


def _point(memory: dict[str, Any]) -> str:
    why = str(memory["detail"].get("why") or "").removeprefix("because ")
    why = "" if why in memory["title"] else why
    more = _fate(memory["here"]) if "here" in memory else f", because {why}" if why else ""
    return f"{memory['id']}  {memory['title']}{more}"


def _fate(here: dict[str, Any]) -> str:
    """What came of a failure in the session that is told, and in which other one it was fixed."""
    times = f", {here['times']} times" if here["times"] > 1 else ""
    where = f" later in {here['by'][:8]}" if here["later"] else f" before in {here['by'][:8]}" if here["by"] else ""
    back = "; it came back" if here["open"] else ""
    return f"{times}; what worked{where}: {here['fix']}{back}" if here["fix"] else times

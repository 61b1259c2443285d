"""`add`, `note`, `handoff`, `goal` and `show`: write memories down, and print them in full."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from foreword.agents import calling_agent
from foreword.cli import output
from foreword.cli.connection import connect, folder, full_id, refuse_agents, route
from foreword.cli.options import Files, Json, Project, Scope, did_you_mean
from foreword.encoding import read_table
from foreword.redact import redact_all

KINDS = dict(line.split(": ", 1) for line in read_table(__file__, "kinds.txt"))
KIND_LIST = "  " + "\n  ".join(f"{kind:<12} {what}" for kind, what in KINDS.items())

# How `show` names the parts of a memory's detail, where the key is not clear by itself.
DETAIL_NAMES = {"status": "goal", "user": "you typed", "author": "prompt", "next": "open", "done_since": "done since"}
INTERNAL = ("from", "key", "error_key", "last", "worked_in", "fix", "folder",
            "at_once", "blamed")  # fmt: skip
MOST_ENTRIES = 4
goal_app = typer.Typer(name="goal", rich_markup_mode=None, no_args_is_help=True)


def add(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="One of the kinds above.")],
    title: Annotated[list[str], typer.Argument(metavar="TITLE…", help="What is worth knowing, in one line.")],
    *,
    body: Annotated[str, typer.Option(metavar="TEXT", help="More about it; `-` reads stdin.")] = "",
    file: Files = None,
    scope: Scope = "project",
    project: Project = "",
    why: Annotated[str, typer.Option(metavar="TEXT", help="The reason for a decision.")] = "",
    fixed_by: Annotated[str, typer.Option(metavar="TEXT", help="What fixed a failure.")] = "",
    json: Json = False,
) -> None:
    if kind not in KINDS:
        meant = did_you_mean(kind, KINDS, otherwise="")
        output.error(f"unknown kind {kind!r}", hint=f"{meant} the kinds are\n{KIND_LIST}".strip())
        raise typer.Exit(2)
    memory = {
        "kind": kind,
        "title": " ".join(title),
        "body": sys.stdin.read() if body == "-" else body,
        "files": file or [],
        "detail": {name: text for name, text in (("why", why), ("fixed_by", fixed_by)) if text},
    }
    _store(memory, scope=scope, project=project, json=json)


add.__doc__ = f"""Remember something.

Secrets are removed before anything is written, with a warning.

\b
Kinds:
{KIND_LIST}
"""


def note(
    text: Annotated[list[str], typer.Argument(metavar="TEXT…", help="The note; `-` reads stdin.")],
    project: Project = "",
    json: Json = False,
) -> None:
    """Remember a line as it is; sort it later with `review`."""
    title, body = _title_and_body(text)
    _store({"kind": "note", "title": title, "body": body}, project=project, json=json)


def handoff(
    message: Annotated[list[str], typer.Argument(metavar="MESSAGE…", help="Where things stand; `-` reads stdin.")],
    *,
    next: Annotated[list[str] | None, typer.Option("--next", metavar="TEXT", help="A next step; repeatable.")] = None,
    blocker: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="What is in the way; repeatable.")] = None,
    question: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="An open question; repeatable.")] = None,
    file: Files = None,
    project: Project = "",
    json: Json = False,
) -> None:
    """Leave a message for the next session here.

    The next session begins with it, and it replaces what earlier sessions left open.
    """
    title, body = _title_and_body(message)
    lists = (("next", next), ("blockers", blocker), ("questions", question))
    detail = {name: items for name, items in lists if items}
    memory = {"kind": "handoff", "title": title, "body": body, "files": file or [], "detail": detail}
    _store(memory, project=project, json=json)


def show(
    ids: Annotated[list[str], typer.Argument(metavar="ID…", help="Ids, or enough of their beginnings.")],
    json: Json = False,
) -> None:
    """Show memories in full."""
    client = connect()
    found = [client.get(route("/api/memories", full_id(client, id))) for id in ids]
    output.exit_with_json(
        {"memories": [{name: each[name] for name in ("memory", "links")} for each in found]}, enabled=json
    )
    for each in found:
        _print_memory(each["memory"], links=each["links"])
        output.write("") if each is not found[-1] else None


@goal_app.callback()
def goal() -> None:
    """Add, list and finish goals.

    Open goals are injected only when a prompt speaks of goals (goal, mission, milestone, objective, roadmap).
    """


@goal_app.command("add")
def add_goal(
    title: Annotated[list[str], typer.Argument(metavar="TITLE…", help="What you want to reach, in one line.")],
    project: Project = "",
) -> None:
    """Add a goal."""
    refuse_agents()
    _store({"kind": "goal", "title": " ".join(title), "detail": {"status": "open"}}, project=project)


@goal_app.command("list")
def list_goals(
    everything: Annotated[bool, typer.Option("--all", help="Include goals that are done.")] = False,
    project: Project = "",
    json: Json = False,
) -> None:
    """List this project's goals."""
    answer = connect().get("/api/goals", project_path=folder(project), all=int(everything) or None)
    output.exit_with_json(answer, enabled=json)
    for each in answer["goals"]:
        _print_goal(each)
    output.remark(f"{answer['open']} open, {answer['done']} done")


@goal_app.command("done")
def finish_goal(
    id: Annotated[str, typer.Argument(metavar="ID", help="A goal's id, as `goal list` prints it.")],
    outcome: Annotated[str, typer.Option(metavar="TEXT", help="What was reached.")] = "",
) -> None:
    """Mark a goal as reached; `foreword undo` opens it again."""
    refuse_agents()
    client = connect()
    answer = client.post(route("/api/goals", full_id(client, id)), {"outcome": outcome})
    _print_goal(answer["memory"])


def warn_of_secrets(texts: dict[str, Any]) -> None:
    """Warn that a part of *texts* was not stored, without repeating it."""
    if redact_all(texts) != texts:
        output.warn(["a secret or a <private> part was taken out before anything was written"])


def _title_and_body(words: list[str]) -> tuple[str, str]:
    text = sys.stdin.read() if words == ["-"] else " ".join(words)
    title, _, body = text.strip().partition("\n")
    return title, body.strip("\n")


def _store(memory: dict[str, Any], *, project: str, json: bool = False, scope: str = "project") -> None:
    agent = calling_agent(os.environ)
    request = {**memory, "scope": scope, "project_path": folder(project), **({"source": agent} if agent else {})}
    answer = connect().post("/api/memories", request)
    [stored] = answer["memories"]
    if json:
        output.write_json(stored)
    else:
        output.write(output.memory_line(stored))
        output.remark(f"stored for {stored['scope']}" + (f", as written by {agent}" if agent else ""))
        for id in answer["superseded"]:
            output.remark(f"it supersedes {id}, which said otherwise")
    warn_of_secrets(memory)


def _print_goal(goal: dict[str, Any]) -> None:
    detail = goal["detail"]
    output.write(f"[{'x' if detail.get('status') == 'done' else ' '}] {goal['id']}  {goal['title']}")
    if detail.get("outcome"):
        output.write(f"      = {detail['outcome']}")


def _print_memory(memory: dict[str, Any], *, links: list[dict[str, str]]) -> None:
    output.write(memory["title"], style=output.BOLD)
    detail = [
        (DETAIL_NAMES.get(name, name.replace("_", " ")), _detail_text(name, value))
        for name, value in memory["detail"].items()
        if name not in INTERNAL and value not in ({}, [], "")
    ]
    usage = ((f"used {memory['used']}x", memory["used"]), (f"not used {memory['ignored']}x", memory["ignored"]))
    dormant = " (dormant: not injected until it is confirmed)" if memory.get("asleep") else ""
    rows = (
        ("id", memory["id"]),
        ("kind", memory["kind"]),
        ("scope", memory["scope"]),
        ("body", memory["body"]),
        *detail,
        *((name, ", ".join(memory[name])) for name in ("tags", "files", "functions")),
        ("source", f"{memory['source']} (trust: {memory['trust']})"),
        ("confidence", f"{memory['confidence']:g}{dormant}"),
        ("seen", f"{memory['seen']}x"),
        ("usage", ", ".join(text for text, times in usage if times)),
        ("pinned", "yes" if memory["pinned"] else ""),
        ("created", output.time_and_age(memory["created"])),
        ("confirmed", output.local_time(memory["confirmed"]) if memory["confirmed"] != memory["created"] else ""),
        ("session", memory["session"]),
        ("status", " by ".join(filter(None, (memory["status"], memory["superseded_by"])))),
        ("links", ", ".join(f"{link['source']} {link['relation']} {link['target']}" for link in links)),
    )
    output.fields(rows)


def _detail_text(name: str, value: object) -> str:
    """Return a value of a memory's detail; of what is counted by session or by fix, the last few."""
    if isinstance(value, dict):
        counts = {key: len(each) if isinstance(each, list) else each for key, each in value.items()}
        value = [key if each == 1 else f"{key} ({each}x)" for key, each in counts.items()]
        more = f"{len(value)} in all, the last ones " if len(value) > MOST_ENTRIES else ""
        return more + ", ".join(value[-MOST_ENTRIES:])
    if name == "code_gone" and isinstance(value, float):
        return f"since {output.local_time(value)}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

"""What a person wants kept -> a memory, told back with its id; an id -> all that is known under it."""

from __future__ import annotations

import os
import sys
import time
from typing import Annotated, Any

import typer

from foreword.cli import door, screen
from foreword.cli.speaker import speaker
from foreword.errors import NotFound

KINDS = {
    "turn": "one prompt and what came of it; sessions leave these behind by themselves",
    "summary": "what a session was about, what came of it, and what is still open",
    "handoff": "where things stand, for whoever goes on: next steps, blockers, open questions",
    "decision": "a choice, and why it was made (--why)",
    "pattern": "a problem and the solution that works here",
    "failure": "an error, and what fixed it (--fixed-by)",
    "observation": "something that was done, in a line",
    "change": "a function that is new, modified or deleted",
    "learning": "how things are here: architecture, a convention, a gotcha",
    "preference": "a rule or a taste of yours, shown at every session start",
    "correction": "what you had to correct, so that it need not be said again",
    "goal": "what all this is for; shown where a prompt speaks of goals",
    "note": "a raw line, to be sorted later",
    "project": "what this project is: its role, contracts, dependencies",
}
# Of a detail, where its name says too little or a memory has a word of its own for something else.
NAMES = {"status": "goal", "user": "you typed", "author": "prompt", "next": "open", "done_since": "done since"}
TIMES = ("seen_in", "against", "also", "succeeded_in")  # of a detail: sessions, and how often in each
MOST_SESSIONS = 4  # that are listed; of more, the newest
WORKED = ("worked", "used_in", "fixes")  # of a detail: what worked, and the sessions
OURS = ("from", "key", "error_key", "minor", "last", "last_success", "worked_in", "fix", "folder", "routine_in")
ASLEEP = ": asleep, not given by itself until it is confirmed"
AUTHORS = {
    "typed": "typed by a person",
    "mixed": "typed, with something pasted",
    "pasted": "pasted",
    "machine": "written by a program",
}
AS_TEXT = "  " + "\n  ".join(f"{kind:<12} {what}" for kind, what in KINDS.items())

Project = Annotated[str, typer.Option("--project", metavar="PATH", help="A folder of the project; else this one.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def add(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="What it is; the kinds are listed above.")],
    title: Annotated[list[str], typer.Argument(metavar="TITLE…", help="What is worth knowing, in one line.")],
    *,
    body: Annotated[str, typer.Option(metavar="TEXT", help="More about it; `-` reads it from stdin.")] = "",
    tag: Annotated[list[str] | None, typer.Option(metavar="T", help="A tag; may be repeated.")] = None,
    file: Annotated[list[str] | None, typer.Option(metavar="F", help="A file it speaks of; may be repeated.")] = None,
    function: Annotated[list[str] | None, typer.Option(metavar="F", help="A function; may be repeated.")] = None,
    scope: Annotated[
        str, typer.Option(metavar="SCOPE", help="Where it counts: project, universal, or language:NAME.")
    ] = "project",
    project: Project = "",
    why: Annotated[str, typer.Option(metavar="TEXT", help="Why it was decided.")] = "",
    fixed_by: Annotated[str, typer.Option(metavar="TEXT", help="What fixed a failure.")] = "",
    confidence: Annotated[float, typer.Option(min=0, max=1, help="How sure you are, from 0 to 1.")] = 1.0,
    json: Json = False,
) -> None:
    if kind not in KINDS:
        screen.error(f"unknown kind {kind!r}", hint=f"the kinds are\n{AS_TEXT}")
        raise typer.Exit(2)
    keep(
        {
            "kind": kind,
            "title": " ".join(title),
            "body": sys.stdin.read() if body == "-" else body,
            "tags": tag or [],
            "files": file or [],
            "functions": function or [],
            "confidence": confidence,
            "detail": {name: text for name, text in (("why", why), ("fixed_by", fixed_by)) if text},
        },
        scope=scope,
        project=project,
        json=json,
    )


add.__doc__ = f"""Remember something.

What looks like a secret is taken out before anything is written, and you are told so.

\b
Kinds:
{AS_TEXT}

\b
Examples:
  foreword add decision "Times are stored in UTC" --why "two venues lie in different zones"
  foreword add preference "No new dependencies without asking" --scope universal
  git diff | foreword add note "What I was about to do" --body -
"""


def note(
    text: Annotated[list[str], typer.Argument(metavar="TEXT…", help="The note; `-` reads it from stdin.")],
    project: Project = "",
    json: Json = False,
) -> None:
    """Remember a line as it is, to be sorted later.

    \b
    Example:
      foreword note the mail sandbox rejects our sender until Friday
    """
    told = sys.stdin.read() if text == ["-"] else " ".join(text)
    title, _, body = told.strip().partition("\n")
    keep({"kind": "note", "title": title, "body": body.strip("\n")}, scope="project", project=project, json=json)


def show(
    ids: Annotated[list[str], typer.Argument(metavar="ID…", help="Ids, as search and the agent's notes give them.")],
    json: Json = False,
) -> None:
    """Show memories in full, with everything that is known about each.

    \b
    Example:
      foreword show dec-7k2m9qxw
    """
    client = door.worker(door.here())
    found, missing = [], []
    for id in ids:
        try:
            answer = client.get(door.path("/api/memories", id))
            found.append({"memory": answer["memory"], "links": answer["links"]})
        except NotFound as exc:
            missing.append((str(exc), exc.hint))
    if json:
        screen.as_json({"memories": found})
    else:
        for number, each in enumerate(found):
            _print_all(each["memory"], links=each["links"], apart=number > 0)
    for message, hint in missing:
        screen.error(message, hint=hint)
    if missing:
        raise typer.Exit(1)


def keep(told: dict[str, Any], *, scope: str, project: str, json: bool) -> None:
    by = speaker(os.environ)
    asked = {**told, "scope": scope, "project_path": door.folder(project), **({"source": by} if by else {})}
    answer = door.worker(door.here()).post("/api/memories", asked)
    [memory] = answer["memories"]
    if json:
        screen.as_json(memory)
    else:
        screen.say(screen.memory(memory))
        screen.aside(f"kept for {memory['scope']}" + (f", as said by {by}, whose shell this is" if by else ""))
        for id in answer["superseded"]:
            screen.aside(f"{id} was chosen otherwise before, and is superseded by it")
    warn_of_secrets(told)


def warn_of_secrets(told: dict[str, Any]) -> None:
    """Tell that something of what was said is not kept; what it was is not said again."""
    from foreword.redact import redact_all

    if redact_all(told) != told:
        screen.warn(["something in it looked like a secret or was private, and was taken out before it was written"])


def _print_all(memory: dict[str, Any], *, links: list[dict[str, str]], apart: bool) -> None:
    from rich.text import Text

    from foreword.recall.render import ago

    now = time.time()
    out = screen.console()
    if apart:
        out.print()
    out.print(Text(screen.safe(memory["title"]), style="bold"))
    detail = [
        (NAMES.get(name, name.replace("_", " ")), _part(name, told))
        for name, told in memory["detail"].items()
        if name not in OURS and told not in ({}, [], "")
    ]
    screen.rows(
        (name, told)
        for name, told in (
            ("id", memory["id"]),
            ("kind", memory["kind"]),
            ("scope", memory["scope"]),
            ("body", memory["body"]),
            *detail,
            ("tags", _listed(memory["tags"])),
            ("files", _listed(memory["files"])),
            ("functions", _listed(memory["functions"])),
            ("said by", f"{memory['source']} (trust: {memory['trust']})"),
            ("confidence", f"{memory['confidence']:g}" + (ASLEEP if memory.get("asleep") else "")),
            ("seen", f"{memory['seen']}x"),
            ("use", _use(memory)),
            ("pinned", "yes" if memory["pinned"] else ""),
            ("created", f"{screen.minute(memory['created'])} ({ago(now - memory['created'])})"),
            ("confirmed", screen.minute(memory["confirmed"]) if memory["confirmed"] != memory["created"] else ""),
            ("session", memory["session"]),
            ("status", " by ".join(filter(None, (memory["status"], memory["superseded_by"])))),
            ("links", _listed([f"{link['source']} {link['relation']} {link['target']}" for link in links])),
        )
        if told
    )


def _part(name: str, told: object) -> str:
    """A part of a detail as people say it."""
    if name in TIMES and isinstance(told, dict):
        named = [each if times == 1 else f"{each} {times}x" for each, times in told.items()]
        more = f"{screen.counted(len(named), 'sessions')}, the last of them " if len(named) > MOST_SESSIONS else ""
        return more + ", ".join(named[-MOST_SESSIONS:])
    if name in WORKED and isinstance(told, dict):
        return "\n".join(f"{what} ({screen.counted(len(_several(by)), 'sessions')})" for what, by in told.items())
    if name == "author" and isinstance(told, str):
        author, _, why = told.partition(": ")
        return f"{AUTHORS.get(author, author)} ({why})" if why else AUTHORS.get(author, author)
    if name == "code_gone" and isinstance(told, dict):
        return f"since {screen.minute(told['since'])}; its confidence was {told['confidence']:g}"
    return ("yes" if told else "no") if isinstance(told, bool) else _listed(told)


def _several(told: object) -> list[object]:
    return told if isinstance(told, list) else [told]


def _use(memory: dict[str, Any]) -> str:
    """What came of it where it was shown, as far as it was judged."""
    told = (f"used {memory['used']}x", memory["used"]), (f"not used {memory['ignored']}x", memory["ignored"])
    return ", ".join(text for text, times in told if times)


def _listed(told: object) -> str:
    if isinstance(told, list):
        return ", ".join(_listed(each) for each in told)
    return told if isinstance(told, str) else repr(told)

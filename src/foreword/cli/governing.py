"""What a person wants of what is remembered: other words, a pin, another in its place, taken back; and who did what."""

from __future__ import annotations

import os
import sys
import time
from typing import Annotated, Any

import typer

from foreword.cli import door, screen
from foreword.cli.memories import Json, warn_of_secrets
from foreword.cli.speaker import speaker
from foreword.errors import BadRequest

Id = Annotated[str, typer.Argument(metavar="ID", help="The memory, as search and show name it.")]
Project = Annotated[
    str, typer.Option("--project", metavar="PATH|KEY", help="The project it is of, by folder or key; else this one.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


def revise(
    id: Id,
    *,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="What is worth knowing, in one line.")] = None,
    body: Annotated[str | None, typer.Option(metavar="TEXT", help="More about it; `-` reads it from stdin.")] = None,
    why: Annotated[str | None, typer.Option(metavar="TEXT", help="Why it was decided.")] = None,
    fixed_by: Annotated[str | None, typer.Option(metavar="TEXT", help="What fixed a failure.")] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="T", help="The tags; may be repeated.")] = None,
    file: Annotated[list[str] | None, typer.Option(metavar="F", help="The files; may be repeated.")] = None,
    function: Annotated[list[str] | None, typer.Option(metavar="F", help="The functions; may be repeated.")] = None,
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="What it is; its id stays the same.")] = None,
    scope: Annotated[
        str | None, typer.Option(metavar="SCOPE", help="Where it counts: project, universal, or language:NAME.")
    ] = None,
    confidence: Annotated[float | None, typer.Option(min=0, max=1, help="How sure you are, from 0 to 1.")] = None,
    project: Project = "",
    json: Json = False,
) -> None:
    """Change what a memory says.

    Only what you name changes; an empty text takes it away, and --tag, --file and --function stand for the whole list.
    Without any of them your editor is opened. Its id, its links and its use stay. What a session says of the same thing
    later leaves your words alone. `foreword undo` takes it back.

    \b
    Examples:
      foreword revise dec-7k2m9qxw --title "Times are stored in UTC" --why "two venues lie in different zones"
      foreword revise dec-7k2m9qxw
    """
    lists = {"tags": tag, "files": file, "functions": function}
    told: dict[str, Any] = {
        "title": title,
        "body": sys.stdin.read() if body == "-" else body,
        "why": why,
        "fixed_by": fixed_by,
        "kind": kind,
        "scope": scope,
        "confidence": confidence,
        **{name: [each for each in given if each] for name, given in lists.items() if given is not None},
    }
    told = {name: given for name, given in told.items() if given is not None} or _from_editor(id)
    if not told:
        screen.aside("nothing was changed")
        return
    answer = _ask(door.path("/api/memories", id), told, project=project)
    if json:
        screen.as_json(answer)
        return
    memory = answer["memory"]
    if answer["proposed"]:
        waits = "waits for a yes in `foreword review`" if answer["waits"] else "was decided by the user before"
        screen.say(f"{memory['id']}  a proposal for {id}, which the user said: it {waits}")
        return
    screen.say(screen.memory(memory))
    screen.aside(f"revised: {answer['entry']['why']}; `foreword undo {answer['entry']['number']}` takes it back")
    warn_of_secrets(told)


def pin(
    id: Id,
    off: Annotated[bool, typer.Option("--off", help="Let it go again.")] = False,
    project: Project = "",
    json: Json = False,
) -> None:
    """Hold on to a memory: it ranks higher, and no use or disuse changes that.

    \b
    Examples:
      foreword pin dec-7k2m9qxw
      foreword pin dec-7k2m9qxw --off
    """
    answer = _ask("/api/pin", {"id": id, "off": off}, project=project)
    if json:
        screen.as_json(answer)
        return
    memory = answer["memory"]
    screen.say(screen.memory(memory))
    screen.aside("no longer pinned" if off else "pinned")


def supersede(
    old: Annotated[str, typer.Argument(metavar="OLD", help="What is no longer true.")],
    new: Annotated[str, typer.Argument(metavar="[NEW]", help="What takes its place.")] = "",
    *,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Or what is true now, in one line.")] = None,
    body: Annotated[str | None, typer.Option(metavar="TEXT", help="More about it; with --title.")] = None,
    why: Annotated[str | None, typer.Option(metavar="TEXT", help="Why that is so; with --title.")] = None,
    project: Project = "",
    json: Json = False,
) -> None:
    """Put a memory in another one's place: the old one is kept, linked, and no longer shown.

    \b
    Examples:
      foreword supersede dec-7k2m9qxw dec-bg3qbxmz
      foreword supersede dec-7k2m9qxw --title "Permissions cascade again" --why "too many rows"
    """
    if bool(new) == (title is not None):
        raise BadRequest("name either the memory that takes its place, or a --title", hint="foreword supersede -h")
    told = {"old": old, "new": new, "title": title, "body": body, "why": why}
    answer = _ask("/api/supersede", {name: given for name, given in told.items() if given}, project=project)
    if json:
        screen.as_json(answer)
        return
    screen.say(screen.memory(answer["by"]))
    number = answer["entry"]["number"]
    screen.aside(f"supersedes {old}: {answer['memory']['title']}; `foreword undo {number}` takes it back")
    warn_of_secrets(told)


def undo(
    which: Annotated[
        str, typer.Argument(metavar="[ENTRY|RUN]", help="A number of the log, or a run; else the last of this project.")
    ] = "",
    project: Project = "",
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Take back what the log says was done: a revision, a pin, what tidy did, a yes in review.

    Without a number it is the last entry of this project that still stands, with all that you chose together with it;
    it is shown, and you are asked. What has changed again since is left as it is, and told. Taking back can be taken
    back, by its own number. What was forgotten is gone, and cannot be.

    \b
    Examples:
      foreword undo
      foreword undo 14
    """
    told: dict[str, Any] = {"entry": int(which)} if which.isdecimal() else {"run": which} if which else {}
    found = _ask("/api/undo", {**told, "preview": True}, project=project)["entries"]
    if not yes:
        _show(found, stderr=json)
        screen.agree(f"take {'it' if len(found) == 1 else 'all of it'} back?", hint="look at it, and add --yes")
    if not which:  # what was shown, and not what came in between
        told = {"entry": found[0]["number"]} if len(found) == 1 else {"run": found[0]["run"]}
    answer = _ask("/api/undo", told, project=project)
    if json:
        screen.as_json(answer)
    else:
        _tell_undone(answer)
    if not answer["undone"]:
        raise typer.Exit(1)


def log(
    *,
    memory: Annotated[str, typer.Option("--memory", metavar="ID", help="Only what happened to this one.")] = "",
    project: Project = "",
    everything: Annotated[bool, typer.Option("--all", help="Every project.")] = False,
    since: Annotated[str, typer.Option(metavar="WHEN", help="30m, 12h, 7d, 2w or a day like 2026-01-31.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")] = 50,
    json: Json = False,
) -> None:
    """Who wrote, changed and forgot what, and when; the newest first.

    A line with a number is an entry that `foreword undo` takes back; the others tell how a memory came to be.

    \b
    Examples:
      foreword log --since 7d
      foreword log --memory dec-7k2m9qxw
    """
    from foreword.audit import Happened, line
    from foreword.units import since as when

    asked = {} if everything or (memory and not project) else door.project(project)
    after = when(since, now=time.time()) if since else 0.0
    client = door.worker(door.here())
    told = client.get("/api/log", memory=memory, since=after or "", limit=limit, **asked)["log"]
    if json:
        screen.as_json({"log": told})
        return
    for each in told:
        screen.say(line(Happened(**{**each, "memories": tuple(each["memories"])}), when=screen.minute(each["at"])))
    if not told:
        screen.aside("nothing happened here yet" if not since else "nothing happened here since then")


def _from_editor(id: str) -> dict[str, Any]:
    """What is different in a form that the user was given; only where somebody can be given one."""
    from foreword.cli import editing

    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise BadRequest("nothing is to be different", hint="give --title, --body, … (see foreword revise -h)")
    home = door.here()
    memory = door.worker(home).get(door.path("/api/memories", id), explain=1)["memory"]
    saved = editing.edited(editing.form(memory), environ=os.environ, folder=home.root)
    return editing.read(saved, memory=memory)


def _ask(path: str, told: dict[str, Any], *, project: str) -> dict[str, Any]:
    by = speaker(os.environ)
    return door.worker(door.here()).post(path, {**told, **door.project(project), **({"by": by} if by else {})})


def _show(entries: list[dict[str, Any]], *, stderr: bool) -> None:
    from foreword.audit import AuditEntry, chronicle, line

    tell = screen.aside if stderr else screen.say
    logged = [AuditEntry(**{**each, "memories": tuple(each["memories"])}) for each in entries]
    for each in chronicle(logged, (), limit=len(logged)):
        tell(line(each, when=screen.minute(each.at)))


def _tell_undone(answer: dict[str, Any]) -> None:
    from foreword.audit import PAST

    what = {each["number"]: PAST.get(each["what"], each["what"]) for each in answer["entries"]}
    refused = {int(number): why for number, why in answer["refused"].items()}
    taken_back = [number for number in sorted(what, reverse=True) if number not in refused]  # the newest first
    for number, each in zip(taken_back, answer["undone"], strict=False):
        about = ", ".join(each["memories"]) or each["project"]
        screen.say(f"took back {number}: {what[number]} {about} (entry {each['number']})")
    for number, why in refused.items():
        screen.error(f"entry {number} stays as it is: {why}", hint="")

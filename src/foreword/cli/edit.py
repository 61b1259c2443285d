"""`revise`, `pin`, `supersede`, `undo` and `log`: change memories, take changes back, and list who did what."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import calling_agent, connect, full_id, project_query, route, this_home
from foreword.cli.memories import warn_of_secrets
from foreword.cli.options import AllProjects, Id, Json, ProjectOrKey, Since, Yes
from foreword.errors import BadRequest, ForewordError

if TYPE_CHECKING:
    from foreword.worker.client import Client

FORM_FIELDS = ("title", "why", "fixed_by", "tags", "files", "functions", "kind", "scope", "confidence")
LISTS = ("tags", "files", "functions")
BODY_MARK = "---"
FORM_HEAD = """\
# {id}: lines that begin with # are ignored; separate list entries by commas; the body follows the line ---.
# Save the file to revise the memory; leave it unchanged to keep the memory as it is.
"""


def revise(
    id: Id,
    *,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="What is worth knowing, in one line.")] = None,
    body: Annotated[str | None, typer.Option(metavar="TEXT", help="More about it; `-` reads stdin.")] = None,
    why: Annotated[str | None, typer.Option(metavar="TEXT", help="The reason for a decision.")] = None,
    fixed_by: Annotated[str | None, typer.Option(metavar="TEXT", help="What fixed a failure.")] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="T", help="A tag; repeatable.")] = None,
    file: Annotated[list[str] | None, typer.Option(metavar="F", help="A file; repeatable.")] = None,
    function: Annotated[list[str] | None, typer.Option(metavar="F", help="A function; repeatable.")] = None,
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="Another kind; the id stays the same.")] = None,
    scope: Annotated[
        str | None, typer.Option(metavar="SCOPE", help="Where it applies: project, universal or language:NAME.")
    ] = None,
    confidence: Annotated[float | None, typer.Option(min=0, max=1, help="How sure you are, from 0 to 1.")] = None,
    project: ProjectOrKey = "",
    json: Json = False,
) -> None:
    """Change what a memory says.

    Only what you name changes; an empty text removes it, and --tag, --file and --function replace the whole list.
    Without any option your editor opens. Later sessions do not overwrite your words. `foreword undo` takes it back.

    \b
    Examples:
      foreword revise dec-7k2m9qxw --title "Times are stored in UTC" --why "two venues lie in different zones"
      foreword revise dec-7k2m9qxw
    """
    lists = {"tags": tag, "files": file, "functions": function}
    options: dict[str, Any] = {
        "title": title,
        "body": sys.stdin.read() if body == "-" else body,
        "why": why,
        "fixed_by": fixed_by,
        "kind": kind,
        "scope": scope,
        "confidence": confidence,
        **{name: [each for each in items if each] for name, items in lists.items() if items is not None},
    }
    client = connect()
    id = full_id(client, id)
    changes = {name: value for name, value in options.items() if value is not None} or _from_editor(client, id)
    if not changes:
        output.remark("nothing was changed")
        return
    answer = _post(client, route("/api/memories", id), changes, project=project)
    if json:
        output.write_json(answer)
        return
    memory = answer["memory"]
    if answer["proposed"]:
        state = "waits in `foreword review`" if answer["waits"] else "was decided on before"
        output.write(f"{memory['id']}  a proposal to change {id}, which has the user's trust: it {state}")
        return
    output.write(output.memory_line(memory))
    output.remark(f"revised: {answer['entry']['why']}; `foreword undo {answer['entry']['number']}` takes it back")
    warn_of_secrets(changes)


def pin(
    id: Id,
    off: Annotated[bool, typer.Option("--off", help="Remove the pin.")] = False,
    project: ProjectOrKey = "",
    json: Json = False,
) -> None:
    """Pin a memory: it ranks higher, whether or not it is used.

    \b
    Examples:
      foreword pin dec-7k2m9qxw
      foreword pin dec-7k2m9qxw --off
    """
    client = connect()
    answer = _post(client, "/api/pin", {"id": full_id(client, id), "off": off}, project=project)
    if json:
        output.write_json(answer)
        return
    output.write(output.memory_line(answer["memory"]))
    output.remark("no longer pinned" if off else "pinned")


def supersede(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The memory that is no longer true.")],
    new: Annotated[str, typer.Argument(metavar="[NEW]", help="The memory that replaces it.")] = "",
    *,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Or what is true now, in one line.")] = None,
    body: Annotated[str | None, typer.Option(metavar="TEXT", help="More about it; with --title.")] = None,
    why: Annotated[str | None, typer.Option(metavar="TEXT", help="The reason; with --title.")] = None,
    project: ProjectOrKey = "",
    json: Json = False,
) -> None:
    """Replace a memory; the old one is kept but no longer given.

    \b
    Examples:
      foreword supersede dec-7k2m9qxw dec-bg3qbxmz
      foreword supersede dec-7k2m9qxw --title "Permissions cascade again" --why "too many rows"
    """
    if bool(new) == (title is not None):
        raise BadRequest("give either the memory that replaces it, or --title", hint="foreword supersede --help")
    client = connect()
    old, new = full_id(client, old), full_id(client, new) if new else ""
    texts = {"title": title, "body": body, "why": why}
    request = {name: value for name, value in {"old": old, "new": new, **texts}.items() if value}
    answer = _post(client, "/api/supersede", request, project=project)
    if json:
        output.write_json(answer)
        return
    output.write(output.memory_line(answer["by"]))
    number = answer["entry"]["number"]
    output.remark(f"supersedes {old}: {answer['memory']['title']}; `foreword undo {number}` takes it back")
    warn_of_secrets(texts)


def undo(
    which: Annotated[
        str, typer.Argument(metavar="[ENTRY|RUN]", help="A number or run of the log (default: the last entry here).")
    ] = "",
    project: ProjectOrKey = "",
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Take back a change of memories.

    A revision, a pin, a run of tidy, a decision in review: it is shown first, and you are asked. What has changed again
    since then stays as it is. An undo is an entry of the log too, and can be undone. What was forgotten cannot be
    brought back.

    \b
    Examples:
      foreword undo
      foreword undo 14
    """
    client = connect()
    request: dict[str, Any] = {"entry": int(which)} if which.isdecimal() else {"run": which} if which else {}
    entries = _post(client, "/api/undo", {**request, "preview": True}, project=project)["entries"]
    if not yes:
        _print_entries(entries, stderr=json)
        output.confirm(f"Undo {'this' if len(entries) == 1 else 'all of this'}?")
    if not which:  # what was shown, and not what came in between
        request = {"entry": entries[0]["number"]} if len(entries) == 1 else {"run": entries[0]["run"]}
    answer = _post(client, "/api/undo", request, project=project)
    if json:
        output.write_json(answer)
    else:
        _print_undone(answer)
    if not answer["undone"]:
        raise typer.Exit(1)


def log(
    *,
    memory: Annotated[str, typer.Option("--memory", metavar="ID", help="Only changes of this memory.")] = "",
    project: ProjectOrKey = "",
    everything: AllProjects = False,
    since: Since = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of entries.")] = 50,
    json: Json = False,
) -> None:
    """List who added, changed and forgot what, newest first.

    `foreword undo NUMBER` takes back a line that has a number.

    \b
    Examples:
      foreword log --since 7d
      foreword log --memory dec-7k2m9qxw
    """
    from foreword.audit import Happened, line

    client = connect()
    where = {} if everything or (memory and not project) else project_query(project)
    memory = full_id(client, memory) if memory else ""
    entries = client.get("/api/log", memory=memory, since=since or "", limit=limit, **where)["log"]
    if json:
        output.write_json({"log": entries})
        return
    for each in entries:
        happened = Happened(**{**each, "memories": tuple(each["memories"])})
        output.write(line(happened, when=output.local_time(each["at"])))
    if not entries:
        output.remark("no entries since then" if since else "no entries yet")


def form(memory: Mapping[str, Any]) -> str:
    """Return a memory as a text to edit."""
    lines = "".join(f"{name.replace('_', ' ')}: {_field(memory, name)}\n" for name in FORM_FIELDS)
    return f"{FORM_HEAD.format(id=memory['id'])}{lines}{BODY_MARK}\n{memory['body']}\n"


def read_form(text: str, *, memory: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields in which an edited form differs from *memory*."""
    head, mark, body = f"\n{text}".partition(f"\n{BODY_MARK}\n")
    fields: dict[str, str] = {}
    for line in head.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, value = line.partition(":")
        name = name.strip().replace(" ", "_")
        if not colon or name not in FORM_FIELDS:
            hint = "nothing was changed; text of several lines goes below ---"
            raise BadRequest(f"{line[:60]!r} is not a field of the form", hint=hint)
        fields[name] = value.strip()
    changes = {name: _value(name, text) for name, text in fields.items() if text != _field(memory, name)}
    if mark and body.strip("\n") != memory["body"].strip("\n"):
        changes["body"] = body.strip("\n")
    return changes


def _from_editor(client: Client, id: str) -> dict[str, Any]:
    """Open the user's editor on a memory and return what was changed."""
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise BadRequest("no changes", hint="pass --title, --body, … (see foreword revise --help)")
    memory = client.get(route("/api/memories", id), explain=1)["memory"]
    return read_form(_edit(form(memory), folder=this_home().root), memory=memory)


def _edit(text: str, *, folder: Path) -> str:
    """Return *text* as the user's editor leaves it; the file is readable by the user alone and removed afterwards."""
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    number, path = tempfile.mkstemp(prefix="revise-", suffix=".txt", dir=folder)
    try:
        with open(number, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        ended = subprocess.run([*editor, path], check=False)  # noqa: S603 - the user's own editor
        if ended.returncode:
            raise ForewordError(f"{editor[0]} exited with {ended.returncode}", hint="nothing was changed; try again")
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            return file.read()
    except OSError as exc:
        raise ForewordError(f"cannot run {editor[0]}: {exc.strerror}", hint="set EDITOR, or pass options") from exc
    finally:
        with suppress(OSError):
            os.unlink(path)


def _field(memory: Mapping[str, Any], name: str) -> str:
    if name in ("why", "fixed_by"):
        return _one_line(memory["detail"].get(name) or "")
    if name in LISTS:
        return _one_line(", ".join(memory[name]))
    if name == "scope":
        return "project" if memory["scope"].startswith("project:") else str(memory["scope"])
    return f"{memory[name]:g}" if name == "confidence" else _one_line(memory[name])


def _one_line(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _value(name: str, text: str) -> Any:
    if name in LISTS:
        return [each.strip() for each in text.split(",") if each.strip()]
    if name == "confidence":
        try:
            return float(text)
        except ValueError as exc:
            raise BadRequest("confidence must be a number from 0 to 1", hint="nothing was changed") from exc
    return text


def _post(client: Client, path: str, request: dict[str, Any], *, project: str) -> dict[str, Any]:
    agent = calling_agent(os.environ)
    return client.post(path, {**request, **project_query(project), **({"by": agent} if agent else {})})


def _print_entries(entries: list[dict[str, Any]], *, stderr: bool) -> None:
    from foreword.audit import AuditEntry, chronicle, line

    print_line = output.remark if stderr else output.write
    logged = [AuditEntry(**{**each, "memories": tuple(each["memories"])}) for each in entries]
    for each in chronicle(logged, (), limit=len(logged)):
        print_line(line(each, when=output.local_time(each.at)))


def _print_undone(answer: dict[str, Any]) -> None:
    from foreword.audit import PAST

    what = {each["number"]: PAST.get(each["what"], each["what"]) for each in answer["entries"]}
    refused = {int(number): why for number, why in answer["refused"].items()}
    undone = [number for number in sorted(what, reverse=True) if number not in refused]  # newest first
    for number, each in zip(undone, answer["undone"], strict=False):
        about = ", ".join(each["memories"]) or each["project"]
        output.write(f"undid {number}: {what[number]} {about} (entry {each['number']})")
    for number, why in refused.items():
        output.error(f"entry {number} was not undone: {why}")

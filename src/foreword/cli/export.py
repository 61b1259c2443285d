"""Memory -> one file of JSON lines that `foreword import jsonl` reads, whole or not at all."""

from __future__ import annotations

import json as text
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from foreword import __version__
from foreword.cli import door, screen
from foreword.cli.memories import Json, Project
from foreword.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.worker.client import Client

HEADER = 1000  # bytes kept free for the first line, which counts what follows it


def export(
    file: Annotated[str, typer.Argument(metavar="[FILE]", help="Where to; `-` is stdout.")] = "-",
    *,
    project: Project = "",
    everything: Annotated[bool, typer.Option("--all", help="Every project, and what counts everywhere.")] = False,
    events: Annotated[bool, typer.Option("--events", help="Also what hosts told: much, and rarely needed.")] = False,
    json: Json = False,
) -> None:
    """Write memories, links, changes and sessions to a file, one JSON object a line.

    `foreword import jsonl FILE` brings them back, here or on another machine. The file is readable by you alone, and
    there is no half of one.

    \b
    Examples:
      foreword export rooms.jsonl
      foreword export --all --events everything.jsonl
      foreword export - | gzip > rooms.jsonl.gz
    """
    if everything and project:
        raise BadRequest("--all and --project exclude each other", hint="leave one out")
    where = {"all": 1} if everything else {"project_path": door.folder(project)}
    client = door.worker(door.here(), seconds=door.LONG)
    path = "" if file == "-" else os.path.realpath(door.folder(file))
    folder = os.path.dirname(path) or None
    if path and (os.path.isdir(path) or not os.path.isdir(folder or "")):
        raise BadRequest(f"{path} is no place for a file", hint="give the path of a file in a folder that exists")
    handle, temporary = tempfile.mkstemp(prefix=".foreword-export-", dir=folder)  # 0600
    try:
        with open(handle, "w+b") as out:
            counts = _write(out, client, where, events=events)
            if path:
                out.flush()
                os.fsync(out.fileno())
                os.replace(temporary, path)
            else:
                out.seek(0)
                shutil.copyfileobj(out, sys.stdout.buffer)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
    if json and path:
        screen.as_json({"file": path, "counts": counts})
        return
    told = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count) or "nothing is known here"
    screen.aside(f"{path or 'stdout'}: {told}")


def _write(out: IO[bytes], client: Client, where: dict[str, Any], *, events: bool) -> dict[str, int]:
    """Every row, and at the end the first line, which tells how many there are."""
    out.write(b" " * HEADER + b"\n")
    counts: Counter[str] = Counter()
    for part, row in _rows(client, where, events=events):
        out.write(text.dumps({part: row}, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n")
        counts[part] += 1
    named = {part: counts[part] for part in ("memory", "link", "change", "session", "event")}
    project = "" if "all" in where else client.get("/api/export", part="session", **where)["project"]
    header = {"format": "foreword export", "version": 1, "foreword": __version__, "at": time.time()}
    line = text.dumps({**header, "project": project, "counts": named}).encode()
    out.seek(0)
    out.write(line.ljust(HEADER))
    return named


def _rows(client: Client, where: dict[str, Any], *, events: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is spoken of comes before what speaks of it."""
    sessions = client.get("/api/export", part="session", **where)
    projects = {sessions["project"], *(session["project"] for session in sessions["rows"])}
    for session in sessions["rows"]:
        for row in _pages(client, "event", {**where, "of": session["id"]}) if events else ():
            yield "event", row
        yield "session", session
    for row in _pages(client, "memory", where):
        projects.add(row["project"])
        yield "memory", row
    for project in sorted(filter(None, projects)):
        for row in _pages(client, "change", {**where, "of": project}):
            yield "change", row
    for row in _pages(client, "link", where):
        yield "link", row


def _pages(client: Client, part: str, where: dict[str, Any]) -> Iterator[dict[str, Any]]:
    after = 0
    while True:
        page = client.get("/api/export", part=part, after=after, **where)
        yield from page["rows"]
        after = page["next"]
        if not after:
            return

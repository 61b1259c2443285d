"""Define the options and arguments that several commands share."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from foreword.encoding import since
from foreword.errors import BadRequest


def _parse_since(text: str) -> float:
    try:
        return since(text, now=time.time())
    except BadRequest as exc:
        raise typer.BadParameter(f"{exc}; {exc.hint}") from exc


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Project = Annotated[str, typer.Option("--project", metavar="PATH", help="A folder of the project (default: this one).")]
ProjectOrKey = Annotated[
    str, typer.Option("--project", metavar="PATH|KEY", help="The project, by folder or key (default: this folder).")
]
AllProjects = Annotated[bool, typer.Option("--all", help="All projects.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="A memory's id, or enough of its beginning.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Since = Annotated[
    float | None,
    typer.Option(parser=_parse_since, metavar="WHEN", help="Not older than 30m, 12h, 7d, 2w or 2026-01-31."),
]
Scope = Annotated[str, typer.Option(metavar="SCOPE", help="Where it applies: project, universal or language:NAME.")]
Files = Annotated[list[str] | None, typer.Option("--file", metavar="FILE", help="A file that it is about; repeatable.")]

"""Charts -> an SVG where the user wants it, and told where it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foreword.cli import screen
from foreword.errors import BadRequest

if TYPE_CHECKING:
    from foreword.plot import Bars, Lines

Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE.svg", help="Draw it too, into this file.")]


def check_plot(path: Path | None) -> None:
    """Before a minute of work, not after it."""
    if path and path.suffix.lower() != ".svg":
        raise BadRequest(f"{path} is no name for an SVG", hint="give --plot a file that ends with .svg")
    if path and not path.absolute().parent.is_dir():
        raise BadRequest(f"there is no folder {path.absolute().parent}", hint="make it first, or draw elsewhere")


def draw(path: Path, charts: Sequence[Lines | Bars]) -> None:
    from foreword.plot import svg

    path.write_text(svg(charts), encoding="utf-8")
    screen.aside(f"drawn: {path}")

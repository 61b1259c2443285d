"""Every route of the viewer, each a line: what a person opens, our own files, and what the pages ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.http import Request, Response
from foreword.routing import Routes
from foreword.web import files
from foreword.web.live import Live

if TYPE_CHECKING:
    from foreword.worker.keeper import Keeper


def routes_of(keeper: Keeper, live: Live) -> Routes:
    """Path (with an id behind it where that ends in a slash) -> method -> answer."""

    def page(_: Request) -> Response:
        return files.file("index.html")

    return {
        # what a person opens; which page it is, the script reads from the address
        "/": {"GET": page},
        "/now": {"GET": page},
        "/now/": {"GET": page},
        "/timeline": {"GET": page},
        "/timeline/": {"GET": page},
        "/memories": {"GET": page},
        "/memories/": {"GET": page},
        "/try": {"GET": page},
        "/health": {"GET": page},
        # our own files
        "/static/": {"GET": lambda asked: files.file(asked.path.removeprefix("/static/"))},
        # what the pages ask
        "/api/live": {"GET": lambda _: live.stream()},
        "/api/projects": {"GET": lambda _: keeper.projects.every()},
    }

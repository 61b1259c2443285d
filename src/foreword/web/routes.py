"""Every route of the viewer, each a line: what a person opens, our own files, and what the pages ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.http import Request, Response
from foreword.routing import Routes, last, object_in, whole, word
from foreword.web import browsing, files, memories, now, trial
from foreword.web.health import MOST_DAYS, Figures, health
from foreword.web.live import Live
from foreword.web.story import story
from foreword.web.timeline import timeline

if TYPE_CHECKING:
    from foreword.worker.keeper import Keeper


def routes_of(keeper: Keeper, live: Live) -> Routes:
    """Path (with an id behind it where that ends in a slash) -> method -> answer."""

    figures = Figures(keeper)

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
        "/api/now": {
            "GET": lambda asked: now.now(
                keeper, session=word(asked, "session"), limit=whole(asked, "limit", now.TEXTS, most=now.MOST)
            )
        },
        "/api/prompts/": {"GET": lambda asked: now.prompt(keeper, last(asked), session=word(asked, "session"))},
        "/api/injections/": {"GET": lambda asked: keeper.injection(last(asked))},
        "/api/timeline": {
            "GET": lambda asked: timeline(
                keeper,
                project=word(asked, "project"),
                before=word(asked, "before"),
                limit=whole(asked, "limit", 30, most=200),
            )
        },
        "/api/sessions/": {"GET": lambda asked: story(keeper, last(asked))},
        "/api/health": {"GET": lambda _: health(keeper)},
        "/api/health/figures": {
            "GET": lambda asked: figures.of(word(asked, "project"), days=whole(asked, "days", 30, most=MOST_DAYS))
        },
        "/api/projects": {"GET": lambda _: browsing.projects(keeper)},
        "/api/memories": {"GET": lambda asked: browsing.browse(keeper, asked)},
        "/api/facets": {"GET": lambda asked: browsing.facets(keeper, asked)},
        "/api/memories/": {
            "GET": lambda asked: memories.about(keeper, last(asked)),
            "POST": lambda asked: memories.revise(keeper, last(asked), object_in(asked)),
        },
        "/api/pin": {"POST": lambda asked: keeper.governing.pin(object_in(asked))},
        "/api/aside": {"POST": lambda asked: keeper.governing.put_aside(object_in(asked))},
        "/api/tags": {"POST": lambda asked: keeper.governing.tag(object_in(asked))},
        "/api/supersede": {"POST": lambda asked: memories.supersede(keeper, object_in(asked))},
        "/api/undo": {"POST": lambda asked: keeper.governing.undo(object_in(asked))},
        "/api/forget": {"POST": lambda asked: keeper.forget(object_in(asked))},
        "/api/review": {
            "GET": lambda asked: memories.waiting(
                keeper,
                project=word(asked, "project"),
                limit=whole(asked, "limit", memories.MOST_WAITING, most=memories.MOST_WAITING),
            ),
            "POST": lambda asked: keeper.decide(object_in(asked)),
        },
        "/api/try": {
            "GET": lambda asked: trial.choices(keeper, project=word(asked, "project"), session=word(asked, "session")),
            "POST": lambda asked: trial.trial(keeper, object_in(asked)),
        },
    }

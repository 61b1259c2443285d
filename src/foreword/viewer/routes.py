"""Every route of the viewer, each a line: what a person opens, our own files, and what the pages ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.viewer import browsing, files, memories, now, preview
from foreword.viewer.health import MOST_DAYS, Figures, health
from foreword.viewer.live import Live
from foreword.viewer.story import story
from foreword.viewer.timeline import timeline
from foreword.worker.http import Request, Response
from foreword.worker.routing import Routes, last, object_in, whole, word

if TYPE_CHECKING:
    from foreword.worker.app import App


def routes_of(app: App, live: Live) -> Routes:
    """Path (with an id behind it where that ends in a slash) -> method -> answer."""

    figures = Figures(app)

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
                app, session=word(asked, "session"), limit=whole(asked, "limit", now.TEXTS, most=now.MOST)
            )
        },
        "/api/prompts/": {"GET": lambda asked: now.prompt(app, last(asked), session=word(asked, "session"))},
        "/api/injections/": {"GET": lambda asked: app.injection(last(asked))},
        "/api/timeline": {
            "GET": lambda asked: timeline(
                app,
                project=word(asked, "project"),
                before=word(asked, "before"),
                limit=whole(asked, "limit", 30, most=200),
            )
        },
        "/api/sessions/": {"GET": lambda asked: story(app, last(asked))},
        "/api/health": {"GET": lambda _: health(app)},
        "/api/health/figures": {
            "GET": lambda asked: figures.of(word(asked, "project"), days=whole(asked, "days", 30, most=MOST_DAYS))
        },
        "/api/projects": {"GET": lambda _: browsing.projects(app)},
        "/api/memories": {"GET": lambda asked: browsing.browse(app, asked)},
        "/api/facets": {"GET": lambda asked: browsing.facets(app, asked)},
        "/api/memories/": {
            "GET": lambda asked: memories.about(app, last(asked)),
            "POST": lambda asked: memories.revise(app, last(asked), object_in(asked)),
        },
        "/api/pin": {"POST": lambda asked: app.governing.pin(object_in(asked))},
        "/api/aside": {"POST": lambda asked: app.governing.put_aside(object_in(asked))},
        "/api/tags": {"POST": lambda asked: app.governing.tag(object_in(asked))},
        "/api/supersede": {"POST": lambda asked: memories.supersede(app, object_in(asked))},
        "/api/undo": {"POST": lambda asked: app.governing.undo(object_in(asked))},
        "/api/forget": {"POST": lambda asked: app.forget(object_in(asked))},
        "/api/review": {
            "GET": lambda asked: memories.waiting(
                app,
                project=word(asked, "project"),
                limit=whole(asked, "limit", memories.MOST_WAITING, most=memories.MOST_WAITING),
            ),
            "POST": lambda asked: app.decide(object_in(asked)),
        },
        "/api/try": {
            "GET": lambda asked: preview.choices(app, project=word(asked, "project"), session=word(asked, "session")),
            "POST": lambda asked: preview.trial(app, object_in(asked)),
        },
    }

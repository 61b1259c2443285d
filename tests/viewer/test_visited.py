"""What the tests of this folder visited -> every route, method and action of the app; it runs behind all of them."""

from __future__ import annotations

from foreword.routing import route_of
from foreword.web.routes import routes_of

ROUTES = routes_of(None, None)  # type: ignore[arg-type] # nothing is asked of them here
# What the pages ask of each route that changes something (or tries it), in the words of `conftest.verb`.
ACTIONS: dict[str, set[str]] = {
    "/api/memories/": {""},
    "/api/pin": {"", "off", "several", "off several"},
    "/api/aside": {"", "off", "several", "off several"},
    "/api/tags": {"add several", "remove several"},
    "/api/supersede": {"", "new"},
    "/api/undo": {"entry", "run"},
    "/api/forget": {"dry_run", "", "dry_run several", "several"},
    "/api/review": {
        *(f"do={what}" for what in ("accept", "refuse", "promote", "discard", "accept scope")),
        *(f"do={what} several" for what in ("accept", "refuse", "promote")),
    },
    "/api/try": {""},
}


def test_every_action_is_of_a_route_and_every_route_that_changes_has_one():
    assert set(ACTIONS) == {path for path, methods in ROUTES.items() if "POST" in methods}


def test_every_route_method_and_action_was_visited(visited):
    been = {(method, route_of(ROUTES, path), verb) for method, path, verb in visited}
    every = {(method, path) for path, methods in ROUTES.items() for method in methods}
    assert sorted(every - {each[:2] for each in been}) == [], "no test of the browser visited these"
    asked = {("POST", path, verb) for path, verbs in ACTIONS.items() for verb in verbs}
    assert sorted(asked - been) == [], "no test of the browser did these"

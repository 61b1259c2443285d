"""What the tests of this folder visited -> every route and method of the app; it runs behind all of them."""

from __future__ import annotations

from foreword.routing import route_of
from foreword.web.routes import routes_of


def test_every_route_and_method_was_visited(visited):
    routes = routes_of(None, None)  # type: ignore[arg-type] # nothing is asked of them here
    been = {(method, route_of(routes, path)) for method, path in visited}
    every = {(method, path) for path, methods in routes.items() for method in methods}
    assert sorted(every - been) == [], "no test of the browser visited these"
